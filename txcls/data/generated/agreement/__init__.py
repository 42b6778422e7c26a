"""agreement: the words before a verb of an English sentence, and whether the verb is singular or plural.

    The keys to the cabinet   ->  plural (are, were, have)

This task was the first test of syntax in neural networks (Linzen, Dupoux and Goldberg 2016, "Assessing the Ability of
LSTMs to Learn Syntax-Sensitive Dependencies", TACL 4). `txcls data agreement` makes the rows from texts on this machine
and writes them to a folder; the minimal pairs in pairs.csv ship with txcls. No tagger is used; a short list of words
excludes most sentences in which the verb does not agree with a noun before it.
"""

import csv
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from itertools import islice, pairwise, product
from pathlib import Path
from typing import Literal

import pandas as pd

from txcls.data.hashes import hash_text, hashed_share
from txcls.data.types import Dataset, DatasetInfo, LabelledTexts, Roles, SplitName
from txcls.errors import DataError

INFO = DatasetInfo(
    name="agreement",
    title="Is or are? The words before a verb, and whether it is singular or plural",
    examples="subjects",
    terms="the terms of the texts that the rows are made from; for Wikipedia CC BY-SA, with attribution to the "
    "articles' authors",
    homepage="https://doi.org/10.1162/tacl_a_00115",
    by_hand="make it from other data sets with `txcls data agreement --from wikipedia --from ag_news --out FOLDER`, "
    "and give the folder with --data PATH",
)
CLASSES = ("singular", "plural")
VERBS = {"is": 0, "was": 0, "has": 0, "are": 1, "were": 1, "have": 1}
"""The verb forms before which a text ends, and the class of each."""

MIN_WORDS, MAX_WORDS = 3, 40
"""Limits on the number of words before the verb."""
MAX_ROWS_PER_TEXT = 12
"""Maximum number of rows from one text, so that long articles do not dominate."""
MIN_COUNT = 3
"""A noun is known if it was counted at least this many times in each number."""
BLANK = " ___"
BLANK_SHARE = 0.05
"""Share of the training rows that end with “___”, which users type for the missing word."""

Split = Literal["train", "validation", "test"]

_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]*[A-Z])")
_PRONOUNS_AND_QUESTION_WORDS = (
    "i you he she it we they this that these those there here what where how why each either neither everyone someone "
    "nobody anyone everybody somebody to"
)
"""Words directly before the verb that determine its form, or that stand between it and its noun."""
_NOT_FINITE = (
    "not will would can could may might must shall should do does did don't doesn't didn't won't wouldn't can't "
    "couldn't cannot let if"
)
"""If one of these is among the three words before the verb, its form may not depend on a noun: "could easily have"."""
_DETERMINING_WORDS = frozenset(_PRONOUNS_AND_QUESTION_WORDS.split())
_AUXILIARIES = frozenset(_NOT_FINITE.split())
_PUNCTUATION = ",;:\"'()“”"
SPLITS: tuple[Split, ...] = ("train", "validation", "test")
NOUNS = "nouns.csv"
_WORD = re.compile(r"\S+")
_PREPOSITIONS = "of in on to for with from by at about between behind beside near above over"
PREPOSITIONS = frozenset(_PREPOSITIONS.split())


@dataclass(frozen=True, slots=True)
class Row:
    """The words before a verb, the verb, the source of the text, and the approximate number of attractors."""

    text: str
    verb: str
    source: str = ""
    attractors: int = 0

    @property
    def label(self) -> int:
        """The class index: 0 singular, 1 plural."""
        return VERBS[self.verb]


def sentences(text: str) -> Iterator[str]:
    """Split a text at line breaks, and after . ! ? before a capital letter, where closing quotes are dropped."""
    for line in text.splitlines():
        yield from _SENTENCE_END.split(line)


def row_of(sentence: str) -> Row | None:
    """The row for a sentence: its words before the first of `VERBS`; None if it has none or the rules exclude it."""
    words = sentence.split()
    index = next((n for n, word in enumerate(words) if word in VERBS), None)
    if index is None or not MIN_WORDS <= index <= MAX_WORDS:
        return None
    before = [_plain(word) for word in words[index - 3 : index]]
    last = before[-1]
    is_infinitive = before[-2] == "to" and last.endswith("ly")  # "to easily have"
    if last in _DETERMINING_WORDS or is_infinitive or not last[:1].isalpha() or not _AUXILIARIES.isdisjoint(before):
        return None
    return Row(" ".join(words[:index]), words[index])


def _plain(word: str) -> str:
    return word.lower().strip(_PUNCTUATION)


