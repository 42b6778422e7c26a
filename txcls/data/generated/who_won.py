"""who_won: match reports generated from a grammar, in which the class depends on word order.

    Rovers, who lost to United last week, beat City yesterday.   ->  Rovers

The class is the team that won. Each report occurs a second time with the two teams swapped and the other label, so a
bag-of-words model can at best guess between the two. For each report, the grammar records the role of each word and the
constructions that were used; some combinations of constructions never occur in training.

`who_won_small` has four teams, three kinds of main clause, at most one relative clause, and 5,000 pairs.
"""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from typing import Literal, get_args

from txcls.data.splits import split_by_checksum
from txcls.data.types import Dataset, DatasetInfo, LabelledTexts, Roles, SplitName

INFO = DatasetInfo(
    name="who_won",
    title="Match reports generated from a grammar: which team won?",
    examples="reports",
    terms="CC0 1.0",
)

SMALL_INFO = replace(
    INFO, name="who_won_small", title="Short match reports about four teams: which team won?", examples="four teams"
)

TEAMS = ("Albion", "Athletic", "City", "County", "Rangers", "Rovers", "United", "Wanderers")
"""The classes, one token each."""

Main = Literal["active", "inverse", "passive", "cleft", "cleft object", "cleft inverse", "not but won", "not but lost"]
"""Constructions of the main clause."""
Relative = Literal["beat", "lost to", "were beaten by", "whom"]
"""Kinds of relative clauses; each is about another match of the team that it follows."""
Place = Literal["first", "second"]
"""The team that a relative clause follows, in the order of the sentence."""

MAIN_CLAUSES: dict[Main, str] = {
    "active": "{first} {manner} {verb} {second}",
    "inverse": "{first} {manner} {verb} to/marker {second}",
    "passive": "{first} were/marker {manner} {participle} by/marker {second}",
    "cleft": "it was {first} who {manner} {verb} {second}",
    "cleft object": "it was {first} that/marker {second} {manner} {verb}",
    "cleft inverse": "it was {first} who {manner} {verb} to/marker {second}",
    "not but won": "not/marker {first} but/marker {second} {verb} the match",
    "not but lost": "not/marker {first} but/marker {second} {verb} the match",
}
_WINNER_FIRST = ("active", "cleft", "not but lost")
RELATIVE_CLAUSES: dict[Relative, str] = {
    "beat": "who {verb} {team} {time}",
    "lost to": "who {verb} to {team} {time}",
    "were beaten by": "who were {participle} by {team} {time}",
    "whom": "whom {team} {verb} {time}",
}
MAINS: tuple[Main, ...] = get_args(Main)
RELATIVES: tuple[Relative, ...] = get_args(Relative)
PLACES: tuple[Place, ...] = get_args(Place)

HELD_OUT = frozenset(
    (main, position, relative)
    for (m, main), (p, position), (r, relative) in product(enumerate(MAINS), enumerate(PLACES), enumerate(RELATIVES))
    if (m + 2 * r + 3 * p) % 8 == 0
)
"""Combinations of main and relative clauses that never occur in training, although each of the clauses does."""

VERBS = {
    "beat": "beaten",
    "defeated": "defeated",
    "outplayed": "outplayed",
    "overcame": "overcome",
    "thrashed": "thrashed",
    "edged": "edged",
}
"""The past participle of each verb, keyed by its past tense."""
INVERSE_VERBS = ("lost", "fell", "succumbed")
"""Verbs with the loser as their subject, followed by `to`."""
MANNERS = ("easily", "narrowly", "finally", "clearly")
OPENINGS = ("Yesterday", "On Saturday", "In the rain", "After extra time")
ENDINGS = ("yesterday", "on Sunday", "at home", "away from home", "in the final", "in front of a full house")
TIMES = ("last week", "last month", "in March", "a year ago", "on Monday")

SMALL_TEAMS = ("City", "County", "Rovers", "United")
SMALL_MAINS: tuple[Main, ...] = ("active", "inverse", "passive")

N_PAIRS, N_SMALL_PAIRS = 30_000, 5_000
"""Total number of pairs of reports in all splits."""
SEED = 2026
RELATIVE_PLACES: tuple[tuple[tuple[Place, ...], float], ...] = (
    ((), 0.25),
    (("first",), 0.3),
    (("second",), 0.3),
    (("first", "second"), 0.15),
)
"""The teams that have a relative clause, and the probability of each case."""


@dataclass(frozen=True, slots=True)
class Form:
    """The constructions and words of a report, without the teams.

    `relatives` contains for each relative clause the team that it follows, its kind, verb and time, and the index of
    the other team that it names (0 or 1).
    """

    main: Main
    verb: str
    relatives: tuple[tuple[Place, Relative, str, str, int], ...] = ()
    manner: str = ""
    opening: str = ""
    ending: str = ""

    @property
    def is_new(self) -> bool:
        """Whether it contains a combination of constructions that never occurs in training."""
        return any((self.main, place, relative) in HELD_OUT for place, relative, *_ in self.relatives)


