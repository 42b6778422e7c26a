"""Unlabelled texts for pre-training: plain text files, or the training texts of one or several data sets."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from txcls.config import DataConfig
from txcls.data.archives import MAX_FILES
from txcls.data.datasets import check_settings, open_dataset
from txcls.data.splits import training_and_validation
from txcls.data.tables.lines import read_text
from txcls.data.types import DatasetInfo
from txcls.errors import DataError

HELD_OUT = 100
"""Of a mixture's training texts, one in this many is held out for validation."""
_ENDINGS = (".txt", ".txt.gz")


@dataclass(frozen=True)
class UnlabelledTexts:
    """Training and validation texts; never a data set's test texts."""

    info: DatasetInfo
    source: str
    """The source for display: a file name, never a whole path."""
    training: Sequence[str]
    validation: Sequence[str]


def open_texts(config: DataConfig, *, path: Path | None = None) -> UnlabelledTexts:
    """The texts of a plain text file or folder (data set `text`), or of any other set without labels.

    Plain text is split into `config.unit`, in order of the files' names; the last `validation_fraction` is for
    validation. Other sets have the same training and validation rows as for a classifier; a mixture has the training
    texts of its sources, one in `HELD_OUT` of them for validation, and none of their validation texts.

    Args:
        config: the data set; for `text` the unit, for `mixture` its sources.
        path: the .txt (or .txt.gz) file, or a folder with such files at any depth; for `mixture` a folder with each
            source under its name; for other sets as for `open_dataset`.

    Raises:
        DataError: there are no such files, one cannot be read, or there are fewer than two texts.
    """
    if config.dataset == "mixture":
        return _mixture(config, path)
    if config.dataset != "text":
        dataset = open_dataset(config, path=path)
        rows, held_out = training_and_validation(dataset, config)
        return UnlabelledTexts(dataset.info, dataset.source, rows.texts, held_out.texts)
    check_settings(config)
    if path is None:
        raise DataError("data set `text` is your own file or folder; give it with --data PATH")
    texts = [text for file in _files(path) for text in _units(read_text(file), config.unit)]
    if len(texts) < 2:
        raise DataError(
            f"{path}: {len(texts)} of {config.unit}, wanted at least two, one to train on and one to validate on; "
            "add text, or use a smaller data.unit"
        )
    last = min(max(round(config.validation_fraction * len(texts)), 1), len(texts) - 1)
    info = DatasetInfo(name="text", title=f"{path.name}, text of your own")
    return UnlabelledTexts(info, path.name, texts[:-last], texts[-last:])


def _mixture(config: DataConfig, path: Path | None) -> UnlabelledTexts:
    """The training texts of all sources; those of small ones are repeated according to `config.mixing`."""
    check_settings(config)
    opened = []
    for name in config.sources:
        same_split = {key: getattr(config, key) for key in ("validation_fraction", "split_seed")}
        source = DataConfig(dataset=name, **same_split)
        opened.append(open_texts(source, path=None if path is None else path / name))
    sizes = [sum(map(len, one.training)) for one in opened]
    training: list[str] = []
    validation: list[str] = []
    for one, size in zip(opened, sizes, strict=True):
        repeats = round((max(sizes) / max(size, 1)) ** (1 - config.mixing))
        training += [text for i, text in enumerate(one.training) if (i + 1) % HELD_OUT] * repeats
        validation += one.training[HELD_OUT - 1 :: HELD_OUT]
    if not validation:
        raise DataError(f"{', '.join(config.sources)}: wanted at least {HELD_OUT} training texts in one of them")
    info = DatasetInfo(
        name="mixture",
        title="; ".join(one.info.title for one in opened),
        terms="; ".join(f"{one.info.name}: {one.info.terms}" for one in opened if one.info.terms),
    )
    return UnlabelledTexts(info, ", ".join(one.source for one in opened), training, validation)


def _files(path: Path) -> list[Path]:
    if path.is_file():
        if not path.name.lower().endswith(_ENDINGS):
            raise DataError(f"{path}: unknown format; wanted a name that ends in {' or '.join(_ENDINGS)}")
        return [path]
    if not path.is_dir():
        raise DataError(f"{path}: no such file or folder; wanted a text file or a folder of them")
    files = sorted(file for file in path.rglob("*") if file.name.lower().endswith(_ENDINGS) and file.is_file())
    if not files:
        raise DataError(f"{path}: wanted {' or '.join(_ENDINGS)} files; none is there")
    if len(files) > MAX_FILES:
        raise DataError(f"{path}: {len(files):,} files, wanted {MAX_FILES:,} at most; join some of them")
    return files


def _units(text: str, unit: str) -> list[str]:
    """Stripped, non-empty pieces; line breaks inside a paragraph become spaces."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if unit == "lines":
        pieces = text.split("\n")
    elif unit == "paragraphs":
        pieces = [" ".join(piece.split("\n")) for piece in re.split(r"\n[ \t]*(?:\n[ \t]*)+", text)]
    else:
        pieces = [text]
    return [piece.strip() for piece in pieces if piece.strip()]
