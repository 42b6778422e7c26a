"""Published data sets in their published formats; each has a `DatasetInfo` and a function that opens it."""

import csv
import re
import zlib
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from txcls.config import DataConfig
from txcls.data.files import first_file, json_lines, matching_files, open_text, parse_json, read_text
from txcls.data.types import (
    OUT_OF_SCOPE,
    Dataset,
    DatasetInfo,
    LabelledTexts,
    RemoteFile,
    SplitName,
    labelled_texts,
)
from txcls.errors import DataError, sanitize

# AG News (Zhang, Zhao & LeCun 2015) in its published format: `"class","title","description"` with classes 1 to 4

AG_NEWS_CLASSES = ("World", "Sports", "Business", "Sci/Tech")
AG_NEWS_ROWS = 120_000
_AG_NEWS_URL = "https://raw.githubusercontent.com/mhjabreel/CharCnn_Keras/master/data/ag_news_csv"

AG_NEWS = DatasetInfo(
    name="ag_news",
    title="AG News: title and description of news articles in four sections",
    homepage="http://groups.di.unipi.it/~gulli/AG_corpus_of_news_articles.html",
    terms="research and other non-commercial use",
    files=(
        RemoteFile("train.csv", f"{_AG_NEWS_URL}/train.csv", "md5:b1a00f826fdfbd249f79597b59e1dc12"),
        RemoteFile("test.csv", f"{_AG_NEWS_URL}/test.csv", "md5:d52ea96a97a2d943681189a97654912d"),
    ),
)

_TRAIN_FILES = ("train.csv", "train.csv.gz", "train_subset.csv", "train_subset.csv.gz")
_TEST_FILES = ("test.csv", "test.csv.gz")


def open_ag_news(config: DataConfig, path: Path) -> Dataset:
    """Open a folder with train.csv (or train_subset.csv) and test.csv, gzipped or not, or one of these files.

    Raises:
        DataError: there are no such files.
    """
    if path.is_file():
        train, test = (None, path) if path.name.startswith("test") else (path, None)
    else:
        train, test = first_file(path, _TRAIN_FILES), first_file(path, _TEST_FILES)
    if train is None and test is None:
        raise DataError(f"{path}: no such file, nor a folder with {' or '.join((*_TRAIN_FILES, *_TEST_FILES))}")
    found: dict[SplitName, Path | None] = {"train": train, "test": test}
    files = {split: file for split, file in found.items() if file is not None}
    return Dataset(
        info=AG_NEWS,
        classes=AG_NEWS_CLASSES,
        source=", ".join(file.name for file in files.values()),
        splits=tuple(files),
        read=lambda split: read_ag_news(files[split]),
        description=f"a part of the {AG_NEWS_ROWS:,} published training rows"
        if train and "subset" in train.name
        else "",
    )


def read_ag_news(path: Path) -> LabelledTexts:
    """Read the rows of a file; a text is the title and the description, separated by a space and stripped.

    Raises:
        DataError: the file cannot be read, or a row is not in the published format.
    """
    texts, labels = [], []
    with open_text(path) as file:
        for number, row in enumerate(csv.reader(file), start=1):
            if len(row) != 3:
                raise DataError(f'{path}, row {number}: {len(row)} fields, expected "class","title","description"')
            label, title, description = row
            if label not in ("1", "2", "3", "4"):
                raise DataError(f"{path}, row {number}: class {label[:40]!r}, expected 1, 2, 3 or 4")
            texts.append(f"{title} {description}".strip())
            labels.append(int(label) - 1)
    if not texts:
        raise DataError(f"{path}: no rows")
    return LabelledTexts(texts, labels, AG_NEWS_CLASSES)


# News Category Dataset v3 (Misra 2022): HuffPost headlines and descriptions from 42 sections, as JSON Lines

HUFFPOST_FILE = "News_Category_Dataset_v3.json"
HUFFPOST_CLASSES = (
    *("ARTS", "ARTS & CULTURE", "BLACK VOICES", "BUSINESS", "COLLEGE", "COMEDY", "CRIME", "CULTURE & ARTS", "DIVORCE"),
    *("EDUCATION", "ENTERTAINMENT", "ENVIRONMENT", "FIFTY", "FOOD & DRINK", "GOOD NEWS", "GREEN", "HEALTHY LIVING"),
    *("HOME & LIVING", "IMPACT", "LATINO VOICES", "MEDIA", "MONEY", "PARENTING", "PARENTS", "POLITICS", "QUEER VOICES"),
    *("RELIGION", "SCIENCE", "SPORTS", "STYLE", "STYLE & BEAUTY", "TASTE", "TECH", "THE WORLDPOST", "TRAVEL"),
    *("U.S. NEWS", "WEDDINGS", "WEIRD NEWS", "WELLNESS", "WOMEN", "WORLD NEWS", "WORLDPOST"),
)

