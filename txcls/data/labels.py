"""Names of labels, and their problems in tables: variants of a label, placeholders, several labels in a cell, codes."""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from txcls.errors import Note, quote, sanitize

PLACEHOLDERS = frozenset(
    ("?", "??", "-", "--", "–", "—", ".", "n/a", "n.a.", "na", "#n/a", "nan", "nil", "null", "none", "tbd", "empty")
)
"""Common entries in cells without a label, in lower case."""
_CELL_ERROR = re.compile(r"#(?:DIV/0!|NAME\?|NULL!|NUM!|REF!|VALUE!|SPILL!|CALC!|NV|BEZUG!|WERT!)")
SEPARATORS = (";", "|", ",")
"""Characters that separate several labels in a cell."""
MIN_MULTILABEL = 0.05
"""Minimum fraction of rows with several labels for a note."""
MAX_COMPARED = 300
"""With more different labels, only variants that differ in capitals, accents and punctuation are found."""
_WHOLE_NUMBER = re.compile(r"([+-]?[0-9]+)\.0+")
DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
_MIDNIGHT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]00:00:00(?:\.0+)?Z?")
_ENDINGS = ("es", "x", "n", "en", "e", "er")
_PAIRS_OF_ENDINGS = (
    ("y", "ies"), ("ao", "oes"), ("ao", "aes"), ("al", "ais"), ("el", "eis"), ("al", "aux"), ("m", "ns"), ("z", "ces"),
)  # fmt: skip
"""Singular and plural endings in English, German, French, Spanish and Portuguese, without accents."""


def label_variants(counts: Mapping[str, int]) -> dict[str, str]:
    """Labels that seem to be other spellings of a class, each mapped to the most frequent spelling, by the same rule as
    in the playground (`web/playground/table/labels.js`)."""
    by_key: dict[str, list[str]] = defaultdict(list)
    for name in sorted(counts, key=lambda name: (-counts[name], name)):
        by_key[_spelling_key(name)].append(name)
    groups = [(_spaced(fold_case(names[0])), names, sum(counts[name] for name in names)) for names in by_key.values()]
    groups.sort(key=lambda group: (-group[2], group[0]))
    merged: dict[str, str] = {}
    for index, (smaller, names, n) in enumerate(groups):
        larger_groups = groups[:index] if len(groups) <= MAX_COMPARED else ()
        alike = (
            larger_names[0]
            for larger, larger_names, larger_n in larger_groups
            if larger_names[0] not in merged and _are_alike(larger, smaller, n / larger_n)
        )
        target = next(alike, names[0])
        merged |= {name: target for name in names if name != target}
    return merged


def fold_case(name: str) -> str:
    """A name in lower case without accents."""
    letters = (letter for letter in unicodedata.normalize("NFKD", name) if unicodedata.category(letter)[0] != "M")
    return " ".join("".join(letters).lower().replace("ß", "ss").split())


def _spaced(name: str) -> str:
    """A name with single spaces instead of hyphens, underscores and stops."""
    return re.sub(r"[\s_\-–.]+", " ", name).strip()


def _spelling_key(name: str) -> str:
    bare = fold_case(name)
    key = _spaced(bare.replace("&", " and ")).replace(" ", "")
    return key if any(map(str.isalpha, key)) else bare  # "+1" and "-1" are different numbers


def _are_alike(larger: str, smaller: str, share: float) -> bool:
    """Whether a label with `share` times as many rows as a larger one seems to be the same class."""
    if min(len(larger), len(smaller)) < 3 or max(len(larger), len(smaller)) > 60:
        return False
    bare = [_without_mark(name) for name in (larger, smaller)]
    if bare[0] == bare[1] and len(bare[0]) >= 3 and bare[0] in (larger, smaller):
        return True  # only the number or mark before it differs
    if re.sub(r"\D+", " ", larger) != re.sub(r"\D+", " ", smaller):
        return False  # "Q1" and "Q2" are classes
    words, others = larger.split(" "), smaller.split(" ")
    different = [pair for pair in zip(words, others, strict=False) if pair[0] != pair[1]]
    if len(words) != len(others) or len(different) != 1:
        return False
    short, long = sorted(different[0], key=len, reverse=len(different[0][0]) == len(different[0][1]))
    ending = _ending_between(short, long)
    if ending == "s" or (ending and share <= 0.6):
        return True
    max_share = 0.2 if len(short) >= 6 else 0.1 if len(short) >= 4 else 0.03 if len(short) == 3 else 0.0
    is_prefixed = len(long) > len(short) and long.endswith(short)  # often another word: "moral" and "amoral"
    if share <= max_share and not is_prefixed and _are_one_edit_apart(short, long):
        return True
    is_short = different[0][1] == short and len(short) >= 4 and long.startswith(short) and len(long) >= len(short) + 3
    return is_short and share <= 0.05


