"""Guess which column of a table holds the texts and which the labels: from their names, else from their contents.

If several columns could be the labels, the one that the texts predict best is chosen.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from txcls.config import DataConfig
from txcls.data.classes import label_name
from txcls.data.html import is_html
from txcls.data.labels import label_notes
from txcls.errors import DataError
from txcls.wording import listed, percentage, shown

Columns = Mapping[str, Sequence[object]]
"""The values of each column in a random sample of rows, as returned by `Table.sample`."""

TEXT_NAMES = (
    *("text", "sentence", "message", "content", "utterance", "comment", "review", "body", "document", "headline"),
    *("title", "description", "question", "query", "input", "tweet"),
)
"""Common names of a text column, the most likely first, compared ignoring case."""
LABEL_NAMES = (
    *("label", "class", "category", "target", "intent", "sentiment", "topic", "section", "tag", "output", "y"),
    *("labels", "label_text", "class_name", "rating", "stars"),
)
"""Common names of a label column, the most likely first."""
_HEADLINES = ("subject", "title", "headline", "heading", "summary")
_BODIES = ("body", "text", "description", "message", "content", "comment", "review", "question", "details")
"""Columns with such names hold the two parts of one text."""
JOINED = " + "
"""Between the names of text columns that are joined."""
PREDICTED_ROWS = 1000
"""Number of rows used to measure how well texts predict a column."""
MIN_ADVANTAGE = 0.1
"""Margin by which texts must predict a column better than the other columns for it to be chosen."""
_NOT_LABELS = ("id", "index", "date", "time", "url", "link", "number", "no", "name", "user", "author")


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """Statistics of the values of a column."""

    name: str
    filled: float
    """Fraction of rows with a value."""
    distinct: int
    """Number of distinct values."""
    n: int
    """Number of rows with a value; the following fields describe these."""
    characters: float
    """Mean length in characters."""
    words: float
    """Mean number of words."""
    numbers: float
    """Fraction of the values that are numbers."""
    examples: tuple[str, ...]
    """The most frequent values, at most three, shortened."""

    @property
    def looks_like_text(self) -> bool:
        """Whether the values are varied and have several words."""
        return self.n > 0 and self.numbers < 0.5 and self.words >= 1.5 and self.distinct >= 0.3 * self.n

    @property
    def looks_like_labels(self) -> bool:
        """Whether there are few values, which repeat."""
        return 2 <= self.distinct <= max(2, self.n // 2) and self.characters <= 60

    @property
    def values(self) -> str:
        """The number of distinct values, and some of them."""
        more = ", …" if self.distinct > len(self.examples) else ""
        return f"{self.distinct:,} different values: {', '.join(self.examples)}{more}"


@dataclass(frozen=True, slots=True)
class Guess:
    """The columns to train on, the reasons, and hints at possible problems.

    `text_column` may be several columns, such as `subject + body`. `strip_html` says that many of the texts are HTML.
    """

    text_column: str
    label_column: str
    text_reason: str
    label_reason: str
    guessed: bool
    """Whether at least one of the columns was guessed rather than named."""
    hints: tuple[str, ...] = ()
    strip_html: bool = False

    @property
    def config(self) -> DataConfig:
        """What a checkpoint remembers about the columns, to read other tables in the same way."""
        return DataConfig(
            dataset="table",
            text_column=self.text_column,
            label_column=self.label_column,
            strip_html=self.strip_html,
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """The reasons and hints, for the user."""
        html = ("The texts are HTML; only what a reader sees is read, without tags and style sheets.",)
        return (self.text_reason, self.label_reason, *self.hints, *(html if self.strip_html else ()))


def is_usual_name(name: str) -> bool:
    """Whether a column of this name usually holds texts or labels."""
    return name.strip().lower() in (*TEXT_NAMES, *LABEL_NAMES)


def is_number(value: str) -> bool:
    """Whether a cell's text is a number, with a decimal point or comma."""
    try:
        float(value.replace(",", "."))
    except ValueError:
        return False
    return True


def text_columns(name: str, columns: Collection[str]) -> tuple[str, ...]:
    """The columns that a text column's name stands for: itself, or the parts of `subject + body`."""
    return (name,) if name in columns or JOINED not in name else tuple(name.split(JOINED))


def has_text_column(columns: Collection[str], name: str | None) -> bool:
    """Whether all columns that a text column's name stands for exist."""
    return name is not None and all(part in columns for part in text_columns(name, columns))


def guess_text_column(columns: Columns, *, file: str, text_column: str | None = None) -> str:
    """The text column: the named one, one with a common name, the only column, or one whose contents look like texts.

    Raises:
        DataError: there is no such column, or no column looks like texts.
    """
    names = list(columns)
    if chosen := _named(names, text_column, file=file, kind="text"):
        return chosen
    chosen, facts = _usual(names, TEXT_NAMES), column_facts(columns)
    if chosen is None:
        chosen = names[0] if len(names) == 1 else _text(facts, taken=None)[0]
    if chosen is None:
        raise _unclear(names, file=file, kind="text")
    return JOINED.join(_guess_text_columns(facts, chosen, taken=None))


