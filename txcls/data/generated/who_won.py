"""who_won: match reports in which word order decides, generated from a small grammar with known answers.

    Rovers, who lost to United last week, beat City yesterday.   ->  Rovers

The class is the team that won. A report comes with its twin, the two teams exchanged, under the other label. Both hold
the same words, so that no bag of words can do better than choose between two teams. For every report the grammar says
which words play which role, and with which constructions it was built; some combinations of constructions never occur
in training.
"""

import random
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice, product
from pathlib import Path
from typing import Literal, get_args

from txcls.config import DataConfig
from txcls.data.types import Dataset, DatasetInfo, LabelledTexts, Roles, SplitName
from txcls.errors import DataError

INFO = DatasetInfo(
    name="who_won",
    title="Match reports generated from a grammar: which team won?",
    terms="CC0 1.0",
    citation="the txcls authors",
)

TEAMS = ("Albion", "Athletic", "City", "County", "Rangers", "Rovers", "United", "Wanderers")
"""The classes, one token each."""

Role = Literal["winner", "loser", "verb", "marker", "other team", "other verb"]
"""What a word does: the two teams of the reported match, the verb that says who won it, the words that turn it round
(`were … by`, the `to` of `lost to`, `not … but`, `that`), and the team and the verb of another match in a relative
clause."""

Main = Literal["active", "inverse", "passive", "cleft", "cleft object", "cleft inverse", "not but won", "not but lost"]
"""How the main clause reports the match."""

Relative = Literal["beat", "lost to", "were beaten by", "whom"]
"""How a relative clause reports another match of the team that it follows."""

Place = Literal["first", "second"]
"""Which of the two teams, in the order of the sentence, a relative clause follows."""

MAINS: tuple[Main, ...] = get_args(Main)
RELATIVES: tuple[Relative, ...] = get_args(Relative)
PLACES: tuple[Place, ...] = get_args(Place)

HELD_OUT = frozenset(
    (main, place, relative)
    for (m, main), (p, place), (r, relative) in product(enumerate(MAINS), enumerate(PLACES), enumerate(RELATIVES))
    if (m + 2 * r + 3 * p) % 8 == 0
)
"""Combinations of a main clause and a relative clause that training never shows; each part occurs there in others."""

VERBS = {
    "beat": "beaten",
    "defeated": "defeated",
    "outplayed": "outplayed",
    "overcame": "overcome",
    "thrashed": "thrashed",
    "edged": "edged",
}
"""Past tense and participle."""
INVERSE_VERBS = ("lost", "fell", "succumbed")
"""With `to`: the subject is the loser."""
MANNERS = ("easily", "narrowly", "finally", "clearly")
OPENINGS = ("Yesterday", "On Saturday", "In the rain", "After extra time")
ENDINGS = ("yesterday", "on Sunday", "at home", "away from home", "in the final", "in front of a full house")
TIMES = ("last week", "last month", "in March", "a year ago", "on Monday")

N_PAIRS = 30_000
"""Pairs of reports, all splits together."""
SEED = 2026
RELATIVES_AT: tuple[tuple[tuple[Place, ...], float], ...] = (
    ((), 0.25),
    (("first",), 0.3),
    (("second",), 0.3),
    (("first", "second"), 0.15),
)
"""After which teams a relative clause stands, and how often."""


@dataclass(frozen=True, slots=True)
class Span:
    """Characters [start, end) of a report, and what they do in it."""

    start: int
    end: int
    role: Role


@dataclass(frozen=True, slots=True)
class Form:
    """What a report is built from, all but the teams.

    `relatives` holds for each relative clause its place, its kind, its verb, its time and which of the other teams it
    names (0 or 1).
    """

    main: Main
    verb: str
    relatives: tuple[tuple[Place, Relative, str, str, int], ...] = ()
    manner: str = ""
    opening: str = ""
    ending: str = ""

    @property
    def is_new(self) -> bool:
        """Whether it holds a combination of constructions that training never shows."""
        return any((self.main, place, relative) in HELD_OUT for place, relative, *_ in self.relatives)


@dataclass(frozen=True, slots=True)
class Report:
    """A sentence, the team that won, and what its words do. `spans` are in the order of the text."""

    text: str
    winner: str
    loser: str
    form: Form
    spans: tuple[Span, ...]


