"""Guess which columns of a table contain the texts and the labels: from their names, otherwise from their contents.

If several columns could contain the labels, the one that the texts predict best is chosen.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from txcls.config import DataConfig
from txcls.data.html import are_html
from txcls.data.labels import class_name, folded, label_name, label_notes
from txcls.errors import DataError
from txcls.wording import Note, listed, percentage, shown

Columns = Mapping[str, Sequence[object]]
"""The values of each column in a random sample of rows, as returned by `Table.sample`."""

_COMMON_TEXT = """
text sentence message content utterance comment review body document headline title description question query input
tweet feedback post answer response complaint remark remarks note notes verbatim transcript abstract mail email
summary nachricht kommentar satz inhalt beschreibung frage antwort ruckmeldung beschwerde anfrage freitext titel
betreff texte phrase commentaire contenu reponse avis titre remarque verbatims texto mensaje comentario frase
contenido descripcion pregunta respuesta resena opinion consulta queja titulo mensagem conteudo descricao pergunta
resposta avaliacao opiniao texts messages comments reviews sentences comentarios commentaires kommentare textes textos
"""
_COMMON_LABEL = """
label class category target intent sentiment topic section tag output y labels label_text class_name rating stars kind
genre emotion polarity stance theme klasse kategorie etikett thema absicht stimmung rubrik gruppe art typ bewertung
classe categorie etiquette sujet intention rubrique note_globale clase categoria etiqueta tema tipo genero intencion
sentimiento seccion rotulo assunto intencao sentimento secao type group score queue department bereich abteilung
sterne etoiles estrellas estrelas
"""
_COMMON_OTHER = """
id index date time url link number no name user author datum zeit fecha data hora nummer numero nom nombre nome autor
auteur
"""
TEXT_NAMES, LABEL_NAMES = tuple(_COMMON_TEXT.split()), tuple(_COMMON_LABEL.split())
"""Common names of text and label columns without case and accents, the most likely first; as in the playground."""
_HEADLINES = ("subject", "title", "headline", "heading", "summary")
_BODIES = ("body", "text", "description", "message", "content", "comment", "review", "question", "details")
"""Two columns with such names contain the two parts of each text."""
JOINER = " + "
"""Joins the names of several text columns."""
MAX_SAMPLED_LENGTH = 2000
"""Number of characters of each value that are in a sample, from its beginning."""
PREDICTED_ROWS = 1000
"""Maximum number of rows used to measure how well texts predict a column."""
MIN_ADVANTAGE, UNPREDICTED = 0.1, 0.05
"""A column is chosen because texts predict it best only if its predictability exceeds the others' by this much, or if
the most likely one's is below the second number and at least as much lower."""
MAX_HINTED = 4
"""Maximum number of other columns that a hint names."""
_JOINED, _NOTED = 3, 5
"""How many times as long as the texts another column's are to be joined to a headline, or noted."""
SPECIFIED, AS_IN_TRAINING = "as specified", "as in training"
"""Reasons for columns that were not guessed."""
_BY_NAME, _BY_CONTENTS = "recognised by its name", "recognised by its contents"
_NOT_LABELS = tuple(_COMMON_OTHER.split())


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
    """Fraction of the values without letters: numbers, dates and the like."""
    examples: tuple[str, ...]
    """The most frequent values, at most three, shortened."""

    @property
    def looks_like_text(self) -> bool:
        """Whether the values vary and contain several words."""
        return self.n > 0 and self.numbers < 0.5 and self.words >= 1.5 and self.distinct >= 0.3 * self.n

    @property
    def varies(self) -> bool:
        """Whether the values have letters and are not all the same."""
        return self.numbers < 0.5 and self.distinct > 1

    @property
    def looks_like_labels(self) -> bool:
        """Whether the values are short and repeat."""
        return 2 <= self.distinct <= max(2, self.n // 2) and self.characters <= 60

    @property
    def looks_measured(self) -> bool:
        """Whether the values are many different numbers or dates."""
        return self.numbers > 0.9 and self.distinct > 20

    @property
    def mean_length(self) -> str:
        """The mean length of the values, as a part of a sentence."""
        return f"{self.characters:,.0f} characters on average"

    @property
    def description(self) -> str:
        """The number of distinct values, with examples."""
        more = ", …" if self.distinct > len(self.examples) else ""
        return f"{self.distinct:,} different values: {', '.join(self.examples)}{more}"


@dataclass(frozen=True, slots=True)
class Guess:
    """The columns to train on, the reasons for choosing them, and hints at possible problems.

    `text_column` may name several columns, such as `subject + body`; `strip_html` is set if many texts are HTML, and
    `code_book` is the workbook's sheet that explains the labels. `strip_headers`, `merge_labels`, `label_names` (the
    class names of labels that are codes) and `sheet` (another one than the largest) are set only on request;
    `n_columns`, the number of columns, only if one of the two is numbered, since it has no name.
    """

    text_column: str
    label_column: str
    text_reason: str
    label_reason: str
    is_guessed: bool
    """Whether at least one column was guessed, rather than specified or the same as in training."""
    rests_on_contents: bool = False
    """Whether the label column was chosen by its contents, so that the choice should be checked."""
    hints: tuple[str, ...] = ()
    strip_html: bool = False
    code_book: str | None = None
    strip_headers: bool = False
    label_names: Mapping[str, str] = field(default_factory=dict)
    merge_labels: bool = False
    sheet: str | None = None
    n_columns: int | None = None

    def class_name(self, label: object) -> str:
        """The class name of a label; "" if it is missing."""
        return class_name(label, self.label_names)

    @property
    def config(self) -> DataConfig:
        """The settings that a checkpoint stores to read other tables in the same way."""
        return DataConfig(
            dataset="table",
            text_column=self.text_column,
            label_column=self.label_column,
            n_columns=self.n_columns,
            strip_html=self.strip_html,
            strip_headers=self.strip_headers,
            label_names=tuple(self.label_names.items()),
            code_book=self.code_book if self.label_names else None,
            merge_labels=self.merge_labels,
            sheet=self.sheet,
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """The reasons and hints, as shown to the user."""
        changes = (
            ("The texts are HTML; only their visible text is used.", self.strip_html),
            ("E-mail headers are removed from the texts, except the subject.", self.strip_headers),
            ("The classes are named after the code book.", bool(self.label_names)),
        )
        return (self.text_reason, self.label_reason, *self.hints, *(text for text, is_made in changes if is_made))


def is_common_name(name: str) -> bool:
    """Whether this is a common name of text or label columns."""
    return len(name) < 40 and folded(name) in (*TEXT_NAMES, *LABEL_NAMES)


def is_number(value: str) -> bool:
    """Whether a cell contains a number, with a decimal point or comma."""
    try:
        float(value.replace(",", "."))
    except ValueError:
        return False
    return True


def text_columns(name: str, columns: Collection[str]) -> tuple[str, ...]:
    """The columns that a text column's name refers to: one column, or both of `subject + body`."""
    return (name,) if name in columns or JOINER not in name else tuple(name.split(JOINER))


def columns_as_in_training(columns: Collection[str], config: DataConfig) -> tuple[str | None, str | None]:
    """The text and label columns that a classifier was trained on, each None if a table with these columns lacks it.

    A column without a name is the same one only in a table with as many columns.
    """

    def is_known(name: str) -> bool:
        return name in columns and (not is_numbered(name) or len(columns) == config.n_columns)

    text, label = config.text_column, config.label_column
    has_text = text is not None and all(map(is_known, text_columns(text, columns)))
    return text if has_text else None, label if label is not None and is_known(label) else None


def why_not_as_in_training(columns: Collection[str], config: DataConfig) -> str:
    """Why the text column of training is not used, if the table lacks it: a clause; otherwise ""."""
    name, n = config.text_column, config.n_columns
    if name is None or columns_as_in_training(columns, config)[0] is not None:
        return ""
    if n not in (None, len(columns)) and any(map(is_numbered, text_columns(name, columns))):
        return f"the file has {len(columns):,} columns, and the training file had {n:,}, without names"
    return f"the file has no column '{shown(name, limit=40)}', as in training"


def numbered(number: int) -> str:
    """The name of a column, counted from 1, that has none in its file."""
    return f"column {number}"


def is_numbered(name: str) -> bool:
    """Whether a column has no name in its file, but one from `numbered`."""
    return re.fullmatch(r"column \d+", name) is not None


def guess_text_column(columns: Columns, *, file: str, text_column: str | None = None) -> str:
    """The given text column; otherwise one with a common name, the only column, or one that looks like texts.

    Raises:
        DataError: the given column does not exist, or no column looks like texts.
    """
    names = list(columns)
    if text_column:
        _check_exists(names, text_column, file=file, kind="text")
        return text_column
    facts = column_facts(columns)
    named = sorted(_with_common_names(facts, TEXT_NAMES, excluded=None), key=lambda column: not column.varies)
    named = [column for column in named if column.numbers < 0.5 or folded(column.name) in TEXT_NAMES]
    chosen = named[0].name if named else None
    if chosen is None:
        chosen = names[0] if len(names) == 1 else _choose_text_column(facts, excluded=None)[0]
    if chosen is None:
        question = f"{file}: which column contains the text? The columns are {listed(names)}"
        raise DataError(f"{question}; name it, or call it 'text' in the file", text_column="COLUMN")
    return JOINER.join(_guess_text_columns(facts, columns, chosen, excluded=None))


def column_facts(columns: Columns) -> dict[str, ColumnFacts]:
    """The statistics of every column, keyed by name."""
    return {name: _facts(name, values) for name, values in columns.items()}


def guess_columns(
    columns: Columns,
    *,
    file: str,
    text_column: str | None = None,
    label_column: str | None = None,
    text_reason: str = SPECIFIED,
    label_reason: str = SPECIFIED,
) -> Guess:
    """The text and label columns: those given, for the given reasons, otherwise guessed.

    Raises:
        DataError: a given column does not exist, both are the same, or no column looks like texts or like labels.
    """
    facts = column_facts(columns)
    parts: tuple[str, ...] = ()
    if text_column:
        _check_exists(columns, text_column, file=file, kind="text")
        text: str | None = text_column
        parts = text_columns(text_column, columns)
    else:
        text, text_reason = _choose_text_column(facts, excluded=label_column)
        if text is not None:
            parts = _guess_text_columns(facts, columns, text, excluded=label_column)
            text = parts[0] if len(parts) == 1 else text
    texts = [
        " ".join(filter(None, map(label_name, cells))) for cells in zip(*(columns[name] for name in parts), strict=True)
    ]
    alternatives: tuple[str, ...] = ()
    if label_column:
        _check_exists(columns, label_column, file=file, kind="label")
        label: str | None = label_column
    else:
        label, label_reason, alternatives = _choose_label_column(facts, columns, excluded=parts, texts=texts)
    constant = (
        column
        for column in _with_common_names(facts, LABEL_NAMES, excluded=None)
        if column.name not in parts and column.distinct == 1
    )
    if label is None and (column := next(constant, None)):
        notes = " ".join(label_notes({column.examples[0]: column.n}))
        raise DataError(
            f"{file}: column '{shown(column.name, limit=40)}' has the same value in every row "
            f"('{column.examples[0]}'); expected labels of at least two classes{notes and '. '}{notes}"
        )
    if label is None and set(columns) == set(parts):
        raise DataError(
            f"{file}: no column has labels, only texts (in {listed(parts)}); texts without labels can be classified, "
            "but neither trained on nor evaluated"
        )
    if text is None or label is None:
        kind = "text" if text is None else "label"
        problem = f"{file}: no column looks like {kind}s; the columns are {listed(list(facts))}"
        raise DataError(f"{problem}; name it, or call it '{kind}' in the file", **{f"{kind}_column": "COLUMN"})
    if label in parts:
        raise DataError(f"{file}: column {label!r} cannot be both text and label; name two columns")
    hints = [*(_hints(facts[text], facts[label]) if len(parts) == 1 else ()), *alternatives]
    longer = _longer_texts(facts, parts, times=_NOTED, excluded=label) if text_reason == _BY_NAME else []
    if longer and not text_column:
        longest = max(longer, key=lambda column: column.characters)
        name = shown(longest.name, limit=40)
        sentence = f"Column '{name}' has longer texts: {longest.mean_length}."
        hints.append(Note(sentence, "longer-texts", text_column=longest.name))
    text_sentence = f"Texts: column '{shown(text, limit=40)}', {text_reason}."
    if len(parts) > 1:
        are_named = all(any(name in _words(part) for name in (*_HEADLINES, *_BODIES)) for part in parts)
        reason = f"; recognised by their names{'' if are_named else ' and contents'}"
        text_sentence = f"Texts: columns {listed(parts)}, joined{'' if text_column else reason}."
    return Guess(
        JOINER.join(parts),
        label,
        text_sentence,
        f"Labels: column '{shown(label, limit=40)}', {label_reason}.",
        is_guessed=not {text_reason, label_reason} <= {SPECIFIED, AS_IN_TRAINING},
        rests_on_contents=label_reason.startswith(_BY_CONTENTS),
        hints=tuple(hints),
        strip_html=are_html(texts),
        n_columns=len(columns) if any(map(is_numbered, (*parts, label))) else None,
    )


def label_predictability(texts: Sequence[object], values: Sequence[object]) -> float:
    """How well texts predict the values of another column, from 0 (not at all) to 1 (without errors).

    This is the fraction of the majority-class baseline's errors that naive Bayes on words avoids (at least 0), in
    two-fold cross-validation on at most PREDICTED_ROWS rows.
    """
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.naive_bayes import ComplementNB

    names = [folded(label_name(value)) for value in values[:PREDICTED_ROWS]]  # spellings are one class
    pairs = zip(map(label_name, texts[:PREDICTED_ROWS]), names, strict=True)
    rows = [(text, value) for text, value in pairs if text and value]
    if len(rows) < 4 or len({value for _, value in rows}) < 2:
        return 0.0
    order = np.random.default_rng(0).permutation(len(rows))
    features = HashingVectorizer(n_features=2**16, alternate_sign=False).transform(
        [rows[index][0][:MAX_SAMPLED_LENGTH] for index in order]
    )
    labels = np.array([rows[index][1] for index in order])
    first, second = slice(None, len(rows) // 2), slice(len(rows) // 2, None)
    n_correct = 0
    for fitted, tested in ((first, second), (second, first)):
        if len(set(labels[fitted])) > 1:
            predicted = ComplementNB().fit(features[fitted], labels[fitted]).predict(features[tested])
            n_correct += int((predicted == labels[tested]).sum())
    majority = Counter(labels.tolist()).most_common(1)[0][1]
    return max(0.0, (n_correct - majority) / (len(rows) - majority))


def _check_exists(names: Collection[str], column: str, *, file: str, kind: str) -> None:
    for part in text_columns(column, names) if kind == "text" else (column,):
        if part not in names:
            raise DataError(f"{file}: no column {part!r} for the {kind}; the columns are {listed(names)}")


def _facts(name: str, values: Sequence[object]) -> ColumnFacts:
    texts = [text for text in map(label_name, values) if text]
    counts = Counter(texts)
    n = len(texts)
    return ColumnFacts(
        name=name,
        filled=n / max(len(values), 1),
        distinct=len(counts),
        n=n,
        characters=sum(map(len, texts)) / max(n, 1),
        words=sum(len(text.split()) for text in texts) / max(n, 1),
        numbers=sum(not any(map(str.isalpha, text)) for text in texts) / max(n, 1),
        examples=tuple(shown(text, limit=30) for text, _ in counts.most_common(3)),
    )


def _with_common_names(
    facts: dict[str, ColumnFacts], common_names: Sequence[str], *, excluded: str | None
) -> Iterator[ColumnFacts]:
    """Yield columns with a common name, the most common first; then columns with a common word in their name."""
    columns = [column for name, column in facts.items() if name != excluded]
    yield from (column for name in common_names for column in columns if folded(column.name) == name)
    yield from (column for name in common_names for column in columns if name in _words(column.name))


def _words(name: str) -> list[str]:
    """The words of a column's name, the same for "reviewText", "review_text" and "Review text"."""
    return re.findall(r"[^\W\d_]+", folded(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)))


def _choose_text_column(facts: dict[str, ColumnFacts], *, excluded: str | None) -> tuple[str | None, str]:
    """The most likely text column and why it was chosen; (None, "") if no column looks like texts."""
    for column in _with_common_names(facts, TEXT_NAMES, excluded=excluded):
        if column.varies:
            return column.name, _BY_NAME
    candidates = [column for name, column in facts.items() if name != excluded and column.n and column.numbers < 0.5]
    if not candidates:
        return None, ""
    best = max(candidates, key=lambda column: column.characters * (column.distinct / column.n) * column.filled)
    if not (best.looks_like_text or (len(facts) == 2 and best.distinct > 1)):
        return None, ""
    share = percentage(best.distinct / best.n, 0)
    return best.name, f"{_BY_CONTENTS}: {best.mean_length}; {share} of its values are distinct"


def _guess_text_columns(
    facts: dict[str, ColumnFacts], columns: Columns, text: str, *, excluded: str | None
) -> tuple[str, ...]:
    """The text column and, if there is one, the column with the other part of the texts, in the table's order.

    If most values of one contain those of the other, only that one is needed.
    """

    def is_part(column: ColumnFacts) -> bool:
        varies = column.distinct >= 0.1 * column.n and column.words >= 1.5
        return column.name != excluded and column.n > 0 and varies and column.numbers < 0.5

    for names, other_names in ((_HEADLINES, _BODIES), (_BODIES, _HEADLINES)):
        if any(name in _words(text) for name in names) and is_part(facts[text]):
            others = _with_common_names(facts, other_names, excluded=text)
            if other := next((column for column in others if is_part(column)), None):
                for whole, part in ((text, other.name), (other.name, text)):
                    if _mostly_contains(columns[whole], columns[part]):
                        return (whole,)
                return tuple(name for name in facts if name in (text, other.name))
    if any(name in _words(text) for name in _HEADLINES) and is_part(facts[text]):
        longer = _longer_texts(facts, (text,), times=_JOINED, excluded=excluded)
        if len(longer) == 1:
            return tuple(name for name in facts if name in (text, longer[0].name))
    return (text,)


def _mostly_contains(values: Sequence[object], parts: Sequence[object]) -> bool:
    """Whether at least half of the values with a part contain it."""
    pairs = [(value, part) for value, part in zip(map(label_name, values), map(label_name, parts), strict=True) if part]
    return sum(part in value for value, part in pairs) >= 0.5 * max(len(pairs), 1)


def _longer_texts(
    facts: dict[str, ColumnFacts], parts: Sequence[str], *, times: float, excluded: str | None
) -> list[ColumnFacts]:
    """The other columns that look like texts and are at least so many times as long as each of the parts."""
    length = times * max(facts[part].characters for part in parts)
    others = [column for name, column in facts.items() if name not in parts and name != excluded]
    return [
        column
        for column in others
        if column.looks_like_text and not column.looks_like_labels and column.filled >= 0.5
        if column.characters >= length and folded(column.name) not in LABEL_NAMES
    ]


def _choose_label_column(
    facts: dict[str, ColumnFacts], columns: Columns, *, excluded: Sequence[str], texts: Sequence[str]
) -> tuple[str | None, str, tuple[str, ...]]:
    """The most likely label column, why it was chosen, and a hint at other candidates."""
    others = [column for name, column in facts.items() if name not in excluded and column.distinct >= 2]
    likely = [column for column in others if column.looks_like_labels]

    def order(column: ColumnFacts) -> tuple[bool, bool, bool, float]:
        has_unlikely_name = any(word in _NOT_LABELS for word in _words(column.name))
        return has_unlikely_name, column.filled < 0.5, column.numbers > 0.5, column.distinct / column.n

    def as_likely_as(column: ColumnFacts) -> list[ColumnFacts]:
        return [other for other in sorted(likely, key=order) if order(other)[:2] <= order(column)[:2]]

    def hint(chosen: ColumnFacts, candidates: Sequence[ColumnFacts]) -> tuple[str, ...]:
        others = [column for column in candidates if column is not chosen and not column.looks_measured]
        if not others:
            return ()
        names = " or ".join(f"'{shown(column.name, limit=40)}'" for column in others[:MAX_HINTED])
        sentence = f"The labels could also be in column {names}."
        return (Note(sentence, "other-label-column", label_column=others[0].name),)

    for column in _with_common_names(facts, LABEL_NAMES, excluded=None):
        if column in likely:
            is_whole_name = folded(column.name) in LABEL_NAMES
            hints = () if is_whole_name else hint(column, as_likely_as(column))
            return column.name, f"recognised by its name ({column.description})", hints
    if not likely:
        if len(facts) == 2 and others:  # the table has only this column besides the texts
            return others[0].name, f"the only other column ({others[0].description})", ()
        return None, "", ()
    first = min(likely, key=order)
    candidates = as_likely_as(first)
    if len(candidates) == 1 or not texts:
        return first.name, f"{_BY_CONTENTS}: {first.description}", ()
    scores = {column.name: label_predictability(texts, columns[column.name]) for column in candidates}
    predicted = [column for column in candidates if scores[column.name] > 0] or candidates
    first, best = predicted[0], max(predicted, key=lambda column: scores[column.name])
    second_score = max((scores[column.name] for column in candidates if column is not best), default=0.0)
    advantage = scores[best.name] - scores[first.name]
    is_clear = scores[best.name] >= second_score + MIN_ADVANTAGE
    is_clear |= scores[first.name] < UNPREDICTED <= advantage
    chosen = best if is_clear else first
    is_best = scores[chosen.name] > max(
        (scores[column.name] for column in candidates if column is not chosen), default=0.0
    )
    reason = f"{_BY_CONTENTS}: {chosen.description}{'; the texts predict this column best' * is_best}"
    runners_up = sorted((column for column in candidates if column is not chosen), key=lambda c: -scores[c.name])
    return chosen.name, reason, hint(chosen, runners_up)


def _hints(text: ColumnFacts, label: ColumnFacts) -> Iterator[str]:
    """Yield a warning if the text or label column was probably chosen wrongly."""
    text_column, label_column = shown(text.name, limit=40), shown(label.name, limit=40)
    if text.numbers >= 0.5:
        yield f"Column '{text_column}' contains numbers or dates, not texts; is it the right text column?"
    elif label.looks_like_text and not text.looks_like_text:
        yield (
            f"The columns look swapped: '{label_column}' has long, varied values, and '{text_column}' has a few values "
            "that repeat. Swap the two."
        )
    elif label.n > 20 and label.distinct > label.n / 2:
        yield (
            f"Column '{label_column}' has {label.distinct:,} different values in {label.n:,} rows, but labels should "
            "repeat; is it the right label column?"
        )
    elif label.looks_measured:
        yield (
            f"Column '{label_column}' contains {label.distinct:,} different numbers or dates, and each becomes a "
            "class. If they are measurements, group them into ranges."
        )
