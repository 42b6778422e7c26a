"""`txcls.dataset`: the texts and class names of a data set's splits, with the same rows that training uses."""

from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from txcls.config import DataConfig, load_preset, preset_names
from txcls.data.datasets import open_dataset
from txcls.data.splits import training_and_validation
from txcls.data.types import Dataset, LabelledTexts


class Rows(NamedTuple):
    """Texts and their class names; unpacks as `texts, labels = rows`."""

    texts: list[str]
    labels: list[str]

    def __repr__(self) -> str:
        return f"Rows({len(self.texts):,} texts, {len(set(self.labels)):,} classes)"


class SplitDataset:
    """A data set's training, validation and test rows; each split is read on first access.

    If a preset has the data set's name, the validation rows are those that training with this preset holds out.
    """

    def __init__(self, dataset: Dataset, config: DataConfig) -> None:
        self._dataset, self._config = dataset, config
        self.info, self.name, self.classes = dataset.info, dataset.info.name, dataset.classes

    @cached_property
    def _split(self) -> tuple[LabelledTexts, LabelledTexts]:
        return training_and_validation(self._dataset, self._config)

    @cached_property
    def train(self) -> Rows:
        """The training rows, without those held out for validation."""
        return _with_class_names(self._split[0])

    @cached_property
    def validation(self) -> Rows:
        """The published validation rows, or the part of the training rows that is held out."""
        return _with_class_names(self._split[1])

    @cached_property
    def test(self) -> Rows:
        """The published test rows.

        Raises:
            DataError: the data set has none.
        """
        return _with_class_names(self._dataset.load("test"))

    def __repr__(self) -> str:
        test = ", .test" if "test" in self._dataset.splits else ""
        return f"SplitDataset('{self.name}': {len(self.classes)} classes; .train, .validation{test})"


def _with_class_names(rows: LabelledTexts) -> Rows:
    return Rows(list(rows.texts), [rows.classes[label] for label in rows.labels])


def dataset(name: str, *, path: str | Path | None = None) -> SplitDataset:
    """Open a data set by name.

        news = txcls.dataset("ag_news")
        texts, labels = news.test

    `path` is a file or folder in the published format, or your own file with the name "table". Without it, the files
    are looked for in $TXCLS_DATA and in the download cache (`txcls data fetch NAME`).

    Raises:
        DataError: there is no such data set, it is not on this machine, or its files differ from the published form.
    """
    config = DataConfig(dataset=name)
    if name in preset_names() and (preset := load_preset(name).data).dataset == name:
        config = preset
    return SplitDataset(open_dataset(config, path=None if path is None else Path(path)), config)
