"""Guess which columns of a table contain the texts and the labels: from their names, otherwise from their contents.

If several columns could contain the labels, the one that the texts predict best is chosen.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from txcls.config import DataConfig
from txcls.data.html import are_html
from txcls.data.labels import fold_case, label_name, label_notes, label_variants
from txcls.errors import DataError, Note, list_names, quote, sanitize
from txcls.text.formatting import percentage

Columns = Mapping[str, Sequence[object]]
"""The values of each column in a random sample of rows, as returned by `Table.sample`."""

_COMMON_TEXT_NAMES = """
text sentence message content utterance comment review body document headline title description question query input
tweet feedback post answer response complaint remark remarks note notes verbatim transcript abstract mail email
summary nachricht kommentar satz inhalt beschreibung frage antwort ruckmeldung beschwerde anfrage freitext titel
betreff texte phrase commentaire contenu reponse avis titre remarque verbatims texto mensaje comentario frase
contenido descripcion pregunta respuesta resena opinion consulta queja titulo mensagem conteudo descricao pergunta
resposta avaliacao opiniao texts messages comments reviews sentences comentarios commentaires kommentare textes textos
"""
_COMMON_LABEL_NAMES = """
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
TEXT_NAMES, LABEL_NAMES = tuple(_COMMON_TEXT_NAMES.split()), tuple(_COMMON_LABEL_NAMES.split())
"""Common names of text and label columns in lower case, unaccented, likeliest first, as in the playground."""
_HEADLINES = ("subject", "title", "headline", "heading", "summary")
_BODIES = ("body", "text", "description", "message", "content", "comment", "review", "question", "details")
"""Two columns with such names contain the two parts of each text."""
_NOT_LABELS = tuple(_COMMON_OTHER.split())
JOINER = " + "
"""Joins the names of several text columns."""
MAX_SAMPLED_LENGTH, PREDICTED_ROWS = 2000, 1000
"""Maximum number of characters kept of a sampled value, and of rows used to test what the texts predict."""
CHANCE = 1.645
"""An excess of right guesses by fewer standard deviations than this may be chance (one-sided, 5 %)."""
MIN_ADVANTAGE, UNPREDICTED = 0.1, 0.05
"""The column that the texts predict best is chosen if its score exceeds the second-best by MIN_ADVANTAGE, or exceeds
the score of the most likely column by UNPREDICTED and the latter score is below UNPREDICTED."""
SPECIFIED, AS_IN_TRAINING = "as specified", "as in training"
"""Reasons for columns that were not guessed."""
_BY_NAME, _BY_CONTENTS = "recognised by its name", "recognised by its contents"


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """Statistics of a column: the share of rows with a value; and for these values their number, the number of distinct
    ones, mean numbers of characters and words, the share without letters, and the three most frequent, shortened."""

    name: str
    filled: float
    n: int
    distinct: int
    characters: float
    words: float
    numbers: float
    examples: tuple[str, ...]

    @classmethod
    def of(cls, name: str, values: Sequence[object]) -> "ColumnFacts":
        """The statistics of a column with these values."""
        texts = [text for text in map(label_name, values) if text]
        counts, n = Counter(texts), max(len(texts), 1)
        return cls(
            name,
            filled=len(texts) / max(len(values), 1),
            n=len(texts),
            distinct=len(counts),
            characters=sum(map(len, texts)) / n,
            words=sum(len(text.split()) for text in texts) / n,
            numbers=sum(not any(map(str.isalpha, text)) for text in texts) / n,
            examples=tuple(sanitize(text, limit=30) for text, _ in counts.most_common(3)),
        )

    @property
    def varies(self) -> bool:
        """Whether the values have letters and are not all the same."""
        return self.numbers < 0.5 and self.distinct > 1

    @property
    def looks_measured(self) -> bool:
        """Whether the values are many different numbers or dates."""
        return self.numbers > 0.9 and self.distinct > 20

    @property
    def sort_key(self) -> tuple[bool, bool, bool, float]:
        """A sort key: columns that are more likely to contain the labels come first."""
        has_unlikely_name = any(word in _NOT_LABELS for word in _words(self.name))
        return has_unlikely_name, self.filled < 0.5, self.numbers > 0.5, self.distinct / self.n

    @property
    def frequent_values(self) -> str:
        """The most frequent values."""
        return f"{', '.join(self.examples)}{', …' * (self.distinct > len(self.examples))}"


