"""Unlabelled texts for pre-training: plain text files, or the training texts of one or more data sets."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

from txcls.config import DataConfig
from txcls.data.archives import MAX_FILES
from txcls.data.datasets import check_settings, dataset_folder, dataset_info, open_dataset
from txcls.data.hashes import fingerprint, hashed_share
from txcls.data.published import wikipedia
from txcls.data.splits import training_and_validation
from txcls.data.tables.lines import read_text
from txcls.data.types import Dataset, DatasetInfo
from txcls.errors import DataError

HELD_OUT = 100
"""One in this many of a mixture's training texts is held out for validation."""
MAX_HELD_OUT = 250_000
"""Maximum number of characters per source on which a mixture is validated, to save time."""
_ENDINGS = (".txt", ".txt.gz")


@dataclass(frozen=True)
class UnlabelledTexts:
    """Training and validation texts; never a data set's test texts."""

    info: DatasetInfo
    source: str
    """The source for display: a file name, never a full path."""
    training: Sequence[str]
    validation: Sequence[str]
    rows: Mapping[str, int] = field(default_factory=dict)
    """For each data set with labels, its number of training rows, including rows that were not read."""


def open_texts(config: DataConfig, *, path: Path | None = None) -> UnlabelledTexts:
    """The texts of a plain text file or folder (data set `text`), or of any other set without labels.

    Plain text is split into pieces of `config.unit`, with files in order of name; the last `validation_fraction` is for
    validation. Wikipedia has its own parts (`txcls.data.published.wikipedia`). Other sets have the training and
    validation rows of a classifier. A mixture takes the training texts of its sources, one in `HELD_OUT` of them for
    validation, and none of their validation texts; from Wikipedia it validates on validation articles, up to
    `MAX_HELD_OUT` characters.

    With `validation = "hash"`, texts that equal a validation or test text of any of the sets, ignoring case and
    whitespace, are left out.

    `path` is the .txt (or .txt.gz) file, or a folder with such files at any depth; for `mixture` it is a folder with
    sources under their names, and other sources are looked for where `open_dataset` does; for other sets it is as for
    `open_dataset`.

    Raises:
        DataError: there are no such files, one cannot be read, or there are fewer than two texts.
    """
    if config.dataset == "mixture":
        return _mixture(config, path)
    if config.dataset == wikipedia.INFO.name:
        return _wikipedia(config, path)
    if config.dataset != "text":
        dataset = open_dataset(config, path=path)
        rows, held_out = training_and_validation(dataset, config)
        n_rows = {dataset.info.name: len(rows) + len(held_out) * ("validation" not in dataset.splits)}
        unread = _unread(dataset, held_out.texts) if config.validation == "hash" else set()
        training = [text for text in rows.texts if not unread or fingerprint(text) not in unread]
        return UnlabelledTexts(dataset.info, dataset.source, training, held_out.texts, n_rows)
    check_settings(config)
    if path is None:
        raise DataError("data set `text` is your own file or folder; give it with --data PATH")
    texts = [text for file in _files(path) for text in _units(read_text(file), config.unit)]
    if len(texts) < 2:
        raise DataError(
            f"{path}: {len(texts)} of {config.unit}, expected at least two, one to train on and one to validate on; "
            "add text, or use a smaller data.unit"
        )
    last = min(max(round(config.validation_fraction * len(texts)), 1), len(texts) - 1)
    info = DatasetInfo(name="text", title=f"{path.name}, text of your own")
    return UnlabelledTexts(info, path.name, texts[:-last], texts[-last:])


def _wikipedia(config: DataConfig, path: Path | None) -> UnlabelledTexts:
    check_settings(config)
    place = path or dataset_folder(wikipedia.INFO)
    parts: dict[wikipedia.Part, list[str]] = {"training": [], "validation": [], "test": []}
    for article in wikipedia.articles(place):
        if (part := article.part) != "test":
            parts[part].append(article.text)
    if not all(parts[part] for part in ("training", "validation")):
        raise DataError(
            f"{place}: {len(parts['training']):,} articles to train on, {len(parts['validation']):,} to validate on; "
            "expected at least one of each, so give a larger extraction"
        )
    return UnlabelledTexts(wikipedia.INFO, place.name, parts["training"], parts["validation"])


