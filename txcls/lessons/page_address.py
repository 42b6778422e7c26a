"""The parameters of an app page's URL: checkpoints, text, layer, head, step, switches and so on.

A `View` describes what a page shows; `params_from_view` writes it as URL parameters, and `view_from_params` reads them
back. In a lesson, a URL holds only what differs from the lesson's step (`Anchor`). Layers and heads are numbered from 1
in the URL and on screen, and from 0 in code.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import parse_qsl

from txcls.data.datasets import EXAMPLES
from txcls.inspection.patching import TokenGroup

MAX_LINKED_CHARACTERS = 2000
"""Longer texts are left out of the URL: browsers and proxies truncate long addresses."""
MAX_CHARACTERS = 20_000
"""Maximum number of characters that are read from a text, unless a host sets another limit."""
MAX_NAME_LENGTH = 255
"""Maximum length of the name of a checkpoint or a step."""
MAX_SEED = 999_999
MAX_SHOWN_CLASSES = 20
"""Maximum number of classes that are listed individually."""
MAX_STEPS = 10**12
MAX_LINKED_CONTINUATION = 200
"""Maximum number of tokens of a continuation in the URL; longer ones are left out."""

LanguagePart = Literal["fill", "continue"]
"""The sections of the Language model page."""
HeadChange = Literal["mean", "zero", "uniform"]
"""What replaces a head that is switched off: its mean output, zeros, or uniform attention."""
Experiment = Literal["", "words", "patch"]
"""The experiments on What if; "" is `words`."""
Stage = Literal["", TokenGroup]
"""The steps on What if: which tokens carry the difference between two texts."""
Mode = Literal["", "lecture"]
"""How pages are shown: normally, or as slides (`txcls/app/shell/lecture.py`)."""
UNSET = -1
"""`layer` or `head` if the URL names none: the page picks one."""
Section = Literal[
    "", "words", "merges", "similar", "arcs", "score", "pooling",
    "shuffles", "similarity", "vectors", "models",
    "numbers", "classes", "pairs", "confidence", "kinds", "training",
]  # fmt: skip
"""The parts of Tokens, Attention, Positions and Report that are drawn on demand, one at a time; "" for none."""

CELL = re.compile(r"(row|[A-Z])([0-9]{1,4})")
"""A selected row or column on Step by step, as in the URL: the letter of its axis (`row` for tokens) and its index."""
SWITCH = re.compile(r"[1-9][0-9]{0,2}\.([1-9][0-9]{0,2}|ff)|t[1-9][0-9]{0,3}|positions")
"""A part that can be switched, as in the URL: layer.head, layer.ff, t and a token's position, or `positions`."""
MAX_SWITCHED = 200
PLAYGROUND: dict[str, tuple[str, ...]] = {
    "task": ("messages", "few", "winner", "agreement", "repeated", "ends", "majority", "own"),
    "start": ("random", "encoder"),
    "layers": ("0", "1", "2", "3"),
    "heads": ("1", "2", "4"),
    "width": ("16", "32", "64"),
    "positions": ("sinusoidal", "learned", "none"),
    "pooling": ("mean", "attention", "class_token"),
    "rate": ("0.0003", "0.001", "0.003", "0.01", "0.1"),
    "batch": ("8", "32", "128"),
    "seed": ("1", "2", "3", "4", "5"),
    "lesson": ("1", "2", "3", "4", "5", "why-1", "why-2", "why-3"),
}
"""The settings of the playground (txcls/web/playground/settings.js) and the steps of its lessons, as in its URL."""
MAX_PLAYGROUND_TEXT = 500
SLIDE = "slide"
"""The parameter for the slide number of a page in lecture mode, from 1. The browser writes it; links leave it out."""