@dataclass(frozen=True, slots=True)
class Guess:
    """The columns to train on, the reasons for choosing them, and hints at possible problems.

    Attributes:
        config: the settings that a checkpoint stores to read other tables in the same way; the text column may name
            several columns, such as `subject + body`.
        reasons: why each column was chosen; only a label column recognised by its contents is more than a detail.
        is_guessed: whether a column was guessed, rather than specified or the same as in training.
    """

    config: DataConfig
    reasons: tuple[str, ...] = ()
    is_guessed: bool = False
    hints: tuple[str, ...] = ()

    @property
    def text_column(self) -> str:
        """The column or columns of the texts."""
        return str(self.config.text_column)

    @property
    def label_column(self) -> str:
        """The column of the labels."""
        return str(self.config.label_column)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The reasons and hints, and a remark if HTML tags are left out of the texts, as shown to the user."""
        html = ("The texts are HTML; only their visible text is used.",) if self.config.strip_html else ()
        return (*self.reasons, *self.hints, *html)


def is_common_name(name: str) -> bool:
    """Whether this is a common name of text or label columns."""
    return len(name) < 40 and fold_case(name) in (*TEXT_NAMES, *LABEL_NAMES)


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


def columns_as_in_training(columns: Collection[str], config: DataConfig) -> tuple[str | None, str | None, str]:
    """The text and label columns that a classifier was trained on, and why the text column is not used, as a clause.

    A column that this table lacks is None; the clause is "" if the text column is used or none was recorded. A column
    without a name is recognised only in a table with as many columns.
    """

    def is_known(name: str) -> bool:
        return name in columns and (not is_numbered(name) or len(columns) == config.n_columns)

    text, label, n = config.text_column, config.label_column, config.n_columns
    known_label = label if label is not None and is_known(label) else None
    if text is None or all(map(is_known, text_columns(text, columns))):
        return text, known_label, ""
    missing = next(part for part in text_columns(text, columns) if not is_known(part))
    why_not = f"the file has no column {quote(missing)}, as in training"
    if n not in (None, len(columns)) and any(map(is_numbered, text_columns(text, columns))):
        why_not = f"the file has {len(columns):,} columns, and the training file had {n:,}, without names"
    return None, known_label, why_not


def number_column(number: int) -> str:
    """The name of a column, counted from 1, that has none in its file."""
    return f"column {number}"


def is_numbered(name: str) -> bool:
    """Whether a column's name comes from `number_column`, since it has none in its file."""
    return re.fullmatch(r"column \d+", name) is not None


def guess_text_column(columns: Columns, *, file: str, text_column: str | None = None) -> str:
    """The given text column; otherwise one with a common name, the only column, or one that looks like texts.

    Raises:
        DataError: the given column does not exist, or no column looks like texts.
    """
    if text_column:
        _check_exists(columns, text_column, file=file, kind="text")
        return text_column
    parts, _ = _find_texts([ColumnFacts.of(*column) for column in columns.items()], columns, excluded=None)
    named = [name for name in columns if fold_case(name) in TEXT_NAMES]
    parts = parts or tuple(columns if len(columns) == 1 else named[:1])
    if not parts:
        question = f"{file}: which column contains the text? The columns are {list_names(columns)}"
        raise DataError(f"{question}; name it, or call it 'text' in the file", text_column="COLUMN")
    return JOINER.join(parts)