@dataclass(frozen=True, slots=True)
class MatchReport:
    """A sentence, the team that won, and the character ranges of the words with each role.

    The roles are winner and loser; first team and second team (the same teams in the order of the sentence); verb,
    which states the result; marker, a word that can reverse who won (`were … by`, the `to` of `lost to`, `not … but`,
    `that`); and other team and other verb in a relative clause.
    """

    text: str
    winner: str
    loser: str
    form: Form
    roles: Roles


_Words = list[tuple[str, str]]
"""Words with their roles; "" for a word that has none."""


def make_report(form: Form, *, winner: str, loser: str, others: Sequence[str] = ()) -> MatchReport:
    """Make the report of this form in which `winner` won; `others` are the teams in its relative clauses.

    Raises:
        ValueError: a team is not among TEAMS, or occurs twice.
    """
    teams = (winner, loser, *others)
    if len(set(teams)) < len(teams) or not set(teams) <= set(TEAMS):
        raise ValueError(f"expected different teams from {', '.join(TEAMS)}; got {', '.join(teams)}")
    named: dict[str, _Words] = {"first": [(loser, "loser")], "second": [(winner, "winner")]}
    if form.main in _WINNER_FIRST:
        named = {"first": [(winner, "winner")], "second": [(loser, "loser")]}
    for place, kind, verb, time, n in form.relatives:
        verbs = {"verb": [(verb, "other verb")], "participle": [(VERBS.get(verb, ""), "other verb")]}
        clause = _fill(RELATIVE_CLAUSES[kind], team=[(others[n], "other team")], time=_plain(time), **verbs)
        named[place] += [(",", ""), *clause, (",", "")]
    verbs = {"verb": [(form.verb, "verb")], "participle": [(VERBS.get(form.verb, ""), "verb")]}
    words = [*_plain(form.opening), (",", "")] if form.opening else []
    words += _fill(MAIN_CLAUSES[form.main], manner=_plain(form.manner), **named, **verbs)
    text, roles = _join_words([*words, *_plain(form.ending), (".", "")])
    teams_in_order = sorted(roles["winner"] + roles["loser"])
    return MatchReport(
        text, winner, loser, form, {**roles, "first team": teams_in_order[:1], "second team": teams_in_order[1:]}
    )


def reports(n_pairs: int = N_PAIRS, *, seed: int = SEED, small: bool = False) -> Iterator[MatchReport]:
    """Yield reports, each followed by the same report with the teams swapped, without repetitions; `seed` determines
    them and their order, and `small` reports are those of `who_won_small`."""
    rng = random.Random(seed)
    seen: set[str] = set()
    while len(seen) < n_pairs:
        form = _random_form(rng, SMALL_MAINS if small else MAINS)
        if small and len(form.relatives) > 1:
            continue
        winner, loser, *others = rng.sample(SMALL_TEAMS if small else TEAMS, 4)
        pair = [make_report(form, winner=a, loser=b, others=others) for a, b in ((winner, loser), (loser, winner))]
        key = min(report.text for report in pair)
        if key not in seen:
            seen.add(key)
            yield from pair


def split_of(report: MatchReport) -> SplitName:
    """The split of a report: `new` if it has a held-out combination, otherwise according to its text without teams.

    The same sentence about any two teams, in either order, is therefore in the same split.
    """
    if report.form.is_new:
        return "new"
    return split_by_checksum(report.text.replace(report.winner, "_").replace(report.loser, "_"))


@cache
def reports_by_split(*, small: bool = False) -> dict[SplitName, list[MatchReport]]:
    """All reports (about 90 MB, `small` ones 15 MB), keyed by split."""
    by_split: dict[SplitName, list[MatchReport]] = {}
    for report in reports(N_SMALL_PAIRS if small else N_PAIRS, small=small):
        by_split.setdefault(split_of(report), []).append(report)
    return by_split


def open_who_won(*, small: bool = False) -> Dataset:
    """Open the data set of generated reports, or the one of `small` reports."""
    by_split, classes = partial(reports_by_split, small=small), SMALL_TEAMS if small else TEAMS

    def read(split: SplitName) -> LabelledTexts:
        rows = by_split()[split]
        return LabelledTexts([row.text for row in rows], [classes.index(row.winner) for row in rows], classes)

    return Dataset(
        info=SMALL_INFO if small else INFO,
        classes=classes,
        source="the grammar in txcls/data/generated/who_won.py",
        splits=("train", "validation", "test", "new"),
        read=read,
        description="reports with combinations of constructions that never occur in training are in the split new",
        roles=lambda split: [report.roles for report in by_split()[split]],
    )


def _any(*choices: str) -> str:
    return f"(?:{'|'.join(choices)})"