@dataclass(frozen=True, slots=True)
class View:
    """What a page shows; in lists, parts that the checkpoint or text does not have are ignored."""

    checkpoint: str = ""
    versus: str = ""  # the checkpoint to compare with
    text: str = EXAMPLES[0].text
    k: int = 4  # how many classes are listed individually
    layer: int = UNSET  # the selected head, from 0
    head: int = UNSET
    step: str = ""  # the step of the forward pass on Step by step, "" for the first
    cell: tuple[str, ...] = ()  # selected rows and columns on Step by step, from 0; one `CELL` per axis
    section: Section = ""  # the part of a page that is drawn on demand
    query: int = 0  # the only token whose attention is drawn as arcs, from 1; 0 for all
    pair: tuple[int, ...] = ()  # query and key that Attention compares, from 1; empty for the largest weight
    order: tuple[int, ...] = ()  # positions of the words, from 0, as shown on Positions; empty for its default
    flips: bool = False  # whether What if has searched for the smallest change that flips the class
    changed: str = ""  # the second version of the text on What if, "" if it equals the first
    experiment: Experiment = ""
    stage: Stage = ""  # the group of tokens that is framed in the grid
    patched: tuple[int, ...] = ()  # part and token of the patched cell, from 1; empty for the strongest head
    switched: tuple[str, ...] = ()  # the parts that are switched off, each a `SWITCH`
    heads: HeadChange = "mean"
    training_step: int = 0  # the optimiser step on Training film, which the browser writes into the URL
    playground: str = ""  # the settings of Playground, such as `task=ends&layers=1`, which the browser writes too
    part: LanguagePart = "fill"
    masked: str = ""  # the checkpoints of the Language model page, "" for the first available
    causal: str = ""
    blank: int = 0  # which word is blanked out, from 1; 0 lets the page choose
    upto: int = 0  # how many tokens are read before the next one is predicted, 0 for all
    added: tuple[int, ...] = ()  # token ids of the continuation
    temperature: float = 1.0  # how the continuation is sampled
    top_k: int = 0  # 0 for all tokens
    top_p: float = 1.0
    seed: int = 0
    mode: Mode = ""


def _integer_parser(low: int, high: int = 10_000, *, offset: int = 0) -> Callable[[str], int]:
    """Return a parser of whole numbers that clips to the range and then subtracts `offset`."""
    return lambda raw: min(max(int(raw), low), high) - offset


def _decimal_parser(low: float, high: float) -> Callable[[str], float]:
    def read(raw: str) -> float:
        if math.isnan(number := float(raw)):
            raise ValueError("not a number")
        return round(min(max(number, low), high), 2)

    return read


def _integers_parser(limit: int, high: int = 10_000) -> Callable[[str], tuple[int, ...]]:
    """Return a parser of at most `limit` whole numbers, joined by dots, that clips each to 0 to `high`."""
    return lambda raw: tuple(min(max(int(number), 0), high) for number in raw.split(".")[:limit])


def _playground(raw: str) -> str:
    """The settings of the playground, unchanged; ValueError if one of them is invalid."""
    for name, value in parse_qsl(raw, keep_blank_values=True, strict_parsing=True, max_num_fields=20):
        is_text = name == "text" and len(value) <= MAX_PLAYGROUND_TEXT
        if not is_text and value not in PLAYGROUND.get(name, ()):
            raise ValueError("not a setting of the playground")
    return sendable(raw)


def _name(raw: str) -> str:
    return sendable(raw[:MAX_NAME_LENGTH])