def guess_columns(
    columns: Columns,
    *,
    file: str,
    text_column: str | None = None,
    label_column: str | None = None,
    text_reason: str = SPECIFIED,
    label_reason: str = SPECIFIED,
    sheet: str | None = None,
    merge: bool = False,
) -> Guess:
    """The text and label columns: the given ones, with the given reasons; a column that is not given is guessed.

    The result's config stores `sheet` (a workbook's) and `merge` (whether spellings of a label are merged).

    Raises:
        DataError: a given column does not exist, both are the same, or no column looks like texts or like labels.
    """
    facts = [ColumnFacts.of(*column) for column in columns.items()]
    if text_column:
        _check_exists(columns, text_column, file=file, kind="text")
        parts = text_columns(text_column, columns)
    else:
        parts, text_reason = _find_texts(facts, columns, excluded=label_column)
    cells = zip(*(columns[name] for name in parts), strict=True)
    texts = [" ".join(filter(None, map(label_name, row))) for row in cells]
    hints: tuple[str, ...] = ()
    label = next((column for column in facts if column.name == label_column), None)
    if label_column is not None:
        _check_exists(columns, label_column, file=file, kind="label")
    else:
        label, label_reason, hints = _choose_label_column(facts, columns, excluded=parts, texts=texts)
    if not parts or label is None:
        raise _no_column(facts, parts, has_label=label is not None, file=file)
    if label.name in parts:
        raise DataError(f"{file}: column {label.name!r} cannot be both text and label; name two columns")
    like_texts = (one for one in facts if one.varies and one.words >= 3 and one.distinct >= 0.5 * one.n)
    others = [one.name for one in like_texts if not text_column and one.name not in (*parts, label.name)]
    if unread := [name for name in others if not _mostly_contains(columns[parts[0]], columns[name])]:
        sentence = f"Also like texts, but not read: {list_names(unread)}. To join columns, give --text-column for each."
        hints += (Note(sentence, brief=f"Not read: {list_names(unread, limit=3)}."),)
    if label.looks_measured:
        n = f"{label.distinct:,} different numbers or dates"
        hints += (f"Column {quote(label.name)} has {n}; each is a class. Group them into ranges?",)
    names = f"column {quote(parts[0])}" if len(parts) == 1 else f"columns {list_names(parts)}, joined"
    labels, code = f"Labels: column {quote(label.name)}", "" if label_reason.startswith(_BY_CONTENTS) else "detail"
    return Guess(
        DataConfig(
            dataset="table",
            text_column=JOINER.join(parts),
            label_column=label.name,
            n_columns=len(columns) if any(map(is_numbered, (*parts, label.name))) else None,
            strip_html=are_html(texts),
            merge_labels=merge,
            sheet=sheet,
        ),
        (
            Note(f"Texts: {names}, {text_reason}.", "detail"),
            Note(f"{labels}, {label_reason}.", code, brief=f"{labels}, {_BY_CONTENTS}."),
        ),
        is_guessed=not {text_reason, label_reason} <= {SPECIFIED, AS_IN_TRAINING},
        hints=hints,
    )


def label_predictability(texts: Sequence[object], values: Sequence[object]) -> float:
    """How well texts predict the values of another column, from 0 (not at all) to 1 (without errors).

    This is the fraction of the majority-class baseline's errors that naive Bayes on words avoids, in two-fold
    cross-validation on at most PREDICTED_ROWS rows; 0 if it avoids no more than may be chance.
    """
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.model_selection import KFold, cross_val_predict
    from sklearn.naive_bayes import ComplementNB

    names = [fold_case(label_name(value)) for value in values[:PREDICTED_ROWS]]
    variants = label_variants(Counter(names))  # different spellings count as one
    pairs = zip(map(label_name, texts[:PREDICTED_ROWS]), names, strict=True)
    rows = [(text[:MAX_SAMPLED_LENGTH], variants.get(value, value)) for text, value in pairs if text and value]
    if len(rows) < 4 or len({value for _, value in rows}) < 2:
        return 0.0
    hashing = HashingVectorizer(n_features=2**16, alternate_sign=False, binary=True, norm=None)
    features = hashing.transform([text for text, _ in rows])
    _, labels = np.unique([value for _, value in rows], return_inverse=True)
    predicted = cross_val_predict(ComplementNB(alpha=0.1), features, labels, cv=KFold(2, shuffle=True, random_state=0))
    n, majority = len(rows), int(np.bincount(labels).max())
    avoided = float((predicted == labels).sum() - majority)
    return 0.0 if avoided < CHANCE * (majority * (n - majority) / n) ** 0.5 else avoided / (n - majority)


