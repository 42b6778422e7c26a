"""Which column of a table holds the texts and which the labels: by their names, else by what is in them. Where several
columns could be labels, it is the one that the texts tell most about.

A guess comes with its reasons and with hints at what may be wrong, as sentences for the person whose table it is.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from txcls.data.tables.labelled import label_name
from txcls.data.tables.own_table import OwnTable
from txcls.data.tables.table import LABEL_NAMES, TEXT_NAMES
from txcls.errors import DataError, listed, shown

LOOKED_AT = 5000
"""Rows that are looked at, evenly spaced."""
TOLD_ROWS = 1000
"""Rows on which it is measured how much texts tell about a column."""
LEAST_TOLD = 0.1
"""Least advantage of one column over the others in that, for it to decide."""
_NOT_LABELS = ("id", "index", "date", "time", "url", "link", "number", "no", "name", "user", "author")


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """What the values of a column look like, over at most LOOKED_AT rows.

    Attributes:
        name: the column's.
        filled: share of rows with a value.
        distinct: different values.
        n: rows looked at that have a value.
        characters, words: means over these values.
        numbers: share of them that are numbers.
        examples: the most frequent values, at most three, shortened.
    """

    name: str
    filled: float
    distinct: int
    n: int
    characters: float
    words: float
    numbers: float
    examples: tuple[str, ...]

    @property
    def looks_like_text(self) -> bool:
        """Whether the values are varied and of several words."""
        return self.n > 0 and self.numbers < 0.5 and self.words >= 1.5 and self.distinct >= 0.3 * self.n

    @property
    def looks_like_labels(self) -> bool:
        """Whether there are few values, repeated."""
        return 2 <= self.distinct <= max(2, self.n // 2) and self.characters <= 60


@dataclass(frozen=True, slots=True)
class Guess:
    """The columns to train on.

    Attributes:
        text_column, label_column: their names.
        text_reason, label_reason: a sentence each: why, or that it was named.
        guessed: whether either was guessed and not named.
        hints: sentences on what may be wrong; empty if nothing seems to be.
    """

    text_column: str
    label_column: str
    text_reason: str
    label_reason: str
    guessed: bool
    hints: tuple[str, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """All that is to be said, for a person."""
        return (self.text_reason, self.label_reason, *self.hints)


def column_facts(table: OwnTable) -> dict[str, ColumnFacts]:
    """The facts of every column, by name."""
    step = max(1, len(table) // LOOKED_AT)
    return {name: _facts(name, values[::step]) for name, values in table.columns.items()}


def guess_columns(table: OwnTable, *, text_column: str | None = None, label_column: str | None = None) -> Guess:
    """The text and the label column; those named by the user are kept.

    Args:
        table: as read.
        text_column, label_column: names given by the user; None to guess.

    Raises:
        DataError: a named column does not exist, both are the same, or no column looks like texts or like labels.
    """
    facts = column_facts(table)
    for what, asked in (("texts", text_column), ("labels", label_column)):
        if asked is not None and asked not in facts:
            raise DataError(f"{table.name}: no column {asked!r} for the {what}; there are {listed(list(facts))}")
    text, text_reason = (text_column, "named by you") if text_column else _text(facts, taken=label_column)
    label, label_reason, rivals = (
        (label_column, "named by you", ()) if label_column else _label(facts, table, text=text)
    )
    for what, found in (("text", text), ("label", label)):
        if found is None:
            if what == "label" and (single := _of_one_value(facts, text)) is not None:
                raise DataError(
                    f"{table.name}: column '{shown(single.name, limit=40)}' has the same value in every row "
                    f"('{single.examples[0]}'); wanted labels of at least two classes"
                )
            raise DataError(
                f"{table.name}: no column looks like {what}s; there are {listed(list(facts))}. Name it with "
                f"--{what}-column"
            )
    assert text is not None and label is not None
    if text == label:
        raise DataError(f"{table.name}: column {text!r} cannot be both text and label; name two columns")
    return Guess(
        text,
        label,
        f"Texts: column '{shown(text, limit=40)}', {text_reason}.",
        f"Labels: column '{shown(label, limit=40)}', {label_reason}.",
        guessed=text_column is None or label_column is None,
        hints=(*_hints(facts[text], facts[label]), *rivals),
    )


def _facts(name: str, values: Sequence[object]) -> ColumnFacts:
    written = [label_name(value) for value in values]
    filled = [one for one in written if one]
    counts = Counter(filled)
    n = len(filled)
    return ColumnFacts(
        name=name,
        filled=n / max(len(values), 1),
        distinct=len(counts),
        n=n,
        characters=sum(map(len, filled)) / max(n, 1),
        words=sum(len(one.split()) for one in filled) / max(n, 1),
        numbers=sum(map(_is_number, filled)) / max(n, 1),
        examples=tuple(shown(one, limit=30) for one, _ in counts.most_common(3)),
    )


def _is_number(value: str) -> bool:
    try:
        float(value.replace(",", "."))
    except ValueError:
        return False
    return True


def _by_name(facts: dict[str, ColumnFacts], usual: Sequence[str], *, taken: str | None) -> Iterator[ColumnFacts]:
    """Columns with a usual name, the most usual first; then those in whose name one of its words is usual."""
    free = [one for name, one in facts.items() if name != taken]
    yield from (one for name in usual for one in free if one.name.strip().lower() == name)
    for name in usual:
        yield from (one for one in free if name in _words(one.name))


def _words(name: str) -> list[str]:
    """The words of a column's name: "reviewText", "review_text" and "Review text" have the same."""
    return re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())