_MAX_LENGTHS = {"pair": 2, "patched": 2, "order": 200, "added": MAX_LINKED_CONTINUATION}
"""Maximum lengths of the lists in a URL."""
_PARSERS: dict[str, Callable[[str], Any]] = {
    "k": _integer_parser(1), "layer": _integer_parser(1, offset=1), "head": _integer_parser(1, offset=1),
    **dict.fromkeys(("blank", "upto", "top_k", "query"), _integer_parser(0)),
    "seed": _integer_parser(0, MAX_SEED), "training_step": _integer_parser(0, MAX_STEPS),
    "temperature": _decimal_parser(0.0, 2.0), "top_p": _decimal_parser(0.05, 1.0),
    "pair": _integers_parser(_MAX_LENGTHS["pair"]), "patched": _integers_parser(_MAX_LENGTHS["patched"]),
    "order": _integers_parser(_MAX_LENGTHS["order"]),
    "added": _integers_parser(_MAX_LENGTHS["added"], 10**9),
    "cell": lambda raw: tuple(part for part in raw.split(".")[:10] if CELL.fullmatch(part)),
    "step": _name, "masked": _name, "causal": _name, "playground": _playground,
}  # fmt: skip
"""The function that reads each field's parameter; it raises ValueError if the parameter is malformed."""
_CHOICES: dict[str, Any] = {
    "heads": HeadChange, "section": Section, "part": LanguagePart, "mode": Mode,
    "experiment": Experiment, "stage": Stage,
}  # fmt: skip
"""Fields with a few possible values, which the URL holds unchanged."""
_FLAGS = ("flips",)
"""Fields that are on or off; the URL holds `on`."""
RESET_WITH_TEXT: dict[str, Any] = {"query": 0, "pair": (), "patched": (), "flips": False}
"""Fields that are reset by a new text or model."""


def sendable(text: str) -> str:
    """Replace lone surrogates, which cannot be encoded as UTF-8, with U+FFFD."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def cut_text(text: str, notes: list[str], *, limit: int) -> str:
    """The text, cut to `limit` characters and encodable as UTF-8; adds a note if it was cut."""
    if len(text) > limit:
        notes.append(f"This text is longer than {limit:,} characters: the first {limit:,} are read.")
    return sendable(text[:limit])


def view_from_params(
    params: Mapping[str, str],
    *,
    checkpoints: Sequence[str],
    first_text: Callable[[str], str] = lambda _: EXAMPLES[0].text,
    max_characters: int = MAX_CHARACTERS,
) -> tuple[View, list[str]]:
    """The view that a URL's parameters describe, and a note about each unusable parameter.

    `first_text` gives a checkpoint's text if the URL has none; at most `max_characters` of a text are read.
    Never fails: unknown names and malformed numbers become the default, numbers out of range the nearest valid one.
    """
    view, notes = View(checkpoint=next(iter(checkpoints), "")), []
    name = params.get("checkpoint")
    if name is not None and name in checkpoints:
        view = replace(view, checkpoint=name)
    elif name is not None and checkpoints:
        notes.append(f"There is no checkpoint “{sendable(name)[:60]}” here; {view.checkpoint} is shown instead.")
    versus = params.get("versus", "")
    if versus in checkpoints and versus != view.checkpoint:
        view = replace(view, versus=versus)
    elif versus and versus not in checkpoints:
        notes.append(f"There is no checkpoint “{sendable(versus)[:60]}” here to compare with.")
    if "text" in params:
        view = replace(view, text=cut_text(params["text"], notes, limit=max_characters))
    elif view.checkpoint:
        view = replace(view, text=first_text(view.checkpoint))
    changes: dict[str, Any] = {
        name: params[name] for name, choices in _CHOICES.items() if params.get(name) in get_args(choices)
    }
    changes |= {name: True for name in _FLAGS if params.get(name) == "on"}
    if "changed" in params:
        changes["changed"] = cut_text(params["changed"], notes, limit=max_characters)
    for name, parse in _PARSERS.items():
        if name in params:
            try:
                changes[name] = parse(params[name])
            except ValueError:
                notes.append(f"“{name}={sendable(params[name])[:20]}” in the link is malformed; it was ignored.")
    requested = [part for part in params.get("switched", "").split(",", 2 * MAX_SWITCHED) if part]
    changes["switched"] = tuple(dict.fromkeys(part for part in requested[:MAX_SWITCHED] if SWITCH.fullmatch(part)))
    if invalid := next((part for part in requested if not SWITCH.fullmatch(part)), None):
        notes.append(f"“{sendable(invalid)[:20]}” in the link is not a part of a model; it was ignored.")
    return replace(view, **changes), notes


def value_in(params: Mapping[str, str], name: Literal["training_step", "playground"]) -> Any:
    """A field that the browser writes into the URL; its default if it is missing or malformed."""
    try:
        return _PARSERS[name](params[name])
    except (KeyError, ValueError):
        return getattr(View(), name)


def params_from_view(view: View) -> dict[str, str]:
    """The URL parameters of a view: the checkpoint, the text unless it is too long, and other values if not default."""
    default = View()
    params = {"checkpoint": view.checkpoint}
    if len(view.text) <= MAX_LINKED_CHARACTERS:
        params["text"] = view.text
    if view.changed and len(view.text) + len(view.changed) <= MAX_LINKED_CHARACTERS:
        params["changed"] = view.changed
    for name in View.__dataclass_fields__:
        value = getattr(view, name)
        if name in ("checkpoint", "text", "changed") or value == getattr(default, name):
            continue
        if isinstance(value, tuple):
            if len(value) <= _MAX_LENGTHS.get(name, len(value)):
                params[name] = ("," if name == "switched" else ".").join(map(str, value))
        elif name in _FLAGS:
            params[name] = "on"
        else:
            params[name] = str(value + 1) if name in ("layer", "head") else str(value)
    return params


def page_names() -> tuple[str, ...]:
    """The names of the app's pages that show a checkpoint, as in URLs, in alphabetical order."""
    pages = {file.stem for file in (Path(__file__).parents[1] / "app" / "pages").glob("*.py")}
    return tuple(sorted(pages - {"__init__", "lessons", "playground"}))


