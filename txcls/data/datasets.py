"""The data sets and their examples: `open_dataset` opens one, `fetch` downloads it, `txcls.dataset` returns rows."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import yaml

from txcls.config import DataConfig, load_preset, preset_names
from txcls.data import wikipedia
from txcls.data.generated import agreement, repeated_word, sample, who_won
from txcls.data.labelled import table_dataset
from txcls.data.published import PUBLISHED
from txcls.data.splits import training_and_validation
from txcls.data.types import Dataset, DatasetInfo, LabelledTexts
from txcls.errors import DataError, DownloadError

_PUBLISHED: tuple[tuple[DatasetInfo, Callable[[DataConfig, Path], Dataset]], ...] = (
    *PUBLISHED,
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
        DataError: there is no such data set, it is not on this machine, or its files
            differ from the published form.
    """
    unlabelled = ("text", "mixture", *(info.name for info in _INFOS.values() if not info.is_labelled))
    if config.dataset in unlabelled:
        raise DataError(f"data set `{config.dataset}` has no labels; it is for pre-training")
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


def cache_folder() -> Path:
    """The folder $TXCLS_CACHE, or else the platform's cache folder."""
    if folder := os.environ.get("TXCLS_CACHE"):
        return Path(folder).expanduser()
    import pooch

    return Path(pooch.os_cache("txcls"))


def fetched_folder(info: DatasetInfo) -> Path | None:
    """The folder of a downloaded data set; None if the set is missing or incomplete."""
    folder = cache_folder() / info.name
    return folder if info.files and all((folder / file.name).is_file() for file in info.files) else None


def fetch(info: DatasetInfo, *, on_file: Callable[[str], object] = lambda _: None) -> Path:
    """Download the files that are not in the cache yet, and return their folder.

    A file appears in the folder only when it is complete and its checksum has been verified. `on_file` is called with
    the address of each file that is downloaded.

    Raises:
        DownloadError: the set has nothing to download, the server or the connection failed, a checksum is wrong, or the
            cache is not writable.
    """
    import pooch

    if info.by_hand:
        raise DownloadError(f"{info.name} cannot be downloaded automatically: {info.by_hand}")
    if not info.files:
        raise DownloadError(f"{info.name} has nothing to download: it ships with txcls")
    pooch.get_logger().setLevel("ERROR")
    folder = cache_folder() / info.name
    downloads = pooch.create(
        folder,
        base_url="",
        registry={file.name: file.checksum for file in info.files},
        urls={file.name: file.url for file in info.files},
        retry_if_failed=2,
    )
    for file in info.files:
        if not (folder / file.name).is_file():
            on_file(file.url)
        try:
            downloads.fetch(file.name, downloader=pooch.HTTPDownloader(timeout=30))
        except OSError as error:  # includes the exceptions of requests
            raise DownloadError(
                f"{file.url}: {error}; check the connection, and that {folder} is writable (TXCLS_CACHE sets another)"
            ) from None
        except ValueError:
            raise DownloadError(
                f"{file.url}: not the published file (its checksum is not {file.checksum}); try again later, or "
                "download the file yourself and give its location with --data PATH"
            ) from None
    return folder


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

    `validation` has the published rows; if there are none, the training rows that the preset of this name holds out.
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

    For `path` (your own file with the name "table") and errors see `open_dataset`.
    """
    config = DataConfig(dataset=name)
    if name in preset_names() and (preset := load_preset(name).data).dataset == name:
        config = preset
    return SplitDataset(open_dataset(config, path=None if path is None else Path(path)), config)


@dataclass(frozen=True, slots=True)
class Example:
    """An example text; `title` is the label of its button.

    `changed` is a version with the same number of tokens and a different prediction; `label` is the class of an
    unambiguous text. Both are "" if there is none.
    """

    title: str
    text: str
    changed: str = ""
    label: str = ""


_GROUPS = {
    name: tuple(Example(**example) for example in examples)
    for name, examples in yaml.safe_load((resources.files(__package__) / "examples.yaml").read_text("utf-8")).items()
}
EXAMPLES, REPORTS = _GROUPS["news"], _GROUPS["reports"]


def examples_for(dataset: str) -> tuple[Example, ...]:
    """The example texts of a data set, or for the user's own table."""
    return _GROUPS["general" if dataset == "table" else _INFOS[dataset].examples if dataset in _INFOS else "news"]


@cache
def sentences() -> tuple[str, ...]:
    """Sixty-four sentences of every kind, for models that are imported without texts."""
    return tuple(yaml.safe_load((resources.files(__package__) / "sentences.yaml").read_text("utf-8")))
