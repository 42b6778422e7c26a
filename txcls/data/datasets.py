"""The known data sets; `open_dataset` opens one by name, and `txcls.dataset` returns its rows."""

import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from txcls.config import DataConfig, load_preset, preset_names
from txcls.data.download import fetched_folder
from txcls.data.files import refuse_unreachable
from txcls.data.generated import agreement, repeated_word, sample, who_won
from txcls.data.published import ag_news, clinc150, huffpost, imdb, snips_atis, wikipedia
from txcls.data.splits import training_and_validation
from txcls.data.tables.labelled import table_dataset
from txcls.data.types import Dataset, DatasetInfo, LabelledTexts
from txcls.errors import DataError

_PUBLISHED: tuple[tuple[DatasetInfo, Callable[[DataConfig, Path], Dataset]], ...] = (
    (ag_news.INFO, ag_news.open_ag_news),
    (huffpost.INFO, huffpost.open_huffpost),
    (imdb.INFO, imdb.open_imdb),
    (clinc150.INFO, clinc150.open_clinc150),
    (snips_atis.SNIPS, snips_atis.open_snips_or_atis),
    (snips_atis.ATIS, snips_atis.open_snips_or_atis),
    (agreement.INFO, lambda config, path: agreement.open_agreement(path)),
)
_SHIPPED: tuple[tuple[DatasetInfo, Callable[[], Dataset]], ...] = (
    (sample.INFO, sample.open_sample),
    (who_won.INFO, who_won.open_who_won),
    (who_won.SMALL_INFO, lambda: who_won.open_who_won(small=True)),
    (repeated_word.INFO, repeated_word.open_repeated_word),
)
_INFOS = {info.name: info for info, _ in (*_SHIPPED, *_PUBLISHED)} | {wikipedia.INFO.name: wikipedia.INFO}
_OPENERS = {info.name: opener for info, opener in _PUBLISHED}
_SPECIAL_SETTINGS = ("joiner",)
"""Fields of DataConfig that only some data sets use; they are refused for all others, where they have no effect."""


def dataset_names() -> tuple[str, ...]:
    """The names of the known data sets, without `table`, `text` and `mixture`."""
    return tuple(_INFOS)


def dataset_info(name: str) -> DatasetInfo:
    """The description of a data set, without opening it.

    Raises:
        DataError: no data set has this name.
    """
    if name not in _INFOS:
        raise DataError(
            f"no data set named {name!r}; choose one of {', '.join(_INFOS)}; `table` or (without labels) `text` for "
            "your own files; or `mixture` for pre-training"
        )
    return _INFOS[name]


def open_dataset(config: DataConfig, *, path: Path | None = None) -> Dataset:
    """Open the configured data set.

    `path` is a folder or file in the published format, or a table; without it, published sets are looked for in
    $TXCLS_DATA/<name> and in the download cache.

    Raises:
        DataError: there is no such data set, it is not on this machine, a setting does not apply to it, or its files
            differ from the published form.
    """
    if path is not None:
        refuse_unreachable(path)
    unlabelled = ("text", "mixture", *(info.name for info in _INFOS.values() if not info.is_labelled))
    if config.dataset in unlabelled:
        raise DataError(f"data set `{config.dataset}` has no labels; it is for pre-training")
    check_settings(config)
    if config.dataset == "table":
        if path is None:
            raise DataError("the data set `table` is your own file; give its path with --data PATH")
        return table_dataset(config, path)
    info = dataset_info(config.dataset)
    if info.is_shipped:
        if path is not None:
            raise DataError(f"{info.name} ships with txcls and is not read from a file; leave out {path}")
        return next(opener for shipped, opener in _SHIPPED if shipped is info)()
    return _OPENERS[config.dataset](config, path or dataset_folder(info))


def check_settings(config: DataConfig) -> None:
    """Refuse settings that would have no effect.

    Raises:
        DataError: a setting does not apply to this data set, or there is no such data set.
    """
    used = () if config.dataset in ("table", "text", "mixture") else dataset_info(config.dataset).settings
    for field in _SPECIAL_SETTINGS:
        value = getattr(config, field)
        if field not in used and value != DataConfig.model_fields[field].default:
            names = ", ".join(info.name for info in _INFOS.values() if field in info.settings)
            raise DataError(
                f"data.{field} = {value!r} has no effect for {config.dataset}, only for {names}; leave it out"
            )


def is_available(name: str) -> bool:
    """Whether a data set is on this machine.

    Raises:
        DataError: no data set has this name.
    """
    info = dataset_info(name)
    return info.is_shipped or _local_folder(info) is not None


def _local_folder(info: DatasetInfo) -> Path | None:
    root = os.environ.get("TXCLS_DATA")
    if root and (Path(root) / info.name).is_dir():
        return Path(root) / info.name
    return fetched_folder(info)


def dataset_folder(info: DatasetInfo) -> Path:
    """The folder with the files of a data set that does not ship with txcls.

    Raises:
        DataError: it is not on this machine; the message says how to get it.
    """
    if (folder := _local_folder(info)) is not None:
        return folder
    hint = info.by_hand or f"download it with `txcls data fetch {info.name}`, or give its location with --data PATH"
    raise DataError(f"{info.name} is not on this machine: {hint}")


class Rows(NamedTuple):
    """Texts and their class names; unpacks as `texts, labels = rows`."""

    texts: list[str]
    labels: list[str]

    @classmethod
    def of(cls, rows: LabelledTexts) -> "Rows":
        """The rows, with names instead of indices as labels."""
        return cls(list(rows.texts), [rows.classes[label] for label in rows.labels])

    def __repr__(self) -> str:
        return f"Rows({len(self.texts):,} texts, {len(set(self.labels)):,} classes)"


class SplitDataset:
    """A data set's rows; each split is read on first access.

    `validation` has the published rows, or else those that training with the preset of this name holds out of `train`.
    """

    def __init__(self, dataset: Dataset, config: DataConfig) -> None:
        self._dataset, self._config = dataset, config
        self.info, self.name, self.classes = dataset.info, dataset.info.name, dataset.classes

    @cached_property
    def _split(self) -> tuple[Rows, Rows]:
        training, validation = training_and_validation(self._dataset, self._config)
        return Rows.of(training), Rows.of(validation)

    @property
    def train(self) -> Rows:
        """The training rows, without those held out for validation."""
        return self._split[0]

    @property
    def validation(self) -> Rows:
        """The validation rows."""
        return self._split[1]

    @cached_property
    def test(self) -> Rows:
        """The published test rows; DataError if there are none."""
        return Rows.of(self._dataset.load("test"))

    def __repr__(self) -> str:
        test = ", .test" if "test" in self._dataset.splits else ""
        return f"SplitDataset('{self.name}': {len(self.classes)} classes; .train, .validation{test})"


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