_Word = tuple[str, Role | None]


def report(form: Form, *, winner: str, loser: str, others: Sequence[str] = ()) -> Report:
    """The sentence of that form in which `winner` won.

    Args:
        form: the constructions and words.
        winner: one of TEAMS.
        loser: another one.
        others: the teams of relative clauses, at least as many as the form names.

    Raises:
        ValueError: a team is none of TEAMS or comes twice, or `others` are too few.
    """
    teams = (winner, loser, *others)
    if len(set(teams)) < len(teams) or not set(teams) <= set(TEAMS):
        raise ValueError(f"wanted different teams out of {', '.join(TEAMS)}; got {', '.join(teams)}")
    if any(n >= len(others) for *_, n in form.relatives):
        raise ValueError(f"{len(form.relatives)} relative clauses name more teams than the {len(others)} given")
    clauses = {place: _relative(kind, verb, time, others[n]) for place, kind, verb, time, n in form.relatives}
    words: list[_Word] = [*_plain(form.opening), (",", None)] if form.opening else []
    words += _main(form, winner, loser, clauses)
    if form.ending:
        words += _plain(form.ending)
    return _written([*words, (".", None)], winner=winner, loser=loser, form=form)


def twin(one: Report) -> Report:
    """The same report with winner and loser exchanged."""
    others = [one.text[span.start : span.end] for span in one.spans if span.role == "other team"]
    return report(one.form, winner=one.loser, loser=one.winner, others=others)


def reports(n_pairs: int = N_PAIRS, *, seed: int = SEED) -> Iterator[Report]:
    """Twin reports, one directly after the other; the pairs in random order, without repetition.

    Args:
        n_pairs: how many pairs.
        seed: the same seed gives the same reports.
    """
    chance = random.Random(seed)
    seen: set[str] = set()
    while len(seen) < n_pairs:
        form = random_form(chance)
        winner, loser, *others = chance.sample(TEAMS, 4)
        one = report(form, winner=winner, loser=loser, others=others)
        other = report(form, winner=loser, loser=winner, others=others)
        key = min(one.text, other.text)
        if key not in seen:
            seen.add(key)
            yield one
            yield other


def split_of(one: Report) -> SplitName:
    """Where a report belongs: `new` for combinations held out, else by a checksum of it without its two teams.

    So its twin, and the same sentence about any other two teams, are in the same split.
    """
    if one.form.is_new:
        return "new"
    frame = one.text.replace(one.winner, "_").replace(one.loser, "_")
    tenth = zlib.crc32(frame.encode()) % 10
    return "test" if tenth == 0 else "validation" if tenth == 1 else "train"


def reports_of(split: SplitName) -> tuple[Report, ...]:
    """The reports of a split (`train`, `validation`, `test` or `new`), with their roles."""
    return _by_split().get(split, ())


def first_reports(split: SplitName, n: int) -> tuple[Report, ...]:
    """The first n reports of a split (fewer if it has fewer), without generating the others."""
    return tuple(islice((one for one in reports() if split_of(one) == split), n))


@cache
def _by_split() -> dict[SplitName, tuple[Report, ...]]:
    found: dict[SplitName, list[Report]] = {}
    for one in reports():
        found.setdefault(split_of(one), []).append(one)
    return {split: tuple(of_split) for split, of_split in found.items()}


def open_who_won(config: DataConfig, path: Path | None) -> Dataset:
    """The generated reports; no file is read.

    Raises:
        DataError: a file is given.
    """
    if path is not None:
        raise DataError(f"who_won is generated, and read from no file: leave out {path}")
    return Dataset(
        info=INFO,
        classes=TEAMS,
        source="the grammar in txcls/data/generated/who_won.py",
        splits=_SPLITS,
        description="combinations of constructions that training never shows are kept apart as the split new",
        readers={split: partial(_rows, split) for split in _SPLITS},
        roles={split: partial(roles_of, split) for split in _SPLITS},
    )


def roles_of(split: SplitName) -> list[Roles]:
    """For each report of a split, in the order of its rows, the character ranges of every role (`roles_in`)."""
    return [roles_in(one) for one in reports_of(split)]


