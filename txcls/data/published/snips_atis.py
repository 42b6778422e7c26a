"""SNIPS and ATIS as split by Goo et al. (2018): `seq.in` has one utterance per line, and `label` the intents."""

from pathlib import Path

from txcls.config import DataConfig
from txcls.data.files import first_file, read_text
from txcls.data.types import Dataset, DatasetInfo, RemoteFile, SplitName, labelled_texts
from txcls.errors import DataError

_URL = "https://raw.githubusercontent.com/MiuLab/SlotGated-SLU/master/data"
FOLDERS: dict[SplitName, str] = {"train": "train", "validation": "valid", "test": "test"}
"""The published folder of each split."""


def _files(name: str, **digests: str) -> tuple[RemoteFile, ...]:
    files = {key.replace("_", "/").replace("seq", "seq.in"): digest for key, digest in digests.items()}
    return tuple(RemoteFile(file, f"{_URL}/{name}/{file}", f"sha256:{digest}") for file, digest in files.items())


SNIPS = DatasetInfo(
    name="snips",
    title="SNIPS: requests to a voice assistant with seven intents",
    homepage="https://github.com/sonos/nlu-benchmark",
    terms="CC0 1.0",
    citation="A. Coucke et al.: Snips Voice Platform, arXiv:1805.10190, 2018; split of C.-W. Goo et al.: Slot-Gated "
    "Modeling for Joint Slot Filling and Intent Prediction, NAACL 2018",
    files=_files(
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
    citation="C. T. Hemphill, J. J. Godfrey, G. R. Doddington: The ATIS Spoken Language Systems Pilot Corpus, 1990; "
    "split of C.-W. Goo et al.: Slot-Gated Modeling for Joint Slot Filling and Intent Prediction, NAACL 2018",
    files=_files(
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
    pairs = {split: _pairs(path / folder) for split, folder in FOLDERS.items()}
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


def _pairs(folder: Path) -> list[tuple[str, str]]:
    """The utterance and the (first) intent of each line."""
    texts, labels = _lines(folder, "seq.in"), _lines(folder, "label")
    if len(texts) != len(labels):
        raise DataError(
            f"{folder}: seq.in has {len(texts):,} lines, label {len(labels):,}; expected a label for each utterance"
        )
    return [(text, label.split("#")[0].strip()) for text, label in zip(texts, labels, strict=True)]


def _lines(folder: Path, name: str) -> list[str]:
    """The stripped lines of a file."""
    if (file := first_file(folder, (name, f"{name}.gz"))) is None:
        raise DataError(
            f"{folder / name}: no such file, nor {name}.gz; expected label and seq.in in train, valid and test"
        )
    return [line.strip() for line in read_text(file).removesuffix("\n").split("\n")]
