"""agreement: the words before a verb of an English sentence, and whether the verb is singular or plural.

    The keys to the cabinet   ->  plural (are, were, have)

This task was the first test of syntax in neural networks (Linzen, Dupoux and Goldberg 2016, "Assessing the Ability of
LSTMs to Learn Syntax-Sensitive Dependencies", TACL 4). `txcls data agreement` makes the rows from texts on this machine
(`rows.py`) and writes them to a folder; the minimal pairs in pairs.csv ship with txcls.
"""

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import product
from pathlib import Path

import pandas as pd

from txcls.data.generated.agreement.rows import CLASSES, Nouns, Row, Split
from txcls.data.types import Dataset, DatasetInfo, LabelledTexts, Roles, SplitName
from txcls.errors import DataError

INFO = DatasetInfo(
    name="agreement",
    title="Is or are? The words before a verb, and whether it is singular or plural",
    terms="the terms of the texts that the rows are made from; for Wikipedia CC BY-SA, with attribution to the "
    "articles' authors",
    citation="rows made by txcls; the task is from T. Linzen, E. Dupoux, Y. Goldberg: Assessing the Ability of "
    "LSTMs to Learn Syntax-Sensitive Dependencies, TACL 4, 2016",
    homepage="https://doi.org/10.1162/tacl_a_00115",
    by_hand="make it from other data sets with `txcls data agreement --from wikipedia --from ag_news --out FOLDER`, "
    "and give the folder with --data PATH",
)
SPLITS: tuple[Split, ...] = ("train", "validation", "test")
NOUNS = "nouns.csv"
_WORD = re.compile(r"\S+")
_PREPOSITIONS = "of in on to for with from by at about between behind beside near above over"
PREPOSITIONS = frozenset(_PREPOSITIONS.split())


@dataclass(frozen=True, slots=True)
class Pair:
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
def minimal_pairs() -> tuple[Pair, ...]:
    """Two hundred texts, written for txcls: each item with both numbers of the subject, each with both attractors."""
    pairs = []
    for item, (label, last) in product(_items(), product((0, 1), repeat=2)):
        text = f"{item[CLASSES[label]]} {item['between']} {item[f'attractor {CLASSES[last]}']}"
        pairs.append(Pair(text, label, item["construction"], label != last, roles_of(text, _nouns_of_items())))
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