def column_facts(columns: Columns) -> dict[str, ColumnFacts]:
    """The statistics of every column, keyed by name."""
    return {name: _facts(name, values) for name, values in columns.items()}


def guess_columns(
    columns: Columns, *, file: str, text_column: str | None = None, label_column: str | None = None
) -> Guess:
    """The text and the label column; columns named by the user are kept.

    Raises:
        DataError: a named column does not exist, both are the same, or no column looks like texts or like labels.
    """
    facts = column_facts(columns)
    _named(list(facts), text_column, file=file, kind="text")
    _named(list(facts), label_column, file=file, kind="label")
    text, text_reason = (text_column, "named by you") if text_column else _text(facts, taken=label_column)
    parts: tuple[str, ...] = ()
    if text_column:
        parts = text_columns(text_column, columns)
    elif text is not None:
        parts = _guess_text_columns(facts, text, taken=label_column)
    texts = [
        " ".join(filter(None, map(label_name, cells))) for cells in zip(*(columns[name] for name in parts), strict=True)
    ]
    label, label_reason, rivals = (
        (label_column, "named by you", ()) if label_column else _label(facts, columns, taken=parts, texts=texts)
    )
    named_as_labels = [column for column in _by_name(facts, LABEL_NAMES, taken=None) if column.name not in parts]
    if label is None and (single := next((column for column in named_as_labels if column.distinct == 1), None)):
        several = " ".join(label_notes({single.examples[0]: single.n}))
        raise DataError(
            f"{file}: column '{shown(single.name, limit=40)}' has the same value in every row "
            f"('{single.examples[0]}'); expected labels of at least two classes{several and '. '}{several}"
        )
    if text is None or label is None:
        kind = "text" if text is None else "label"
        raise DataError(
            f"{file}: no column looks like {kind}s; there are {listed(list(facts))}. Name it with --{kind}-column"
        )
    if label in parts:
        raise DataError(f"{file}: column {label!r} cannot be both text and label; name two columns")
    hints = [*(_hints(facts[text], facts[label]) if len(parts) == 1 else ()), *rivals]
    where = f"Texts: column '{shown(text, limit=40)}', {text_reason}."
    if len(parts) > 1:
        where = f"Texts: columns {listed(parts)}, joined{', by their names' if not text_column else ''}."
    return Guess(
        JOINED.join(parts),
        label,
        where,
        f"Labels: column '{shown(label, limit=40)}', {label_reason}.",
        guessed=text_column is None or label_column is None,
        hints=tuple(hints),
        strip_html=is_html(texts),
    )


def label_predictability(texts: Sequence[object], values: Sequence[object]) -> float:
    """How well texts predict the values of another column, from 0 (not at all) to 1 (without an error).

    This is the fraction of a majority guess's errors that naive Bayes over the words avoids (never below 0), with
    two-fold cross-validation on at most PREDICTED_ROWS rows.
    """
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.naive_bayes import ComplementNB

    pairs = zip(map(label_name, texts[:PREDICTED_ROWS]), map(label_name, values[:PREDICTED_ROWS]), strict=True)
    rows = [(text, value) for text, value in pairs if text and value]
    if len(rows) < 4 or len({value for _, value in rows}) < 2:
        return 0.0
    order = np.random.default_rng(0).permutation(len(rows))
    words = HashingVectorizer(n_features=2**16, alternate_sign=False).transform(
        [rows[place][0][:2000] for place in order]
    )
    labels = np.array([rows[place][1] for place in order])
    right, middle = 0, len(rows) // 2
    for fitted, tested in ((slice(None, middle), slice(middle, None)), (slice(middle, None), slice(None, middle))):
        if len(set(labels[fitted])) > 1:
            predicted = ComplementNB().fit(words[fitted], labels[fitted]).predict(words[tested])
            right += int((predicted == labels[tested]).sum())
    majority = Counter(labels.tolist()).most_common(1)[0][1]
    return max(0.0, (right - majority) / (len(rows) - majority))


def _named(names: Sequence[str], column: str | None, *, file: str, kind: str) -> str | None:
    for part in () if column is None else text_columns(column, names) if kind == "text" else (column,):
        if part not in names:
            raise DataError(f"{file}: no column {part!r} for the {kind}; there are {listed(names)}")
    return column


def _usual(names: Sequence[str], usual: Sequence[str]) -> str | None:
    by_name = {name.strip().lower(): name for name in reversed(names)}
    return next((by_name[name] for name in usual if name in by_name), None)


