"""Names of labels, and their problems in tables: variants of a label, placeholders, several labels in a cell, codes."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from txcls.wording import Advice, listed, percentage, shown

PLACEHOLDERS = frozenset(
    ("?", "??", "-", "--", "–", "—", ".", "n/a", "n.a.", "na", "#n/a", "nan", "nil", "null", "none", "tbd", "empty")
)
"""Common entries in cells without a label, in lower case."""
SEPARATORS = (";", "|", ",")
"""Characters that separate several labels in a cell."""
MIN_MULTILABEL = 0.05
"""Minimum fraction of rows with several labels for a note."""
_WHOLE_NUMBER = re.compile(r"([+-]?[0-9]+)\.0+")
_MIDNIGHT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]00:00:00(?:\.0+)?Z?")


def label_key(name: str) -> str:
    """A label without case and repeated spaces; labels with the same key are variants of one label."""
    return " ".join(name.casefold().split())


def label_variants(counts: Mapping[str, int]) -> list[tuple[str, ...]]:
    """Groups of labels that differ only in case and spaces, with the most frequent label of each group first."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in sorted(counts, key=lambda name: -counts[name]):
        groups[label_key(name)].append(name)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def placeholders(counts: Mapping[str, int]) -> list[str]:
    """The labels that stand for a missing label; "-" is not one of them if there is also a label "+"."""
    return [name for name in counts if name.casefold() in PLACEHOLDERS and not (name == "-" and "+" in counts)]


def merged_names(counts: Mapping[str, int]) -> dict[str, str]:
    """The new name of each label that is merged into another label, and "" for each placeholder."""
    merged = {name: first for first, *others in label_variants(counts) for name in others}
    return merged | dict.fromkeys(placeholders(counts), "")


def _merged_counts(counts: Mapping[str, int]) -> Counter[str]:
    """The numbers of rows after merging."""
    names, after = merged_names(counts), Counter[str]()
    for name, n in counts.items():
        if new_name := names.get(name, name):
            after[new_name] += n
    return after


def label_separator(counts: Mapping[str, int]) -> str:
    """The separator if many cells contain several labels ("a;b") that mostly occur in other cells too; otherwise ""."""
    for separator in SEPARATORS:
        parts = {name: [part.strip() for part in name.split(separator) if part.strip()] for name in counts}
        n = sum(counts[name] for name in counts if len(parts[name]) > 1)
        uses = Counter(part for name in counts for part in set(parts[name]))
        n_repeated = sum(count > 1 for count in uses.values())
        if n >= MIN_MULTILABEL * sum(counts.values()) and (n_repeated >= len(uses) / 2 or len(counts) == 1) and n:
            return separator
    return ""


def label_notes(counts: Mapping[str, int], *, merged: bool = False) -> Iterator[str]:
    """Yield warnings about labels, with their numbers of rows; `merged` means that variants have already been
    merged."""
    remedy = "" if merged else f" {Advice.MERGE}."
    for problem, groups in (
        ("are one class" if merged else "look like one class", label_variants(counts)),
        ("were dropped" if merged else "look like missing labels", [(name,) for name in placeholders(counts)]),
    ):
        if groups:
            names = [" / ".join(f"'{shown(name, limit=30)}' ({counts[name]:,})" for name in group) for group in groups]
            more = ", …" if len(names) > 8 else ""
            yield f"Labels that {problem}: {', '.join(names[:8])}{more}.{remedy}"
    if separator := label_separator(counts):
        example = max((name for name in counts if separator in name), key=lambda name: counts[name])
        yield (
            f"Some cells contain several labels, such as '{shown(example, limit=40)}' ({counts[example]:,} rows). Each "
            "combination becomes a class, since a text gets one class. To predict several labels per text, make a "
            "yes/no column for each label and train a classifier on each."
        )
    if merged:
        counts = _merged_counts(counts)
    most_frequent, n = max(counts.items(), key=lambda item: item[1], default=("", 0))
    share = n / max(sum(counts.values()), 1)
    if len(counts) > 1 and share >= (1 + 1 / len(counts)) / 2:
        yield (
            f"{percentage(share, 0)} of the rows have the label '{shown(most_frequent, limit=40)}'. Always guessing it "
            "has this accuracy, so judge a classifier by macro-F1."
        )


def names_from_code_book(rows: Sequence[Sequence[object]], labels: Collection[str]) -> dict[str, str]:
    """The class name of each label that a code book explains; {} if these rows of cells are not a code book.

    A code book has a column with at least two of the labels, each once, and their meanings in the next column. Case and
    spaces do not count: the key of each code (`label_key`) is added to the codes, unless two codes have the same. If it
    does not explain all labels, the names contain both: "1 (very bad)".
    """
    keys, best = set(map(label_key, labels)), dict[str, str]()
    for column in range(max(map(len, rows), default=0) - 1):
        pairs = [
            (label_name(cells[column]), label_name(cells[column + 1])) for cells in rows if len(cells) > column + 1
        ]
        explained = [
            (code, meaning) for code, meaning in pairs if label_key(code) in keys and meaning and meaning not in labels
        ]
        if len(explained) == len(dict(explained)) > max(len(best), 1):
            best = dict(explained)
    n_codes = Counter(map(label_key, best))
    codes = {key: code for code in best if n_codes[key := label_key(code)] == 1} | {code: code for code in best}
    if not all(label in codes or label_key(label) in codes for label in labels):
        best = {code: f"{code} ({meaning})" for code, meaning in best.items()}
    return best | {key: best[code] for key, code in codes.items()}


def class_name(label: object, names: Mapping[str, str]) -> str:
    """The class name of a label, by a code book if its names are given; "" if it is missing."""
    name = label_name(label)
    return names.get(name) or names.get(label_key(name), name)


def unexplained_labels(classes: Collection[str], names: Mapping[str, str]) -> Iterator[str]:
    """Yield a note on the classes that are in no line of a code book; none without a code book."""
    if names and (left := sorted(set(classes) - set(names.values()), key=natural_order)):
        labels, keep = ("label is", "It keeps its name") if len(left) == 1 else ("labels are", "They keep their names")
        yield f"{len(left):,} {labels} in no line of the code book: {listed(left)}. {keep}."


def merge_labels(names: Sequence[str]) -> tuple[list[str], list[int], list[str]]:
    """Merge label variants and drop placeholders: the remaining labels, their indices, and notes on the changes."""
    counts = Counter(names)
    new_names = merged_names(counts)
    remaining = {index: new for index, name in enumerate(names) if (new := new_names.get(name, name))}
    return list(remaining.values()), list(remaining), list(label_notes(counts, merged=True))


def label_name(value: object) -> str:
    """The class name of a label, the same from Python and from any file.

    3.0 and "3.0" (from a numeric column with gaps) become "3", True and "TRUE" (from a spreadsheet) "true", a date at
    midnight "2020-01-31", a missing value "", and a list "a; b".
    """
    if isinstance(value, list):
        return "; ".join(filter(None, map(label_name, value)))
    if value is None or value != value:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = str(value).strip()
    if match := _WHOLE_NUMBER.fullmatch(text) or _MIDNIGHT.fullmatch(text):
        return match[1]
    return text.lower() if text.lower() in ("true", "false") else text


def natural_order(label: str) -> tuple[int, int, str]:
    """A sort key: whole numbers by value, then other names alphabetically."""
    is_number = label.isascii() and label.removeprefix("-").isdigit() and len(label) < 19
    return (0, int(label), label) if is_number else (1, 0, label)
