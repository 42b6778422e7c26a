"""Problems with labels in tables: variants of a label, placeholders for a missing one, several labels in a cell."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from txcls.wording import shown

PLACEHOLDERS = frozenset(
    ("?", "??", "-", "--", "–", "—", ".", "n/a", "n.a.", "na", "#n/a", "nan", "nil", "null", "none", "tbd", "empty")
)
"""Common entries in cells without a label, in lower case."""
SEPARATORS = (";", "|", ",")
"""Characters that separate several labels in a cell."""
MIN_MULTILABEL = 0.05
"""Minimum fraction of rows with several labels for a note."""


def label_variants(counts: Mapping[str, int]) -> list[tuple[str, ...]]:
    """Groups of labels that differ only in case and spaces, with the most frequent label of each group first."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in sorted(counts, key=lambda name: -counts[name]):
        groups[" ".join(name.casefold().split())].append(name)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def placeholders(counts: Mapping[str, int]) -> list[str]:
    """The labels that stand for a missing label; "-" is not one of them if there is also a label "+"."""
    return [name for name in counts if name.casefold() in PLACEHOLDERS and not (name == "-" and "+" in counts)]


def merged_names(counts: Mapping[str, int]) -> dict[str, str]:
    """The new name of each label that is merged into another label, and "" for each placeholder."""
    merged = {name: first for first, *others in label_variants(counts) for name in others}
    return merged | dict.fromkeys(placeholders(counts), "")


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
    """Yield warnings about labels, with their numbers of rows; `merged`: variants have already been merged."""
    remedy = "" if merged else " Merge or drop them with --merge-labels, or with the button on the page."
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


def merge_labels(names: Sequence[str]) -> tuple[list[str], list[int], list[str]]:
    """Merge label variants and drop placeholders: the remaining labels, their indices, and notes on the changes."""
    counts = Counter(names)
    new_names = merged_names(counts)
    remaining = {index: new for index, name in enumerate(names) if (new := new_names.get(name, name))}
    return list(remaining.values()), list(remaining), list(label_notes(counts, merged=True))
