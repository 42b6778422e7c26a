import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import txcls
from tests.conftest import TEXTS, make_checkpoint
from txcls.checkpoint.load import load_checkpoint
from txcls.config import load_preset
from txcls.errors import TrainingError
from txcls.training import pretrain, train

from .test_pretrain import run_config

SMALL = (
    *("model.d_model=16", "model.n_heads=2", "model.d_ff=32", "model.max_length=16"),
    *("train.epochs=2", "train.min_steps=0", "train.batch_size=8", "text.min_frequency=1"),
)
ROWS = [f"{text} {n}" for n in range(3) for text in TEXTS]
LABELS = ["even" if n % 2 == 0 else "odd" for n in range(len(ROWS))]


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder where relative paths and the cache would be written."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TXCLS_CACHE", str(tmp_path / "cache"))


def test_nothing_is_written_without_a_folder(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    trained = txcls.train(ROWS, LABELS, settings=SMALL, progress=False)
    assert isinstance(trained, txcls.Classifier) and trained.classes == ("even", "odd")
    assert trained.checkpoint.path is None and trained.name == "own" and "validation accuracy" in repr(trained)
    assert list(tmp_path.iterdir()) == [] and capfd.readouterr() == ("", "")
    saved = txcls.load(trained.save("mine"))
    np.testing.assert_array_equal(saved.probabilities(ROWS), trained.probabilities(ROWS))
    assert saved.checkpoint.config == trained.checkpoint.config and saved.name == "mine"


def test_rows_in_memory_train_as_those_of_a_file(tmp_path: Path) -> None:
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *zip(ROWS, LABELS, strict=True)])
    config = load_preset("own").with_settings([*SMALL, "train.seed=3"])
    by_file = train(config, out=tmp_path / "file", data_path=tmp_path / "rows.csv")
    by_rows = txcls.train(pd.Series(ROWS), np.array(LABELS), settings=SMALL, seed=3, out="rows", progress=False)
    np.testing.assert_array_equal(
        by_rows.probabilities(ROWS), txcls.Classifier(by_file).probabilities(ROWS), strict=True
    )
    assert by_rows.checkpoint.path == Path("rows") and load_checkpoint("rows").config == by_file.config
    saved = load_checkpoint("rows").token_counts
    assert saved == by_file.token_counts and saved is not None and sum(saved.counts) > 0 < saved.bound
    card = (tmp_path / "rows" / "README.md").read_text("utf-8")
    assert "txcls.train(texts, labels, preset='own', seed=3" in card and "passed from Python" in card
    assert str(tmp_path) not in card and not list(tmp_path.glob("*.training"))


def test_training_starts_from_a_pretrained_model(tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("\n".join(ROWS))
    pretrain(run_config("masked", data={"dataset": "text"}), out=tmp_path / "start", data_path=tmp_path / "texts.txt")
    trained = txcls.train(ROWS, LABELS, init=tmp_path / "start", settings=["train.min_steps=0"], progress=False)
    assert trained.tokenizer.vocab_size == load_checkpoint(tmp_path / "start").tokenizer.vocab_size
    assert "init='start'" in trained.checkpoint.metrics["training"]["command"]
    make_checkpoint(tmp_path / "classifier")
    with pytest.raises(TrainingError, match="it is a classifier"):
        txcls.train(ROWS, LABELS, init=tmp_path / "classifier", progress=False)
