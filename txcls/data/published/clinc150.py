"""CLINC150 (Larson et al. 2019): queries to an assistant with 150 intents, and out-of-scope queries."""

from pathlib import Path
from typing import Any

from txcls.config import DataConfig
from txcls.data.archives import first_file
from txcls.data.files import parse_json, read_text
from txcls.data.rows_in_classes import labelled_texts
from txcls.data.types import OUT_OF_SCOPE, Dataset, DatasetInfo, LabelledTexts, RemoteFile, SplitName
from txcls.errors import DataError
from txcls.wording import listed

INFO = DatasetInfo(
    name="clinc150",
    title="CLINC150: queries to an assistant with 150 intents, and out-of-scope queries",
    homepage="https://github.com/clinc/oos-eval",
    terms="CC BY 3.0",
    citation="S. Larson et al.: An Evaluation Dataset for Intent Classification and Out-of-Scope Prediction, "
    "EMNLP 2019",
    files=(
        RemoteFile(
            "data_full.json",
            "https://raw.githubusercontent.com/clinc/oos-eval/master/data/data_full.json",
            "sha256:36923c3705a59e08fe9c3883d8bc2dd966ef93e22cb78ac41171782a698d56e0",
        ),
    ),
)

KEYS: dict[SplitName, str] = {
    "train": "train",
    "validation": "val",
    "test": "test",
    "oos_train": "oos_train",
    "oos_validation": "oos_val",
    "oos_test": "oos_test",
}
"""The key of each split in the published file."""

_FILES = ("data_full.json", "data_full.json.gz")


def open_clinc150(config: DataConfig, path: Path) -> Dataset:
    """Open a folder with data_full.json, or a file in its format (data_small, data_oos_plus, …), gzipped or not.

    Out-of-scope queries are in separate `oos` splits, which are not used for training.

    Raises:
        DataError: there is no such file, or it is not in the published format.
    """
    if path.is_dir():
        if (file := first_file(path, _FILES)) is None:
            raise DataError(f"{path}: expected {' or '.join(_FILES)} in this folder, or the path of a file")
        path = file
    values = parse_json(read_text(path), str(path))
    if not isinstance(values, dict) or not set(KEYS.values()) <= set(values):
        found = ", ".join(values)[:80] if isinstance(values, dict) else type(values).__name__
        raise DataError(f"{path}: expected an object with {', '.join(KEYS.values())}; got {found or 'an empty object'}")
    pairs = {split: _pairs(values[key], f"{path}, {key}") for split, key in KEYS.items()}
    classes = tuple(sorted({label for _, label in pairs["train"]}))
    rows = {
        split: _label_rows(pairs[split], (OUT_OF_SCOPE,) if split.startswith("oos") else classes, f"{path}, {key}")
        for split, key in KEYS.items()
    }
    return Dataset(
        info=INFO,
        classes=classes,
        source=path.name,
        splits=tuple(rows),
        read=rows.__getitem__,
        description=f"{len(rows['oos_test']):,} more test queries are out of scope; they are in a separate split",
    )


def _pairs(value: Any, where: str) -> list[tuple[str, str]]:
    """The text and intent of each row."""
    if not isinstance(value, list) or not value:
        raise DataError(f"{where}: expected a list of [query, intent], got {str(value)[:40] or 'nothing'}")
    pairs = []
    for number, item in enumerate(value, start=1):
        match item:
            case [str(text), str(intent)] if text.strip() and intent.strip():
                pairs.append((text.strip(), intent.strip()))
            case _:
                raise DataError(f"{where}, item {number}: expected [query, intent], got {str(item)[:60]}")
    return pairs


def _label_rows(pairs: list[tuple[str, str]], classes: tuple[str, ...], where: str) -> LabelledTexts:
    for number, (_, intent) in enumerate(pairs, start=1):
        if intent not in classes:
            raise DataError(
                f"{where}, item {number}: intent {intent[:40]!r}, expected one of {listed(classes, limit=5)}"
            )
    return labelled_texts([text for text, _ in pairs], [intent for _, intent in pairs], classes)
