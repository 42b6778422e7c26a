"""The state of a session, and the URL that restores it: checkpoints, text, k, layer, head, step, switches, ….

Each browser session has one `View`. Widgets change it through callbacks, pages read it, and `publish` writes it to the
URL. Layers and heads count from 1 in the URL and on screen, and from 0 in code.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import streamlit as st

from txcls.app.limits import limits
from txcls.data.examples import EXAMPLES

LONGEST_LINKED_TEXT = 2000
"""Longer texts are left out of the URL: browsers and proxies truncate long addresses."""
LONGEST_NAME = 255
"""Longest name of a checkpoint or a step."""
LARGEST_SEED = 999_999
MOST_ROWS = 20
"""Most classes that are listed individually."""
MOST_STEPS = 10**12
LONGEST_LINKED_CONTINUATION = 200
"""Longer continuations, in tokens, are left out of the URL too."""

Part = Literal["fill", "continue", "masks"]
"""The parts of the Language model page."""
HeadChange = Literal["off", "uniform", "shuffled"]
"""What the Switchboard does to a head."""
Substitute = Literal["zero", "mean"]
"""What replaces the output of a part that is switched off."""

HeadOrder = Literal["worth", "story", "entropy", "number"]
"""What the Head atlas sorts by."""
Mode = Literal["", "lecture"]
"""How pages are shown: as usual, or as slides (`lecture.py`)."""
OPEN = -1
"""Layer or head of a view that names none: the page opens on the head that is worth most."""

Target = Literal["logit", "probability"]
Baseline = Literal["blank", "zero"]
Encoding = Literal["learned", "formula"]
Section = Literal["arcs", "score", "heads", "rollout", "pooling"]
"""The parts of the Attention page that are drawn one at a time."""

CELL = re.compile(r"(row|[A-Z])([0-9]{1,4})")
"""A chosen row or column on Step by step, as in the URL: the letter of its axis, `row` for tokens, and its index."""
MOST_ORDERED = 200
SWITCH = re.compile(r"[1-9][0-9]{0,2}\.([1-9][0-9]{0,2}|ff)|t[1-9][0-9]{0,3}|positions")
"""A part that can be switched, as in the URL: layer.head, layer.ff, t and a token's position, or `positions`."""
MOST_SWITCHED = 200
SLIDE = "slide"
"""The parameter that names the slide of a page in lecture mode, from 1. The browser writes it; links leave it out."""
JOB = "job"
"""The parameter with the token of a visitor's files (`own.py`); only the address bar has it, links leave it out."""
JOB_TOKEN = "_job_token"
"""Where the session's state holds it."""


@dataclass(frozen=True, slots=True)
class View:
    """What a session shows.

    Attributes:
        checkpoint: by name.
        versus: the checkpoint to compare with, "" for none.
        text: the text in the box.
        k: how many classes are listed individually.
        layer, head: the selected head, from 0; `OPEN` if none is named.
        step: the step of the forward pass on Step by step, "" for the first.
        cell: the rows and columns chosen on Step by step, each a `CELL`, from 0; one for each axis.
        predict: whether Step by step asks a question before it shows numbers.
        guess: the answer to the question of this step, from 1; 0 for none.
        target, baseline: what attributions on Explanation? explain, and where integrated gradients start.
        section: the part of Attention below its map.
        query: the token whose attention alone is drawn as arcs, from 1; 0 for all.
        pair: the query and the key that Attention compares by dimension, from 1; empty for the largest weight.
        encoding: what Positions shows for a model with learned positions.
        order: the places of the text's words, from 0, in the order on Positions; empty for the page's own.
        flips: whether What if has searched for the smallest change that flips the class.
        word: the token of the vocabulary that is selected on Neighbourhood, by id; 0 for none.
        changed: the second version of the text on What if, "" if it equals the first.
        switched: the parts that are changed on the Switchboard, each a `SWITCH`; those that a checkpoint or a text does
            not have are ignored.
        heads: what is done to a switched head.
        off: what replaces a part that is switched off.
        sort: the order of the heads on Head atlas.
        training_step: the optimiser step on Training film, 0 for the beginning. The browser itself writes it into the
            URL, so that a slider can move without the server.
        part: the part of the Language model page.
        masked, causal: the checkpoints of the Language model page, "" for the first available.
        blank: which word is blanked out, from 1; 0 lets the page choose.
        upto: how many tokens of the text are read before the next one is predicted, 0 for all.
        added: token ids of the continuation.
        temperature, top_k, top_p, seed: how the continuation is sampled; `top_k` 0 for all tokens.
        mode: how pages are shown.
    """

    checkpoint: str = ""
    versus: str = ""
    text: str = EXAMPLES[0].text
    k: int = 4
    layer: int = OPEN
    head: int = OPEN
    step: str = ""
    cell: tuple[str, ...] = ()
    predict: bool = False
    guess: int = 0
    target: Target = "logit"
    baseline: Baseline = "blank"
    section: Section = "arcs"
    query: int = 0
    pair: tuple[int, ...] = ()
    encoding: Encoding = "learned"
    order: tuple[int, ...] = ()
    flips: bool = False
    word: int = 0
    changed: str = ""
    switched: tuple[str, ...] = ()
    heads: HeadChange = "off"
    off: Substitute = "zero"
    sort: HeadOrder = "worth"
    training_step: int = 0
    part: Part = "fill"
    masked: str = ""
    causal: str = ""
    blank: int = 0
    upto: int = 0
    added: tuple[int, ...] = ()
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    mode: Mode = ""