def find_unusable(params: Mapping[str, str], *, checkpoints: Sequence[str]) -> dict[str, str]:
    """Parameters that a URL would ignore or change, each with the reason; empty if all are usable."""
    problems: dict[str, str] = {}
    for name, value in params.items():
        single = {"checkpoint": params.get("checkpoint", ""), name: value}
        view, notes = view_from_params(single, checkpoints=checkpoints, first_text=lambda _: "")
        written = params_from_view(view)
        if notes:
            problems[name] = notes[-1]
        elif (name == SLIDE and value.isdecimal()) or (name not in written and str(getattr(View(), name, "")) == value):
            continue
        elif name not in written:
            is_known = name in View.__dataclass_fields__ or name == SLIDE
            problems[name] = f"“{value[:40]}” is not a valid value" if is_known else "there is no such parameter"
        elif written[name] != value:
            problems[name] = f"“{value[:40]}” would be read as “{written[name][:40]}”"
    return problems


LESSON_PARAMS = ("lesson", "step", "lang", "page")
"""Parameters that name a lesson, its step and language, and another page opened from the lesson."""
STEP_IN_LESSON = "at"
"""Within a lesson, the parameter for the current step of the page Step by step; `step` is then the lesson's step."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """What URLs are relative to during a lesson.

    Attributes:
        lesson: the parameters that name the lesson and its step.
        base: the parameters of the step.
    """

    lesson: Mapping[str, str]
    base: Mapping[str, str]

    def relative(self, params: Mapping[str, str]) -> dict[str, str]:
        """The parameters that name the step, and those that differ from it; an empty value removes one of the
        step's."""
        changes = {name: value for name, value in params.items() if self.base.get(name) != value}
        changes |= {name: "" for name in self.base if name not in params and name != "text"}
        if "step" in changes:
            changes[STEP_IN_LESSON] = changes.pop("step")
        return {**self.lesson, **changes}

    def absolute(self, params: Mapping[str, str]) -> dict[str, str]:
        """The parameters of a URL within the lesson, completed with those of the step."""
        changes = {name: value for name, value in params.items() if name not in LESSON_PARAMS}
        if STEP_IN_LESSON in changes:
            changes["step"] = changes.pop(STEP_IN_LESSON)
        return {name: value for name, value in {**self.base, **changes}.items() if value or name == "text"}


def changes_from_step(params: Mapping[str, str]) -> dict[str, str]:
    """Parameters of a URL within a lesson that differ from the lesson's step, without the mode and the slide."""
    return {name: value for name, value in params.items() if name not in (*LESSON_PARAMS, SLIDE, "mode")}
