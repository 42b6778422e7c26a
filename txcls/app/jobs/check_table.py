"""Read an uploaded table: its columns, those with the texts and labels, and the rows that need checking."""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from txcls.app.jobs.own_table import guessed, labelled_rows, read_table
from txcls.app.jobs.worker import Job
from txcls.data.columns import Guess, column_facts, guess_text_column, text_columns
from txcls.data.hashes import normalised
from txcls.data.labels import label_name, label_notes, label_variants, merged_names, placeholders, unexplained_labels
from txcls.data.mail_headers import MIN_SHARE_WITH_HEADERS, share_with_headers
from txcls.data.rows_in_classes import labelled_texts
from txcls.data.survey import DataSurvey, Group, survey
from txcls.data.tables.safe_csv import table_csv
from txcls.data.tables.table import Table, row_text
from txcls.data.text_notes import text_notes
from txcls.errors import DataError
from txcls.wording import start_of

MAX_GROUPS = 200
"""Maximum number of groups of rows of each kind listed on the page; the file for download has more."""
PREVIEW_ROWS = 5
_PREVIEW_LENGTH = 300
"""Maximum length of a text in a list, in characters."""
_BEFORE_DIFFERENCE = 60
"""Number of characters shown before the first difference of texts that begin alike."""


def run(job: Job) -> dict[str, Any]:
    """The data about the table that the page shows; with `only_columns`, without a check of its rows."""
    job.progress("reading the table")
    if "sample" in job.spec:
        return {"name": job.spec["sample"], "columns": [], "notes": [], "preview": [], **_sample(job)}
    table = read_table(job.session, job.spec)
    summary: dict[str, Any] = {
        "name": table.name,
        "rows": table.n_rows,
        "unit": table.unit,
        "columns": list(table.sample),
        "sheets": list(table.sheets),
        "sheet": table.sheet,
        "notes": list(table.notes),
    }
    if job.spec.get("only_columns"):
        text = _text_column(table)
        return {**summary, "text_column": text, "preview": _preview(table, text_columns(text, table.columns))}
    try:
        guess = guessed(table, job.spec)
    except DataError as error:
        return {**summary, "problem": str(error), "preview": _preview(table)}
    job.progress("looking for empty and repeated rows")
    chosen = (*text_columns(guess.text_column, table.columns), guess.label_column)
    summary |= {"text_column": guess.text_column, "label_column": guess.label_column, "reasons": list(guess.sentences)}
    summary["preview"] = _preview(table, chosen)
    if guess.code_book:
        for row in summary["preview"]:
            row[guess.label_column] = guess.class_name(row[guess.label_column])
    return summary | _check_rows(job, table, guess)