def _unclear(names: Sequence[str], *, file: str, kind: str) -> DataError:
    return DataError(
        f"{file}: which column holds the {kind}? There are {listed(names)}; name it with --{kind}-column, or for "
        f"training with --set data.{kind}_column=NAME"
    )


def _facts(name: str, values: Sequence[object]) -> ColumnFacts:
    filled = [text for text in map(label_name, values) if text]
    counts = Counter(filled)
    n = len(filled)
    return ColumnFacts(
        name=name,
        filled=n / max(len(values), 1),
        distinct=len(counts),
        n=n,
        characters=sum(map(len, filled)) / max(n, 1),
        words=sum(len(text.split()) for text in filled) / max(n, 1),
        numbers=sum(map(is_number, filled)) / max(n, 1),
        examples=tuple(shown(text, limit=30) for text, _ in counts.most_common(3)),
    )


def _by_name(facts: dict[str, ColumnFacts], usual: Sequence[str], *, taken: str | None) -> Iterator[ColumnFacts]:
    """Columns with a common name, the most common first; then those whose name contains a common word."""
    free = [column for name, column in facts.items() if name != taken]
    yield from (column for name in usual for column in free if column.name.strip().lower() == name)
    for name in usual:
        yield from (column for column in free if name in _words(column.name))


def _words(name: str) -> list[str]:
    """The words of a column's name; "reviewText", "review_text" and "Review text" give the same words."""
    return re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())


def _text(facts: dict[str, ColumnFacts], *, taken: str | None) -> tuple[str | None, str]:
    for column in _by_name(facts, TEXT_NAMES, taken=taken):
        if column.n and column.numbers < 0.5 and column.distinct > 1:
            return column.name, "by its name"
    free = [column for name, column in facts.items() if name != taken and column.n and column.numbers < 0.5]
    if not free:
        return None, ""
    best = max(free, key=lambda column: column.characters * (column.distinct / column.n) * column.filled)
    if not (best.looks_like_text or (len(facts) == 2 and best.distinct > 1)):
        return None, ""
    share = best.distinct / best.n
    return best.name, (
        f"by its contents: {best.characters:,.0f} characters on average, {percentage(share, 0)} of its values different"
    )


def _guess_text_columns(facts: dict[str, ColumnFacts], text: str, *, taken: str | None) -> tuple[str, ...]:
    """The text column, and the column with the other part of the texts if there is one, in the order of the table."""

    def is_part(column: ColumnFacts) -> bool:
        varied = column.distinct >= 0.1 * column.n and column.words >= 1.5
        return column.name != taken and column.n > 0 and varied and column.numbers < 0.5

    for own, other in ((_HEADLINES, _BODIES), (_BODIES, _HEADLINES)):
        if any(name in _words(text) for name in own) and is_part(facts[text]):
            second = next((column for column in _by_name(facts, other, taken=text) if is_part(column)), None)
            if second is not None:
                return tuple(name for name in facts if name in (text, second.name))
    return (text,)


def _label(
    facts: dict[str, ColumnFacts], columns: Columns, *, taken: Sequence[str], texts: Sequence[str]
) -> tuple[str | None, str, tuple[str, ...]]:
    """The label column, why it was chosen, and a hint at other candidates."""
    for column in _by_name(facts, LABEL_NAMES, taken=None):
        if column.looks_like_labels and column.name not in taken:
            return column.name, f"by its name ({column.values})", ()
    free = [column for name, column in facts.items() if name not in taken and column.distinct >= 2]
    likely = [column for column in free if column.looks_like_labels]
    if not likely:
        if len(facts) == 2 and free:  # of two columns, the other one, whatever it contains
            return free[0].name, f"the other of two columns ({free[0].values})", ()
        return None, "", ()

    def order(column: ColumnFacts) -> tuple[bool, bool, bool, float]:
        odd = any(word in _NOT_LABELS for word in _words(column.name))
        return odd, column.filled < 0.5, column.numbers > 0.5, column.distinct / column.n

    first, *others = sorted(likely, key=order)
    rivals = [column for column in others if order(column)[:2] == order(first)[:2]]
    if not rivals or not texts:
        return first.name, f"by its contents: {first.values}", ()
    candidates = (first, *rivals)
    score = {column.name: label_predictability(texts, columns[column.name]) for column in candidates}
    best = max(candidates, key=lambda column: (score[column.name], column is first))
    second = max(score[column.name] for column in candidates if column is not best)
    decides = score[best.name] >= second + MIN_ADVANTAGE
    chosen = best if decides else first
    reason = f"by its contents: {chosen.values}" + ("; the texts predict this column best" if decides else "")
    names = listed([column.name for column in candidates if column is not chosen])
    return chosen.name, reason, (f"It could be {names} too; choose it if those are the labels.",)


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