_HOMEPAGE = "https://www.kaggle.com/datasets/rmisra/news-category-dataset"

HUFFPOST = DatasetInfo(
    name="huffpost",
    title="HuffPost: headline and description of news articles in 42 sections",
    homepage=_HOMEPAGE,
    terms="CC BY 4.0 according to the publisher; headlines belong to HuffPost",
    by_hand=f"downloading it requires a login. Download {HUFFPOST_FILE} from {_HOMEPAGE} and give its location with "
    "--data PATH (the file, plain or gzipped, or its folder)",
)


def open_huffpost(config: DataConfig, path: Path) -> Dataset:
    """Open the published file, plain or gzipped, or its folder.

    There is no published split. The test rows are those with `zlib.crc32(key) % 10 == 9`.

    Raises:
        DataError: there is no such file.
    """
    file = path if path.is_file() else first_file(path, (HUFFPOST_FILE, f"{HUFFPOST_FILE}.gz"))
    if file is None:
        raise DataError(f"{path}: expected {HUFFPOST_FILE} or {HUFFPOST_FILE}.gz, or its folder; {HUFFPOST.by_hand}")

    @cache
    def rows() -> dict[SplitName, LabelledTexts]:
        parts: dict[SplitName, list[tuple[str, int]]] = {"train": [], "test": []}
        for key, row in read_huffpost(file, joiner=config.joiner).items():
            parts["test" if zlib.crc32(key.encode("utf-8", "surrogatepass")) % 10 == 9 else "train"].append(row)
        return {
            split: LabelledTexts([text for text, _ in part], [label for _, label in part], HUFFPOST_CLASSES)
            for split, part in parts.items()
        }

    return Dataset(
        info=HUFFPOST,
        classes=HUFFPOST_CLASSES,
        source=file.name,
        splits=("train", "test"),
        read=lambda split: rows()[split],
        description="no split is published; the test rows are a tenth, selected by a checksum of their text",
    )


def read_huffpost(path: Path, *, joiner: str = " ") -> dict[str, tuple[str, int]]:
    """The text and label of each row with text, in the published order, keyed by headline and description.

    The key joins them with a space and determines duplicates and the split; the text joins them with `joiner`.

    Raises:
        DataError: the file cannot be read, or a line is not in the published format.
    """
    labels = {name: index for index, name in enumerate(HUFFPOST_CLASSES)}
    rows: dict[str, tuple[str, int]] = {}
    with open_text(path, newline="\n") as file:
        for line, row in json_lines(file, path):
            try:
                parts = row["headline"], row["short_description"]
                key, label = " ".join(parts).strip(), labels[row["category"]]
            except (TypeError, ValueError, KeyError, AttributeError) as error:
                raise DataError(
                    f"{path}, line {line}: expected headline and short_description as strings, and as category one of "
                    f"the {len(HUFFPOST_CLASSES)} of v3; got '{sanitize(row, limit=80)}' ({type(error).__name__}: "
                    f"{error!s:.60})"
                ) from None
            if key and key not in rows:
                rows[key] = joiner.join(part for part in parts if part.strip()).strip(), label
    if not rows:
        raise DataError(f"{path}: no rows")
    return rows


# Large Movie Review Dataset v1.0 (Maas et al. 2011): positive and negative reviews, one file per review

IMDB_CLASSES = ("negative", "positive")

IMDB = DatasetInfo(
    name="imdb",
    title="IMDB: film reviews, positive or negative",
    examples="reviews",
    homepage="https://ai.stanford.edu/~amaas/data/sentiment/",
    terms="no explicit licence; cite Maas et al., ACL 2011",
    files=(
        RemoteFile(
            "aclImdb_v1.tar.gz",
            "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
            "sha256:c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe",
        ),
    ),
)

_SUFFIXES = ("tar", "tar.gz", "tgz", "tar.xz", "txz", "tar.bz2")
_EXPECTED_FILES = "the folder aclImdb with train/pos/0_9.txt and so on, or aclImdb_v1.tar.gz (or .tar.xz, .tar)"


def open_imdb(config: DataConfig, path: Path) -> Dataset:
    """Open the folder aclImdb, the archive, or a folder that contains one of them.

    Raises:
        DataError: there is no such folder or archive.
    """
    is_set = path.is_file() or any((path / name).is_dir() for name in ("train", "test", "aclImdb"))
    source = path if is_set else first_file(path, [f"aclImdb_v1.{suffix}" for suffix in _SUFFIXES])
    if source is None:
        raise DataError(f"{path}: expected {_EXPECTED_FILES}; neither is there")
    return Dataset(IMDB, IMDB_CLASSES, source.name, ("train", "test"), read=partial(read_reviews, source))