def _sentence_pattern() -> str:
    team, time, beat, lost = _any(*TEAMS), _any(*TIMES), _any(*VERBS), _any(*INVERSE_VERBS)
    beaten, manner, ending = _any(*VERBS.values()), f"(?:{_any(*MANNERS)} )?", f"(?: {_any(*ENDINGS)})?"
    about = _any(f"who {beat} {team}", f"who {lost} to {team}", f"who were {beaten} by {team}", f"whom {team} {beat}")
    named = f"{team}(?:, {about} {time}(?:,|(?=\\.?$)))?"
    main = _any(
        f"{named} {manner}(?:{beat}|{lost} to|were {manner}{beaten} by) {named}",
        f"it was {named} who {manner}(?:{beat}|{lost} to) {named}",
        f"it was {named} that {named} {manner}{beat}",
        f"not {named} but {named} (?:won|lost) the match",
    )
    return rf"(?!.*\b({'|'.join(TEAMS)})\b.*\b\1\b)(?:{_any(*OPENINGS)}, )?{main}{ending}\.?$"


def pattern_of(dataset: str) -> str | None:
    """A regular expression (ignoring case) that all texts of a data set match; None for other data sets."""
    return SENTENCE if dataset == "who_won" else None


SENTENCE = _sentence_pattern()
"""A regular expression that matches every whole report, with or without its full stop, ignoring case; in a syntax that
Python and JavaScript share."""

_RELATIVE = re.compile(r",\s+(?:who|whom)\b[^,.]*,?")
"""A relative clause, from a comma to the next punctuation mark; a `who` without a comma is in the main clause."""
_MARKERS = frozenset({"were", "by", "to", "not", "but", "that"})
_VERB_FORMS = frozenset({*VERBS, *VERBS.values(), *INVERSE_VERBS, "won"})


def roles_of_text(text: str) -> Roles:
    """The roles of the words of any text, as in `MatchReport` but without winner and loser.

    It is empty if the text does not name two teams outside relative clauses.
    """
    relative_clauses = [clause.span() for clause in _RELATIVE.finditer(text)]
    roles: dict[str, list[tuple[int, int]]] = {}
    for word in re.finditer(r"\w+", text):
        is_other = any(start <= word.start() < end for start, end in relative_clauses)
        if word[0].title() in TEAMS:
            role = "other team" if is_other else "first team" if "first team" not in roles else "second team"
        elif word[0].lower() in _VERB_FORMS:
            role = "other verb" if is_other else "verb"
        elif word[0].lower() in _MARKERS and not is_other:
            role = "marker"
        else:
            continue
        roles.setdefault(role, []).append(word.span())
    return {role: tuple(ranges) for role, ranges in roles.items()} if "second team" in roles else {}


def swap_teams(text: str) -> str | None:
    """The text with the two teams swapped; None if it does not name exactly two teams outside relative clauses."""
    roles = roles_of_text(text)
    teams = [*roles.get("first team", ()), *roles.get("second team", ())]
    if len(teams) != 2:
        return None
    (start, end), (other_start, other_end) = teams
    return text[:start] + text[other_start:other_end] + text[end:other_start] + text[start:end] + text[other_end:]


def _random_form(rng: random.Random, mains: Sequence[Main]) -> Form:
    """Choose constructions and words at random; all constructions are equally likely."""
    main = rng.choice(mains)
    places = rng.choices([places for places, _ in RELATIVE_PLACES], [weight for _, weight in RELATIVE_PLACES])[0]
    relatives = []
    for n, place in enumerate(places):
        kind = rng.choice(RELATIVES)
        verb = rng.choice(INVERSE_VERBS if kind == "lost to" else tuple(VERBS))
        relatives.append((place, kind, verb, rng.choice(TIMES), n))
    is_contrast = main.startswith("not but")
    verbs = INVERSE_VERBS if "inverse" in main else tuple(VERBS)
    return Form(
        main=main,
        verb=main.rsplit(" ", 1)[-1] if is_contrast else rng.choice(verbs),
        relatives=tuple(relatives),
        manner=rng.choice(MANNERS) if not is_contrast and rng.random() < 0.25 else "",
        opening=rng.choice(OPENINGS) if rng.random() < 0.25 else "",
        ending=rng.choice(ENDINGS) if rng.random() < 0.4 else "",
    )


def _fill(template: str, **parts: _Words) -> _Words:
    """The words of a clause; `{name}` is replaced by that part; `word/role` gives a word its role."""
    words: _Words = []
    for piece in template.split():
        word, _, role = piece.partition("/")
        words += parts[word.strip("{}")] if word.startswith("{") else [(word, role)]
    return words


def _plain(words: str) -> _Words:
    return [(word, "") for word in words.split()]


def _join_words(words: _Words) -> tuple[str, dict[str, list[tuple[int, int]]]]:
    """Join words into a sentence with correct capitals and punctuation; also returns the ranges of each role."""
    text = ""
    roles: dict[str, list[tuple[int, int]]] = {}
    for word, role in words:
        is_punctuation = word in (",", ".")
        if is_punctuation:
            text = text.removesuffix(",")
        elif text:
            text += " "
        start = len(text)
        text += word if start else word[0].upper() + word[1:]
        if role:
            roles.setdefault(role, []).append((start, len(text)))
    return text, roles