def _no_column(facts: Sequence[ColumnFacts], parts: Collection[str], *, has_label: bool, file: str) -> DataError:
    """The error that says why no text column or no label column was found."""
    for column in _with_common_names(facts, LABEL_NAMES):
        if not has_label and column.name not in parts and column.distinct == 1:
            notes = " ".join(label_notes({column.examples[0]: column.n}))
            return DataError(
                f"{file}: column {quote(column.name)} has the same value in every row ('{column.examples[0]}'); "
                f"expected labels of at least two classes{notes and '. '}{notes}"
            )
    if not has_label and len(facts) == len(parts):
        return DataError(
            f"{file}: no column has labels, only texts (in {list_names(parts)}); texts without labels can be "
            "classified, but neither trained on nor evaluated"
        )
    kind = "label" if parts else "text"
    problem = f"{file}: no column looks like {kind}s; the columns are {list_names(column.name for column in facts)}"
    if empty := [column.name for column in facts if not column.n]:
        problem += (
            f" (without values: {list_names(empty)}; formulas have values once a spreadsheet program saved the file)"
        )
    return DataError(f"{problem}; name it, or call it '{kind}' in the file", **{f"{kind}_column": "COLUMN"})


def _check_exists(names: Collection[str], column: str, *, file: str, kind: str) -> None:
    for part in text_columns(column, names) if kind == "text" else (column,):
        if part not in names:
            meant = next((name for name in names if fold_case(name) == fold_case(part)), None)
            mend = {} if meant is None or kind == "text" else {f"{kind}_column": meant}
            raise DataError(f"{file}: no column {part!r} for the {kind}; the columns are {list_names(names)}", **mend)


def _with_common_names(facts: Sequence[ColumnFacts], common_names: Sequence[str]) -> Iterator[ColumnFacts]:
    """Yield columns with a common name, the most common first; then columns with a common word in their name."""
    yield from (column for name in common_names for column in facts if fold_case(column.name) == name)
    yield from (column for name in common_names for column in facts if name in _words(column.name))


def _words(name: str) -> list[str]:
    """The words of a column's name, the same for "reviewText", "review_text" and "Review text"."""
    return re.findall(r"[^\W\d_]+", fold_case(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)))


def _find_texts(facts: Sequence[ColumnFacts], columns: Columns, *, excluded: str | None) -> tuple[tuple[str, ...], str]:
    """The text column, or a headline and a body column in the table's order, and why; ((), "") if there is none."""
    others = [column for column in facts if column.name != excluded]
    text = next((column for column in _with_common_names(others, TEXT_NAMES) if column.varies), None)
    if text is None:
        candidates = [column for column in others if column.n and column.numbers < 0.5]
        best = max(candidates, key=lambda one: one.characters * (one.distinct / one.n) * one.filled, default=None)
        is_text = best is not None and best.words >= 1.5 and best.distinct >= 0.3 * best.n
        if best is None or not (is_text or (len(facts) == 2 and best.distinct > 1)):
            return (), ""
        share = percentage(best.distinct / best.n, 0)
        about = f"{best.characters:,.0f} characters on average; {share} of its values are distinct"
        return (best.name,), f"{_BY_CONTENTS}: {about}"
    for names, other_names in ((_HEADLINES, _BODIES), (_BODIES, _HEADLINES)):
        if text.words < 1.5 or not any(name in _words(text.name) for name in names):
            continue
        for other in _with_common_names([column for column in others if column is not text], other_names):
            if other.varies and other.distinct >= 0.1 * other.n and other.words >= 1.5:
                for whole, part in ((text.name, other.name), (other.name, text.name)):
                    if _mostly_contains(columns[whole], columns[part]):
                        return (whole,), _BY_NAME
                both = tuple(column.name for column in facts if column in (text, other))
                return both, "recognised by their names"
    return (text.name,), _BY_NAME