def _preview(table: Table, chosen: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The first rows with at most 12 columns, the chosen ones first."""
    names = [*chosen, *(name for name in table.columns if name not in chosen)][:12]
    return [
        {"row": number, **{name: start_of(label_name(values.get(name)), limit=120) for name in names}}
        for number, values in itertools.islice(table.rows(), PREVIEW_ROWS)
    ]


def _text_column(table: Table) -> str:
    """The column that is most likely to contain texts."""
    try:
        return guess_text_column(table.sample, file=table.name)
    except DataError:
        return max(column_facts(table.sample).values(), key=lambda facts: (facts.numbers < 0.5, facts.characters)).name


def _check_rows(job: Job, table: Table, guess: Guess) -> dict[str, Any]:
    """Notes on labels and texts, and the survey of the rows."""
    texts, labels, numbers, config = [], [], [], guess.config
    for number, values in table.rows([*text_columns(guess.text_column, table.columns), guess.label_column]):
        where = f"{table.name}, {table.unit} {number}"
        texts.append(row_text(values, guess.text_column, where=where, config=config))
        labels.append(guess.class_name(values.get(guess.label_column)))
        numbers.append(number)
    counts = Counter(name for text, name in zip(texts, labels, strict=True) if text.strip() and name)
    variants = merged_names(counts)
    merged = variants if guess.merge_labels else {}
    class_names = [merged.get(name, name) for name in labels]
    remedies = {
        "merge": guess.merge_labels or bool(variants),
        "strip_headers": guess.strip_headers or share_with_headers(texts) >= MIN_SHARE_WITH_HEADERS,
        "code_book": guess.code_book,
    }
    checks = {
        "label_notes": [
            *label_notes(counts, merged=guess.merge_labels),
            *unexplained_labels({merged.get(name, name) for name in counts} - {""}, guess.label_names),
        ],
        "remedies": {option: value for option, value in remedies.items() if value},
        "has_variants": bool(label_variants(counts)),
        "has_placeholders": bool(placeholders(counts)),
    }
    if usable := [(text, name) for text, name in zip(texts, class_names, strict=True) if text.strip() and name]:
        usable_texts, usable_names = zip(*usable, strict=True)
        checks["text_notes"] = list(text_notes(labelled_texts(usable_texts, usable_names)))
    return checks | _survey_data(job, survey(texts, class_names), texts, class_names, numbers)


def _sample(job: Job) -> dict[str, Any]:
    rows = labelled_rows(job.session, job.spec)
    job.progress("looking for empty and repeated rows")
    texts, labels = list(rows.train.texts), [rows.train.classes[label] for label in rows.train.labels]
    data = _survey_data(job, survey(texts, labels), texts, labels, range(1, len(texts) + 1))
    return {"name": rows.source, "rows": len(texts), "unit": "row", **data}


def _survey_data(
    job: Job, data_survey: DataSurvey, texts: Sequence[str], labels: Sequence[str], row_numbers: Sequence[int]
) -> dict[str, Any]:
    """The survey as JSON, with row numbers of the file; also writes a file that lists the rows to check."""
    problems = list(_problems(data_survey, texts, labels, row_numbers))
    (job.folder / "rows.csv").write_text(_problems_csv(problems), encoding="utf-8-sig")
    counts = Counter(data_survey.lengths)
    return {
        "classes": dict(data_survey.classes),
        "small_classes": list(data_survey.small_classes),
        "lengths": sorted(counts.items()),
        "length_unit": data_survey.unit,
        "n_same": data_survey.n_duplicates,
        "n_conflict": data_survey.n_conflicts,
        "n_near": data_survey.n_near,
        "n_empty": len(data_survey.no_text) + len(data_survey.no_label),
        "problems": {
            kind: [problem for problem in problems if problem["kind"] == kind][:MAX_GROUPS] for kind in KIND_TITLES
        },
    }


def _problems(
    data_survey: DataSurvey, texts: Sequence[str], labels: Sequence[str], row_numbers: Sequence[int]
) -> Iterator[dict[str, Any]]:
    """Each group of rows to check: its kind, and the numbers, labels and texts of its rows."""

    def problem(kind: str, group: Group) -> dict[str, Any]:
        return {
            "kind": kind,
            "row_numbers": [row_numbers[row] for row in group.rows],
            "labels": list(group.labels),
            "texts": _previews([texts[row] for row in group.rows[: 1 if kind == "same" else 10]]),
            "similarity": group.similarity,
        }

    yield from (problem("conflict", group) for group in data_survey.conflicts)
    yield from (problem("near", group) for group in data_survey.near)
    yield from (problem("same", group) for group in data_survey.duplicates)
    for row in (*data_survey.no_text, *data_survey.no_label)[:1000]:
        yield problem("empty", Group((row,), (labels[row],), 0.0))


def _previews(texts: Sequence[str]) -> list[str]:
    """The texts cut at the end or, if these parts of different texts are equal, also before the first difference."""
    previews = [start_of(text, limit=_PREVIEW_LENGTH) for text in texts]
    if len(set(previews)) > 1 or len(set(map(normalised, texts))) == 1:
        return previews
    letters = enumerate(zip(*texts, strict=False))
    common = next((n for n, others in letters if len(set(others)) > 1), min(map(len, texts)))
    start = texts[0].rfind(" ", 0, max(common - _BEFORE_DIFFERENCE, 0)) + 1
    return [f"…{start_of(text[start:], limit=_PREVIEW_LENGTH)}" for text in texts]


KIND_TITLES: Mapping[str, str] = {
    "conflict": "same text, different labels",
    "near": "almost the same text",
    "same": "same text and label",
    "empty": "no text or no label",
}
"""Descriptions of the kinds of rows to check."""


def _problems_csv(problems: Sequence[Mapping[str, Any]]) -> str:
    """The rows to check as CSV without formulas: reason, group, row, label, text."""
    lines = [
        (KIND_TITLES[problem["kind"]], number, row, problem["labels"][i], problem["texts"][: i + 1][-1])
        for number, problem in enumerate(problems, start=1)
        for i, row in enumerate(problem["row_numbers"])
    ]
    return table_csv(("why", "group", "row", "label", "text"), lines)
