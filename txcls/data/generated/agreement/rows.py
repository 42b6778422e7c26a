"""Rows of the `agreement` set: the words before the first verb of a sentence, from any English texts.

No tagger is used: a short list of words excludes most sentences in which the verb does not agree with a noun before it.
"""

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from typing import Literal

from txcls.data.hashes import fingerprint, hashed_share

CLASSES = ("singular", "plural")
VERBS = {"is": 0, "was": 0, "has": 0, "are": 1, "were": 1, "have": 1}
"""The verbs that rows are made of, and the class of each."""

MIN_WORDS, MAX_WORDS = 3, 40
"""Limits on the number of words before the verb."""
MAX_ROWS_PER_TEXT = 12
"""Maximum number of rows from one text, so that long articles do not dominate."""
BLANK = " ___"
BLANK_SHARE = 0.05
"""Fraction of the training rows that end with a blank, since people type one."""

Part = Literal["train", "validation", "test"]

_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]*[A-Z])")
_PRONOUNS_AND_QUESTION_WORDS = (
    "i you he she it we they this that these those there here what where how why each either neither everyone someone "
    "nobody anyone everybody somebody to"
)
"""Words that determine the verb, or hide its noun, if they are directly before it."""
_NOT_FINITE = (
    "not will would can could may might must shall should do does did don't doesn't didn't won't wouldn't can't "
    "couldn't cannot let if"
)
"""If one of these is among the three words before the verb, its form may not depend on a noun: "could easily have"."""
_BARRED = frozenset(_PRONOUNS_AND_QUESTION_WORDS.split()), frozenset(_NOT_FINITE.split())
_PUNCTUATION = ",;:\"'()“”"


@dataclass(frozen=True, slots=True)
class Row:
    """The words before a verb, the verb, where the text is from, and a rough number of attractors (see `Nouns`)."""

    text: str
    verb: str
    source: str = ""
    attractors: int = 0

    @property
    def label(self) -> int:
        """The class index: 0 singular, 1 plural."""
        return VERBS[self.verb]


def sentences(text: str) -> Iterator[str]:
    """Split a text at line breaks, and after . ! ? before a capital letter; closing quotes are dropped there."""
    for line in text.splitlines():
        yield from _SENTENCE_END.split(line)


def row_of(sentence: str) -> Row | None:
    """The words before the first verb of `VERBS`; None if there is none or the rules exclude the sentence."""
    words = sentence.split()
    at = next((n for n, word in enumerate(words) if word in VERBS), None)
    if at is None or not MIN_WORDS <= at <= MAX_WORDS:
        return None
    before = [_plain(word) for word in words[at - 3 : at]]
    decides, not_finite = _BARRED
    is_infinitive = before[-2] == "to" and before[-1].endswith("ly")  # "to easily have"
    if before[-1] in decides or is_infinitive or not before[-1][:1].isalpha() or not not_finite.isdisjoint(before):
        return None
    return Row(" ".join(words[:at]), words[at])


def _plain(word: str) -> str:
    return word.lower().strip(_PUNCTUATION)


@dataclass(frozen=True)
class Nouns:
    """Nouns that were seen in both numbers, as plural keyed by singular."""

    plural_of: Mapping[str, str]
    _plurals: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_plurals", frozenset(self.plural_of.values()))

    def number(self, word: str) -> int | None:
        """The class of a noun's number: 0 singular, 1 plural; None if the word is not in the list."""
        plain = _plain(word)
        return 0 if plain in self.plural_of else 1 if plain in self._plurals else None

    def places(self, text: str, label: int) -> tuple[int | None, list[int]]:
        """Word indices: the last noun of the verb's number, and the nouns of the other number after it (attractors).

        This is rough: the last noun of the verb's number need not be its subject, and no noun may be in the list.
        """
        others: list[int] = []
        for at, word in reversed(list(enumerate(text.split()))):
            if (number := self.number(word)) == label:
                return at, others[::-1]
            if number is not None:
                others.append(at)
        return None, []


class NounCount:
    """Counts words after *a* and *an*, and after words such as *many*, to list the nouns seen in both numbers."""

    _ONE = frozenset(("a", "an"))
    _SEVERAL = frozenset(["these", "those", "many", "several", "various", "two", "three", "four", "five", "few"])

    def __init__(self) -> None:
        self._one: Counter[str] = Counter()
        self._several: Counter[str] = Counter()

    def add(self, text: str) -> None:
        """Count the words of a text."""
        words = re.findall(r"[a-z]+", text.lower())
        for before, word in pairwise(words):
            if before in self._ONE:
                self._one[word] += 1
            elif before in self._SEVERAL:
                self._several[word] += 1

    def nouns(self, *, at_least: int = 3) -> Nouns:
        """The words that were seen at least that many times as one, and with the ending of the plural as several."""
        pairs = ((word, plural_of(word)) for word, n in self._one.items() if n >= at_least and len(word) > 2)
        return Nouns({word: plural for word, plural in pairs if self._several[plural] >= at_least})


def plural_of(noun: str) -> str:
    """The regular plural of an English noun."""
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "z", "ch", "sh")) else f"{noun}s"


def make_rows(
    sources: Mapping[str, Iterable[tuple[Part, str]]], *, limit: Mapping[Part, int], seed: int = 0
) -> tuple[dict[Part, list[Row]], Nouns]:
    """Make rows from texts: unique ones, as many singular as plural, with attractors counted.

    Args:
        sources: for each source, texts with the part that their rows belong to.
        limit: maximum number of rows of each part; of validation and test from each source.
        seed: of the selection and the order.

    Returns:
        The rows of each part, and the nouns of the training texts. No validation or test row is in training.
    """
    found: dict[tuple[Part, str], list[Row]] = {}
    count = NounCount()
    for source, texts in sources.items():
        for part, text in texts:
            of_text = (row for sentence in sentences(text) if (row := row_of(sentence)) is not None)
            so_far = found.setdefault((part, source), [])
            so_far += (replace(row, source=source) for row in islice(of_text, MAX_ROWS_PER_TEXT))
            if part == "train":
                count.add(text)
    nouns, draw, seen = count.nouns(), random.Random(seed), set[bytes]()
    made: dict[Part, list[Row]] = {"test": [], "validation": [], "train": []}  # a repeated text is held out
    for part, rows in made.items():
        for source in sources:
            unique = _unique(found.get((part, source), []), seen)
            rows += _balanced(unique, limit[part] if part != "train" else len(unique), draw)
    made["train"] = [_maybe_with_blank(row) for row in _balanced(made["train"], limit["train"], draw)]
    for part, rows in made.items():
        made[part] = [replace(row, attractors=len(nouns.places(row.text, row.label)[1])) for row in rows]
    return made, nouns


def _unique(rows: Iterable[Row], seen: set[bytes]) -> list[Row]:
    """The rows whose text is not in `seen`; their texts are added to it."""
    unique: list[Row] = []
    for row in rows:
        if (key := fingerprint(row.text)) not in seen:
            seen.add(key)
            unique.append(row)
    return unique


def _balanced(rows: list[Row], limit: int, draw: random.Random) -> list[Row]:
    """At most `limit` rows in random order, as many singular as plural."""
    by_label = [[row for row in rows if row.label == label] for label in range(len(CLASSES))]
    n = min(limit // 2, *(len(its) for its in by_label))
    chosen = [row for its in by_label for row in draw.sample(its, n)]
    draw.shuffle(chosen)
    return chosen


def _maybe_with_blank(row: Row) -> Row:
    return replace(row, text=row.text + BLANK) if hashed_share(row.text, salt="blank") < BLANK_SHARE else row