def _mostly_contains(values: Sequence[object], parts: Sequence[object]) -> bool:
    """Whether, in at least half of the rows with a part, the value contains it."""
    pairs = [(value, part) for value, part in zip(map(label_name, values), map(label_name, parts), strict=True) if part]
    return sum(part in value for value, part in pairs) >= 0.5 * max(len(pairs), 1)


def _choose_label_column(
    facts: Sequence[ColumnFacts], columns: Columns, *, excluded: Sequence[str], texts: Sequence[str]
) -> tuple[ColumnFacts | None, str, tuple[str, ...]]:
    """The most likely label column, why it was chosen, and a hint at other candidates."""
    others = [column for column in facts if column.name not in excluded and column.distinct >= 2]
    likely = [column for column in others if column.distinct <= max(2, column.n // 2) and column.characters <= 60]
    likely.sort(key=lambda column: column.sort_key)

    def hint(chosen: ColumnFacts, candidates: Sequence[ColumnFacts]) -> tuple[str, ...]:
        others = [column.name for column in candidates if column is not chosen and not column.looks_measured]
        return tuple(
            Note(f"If the labels are in {quote(name)}, train again.", label_column=name) for name in others[:1]
        )

    def predictability(column: ColumnFacts) -> float:
        return label_predictability(texts, columns[column.name])

    all_named = [column for column in _with_common_names(facts, LABEL_NAMES) if column in likely]
    if all_named:
        named = all_named[0]
        as_likely = [other for other in likely if other.sort_key[:2] <= named.sort_key[:2]]
        if len(as_likely) > 1 and predictability(named) < UNPREDICTED:
            best = max(as_likely, key=predictability)
            if predictability(best) >= MIN_ADVANTAGE:
                chosen = best if best in all_named else named
                about = f"{chosen.frequent_values}; the texts do not predict column {quote(named.name)}"
                return chosen, f"{_BY_CONTENTS}: {about}", hint(chosen, [best, named])
        hints = () if fold_case(named.name) in LABEL_NAMES else hint(named, as_likely)
        return named, f"{_BY_NAME} ({named.frequent_values})", hints
    if not likely:
        if len(facts) == 2 and others:  # the table has only this column besides the texts
            return others[0], f"the only other column ({others[0].frequent_values})", ()
        return None, "", ()
    candidates = [other for other in likely if other.sort_key[:2] <= likely[0].sort_key[:2]]
    scores = {column.name: 0.0 for column in candidates}
    if len(candidates) > 1 and texts:
        scores = {column.name: predictability(column) for column in candidates}
    ranked = sorted(candidates, key=lambda column: -scores[column.name])
    first = next((column for column in candidates if scores[column.name] > 0), candidates[0])
    best, (high, second) = ranked[0], [*(scores[column.name] for column in ranked[:2]), 0.0][:2]
    is_clear = high >= second + MIN_ADVANTAGE or scores[first.name] < UNPREDICTED <= high - scores[first.name]
    chosen = best if is_clear else first
    is_best = chosen is best and high > second
    reason = f"{_BY_CONTENTS}: {chosen.frequent_values}{'; the texts predict this column best' * is_best}"
    return chosen, reason, hint(chosen, ranked)