def read_reviews(path: Path, split: str) -> LabelledTexts:
    """Read the reviews of a split, stripped: the negative, then the positive ones, each ordered by number.

    Raises:
        DataError: one of the classes has no reviews, or a file cannot be read, is not UTF-8, or is empty.
    """
    pattern = re.compile(rf"(?:aclImdb/)?{split}/(neg|pos)/([0-9]{{1,9}})_[0-9]{{1,2}}\.txt")
    rows: list[tuple[int, int, str]] = []
    for match, raw in matching_files(path, pattern):
        try:
            text = raw.decode("utf-8").strip()
        except UnicodeDecodeError as error:
            raise DataError(f"{path}, {match[0]}: byte 0x{raw[error.start]:02x} is not utf-8; get it again") from None
        if not text:
            raise DataError(f"{path}, {match[0]}: an empty review; get the data set again")
        rows.append((int(match[1] == "pos"), int(match[2]), text))
    for label, folder in enumerate(("neg", "pos")):
        if not any(row[0] == label for row in rows):
            raise DataError(f"{path}: no reviews in {split}/{folder}; expected {_EXPECTED_FILES}")
    rows.sort()
    return LabelledTexts([text for *_, text in rows], [label for label, *_ in rows], IMDB_CLASSES)


# CLINC150 (Larson et al. 2019): queries to an assistant with 150 intents, and out-of-scope queries

CLINC150 = DatasetInfo(
    name="clinc150",
    title="CLINC150: queries to an assistant with 150 intents, and out-of-scope queries",
    examples="queries",
    homepage="https://github.com/clinc/oos-eval",
    terms="CC BY 3.0",
    files=(
        RemoteFile(
            "data_full.json",
            "https://raw.githubusercontent.com/clinc/oos-eval/master/data/data_full.json",
            "sha256:36923c3705a59e08fe9c3883d8bc2dd966ef93e22cb78ac41171782a698d56e0",
        ),
    ),
)

_CLINC150_SPLITS: tuple[SplitName, ...] = ("train", "validation", "test", "oos_train", "oos_validation", "oos_test")
CLINC150_KEYS = {split: split.replace("validation", "val") for split in _CLINC150_SPLITS}
"""The key of each split in the published file."""

_CLINC150_FILES = ("data_full.json", "data_full.json.gz")


def open_clinc150(config: DataConfig, path: Path) -> Dataset:
    """Open a folder with data_full.json, or a file in its format (data_small, data_oos_plus, …), gzipped or not.

    Out-of-scope queries are in separate `oos` splits, which are not used for training.

    Raises:
        DataError: there is no such file, or it is not in the published format.
    """
    file = first_file(path, _CLINC150_FILES) if path.is_dir() else path
    if file is None:
        raise DataError(f"{path}: expected {' or '.join(_CLINC150_FILES)} in this folder, or the path of a file")
    values = parse_json(read_text(file), str(file))
    try:
        pairs = {
            split: [(text.strip(), intent.strip()) for text, intent in values[key]]
            for split, key in CLINC150_KEYS.items()
        }
        classes = tuple(sorted({intent for _, intent in pairs["train"]}))
        rows = {}
        for split, part in pairs.items():
            names = (OUT_OF_SCOPE,) if split.startswith("oos") else classes
            rows[split] = labelled_texts([text for text, _ in part], [intent for _, intent in part], names)
    except (TypeError, ValueError, KeyError, AttributeError):
        parts = ", ".join(CLINC150_KEYS.values())
        raise DataError(f"{file}: expected an object with {parts}, each a list of [query, intent]") from None
    return Dataset(
        info=CLINC150,
        classes=classes,
        source=file.name,
        splits=tuple(rows),
        read=rows.__getitem__,
        description=f"{len(rows['oos_test']):,} more test queries are out of scope; they are in a separate split",
    )


# SNIPS and ATIS as split by Goo et al. (2018): `seq.in` has one utterance per line, and `label` the intents

_GOO_URL = "https://raw.githubusercontent.com/MiuLab/SlotGated-SLU/master/data"
GOO_FOLDERS: dict[SplitName, str] = {"train": "train", "validation": "valid", "test": "test"}
"""The published folder of each split."""


def _goo_files(name: str, **digests: str) -> tuple[RemoteFile, ...]:
    files = {key.replace("_", "/").replace("seq", "seq.in"): digest for key, digest in digests.items()}
    return tuple(RemoteFile(file, f"{_GOO_URL}/{name}/{file}", f"sha256:{digest}") for file, digest in files.items())