def roles_in(one: Report) -> Roles:
    """The character ranges of every role in a report.

    Besides the roles of `Span` there are "first team" and "second team": the two teams of the reported match in the
    order of the sentence.
    """
    found: dict[str, list[tuple[int, int]]] = {}
    for span in one.spans:
        found.setdefault(span.role, []).append((span.start, span.end))
    teams = sorted(found["winner"] + found["loser"])
    return {**found, "first team": teams[:1], "second team": teams[1:]}


_SPLITS: tuple[SplitName, ...] = ("train", "validation", "test", "new")


def _rows(split: SplitName) -> LabelledTexts:
    of_split = reports_of(split)
    return LabelledTexts([one.text for one in of_split], [TEAMS.index(one.winner) for one in of_split], TEAMS)


def random_form(chance: random.Random) -> Form:
    """Constructions and words by chance; every construction as likely as the others."""
    main = chance.choice(MAINS)
    places = chance.choices([one for one, _ in RELATIVES_AT], [weight for _, weight in RELATIVES_AT])[0]
    relatives = []
    for n, place in enumerate(places):
        kind = chance.choice(RELATIVES)
        verb = chance.choice(INVERSE_VERBS if kind == "lost to" else tuple(VERBS))
        relatives.append((place, kind, verb, chance.choice(TIMES), n))
    said = main.startswith("not but")
    return Form(
        main=main,
        verb=main.rsplit(" ", 1)[-1] if said else chance.choice(INVERSE_VERBS if "inverse" in main else tuple(VERBS)),
        relatives=tuple(relatives),
        manner=chance.choice(MANNERS) if not said and chance.random() < 0.25 else "",
        opening=chance.choice(OPENINGS) if chance.random() < 0.25 else "",
        ending=chance.choice(ENDINGS) if chance.random() < 0.4 else "",
    )


def _main(form: Form, winner: str, loser: str, clauses: dict[Place, list[_Word]]) -> list[_Word]:
    """The words of the main clause, relative clauses after their teams."""
    manner = _plain(form.manner)
    verb: _Word = (form.verb, "verb")
    winner_first = form.main in ("active", "cleft", "not but lost")
    first: list[_Word] = [(winner, "winner") if winner_first else (loser, "loser"), *clauses.get("first", [])]
    second: list[_Word] = [(loser, "loser") if winner_first else (winner, "winner"), *clauses.get("second", [])]
    if form.main == "active":
        return [*first, *manner, verb, *second]
    if form.main == "inverse":
        return [*first, *manner, verb, ("to", "marker"), *second]
    if form.main == "passive":
        participle: _Word = (VERBS[form.verb], "verb")
        return [*first, ("were", "marker"), *manner, participle, ("by", "marker"), *second]
    if form.main == "cleft":
        return [*_plain("it was"), *first, ("who", None), *manner, verb, *second]
    if form.main == "cleft object":
        return [*_plain("it was"), *first, ("that", "marker"), *second, *manner, verb]
    if form.main == "cleft inverse":
        return [*_plain("it was"), *first, ("who", None), *manner, verb, ("to", "marker"), *second]
    return [("not", "marker"), *first, ("but", "marker"), *second, verb, *_plain("the match")]


def _relative(kind: Relative, verb: str, time: str, other: str) -> list[_Word]:
    team: _Word = (other, "other team")
    words: list[_Word]
    if kind == "beat":
        words = [("who", None), (verb, "other verb"), team]
    elif kind == "lost to":
        words = [("who", None), (verb, "other verb"), ("to", None), team]
    elif kind == "were beaten by":
        words = [("who", None), ("were", None), (VERBS[verb], "other verb"), ("by", None), team]
    else:
        words = [("whom", None), team, (verb, "other verb")]
    return [(",", None), *words, *_plain(time), (",", None)]


def _plain(words: str) -> list[_Word]:
    return [(word, None) for word in words.split()]


def _written(words: Sequence[_Word], *, winner: str, loser: str, form: Form) -> Report:
    """The words as a sentence: a capital at its start, no space before marks, no two marks in a row."""
    text = ""
    spans: list[Span] = []
    for word, role in words:
        is_mark = word in (",", ".")
        if is_mark and text.endswith(","):
            text = text[:-1]
        if text and not is_mark:
            text += " "
        start = len(text)
        text += word if start else word[0].upper() + word[1:]
        if role is not None:
            spans.append(Span(start, len(text), role))
    return Report(text, winner, loser, form, tuple(spans))
