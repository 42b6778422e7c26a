"""Unlabelled texts for pre-training and for rows of `agreement`: plain text files, or the texts of data sets."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

from txcls.config import DataConfig
from txcls.data import wikipedia
from txcls.data.datasets import dataset_folder, dataset_info, dataset_names, open_dataset
from txcls.data.files import files_in, read_text
from txcls.data.generated.agreement import Split
from txcls.data.hashes import hash_text, hashed_share
from txcls.data.splits import training_and_validation
from txcls.data.types import DatasetInfo
from txcls.errors import DataError

HELD_OUT = 100
"""One in this many training texts of a mixture is held out for validation."""
MAX_HELD_OUT = 250_000
"""Maximum number of validation characters from each source of a mixture, to save time."""
HELD_OUT_SHARE = 0.02
"""Share of the training texts for validation rows of `agreement`; for files, another such share is for test rows."""
_SUFFIXES = (".txt", ".txt.gz")


@dataclass(frozen=True)
class UnlabelledTexts:
    """Training and validation texts; never a data set's test texts."""

    info: DatasetInfo
    source: str
    """The source for display: a file name, never a full path."""
    training: Sequence[str]
    validation: Sequence[str]
    rows: Mapping[str, int] = field(default_factory=dict)
    """The number of training rows of each labelled data set, including rows that were not read."""


def open_texts(config: DataConfig, *, path: Path | None = None) -> UnlabelledTexts:
    """Open the training and validation texts of a data set, without their labels.

    - `text`: a plain text file or folder, split into lines, paragraphs or documents (`config.unit`), with files sorted
      by path; the last `validation_fraction` is for validation.
    - `wikipedia`: the splits that `txcls.data.wikipedia` defines.
    - `mixture`: the training texts of its sources, of which one in `HELD_OUT` is for validation. From Wikipedia, it
      takes validation articles instead, up to `MAX_HELD_OUT` characters.
    - other sets: the training and validation rows of a classifier.

    Texts that equal a validation or test text of any of the sets, ignoring case and whitespace, are left out.

    `path` is the .txt (or .txt.gz) file or a folder that contains such files at any depth; for `mixture`, a folder with
    sources in subfolders of their names; for other sets, as for `open_dataset`.

    Raises:
        DataError: there are no such files, one cannot be read, or there are fewer than two texts.
    """
    if config.dataset == "mixture":
        return _mixture(config, path)
    if config.dataset == wikipedia.INFO.name:
        return _wikipedia(config, path)
    if config.dataset != "text":
        return _labelled(config, path)[0]
    if path is None:
        raise DataError("the data set `text` is your own file or folder; give its path with --data PATH")
    texts = [text for file in _text_files(path) for text in _split_text(read_text(file), config.unit)]
    if len(texts) < 2:
        raise DataError(
            f"{path}: {len(texts)} {config.unit}, expected at least two, one for training and one for validation; add "
            "text, or use a smaller data.unit"
        )
    n_validation = min(max(round(config.validation_fraction * len(texts)), 1), len(texts) - 1)
    info = DatasetInfo(name="text", title=f"{path.name}, your own text")
    return UnlabelledTexts(info, path.name, texts[:-n_validation], texts[-n_validation:])


def _wikipedia(config: DataConfig, path: Path | None) -> UnlabelledTexts:
    folder = path or dataset_folder(wikipedia.INFO)
    splits: dict[wikipedia.Split, list[str]] = {"training": [], "validation": [], "test": []}
    for article in wikipedia.articles(folder):
        if (split := article.split) != "test":
            splits[split].append(article.text)
    if not (splits["training"] and splits["validation"]):
        raise DataError(
            f"{folder}: {len(splits['training']):,} training articles and {len(splits['validation']):,} validation "
            "articles; expected at least one of each, so use a larger extraction"
        )
    return UnlabelledTexts(wikipedia.INFO, folder.name, splits["training"], splits["validation"])


def _labelled(config: DataConfig, path: Path | None) -> tuple[UnlabelledTexts, set[bytes]]:
    """The texts of a labelled set, and the hashes of those that are not for training."""
    dataset = open_dataset(config, path=path)
    rows, held_out = training_and_validation(dataset, config)
    n_rows = {dataset.info.name: len(rows) + len(held_out) * ("validation" not in dataset.splits)}
    others = [dataset.load(split).texts for split in dataset.splits if split != "train"]
    excluded = {hash_text(text) for texts in (*others, held_out.texts) for text in texts}
    training = [text for text in rows.texts if hash_text(text) not in excluded]
    return UnlabelledTexts(dataset.info, dataset.source, training, held_out.texts, n_rows), excluded