def _unread(dataset: Dataset, validation: Sequence[str]) -> set[bytes]:
    """The fingerprints of all texts of a data set outside its training rows."""
    parts = [dataset.load(split).texts for split in dataset.splits if split != "train"]
    return {fingerprint(text) for texts in (*parts, validation) for text in texts}


def _mixture(config: DataConfig, path: Path | None) -> UnlabelledTexts:
    """The training texts of all sources; texts of small sources are repeated according to `config.mixing`."""
    check_settings(config)
    sources, unread = _sources(config, path)
    parts = [_parts_of_source(source, config) for source in sources]
    sizes = [sum(map(len, training)) for training, _ in parts]
    training: list[str] = []
    validation: list[str] = []
    for (of_source, held_out), size in zip(parts, sizes, strict=True):
        repeats = round((max(sizes) / max(size, 1)) ** (1 - config.mixing))
        training += [text for text in of_source if not unread or fingerprint(text) not in unread] * repeats
        validation += held_out
    if not validation:
        raise DataError(f"{', '.join(config.sources)}: expected at least {HELD_OUT} training texts in one of them")
    info = DatasetInfo(
        name="mixture",
        title="; ".join(source.info.title for source in sources),
        terms="; ".join(f"{source.info.name}: {source.info.terms}" for source in sources if source.info.terms),
    )
    rows = {name: n for source in sources for name, n in source.rows.items()}
    return UnlabelledTexts(info, ", ".join(source.source for source in sources), training, validation, rows)


def _sources(config: DataConfig, path: Path | None) -> tuple[list[UnlabelledTexts], set[bytes]]:
    """The texts of each source, and with the hash rule also the fingerprints of texts to leave out."""
    sources: list[UnlabelledTexts] = []
    unread: set[bytes] = set()
    for name in config.sources:
        same_split = {key: getattr(config, key) for key in ("validation", "validation_fraction", "split_seed")}
        of_source = DataConfig(dataset=name, **same_split)
        place = path / name if path is not None and (path / name).exists() else None
        source = open_texts(of_source, path=place)
        sources.append(source)
        if config.validation == "hash" and dataset_info(name).is_labelled:
            unread |= _unread(open_dataset(of_source, path=place), source.validation)
    return sources, unread


def _parts_of_source(source: UnlabelledTexts, config: DataConfig) -> tuple[Sequence[str], Sequence[str]]:
    """(training, validation) texts that a mixture takes from a source."""
    if not source.info.is_labelled:
        return source.training, _up_to(MAX_HELD_OUT, source.validation)
    if config.validation == "stratified":
        training = [text for i, text in enumerate(source.training) if (i + 1) % HELD_OUT]
        return training, source.training[HELD_OUT - 1 :: HELD_OUT]
    share = {text: hashed_share(text, salt="mixture") for text in source.training}
    held_out = [text for text in source.training if share[text] * HELD_OUT < 1]
    return [text for text in source.training if share[text] * HELD_OUT >= 1], _up_to(MAX_HELD_OUT, held_out)


def _up_to(limit: int, texts: Sequence[str]) -> list[str]:
    """The first texts, with at most `limit` characters in total, but at least one text."""
    ends = accumulate(map(len, texts))
    return [text for i, (text, end) in enumerate(zip(texts, ends, strict=True)) if end <= limit or not i]


def _files(path: Path) -> list[Path]:
    if path.is_file():
        if not path.name.lower().endswith(_ENDINGS):
            raise DataError(f"{path}: unknown format; expected a name that ends in {' or '.join(_ENDINGS)}")
        return [path]
    if not path.is_dir():
        raise DataError(f"{path}: no such file or folder; expected a text file or a folder of them")
    files = sorted(file for file in path.rglob("*") if file.name.lower().endswith(_ENDINGS) and file.is_file())
    if not files:
        raise DataError(f"{path}: expected {' or '.join(_ENDINGS)} files; none is there")
    if len(files) > MAX_FILES:
        raise DataError(f"{path}: {len(files):,} files, expected {MAX_FILES:,} at most; join some of them")
    return files


def _units(text: str, unit: str) -> list[str]:
    """The stripped, non-empty pieces; line breaks inside a paragraph become spaces."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if unit == "lines":
        pieces = text.split("\n")
    elif unit == "paragraphs":
        pieces = [" ".join(piece.split("\n")) for piece in re.split(r"\n[ \t]*(?:\n[ \t]*)+", text)]
    else:
        pieces = [text]
    return [piece.strip() for piece in pieces if piece.strip()]