@dataclass(frozen=True)
class Nouns:
    """Nouns that occurred in both numbers: their plurals, keyed by singular."""

    plural_of: Mapping[str, str]
    _plurals: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_plurals", frozenset(self.plural_of.values()))

    def number(self, word: str) -> int | None:
        """The class of a noun's number: 0 singular, 1 plural; None for a word that is not in the list."""
        plain = _plain(word)
        return 0 if plain in self.plural_of else 1 if plain in self._plurals else None

    def count_attractors(self, text: str, label: int) -> int:
        """How many nouns unlike the verb in number follow the last noun that agrees with it; 0 if none agrees.

        This is approximate: that noun may not be the subject, and the list may lack nouns.
        """
        n_others = 0
        for word in reversed(text.split()):
            if (number := self.number(word)) == label:
                return n_others
            n_others += number is not None
        return 0


_BEFORE_SINGULAR = frozenset(("a", "an"))
_BEFORE_PLURAL = frozenset(("these", "those", "many", "several", "various", "two", "three", "four", "five", "few"))


def count_nouns(text: str, singular: Counter[str], plural: Counter[str]) -> None:
    """Count the words of a text after *a* and *an*, and those after words such as *many*."""
    for before, word in pairwise(re.findall(r"[a-z]+", text.lower())):
        if before in _BEFORE_SINGULAR:
            singular[word] += 1
        elif before in _BEFORE_PLURAL:
            plural[word] += 1


def frequent_nouns(singular: Counter[str], plural: Counter[str]) -> Nouns:
    """The nouns that were counted at least MIN_COUNT times in the singular and in the plural."""
    pairs = ((word, plural_of(word)) for word, n in singular.items() if n >= MIN_COUNT and len(word) > 2)
    return Nouns({word: many for word, many in pairs if plural[many] >= MIN_COUNT})


def plural_of(noun: str) -> str:
    """The regular plural of an English noun."""
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "z", "ch", "sh")) else f"{noun}s"


def make_rows(
    sources: Mapping[str, Iterable[tuple[Split, str]]], *, limit: Mapping[Split, int]
) -> tuple[dict[Split, list[Row]], Nouns]:
    """Make rows from texts, without repetitions, as many singular as plural, and with their numbers of attractors.

    Args:
        sources: for each source, texts with the split that their rows belong to.
        limit: the maximum number of rows of each split; for validation and test, from each source.

    Returns:
        The rows of each split, and the nouns of the training texts. No validation or test row is in training.
    """
    candidates: dict[tuple[Split, str], list[Row]] = {}
    singular, plural = Counter[str](), Counter[str]()
    for source, texts in sources.items():
        for split, text in texts:
            text_rows = (row for sentence in sentences(text) if (row := row_of(sentence)) is not None)
            candidates.setdefault((split, source), []).extend(
                replace(row, source=source) for row in islice(text_rows, MAX_ROWS_PER_TEXT)
            )
            if split == "train":
                count_nouns(text, singular, plural)
    nouns, rng, seen = frequent_nouns(singular, plural), random.Random(0), set[bytes]()
    rows: dict[Split, list[Row]] = {
        "test": [],
        "validation": [],
        "train": [],
    }  # a repeated text stays in the first of these splits
    for split in rows:
        for source in sources:
            unique = []
            for row in candidates.get((split, source), []):
                if (key := hash_text(row.text)) not in seen:
                    seen.add(key)
                    unique.append(row)
            rows[split] += _balanced(unique, limit[split] if split != "train" else len(unique), rng)
    rows["train"] = [
        replace(row, text=row.text + BLANK) if hashed_share(row.text, salt="blank") < BLANK_SHARE else row
        for row in _balanced(rows["train"], limit["train"], rng)
    ]
    for split, split_rows in rows.items():
        rows[split] = [replace(row, attractors=nouns.count_attractors(row.text, row.label)) for row in split_rows]
    return rows, nouns


