"""Labels as people write them: variants of one label, placeholders for a missing label, several labels in a cell."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from txcls.wording import shown

PLACEHOLDERS = frozenset(
    ("?", "??", "-", "--", "–", "—", ".", "n/a", "n.a.", "na", "#n/a", "nan", "nil", "null", "none", "tbd", "empty")
)
"""What people write into a cell without a label, in lower case."""
SEPARATORS = (";", "|", ",")
"""Characters between several labels in a cell."""
MIN_SEVERAL = 0.05
"""Minimum fraction of rows with several labels for a note."""


def label_variants(counts: Mapping[str, int]) -> list[tuple[str, ...]]:
    """Groups of labels that differ only in case and blanks, the most frequent label of each group first."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in sorted(counts, key=lambda name: -counts[name]):
        groups[" ".join(name.casefold().split())].append(name)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def placeholders(counts: Mapping[str, int]) -> list[str]:
    """The labels that stand for a missing one; "-" does not if there is also "+"."""
    return [name for name in counts if name.casefold() in PLACEHOLDERS and not (name == "-" and "+" in counts)]


def merged_names(counts: Mapping[str, int]) -> dict[str, str]:
    """The new name of each label that is merged into another one; "" for a placeholder, which is dropped."""
    merged = {name: first for first, *others in label_variants(counts) for name in others}
    return merged | dict.fromkeys(placeholders(counts), "")


def several_labels(counts: Mapping[str, int]) -> str:
    """The separator if many cells hold several labels, such as "a;b", most of which occur in other cells too; or ""."""
    for separator in SEPARATORS:
        parts = {name: [part.strip() for part in name.split(separator) if part.strip()] for name in counts}
        n = sum(counts[name] for name in counts if len(parts[name]) > 1)
        uses = Counter(part for name in counts for part in set(parts[name]))
        repeated = sum(count > 1 for count in uses.values())
        if n >= MIN_SEVERAL * sum(counts.values()) and (repeated >= len(uses) / 2 or len(counts) == 1) and n:
            return separator
    return ""


def label_notes(counts: Mapping[str, int], *, merged: bool = False) -> Iterator[str]:
    """Sentences on labels to check, with their numbers of rows; `merged` says that variants have been merged."""
    remedy = "" if merged else " Merge or drop them with --merge-labels, or with the button on the page."
    for verb, pairs in (
        ("are one class" if merged else "look like one class", label_variants(counts)),
        ("were dropped" if merged else "look like missing labels", [(name,) for name in placeholders(counts)]),
    ):
        if pairs:
            groups = [" / ".join(f"'{shown(name, limit=30)}' ({counts[name]:,})" for name in group) for group in pairs]
            more = ", …" if len(groups) > 8 else ""
            yield f"Labels that {verb}: {', '.join(groups[:8])}{more}.{remedy}"
    if separator := several_labels(counts):
        example = max((name for name in counts if separator in name), key=lambda name: counts[name])
        yield (
            f"Cells with several labels, such as '{shown(example, limit=40)}' ({counts[example]:,} rows): each "
            "combination is a class of its own, since a text gets one class. For several at once, make a column of yes "
            "and no for each label, and train one classifier for each."
        )


def merge_labels(names: Sequence[str]) -> tuple[list[str], list[int], list[str]]:
    """The labels with variants merged, without placeholders; the places of those that remain; and notes."""
    counts = Counter(names)
    new = merged_names(counts)
    kept = [place for place, name in enumerate(names) if new.get(name, name)]
    return [new.get(names[place], names[place]) for place in kept], kept, list(label_notes(counts, merged=True))