def _without_mark(name: str) -> str:
    name = re.sub(r"^(?:label|class|category) ", "", name)
    return re.sub(r"^(?:\d{1,3}|[a-z])[ ):]+ ?", "", name).removeprefix("#")


def _ending_between(short: str, long: str) -> str:
    """The ending that makes the longer word another form of the shorter one; "" if it is not."""
    if len(short) < 3 or (short, long) == ("new", "news"):
        return ""
    if long == f"{short}s":
        return "s"
    added = next((ending for ending in _ENDINGS if len(short) >= 4 and long == short + ending), "")
    pairs = (many for one, many in _PAIRS_OF_ENDINGS if short.endswith(one) and long == short.removesuffix(one) + many)
    return added or next(pairs, "")


def _are_one_edit_apart(a: str, b: str) -> bool:
    """Whether one letter is changed, added or left out, or two neighbours are swapped."""
    if abs(len(a) - len(b)) > 1 or a == b:
        return False
    start = _n_alike(a, b)
    end = min(_n_alike(a[::-1], b[::-1]), min(len(a), len(b)) - start)
    rest_a, rest_b = a[start : len(a) - end], b[start : len(b) - end]
    return max(len(rest_a), len(rest_b)) <= 1 or (len(rest_a) == len(rest_b) == 2 and rest_a == rest_b[::-1])


def _n_alike(a: str, b: str) -> int:
    """The number of letters at the beginning that two words share."""
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def placeholders(counts: Mapping[str, int]) -> list[str]:
    """The labels that stand for a missing label; "-" is not one of them if there is also a label "+"."""
    return [name for name in counts if name.casefold() in PLACEHOLDERS and not (name == "-" and "+" in counts)]


def merged_names(counts: Mapping[str, int]) -> dict[str, str]:
    """The new name of each label that is merged into another label, and "" for each placeholder."""
    return label_variants(counts) | dict.fromkeys(placeholders(counts), "")


def label_separator(counts: Mapping[str, int]) -> str:
    """The separator if many cells contain several labels ("a;b") that mostly occur in other cells too; otherwise ""."""
    for separator in SEPARATORS:
        parts = {
            name: [name] if DECIMAL_COMMA.fullmatch(name) else [*filter(None, map(str.strip, name.split(separator)))]
            for name in counts
        }
        n = sum(counts[name] for name in counts if len(parts[name]) > 1)
        uses = Counter(part for name in counts for part in set(parts[name]))
        n_repeated = sum(count > 1 for count in uses.values())
        if n >= MIN_MULTILABEL * sum(counts.values()) and (n_repeated >= len(uses) / 2 or len(counts) == 1) and n:
            return separator
    return ""


def label_notes(counts: Mapping[str, int], *, merged: bool = False) -> Iterator[str]:
    """Yield warnings about labels, with their numbers of rows; `merged`: whether variants are merged already."""
    option: dict[str, Any] = {} if merged else {"merge_labels": True}
    counted = {name: f"'{sanitize(name, limit=30)}' ({n:,})" for name, n in counts.items()}
    spellings: dict[str, list[str]] = defaultdict(list)
    variants = label_variants(counts)
    for name, target in variants.items():
        spellings[target].append(counted[name])
    if variants:
        said, joined = ("Labels merged", "as") if merged else ("Labels alike, not merged", "and")
        every = "; ".join(f"{', '.join(names)} {joined} {counted[target]}" for target, names in spellings.items())
        name, target = next(iter(variants.items()))
        example = f"{quote(name)} {joined} {quote(target)}"
        several = f" {len(variants):,} ({sum(counts[name] for name in variants):,} rows), such as"
        brief = f"{said}:{several * (len(variants) > 1)} {example}."
        yield Note(f"{said}: {every}.", brief=brief, **option)
    if missing := placeholders(counts)[:8]:
        said = "Labels dropped" if merged else "Missing labels, not dropped"
        yield Note(f"{said}: {', '.join(counted[name] for name in missing)}.", **option)
    if separator := label_separator(counts):
        example = max((name for name in counts if separator in name), key=lambda name: counts[name])
        several = f"Some cells contain several labels, such as {quote(example)} ({counts[example]:,} rows)"
        yield Note(
            f"{several}. Each combination becomes a class, since a text gets one class. To predict several labels per "
            "text, make a yes/no column for each label and train a classifier on each.",
            brief=f"{several}; each combination is a class.",
        )


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
    if text.startswith("#") and _CELL_ERROR.fullmatch(text):
        return ""
    if match := _WHOLE_NUMBER.fullmatch(text) or _MIDNIGHT.fullmatch(text):
        return match[1]
    return text.lower() if text.lower() in ("true", "false") else text


def natural_order(label: str) -> tuple[int, int, str]:
    """A sort key: whole numbers by value, then other names alphabetically."""
    is_number = label.isascii() and label.removeprefix("-").isdigit() and len(label) < 19
    return (0, int(label), label) if is_number else (1, 0, label)