def _balanced(rows: list[Row], limit: int, rng: random.Random) -> list[Row]:
    """At most `limit` rows in random order, as many singular as plural."""
    by_label = [[row for row in rows if row.label == label] for label in range(len(CLASSES))]
    n = min(limit // 2, *map(len, by_label))
    chosen = [row for label_rows in by_label for row in rng.sample(label_rows, n)]
    rng.shuffle(chosen)
    return chosen


@dataclass(frozen=True, slots=True)
class MinimalPairText:
    """A text of the minimal pairs, with its label and roles (as returned by `roles_of`)."""

    text: str
    label: int
    construction: str
    is_attracted: bool
    """Whether the subject and the attractor differ in number."""
    roles: Roles


@cache
def _items() -> list[dict[str, str]]:
    """The fifty items of pairs.csv: a subject and a phrase that ends with an attractor, both in both numbers."""
    return list(csv.DictReader((resources.files(__name__) / "pairs.csv").read_text("utf-8").splitlines()))


@cache
def minimal_pairs() -> tuple[MinimalPairText, ...]:
    """Two hundred texts, written for txcls: each item with both numbers of the subject, each with both attractors."""
    pairs = []
    for item, (label, last) in product(_items(), product((0, 1), repeat=2)):
        text = f"{item[CLASSES[label]]} {item['between']} {item[f'attractor {CLASSES[last]}']}"
        pairs.append(
            MinimalPairText(text, label, item["construction"], label != last, roles_of(text, _nouns_of_items()))
        )
    return tuple(pairs)


@cache
def _nouns_of_items() -> Nouns:
    """The nouns of the minimal pairs; nouns of joined subjects occur only in the singular, and map to themselves."""
    both_numbers: dict[str, str] = {}
    singular_only: dict[str, str] = {}
    for item in _items():
        first, *_, last = (word for name in CLASSES for word in item[name].split()[1:])
        if "and" in item["plural"].split():
            singular_only |= {first: first, last: last}
        else:
            both_numbers[first] = last
        both_numbers[item["attractor singular"].split()[-1]] = item["attractor plural"].split()[-1]
    return Nouns({**singular_only, **both_numbers})


def with_other_number(text: str) -> str | None:
    """The text with its first noun in the other number; None if it contains no noun of the minimal pairs."""
    plural_of = _nouns_of_items().plural_of
    other_of: dict[str, str] = {**{plural: noun for noun, plural in plural_of.items()}, **plural_of}
    for word in _WORD.finditer(text):
        if other_of.get(noun := word[0].lower(), noun) != noun:
            return text[: word.start()] + other_of[noun] + text[word.end() :]
    return None


def write_agreement(folder: Path, rows: Mapping[Split, Sequence[Row]], nouns: Nouns) -> None:
    """Write rows and nouns to a folder for `open_agreement`: SPLIT.csv.gz and nouns.csv."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, split_rows in rows.items():
        columns = {
            "text": [row.text for row in split_rows],
            "label": [CLASSES[row.label] for row in split_rows],
            "verb": [row.verb for row in split_rows],
            "source": [row.source for row in split_rows],
            "attractors": [row.attractors for row in split_rows],
        }
        pd.DataFrame(columns).to_csv(folder / f"{split}.csv.gz", index=False)
    pairs = sorted(nouns.plural_of.items())
    pd.DataFrame(pairs, columns=["singular", "plural"]).to_csv(folder / NOUNS, index=False)


def read_rows(folder: Path, split: Split) -> list[Row]:
    """Read the rows of a split.

    Raises:
        DataError: the folder lacks the split's file, or it was not written by `write_agreement`.
    """
    file = folder / f"{split}.csv.gz"
    try:
        table = pd.read_csv(file, keep_default_na=False)
        columns = (table[name].tolist() for name in ("text", "verb", "source", "attractors"))
        return [Row(str(text), str(verb), str(source), int(n)) for text, verb, source, n in zip(*columns, strict=True)]
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise DataError(f"{file}: not the rows of agreement ({error!s:.100}); {INFO.by_hand}") from None


def open_agreement(folder: Path) -> Dataset:
    """Open a folder that `txcls data agreement` wrote; the split `new` has the minimal pairs.

    Raises:
        DataError: the folder lacks the rows of a split.
    """
    if missing := [split for split in SPLITS if not (folder / f"{split}.csv.gz").is_file()]:
        raise DataError(f"{folder}: no {missing[0]}.csv.gz in this folder; {INFO.by_hand}")

    def read(split: SplitName) -> LabelledTexts:
        if split == "new":
            pairs = minimal_pairs()
            return LabelledTexts([pair.text for pair in pairs], [pair.label for pair in pairs], CLASSES)
        rows = read_rows(folder, split)  # type: ignore[arg-type]  # one of SPLITS, as `Dataset.load` checks
        return LabelledTexts([row.text for row in rows], [row.label for row in rows], CLASSES)

    def roles(split: SplitName) -> list[Roles]:
        if split == "new":
            return [pair.roles for pair in minimal_pairs()]
        try:
            table = pd.read_csv(folder / NOUNS, keep_default_na=False, dtype=str)
            nouns = Nouns(dict(zip(table["singular"], table["plural"], strict=True)))
        except (OSError, ValueError, KeyError) as error:
            raise DataError(f"{folder / NOUNS}: not readable ({error!s:.100}); {INFO.by_hand}") from None
        return [roles_of(row.text, nouns) for row in read_rows(folder, split)]  # type: ignore[arg-type]

    return Dataset(INFO, CLASSES, folder.name, (*SPLITS, "new"), read, roles=roles)


def roles_of(text: str, nouns: Nouns) -> Roles:
    """The singular nouns, plural nouns and prepositions of a text, according to a list of nouns."""
    roles: dict[str, list[tuple[int, int]]] = {}
    for match in _WORD.finditer(text):
        word, number = match[0], nouns.number(match[0])
        role = f"{CLASSES[number]} noun" if number is not None else "preposition" if word in PREPOSITIONS else ""
        if role:
            roles.setdefault(role, []).append(match.span())
    return roles
