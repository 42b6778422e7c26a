"""CLINC150 (Larson et al. 2019): queries to an assistant with 150 intents, and out-of-scope queries."""

from pathlib import Path

from txcls.config import DataConfig
from txcls.data.files import first_file, parse_json, read_text
from txcls.data.types import OUT_OF_SCOPE, Dataset, DatasetInfo, RemoteFile, SplitName, labelled_texts
from txcls.errors import DataError

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
    file = first_file(path, _FILES) if path.is_dir() else path
    if file is None:
        raise DataError(f"{path}: expected {' or '.join(_FILES)} in this folder, or the path of a file")
    values = parse_json(read_text(file), str(file))
    try:
        pairs = {split: [(text.strip(), intent.strip()) for text, intent in values[key]] for split, key in KEYS.items()}
        classes = tuple(sorted({intent for _, intent in pairs["train"]}))
        rows = {}
        for split, part in pairs.items():
            names = (OUT_OF_SCOPE,) if split.startswith("oos") else classes
            rows[split] = labelled_texts([text for text, _ in part], [intent for _, intent in part], names)
    except (TypeError, ValueError, KeyError, AttributeError):
        parts = ", ".join(KEYS.values())
        raise DataError(f"{file}: expected an object with {parts}, each a list of [query, intent]") from None
    return Dataset(
        info=INFO,
        classes=classes,
        source=file.name,
        splits=tuple(rows),
        read=rows.__getitem__,
        description=f"{len(rows['oos_test']):,} more test queries are out of scope; they are in a separate split",
    )