def _text(facts: dict[str, ColumnFacts], *, taken: str | None) -> tuple[str | None, str]:
    for one in _by_name(facts, TEXT_NAMES, taken=taken):
        if one.n and one.numbers < 0.5 and one.distinct > 1:
            return one.name, "by its name"
    free = [one for name, one in facts.items() if name != taken and one.n and one.numbers < 0.5]
    if not free:
        return None, ""
    best = max(free, key=lambda one: one.characters * (one.distinct / one.n) * one.filled)
    if not (best.looks_like_text or (len(facts) == 2 and best.distinct > 1)):
        return None, ""
    share = best.distinct / best.n
    return best.name, (
        f"by its contents: {best.characters:,.0f} characters on average, {share:.0%} of its values different"
    )


def _label(
    facts: dict[str, ColumnFacts], table: OwnTable, *, text: str | None
) -> tuple[str | None, str, tuple[str, ...]]:
    """The label column, why it is that one, and a hint at others that it could be."""
    for one in _by_name(facts, LABEL_NAMES, taken=text):
        if one.looks_like_labels:
            return one.name, f"by its name ({_values(one)})", ()
    free = [one for name, one in facts.items() if name != text and one.distinct >= 2]
    likely = [one for one in free if one.looks_like_labels]
    if not likely:
        if len(facts) == 2 and free:  # the other of two columns, whatever it holds
            return free[0].name, f"the other of two columns ({_values(free[0])})", ()
        return None, "", ()

    def order(one: ColumnFacts) -> tuple[bool, bool, bool, float]:
        odd = any(word in _NOT_LABELS for word in _words(one.name))
        return odd, one.filled < 0.5, one.numbers > 0.5, one.distinct / one.n

    first, *others = sorted(likely, key=order)
    rivals = [one for one in others if order(one)[:2] == order(first)[:2]]
    if not rivals or text is None:
        return first.name, f"by its contents: {_values(first)}", ()
    told = {one.name: how_much_told(table.columns[text], table.columns[one.name]) for one in (first, *rivals)}
    best = max((first, *rivals), key=lambda one: (told[one.name], one is first))
    decides = told[best.name] >= max(told[one.name] for one in (first, *rivals) if one is not best) + LEAST_TOLD
    chosen = best if decides else first
    reason = f"by its contents: {_values(chosen)}" + ("; the texts tell most about this column" if decides else "")
    names = listed([one.name for one in (first, *rivals) if one is not chosen])
    return chosen.name, reason, (f"It could be {names} too; choose it if those are the labels.",)


def _of_one_value(facts: dict[str, ColumnFacts], text: str | None) -> ColumnFacts | None:
    """A column with the name of labels whose values are all the same."""
    return next((one for one in _by_name(facts, LABEL_NAMES, taken=text) if one.distinct == 1), None)


def how_much_told(texts: Sequence[object], values: Sequence[object]) -> float:
    """How much texts tell about the values of another column, from 0 (nothing) to 1 (everything).

    The share of a majority guess's errors that naive Bayes over the words avoids, on halves of at most TOLD_ROWS rows
    in turn (never below 0).
    """
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.naive_bayes import ComplementNB

    step = max(1, len(texts) // TOLD_ROWS)
    pairs = zip(map(label_name, texts[::step]), map(label_name, values[::step]), strict=True)
    rows = [(text, value) for text, value in pairs if text and value]
    if len(rows) < 4 or len({value for _, value in rows}) < 2:
        return 0.0
    order = np.random.default_rng(0).permutation(len(rows))
    words = HashingVectorizer(n_features=2**16, alternate_sign=False).transform(
        [rows[place][0][:2000] for place in order]
    )
    wanted = np.array([rows[place][1] for place in order])
    right, middle = 0, len(rows) // 2
    for known, asked in ((slice(None, middle), slice(middle, None)), (slice(middle, None), slice(None, middle))):
        if len(set(wanted[known])) > 1:
            right += int((ComplementNB().fit(words[known], wanted[known]).predict(words[asked]) == wanted[asked]).sum())
    majority = Counter(wanted.tolist()).most_common(1)[0][1]
    return max(0.0, (right - majority) / (len(rows) - majority))


def _values(one: ColumnFacts) -> str:
    more = ", …" if one.distinct > len(one.examples) else ""
    return f"{one.distinct:,} different values: {', '.join(one.examples)}{more}"


def _hints(text: ColumnFacts, label: ColumnFacts) -> Iterator[str]:
    if text.numbers >= 0.5:
        yield f"Column '{shown(text.name, limit=40)}' holds numbers, not texts; is it the right text column?"
    elif label.looks_like_text and not text.looks_like_text:
        yield (
            f"The columns look swapped: '{shown(label.name, limit=40)}' has long, varied values and "
            f"'{shown(text.name, limit=40)}' few repeated ones; exchange the two."
        )
    elif label.n > 20 and label.distinct > label.n / 2:
        yield (
            f"Column '{shown(label.name, limit=40)}' has {label.distinct:,} different values in {label.n:,} rows; "
            "labels repeat. Is it the right label column?"
        )
    elif label.numbers > 0.9 and label.distinct > 20:
        yield (
            f"Column '{shown(label.name, limit=40)}' holds {label.distinct:,} different numbers; each becomes a class "
            "of its own. Group them into ranges if they are measurements."
        )