SNIPS = DatasetInfo(
    name="snips",
    title="SNIPS: requests to a voice assistant with seven intents",
    homepage="https://github.com/sonos/nlu-benchmark",
    terms="CC0 1.0",
    files=_goo_files(
        "snips",
        train_label="bfd7df6cf9dd76c5da5d8b61bc85f90386197bdd3d7510c1d324c051537b962f",
        train_seq="04ad1e3f2121d83c6478f9a4b17d2dbdc21d06d6127f73cb7af835ed733f9855",
        valid_label="9c1dd041216f647bcfca838aaf1a48eb5781e4404256d31ff07cd38a5436c52f",
        valid_seq="64e0f6d8ad8aab3a3828164d7d53731a0993d3ca1aed437ceaca6d3d568d410e",
        test_label="37a26da3ad079bb41c42c85a3a8f827eb47efec4c5917ce5d08f4b2736e4f830",
        test_seq="c1e341173fcea2951a8ca371956a6f81c76de87b9583c62eb87edd6158fa3a7c",
    ),
)
ATIS = DatasetInfo(
    name="atis",
    title="ATIS: questions to an airline's information service, by intent",
    homepage="https://github.com/MiuLab/SlotGated-SLU",
    terms="originally from the LDC; check its terms before you redistribute the data",
    files=_goo_files(
        "atis",
        train_label="d0a771547665eecbdf9f96ea015ef07d1f6ee9f063e861020dafabb3c2a04377",
        train_seq="3a670980841b21ab39088b2595efc17d487cdc45769c075a3e5f9458bba28c7f",
        valid_label="06957cfe6fdffac84f8280bc3a1f8ca85c85631b363817aa4543aac611f8addf",
        valid_seq="c7435b96e7948393608c34819628e863c5338f11ca68e8f896d2cc041d8e17f8",
        test_label="ce4bfe6590d9498e1078f30b4137d3e8b3e94277b444b26360c0bf2e9e282761",
        test_seq="4b2119fc59c37f9398c6605db435d4f467505009e6ee3e5af04fed09f39dc397",
    ),
)


def open_snips_or_atis(config: DataConfig, path: Path) -> Dataset:
    """Open the folder with train, valid and test, each with `label` and `seq.in`, gzipped or not.

    If an utterance has several intents (`atis_flight#atis_airfare`), the first is used, which leaves 17 in ATIS'
    training rows. Intents that occur only in other rows are classes too, and their rows count as errors.

    Raises:
        DataError: a file is missing, or the two files have different numbers of lines.
    """
    if not path.is_dir():
        raise DataError(f"{path}: expected the folder with train, valid and test, each with label and seq.in")
    pairs = {split: _read_pairs(path / folder) for split, folder in GOO_FOLDERS.items()}
    classes = tuple(sorted({intent for rows in pairs.values() for _, intent in rows}))
    unseen = sorted(set(classes) - {intent for _, intent in pairs["train"]})
    rows = {
        split: labelled_texts([text for text, _ in part], [intent for _, intent in part], classes)
        for split, part in pairs.items()
    }
    return Dataset(
        info=SNIPS if config.dataset == SNIPS.name else ATIS,
        classes=classes,
        source=path.name,
        splits=tuple(rows),
        read=rows.__getitem__,
        description=f"not in the training rows, so it cannot be learned: {', '.join(unseen)}" if unseen else "",
    )


def _read_pairs(folder: Path) -> list[tuple[str, str]]:
    """The utterance and the (first) intent of each line."""
    texts, labels = _read_lines(folder, "seq.in"), _read_lines(folder, "label")
    if len(texts) != len(labels):
        raise DataError(
            f"{folder}: seq.in has {len(texts):,} lines, label {len(labels):,}; expected a label for each utterance"
        )
    return [(text, label.split("#")[0].strip()) for text, label in zip(texts, labels, strict=True)]


def _read_lines(folder: Path, name: str) -> list[str]:
    """The stripped lines of a file."""
    if (file := first_file(folder, (name, f"{name}.gz"))) is None:
        raise DataError(
            f"{folder / name}: no such file, nor {name}.gz; expected label and seq.in in train, valid and test"
        )
    return [line.strip() for line in read_text(file).removesuffix("\n").split("\n")]


PUBLISHED: tuple[tuple[DatasetInfo, Callable[[DataConfig, Path], Dataset]], ...] = (
    (AG_NEWS, open_ag_news),
    (HUFFPOST, open_huffpost),
    (IMDB, open_imdb),
    (CLINC150, open_clinc150),
    (SNIPS, open_snips_or_atis),
    (ATIS, open_snips_or_atis),
)
"""The sets of this module, each with the function that opens its folder or file."""