_NUMBERS = (
    ("k", 1, 0), ("layer", 1, 1), ("head", 1, 1), ("blank", 0, 0), ("upto", 0, 0), ("top_k", 0, 0), ("guess", 0, 0),
    ("query", 0, 0), ("word", 0, 0),
)  # fmt: skip
"""Integers in the URL: name, smallest value, and what is subtracted from it in code."""
_CHOICES = (
    ("heads", HeadChange), ("off", Substitute), ("sort", HeadOrder), ("target", Target), ("baseline", Baseline),
    ("encoding", Encoding), ("section", Section), ("part", Part), ("mode", Mode),
)  # fmt: skip
"""Fields with a few possible values, which the URL holds as they are."""
_YES = ("predict", "flips")
"""Fields that are on or off; the URL holds `on`."""
_LISTS = (("pair", 2), ("order", MOST_ORDERED))
"""Lists of numbers, joined by dots in the URL, and their largest length."""
_OF_TOKENS: dict[str, Any] = {"guess": 0, "query": 0, "pair": (), "flips": False}
"""Fields that another text, or another model, resets."""


def sendable(text: str) -> str:
    """`text` with U+FFFD for lone surrogates, which cannot be encoded as UTF-8."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def as_read(text: str, notes: list[str]) -> str:
    """The text, cut to `limits().characters` and encodable as UTF-8; adds a note if it was cut."""
    most = limits().characters
    if len(text) > most:
        notes.append(f"This text is longer than {most:,} characters: the first {most:,} are read.")
    return sendable(text[:most])


def view_from_params(
    params: Mapping[str, str],
    *,
    checkpoints: Sequence[str],
    first_text: Callable[[str], str] = lambda _: EXAMPLES[0].text,
) -> tuple[View, list[str]]:
    """The view that a URL's parameters describe, and a note about each parameter that was not usable.

    `first_text` gives a checkpoint's text where the URL has none.
    Never fails: unknown names and malformed numbers become the default, numbers out of range the nearest valid one.
    """
    view, notes = View(checkpoint=checkpoints[0] if checkpoints else ""), []
    wanted = params.get("checkpoint")
    if wanted is not None and wanted in checkpoints:
        view = replace(view, checkpoint=wanted)
    elif wanted is not None and checkpoints:
        notes.append(f"There is no checkpoint “{sendable(wanted)[:60]}” here; this is {view.checkpoint}.")
    other = params.get("versus", "")
    if other in checkpoints and other != view.checkpoint:
        view = replace(view, versus=other)
    elif other and other not in checkpoints:
        notes.append(f"There is no checkpoint “{sendable(other)[:60]}” here to compare with.")
    if "text" in params:
        view = replace(view, text=as_read(params["text"], notes))
    elif view.checkpoint:
        view = replace(view, text=first_text(view.checkpoint))
    changes: dict[str, Any] = {}
    if "step" in params:
        changes["step"] = sendable(params["step"][:LONGEST_NAME])
    if "changed" in params:
        changes["changed"] = as_read(params["changed"], notes)
    for name, low, offset in _NUMBERS:
        raw = params.get(name, params.get("topk") if name == "k" else None)
        if (number := _number(name, raw, notes, whole=True)) is not None:
            changes[name] = int(min(max(number, low), 10_000)) - offset
    changes["training_step"] = _training_step(params, notes)
    changes |= _choice_params(params, notes)
    return replace(view, **changes, **_switch_params(params, notes), **_language_params(params, notes)), notes


def _choice_params(params: Mapping[str, str], notes: list[str]) -> dict[str, Any]:
    """Fields with a few possible values, fields that are on or off, lists of numbers, and chosen cells."""
    changes: dict[str, Any] = {name: params[name] for name, of in _CHOICES if params.get(name) in get_args(of)}
    changes |= {name: True for name in _YES if params.get(name) == "on"}
    for name, most in _LISTS:
        if name in params:
            try:
                changes[name] = tuple(min(max(int(one), 0), 10_000) for one in params[name].split(".")[:most])
            except ValueError:
                notes.append(f"“{name}={sendable(params[name])[:20]}” in the link is malformed; it was ignored.")
    if "cell" in params:
        parts = params["cell"].split(".")[:10]
        changes["cell"] = tuple(part for part in parts if CELL.fullmatch(part))
    return changes


def _training_step(params: Mapping[str, str], notes: list[str]) -> int:
    number = _number("training_step", params.get("training_step"), notes, whole=True)
    return 0 if number is None else int(min(max(number, 0), MOST_STEPS))


def _switch_params(params: Mapping[str, str], notes: list[str]) -> dict[str, Any]:
    """The parts that are switched."""
    changes: dict[str, Any] = {}
    asked = [part for part in params.get("switched", "").split(",", 2 * MOST_SWITCHED) if part]
    parts = list(dict.fromkeys(part for part in asked[:MOST_SWITCHED] if SWITCH.fullmatch(part)))
    if strange := next((part for part in asked if not SWITCH.fullmatch(part)), None):
        notes.append(f"“{sendable(strange)[:20]}” in the link is not a part of a model; it was ignored.")
    if parts:
        changes["switched"] = tuple(parts)
    return changes


def _language_params(params: Mapping[str, str], notes: list[str]) -> dict[str, Any]:
    """The fields of the Language model page, which checks its checkpoints itself."""
    changes: dict[str, Any] = {
        name: sendable(params[name][:LONGEST_NAME]) for name in ("masked", "causal") if name in params
    }
    for name, low, high in (("temperature", 0.0, 2.0), ("top_p", 0.05, 1.0)):
        if (number := _number(name, params.get(name), notes)) is not None:
            changes[name] = round(min(max(number, low), high), 2)
    if (number := _number("seed", params.get("seed"), notes, whole=True)) is not None:
        changes["seed"] = int(min(max(number, 0), LARGEST_SEED))
    if "added" in params:
        try:
            ids = tuple(int(part) for part in params["added"].split(".") if part)[:LONGEST_LINKED_CONTINUATION]
        except ValueError:
            notes.append("The continuation in the link is malformed; it was ignored.")
        else:
            changes["added"] = ids
    return changes


def _number(name: str, raw: str | None, notes: list[str], *, whole: bool = False) -> float | None:
    """The number in a parameter; None, with a note, if it is not a number."""
    if raw is None:
        return None
    try:
        number = int(raw) if whole else float(raw)
        if number == number:
            return number
    except ValueError:
        pass
    notes.append(f"“{name}={sendable(raw)[:20]}” in the link is not a number; it was ignored.")
    return None


def params_from_view(view: View) -> dict[str, str]:
    """The URL parameters of a view: what differs from the default, and always the text, unless it is too long."""
    default = View()
    params = {"checkpoint": view.checkpoint}
    if view.versus:
        params["versus"] = view.versus
    if len(view.text) <= LONGEST_LINKED_TEXT:
        params["text"] = view.text
    for name, _, offset in _NUMBERS:
        if getattr(view, name) != getattr(default, name):
            params[name] = str(getattr(view, name) + offset)
    plain = ("masked", "causal", "temperature", "top_p", "seed", "training_step")
    for name in (*(name for name, _ in _CHOICES), *plain):
        if getattr(view, name) != getattr(default, name):
            params[name] = str(getattr(view, name))
    params |= {name: "on" for name in _YES if getattr(view, name)}
    for name, most in _LISTS:
        if 0 < len(getattr(view, name)) <= most:
            params[name] = ".".join(map(str, getattr(view, name)))
    if view.cell:
        params["cell"] = ".".join(view.cell)
    if view.added and len(view.added) <= LONGEST_LINKED_CONTINUATION:
        params["added"] = ".".join(map(str, view.added))
    if view.switched:
        params["switched"] = ",".join(view.switched)
    if view.step:
        params["step"] = view.step
    if view.changed and len(view.text) + len(view.changed) <= LONGEST_LINKED_TEXT:
        params["changed"] = view.changed
    return params


def current_view(checkpoints: Sequence[str], *, text_box: str, first_text: Callable[[str], str]) -> View:
    """This session's view, updated from the URL after a link or the browser's back button.

    `first_text` gives a checkpoint's text where the URL has none.
    `text_box` is the key of the page's text area. It is set only when the page opens or the URL brings another text:
    at any other time the visitor may be typing in it.
    """
    state, params = st.session_state, st.query_params.to_dict()
    touched = state.pop("_touched", False)  # a widget has just changed the view, so the URL is out of date
    if "_view" not in state or (params and _written(params) != _written(state["_published"]) and not touched):
        state["_view"], state["_notes"] = view_from_params(params, checkpoints=checkpoints, first_text=first_text)
        state[text_box] = state["_view"].text
    elif text_box not in state:
        state[text_box] = state["_view"].text
    view: View = state["_view"]
    if params:
        view = replace(view, training_step=_training_step(params, []))
    if view.checkpoint not in checkpoints:
        view = replace(view, checkpoint=checkpoints[0] if checkpoints else "")
        state["_view"] = view
    if view.versus and (view.versus not in checkpoints or view.versus == view.checkpoint):
        view = replace(view, versus="")
        state["_view"] = view
    return view


def _written(params: Mapping[str, str]) -> dict[str, str]:
    """What the server has written into the URL, without what the browser writes."""
    return {name: value for name, value in params.items() if name not in ("training_step", SLIDE, JOB)}


def change_view(**changes: Any) -> None:
    """Change fields of this session's view; for callbacks, which run before the page is drawn.

    Another text or another model discards what was chosen for the text before, such as the continuation; another text
    also discards its switched tokens.
    """
    notes: list[str] = []
    for field in ("text", "changed"):
        if field in changes:
            changes[field] = as_read(changes[field], notes)
    if notes:
        st.session_state["_notes"] = notes
    if "text" in changes or "causal" in changes:
        changes = {"upto": 0, "added": (), **changes}
    view = shown_view()
    if "text" in changes and changes["text"] != view.text:
        switched = tuple(part for part in view.switched if not part.startswith("t"))
        changes = {**_OF_TOKENS, "order": (), "switched": switched, **changes}
    if "checkpoint" in changes and changes["checkpoint"] != view.checkpoint:
        changes = {**_OF_TOKENS, "word": 0, **changes}
    st.session_state["_view"] = replace(view, **changes)
    st.session_state["_touched"] = True


def shown_view() -> View:
    """This session's current view."""
    view: View = st.session_state.get("_view", View())
    return view


def publish(view: View) -> None:
    """Put the view into the URL."""
    params = params_from_view(view)
    st.session_state["_view"] = view
    st.session_state["_published"] = params
    if view.mode and SLIDE in st.query_params:
        params = {**params, SLIDE: st.query_params[SLIDE]}
    if token := st.session_state.get(JOB_TOKEN):
        params = {**params, JOB: token}
    if st.query_params.to_dict() != params:
        st.query_params.from_dict(params)


def add_note(note: str) -> None:
    """Have a note shown on the page, once."""
    notes = st.session_state.setdefault("_more_notes", [])
    if note not in notes:
        notes.append(note)


def take_notes() -> list[str]:
    """Notes about unusable parts of the link or the text; each is returned once."""
    notes: list[str] = st.session_state.pop("_notes", []) + st.session_state.pop("_more_notes", [])
    return notes