def _mixture(config: DataConfig, path: Path | None) -> UnlabelledTexts:
    """The texts of all sources; the training texts of small sources are repeated according to `config.mixing`."""
    sources: list[UnlabelledTexts] = []
    excluded: set[bytes] = set()
    for name in config.sources:
        same_split = {key: getattr(config, key) for key in ("validation", "validation_fraction", "split_seed")}
        source_config = DataConfig(dataset=name, **same_split)
        source_path = path / name if path is not None and (path / name).exists() else None
        if dataset_info(name).is_labelled:
            source, not_for_training = _labelled(source_config, source_path)
            excluded |= not_for_training
        else:
            source = open_texts(source_config, path=source_path)
        sources.append(source)
    splits = [_split_source(source) for source in sources]
    sizes = [sum(map(len, source_training)) for source_training, _ in splits]
    training: list[str] = []
    validation: list[str] = []
    for (source_training, source_validation), size in zip(splits, sizes, strict=True):
        n_repeats = round((max(sizes) / max(size, 1)) ** (1 - config.mixing))
        training += [text for text in source_training if hash_text(text) not in excluded] * n_repeats
        validation += source_validation
    if not validation:
        raise DataError(f"{', '.join(config.sources)}: expected at least {HELD_OUT} training texts in one of them")
    info = DatasetInfo(
        name="mixture",
        title="; ".join(source.info.title for source in sources),
        terms="; ".join(f"{source.info.name}: {source.info.terms}" for source in sources if source.info.terms),
    )
    rows = {name: n for source in sources for name, n in source.rows.items()}
    return UnlabelledTexts(info, ", ".join(source.source for source in sources), training, validation, rows)


def _split_source(source: UnlabelledTexts) -> tuple[Sequence[str], Sequence[str]]:
    """The (training, validation) texts that a mixture takes from a source."""
    if not source.info.is_labelled:
        return source.training, _first_texts(source.validation)
    is_held_out = [hashed_share(text, salt="mixture") * HELD_OUT < 1 for text in source.training]
    pairs = list(zip(source.training, is_held_out, strict=True))
    return [text for text, held_out in pairs if not held_out], _first_texts(
        [text for text, held_out in pairs if held_out]
    )


def _first_texts(texts: Sequence[str]) -> list[str]:
    """The first texts with at most MAX_HELD_OUT characters in total, but at least one text."""
    ends = accumulate(map(len, texts))
    return [text for i, (text, end) in enumerate(zip(texts, ends, strict=True)) if end <= MAX_HELD_OUT or not i]


def _text_files(path: Path) -> list[Path]:
    def is_text_file(file: Path) -> bool:
        return file.name.lower().endswith(_SUFFIXES)

    if path.is_file() and not is_text_file(path):
        raise DataError(f"{path}: unknown format; expected a name that ends in {' or '.join(_SUFFIXES)}")
    return files_in(path, is_wanted=is_text_file, hint=f"expected {' or '.join(_SUFFIXES)} files")


def _split_text(text: str, unit: str) -> list[str]:
    """Split a text into stripped, non-empty units; line breaks inside a paragraph become spaces."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if unit == "lines":
        pieces = text.split("\n")
    elif unit == "paragraphs":
        pieces = [" ".join(piece.split("\n")) for piece in re.split(r"\n[ \t]*(?:\n[ \t]*)+", text)]
    else:
        pieces = [text]
    return [piece.strip() for piece in pieces if piece.strip()]


def texts_of(source: str) -> Iterator[tuple[Split, str]]:
    """Yield (split, text) for the texts of a source, which is a data set's name or the path of a text file or folder.

    Wikipedia has its own splits. The test texts of a labelled set are for testing. For files, a hash of each
    paragraph determines its split.

    Raises:
        DataError: there is no such source, or it cannot be read.
    """
    if source == wikipedia.INFO.name:
        splits: dict[wikipedia.Split, Split] = {"training": "train", "validation": "validation", "test": "test"}
        yield from (
            (splits[article.split], article.text) for article in wikipedia.articles(dataset_folder(wikipedia.INFO))
        )
    elif source in dataset_names():
        dataset = open_dataset(DataConfig(dataset=source), path=dataset_folder(dataset_info(source)))
        yield from ((_agreement_split(text, with_test=False), text) for text in dataset.load("train").texts)
        if "test" in dataset.splits:
            yield from (("test", text) for text in dataset.load("test").texts)
    elif not Path(source).exists():
        raise DataError(
            f"no data set and no file named {source!r:.200}; the data sets are {', '.join(dataset_names())}"
        )
    else:
        texts = open_texts(DataConfig(dataset="text", unit="paragraphs"), path=Path(source))
        yield from ((_agreement_split(text, with_test=True), text) for text in (*texts.training, *texts.validation))


def _agreement_split(text: str, *, with_test: bool) -> Split:
    share = hashed_share(text, salt="agreement")
    return "validation" if share < HELD_OUT_SHARE else "test" if with_test and share < 2 * HELD_OUT_SHARE else "train"
