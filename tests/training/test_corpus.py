from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from tests.training.test_pretrain import run_config
from txcls.config import RunConfig
from txcls.data.types import DatasetInfo
from txcls.data.unlabelled_texts import UnlabelledTexts
from txcls.text.vocabulary import CLS
from txcls.training import TrainingInterruptedError, pretrain
from txcls.training.corpus import Corpus, encode_windows, make_corpus, read_corpus

TRAINING = [f"number {n} " * (n % 40) for n in range(300)]
TEXTS = UnlabelledTexts(DatasetInfo("made", "made up"), "made", TRAINING, ["number 9", ""], {"made": 302})


def corpus_in(folder: Path, config: RunConfig) -> Corpus:
    return make_corpus(folder, config, TEXTS, on_stage=lambda message: None)


@pytest.mark.parametrize("at_once", [1, 700, 4_000_000])
def test_windows_are_those_of_all_texts_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr("txcls.training.corpus.BATCH_CHARACTERS", at_once)
    corpus = corpus_in(tmp_path / "corpus", run_config("masked"))
    for part, texts in ((corpus.training, TEXTS.training), (corpus.validation, TEXTS.validation)):
        expected = encode_windows(corpus.tokenizer, texts)
        assert np.array_equal(part.ids, expected.ids) and np.array_equal(part.offsets, expected.offsets)
        assert len(part) == len(part.labels) and part.lengths.max() <= 16


def test_a_corpus_is_reused_only_for_the_same_settings(tmp_path: Path) -> None:
    config = run_config("masked")
    first = corpus_in(tmp_path / "corpus", config)
    reread = read_corpus(tmp_path / "corpus", config.with_settings(["train.epochs=9"]))
    assert reread is not None and np.array_equal(reread.training.ids, first.training.ids)
    assert reread.tokenizer.to_dict() == first.tokenizer.to_dict() and reread.facts == first.facts
    assert first.facts["rows"] == {"made": 302} and first.facts["train_rows"] == 300
    for change in ("text.max_vocabulary=300", "data.split_seed=1", "model.max_length=12"):
        assert read_corpus(tmp_path / "corpus", config.with_settings([change])) is None


@pytest.mark.parametrize("name", ["corpus.json", "training.ids", "validation.npy"])
def test_damaged_or_missing_files_are_not_read(tmp_path: Path, name: str) -> None:
    corpus_in(tmp_path / "corpus", run_config("masked"))
    file = tmp_path / "corpus" / name
    file.write_bytes(file.read_bytes()[:-3])
    assert read_corpus(tmp_path / "corpus", run_config("masked")) is None
    file.unlink()
    assert read_corpus(tmp_path / "corpus", run_config("masked")) is None


def test_a_resumed_run_reads_no_texts_and_ends_as_if_it_had_not_been_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ["train.optimizer=muon", "train.batch_tokens=200", "train.save_every_seconds=0"]
    config = run_config("masked").with_settings(settings)
    uninterrupted = pretrain(config, out=tmp_path / "whole")

    def stop(progress: object) -> None:
        if progress.step == 7:  # type: ignore[attr-defined]
            raise KeyboardInterrupt

    with pytest.raises((KeyboardInterrupt, TrainingInterruptedError)):
        pretrain(config, out=tmp_path / "again", on_step=stop)
    assert (tmp_path / "again.training" / "corpus" / "training.ids").is_file()
    monkeypatch.setattr(import_module("txcls.training.pretrain"), "open_texts", None)
    resumed = pretrain(config, out=tmp_path / "again", resume=True)
    for name, tensor in uninterrupted.model.state_dict().items():
        assert np.array_equal(tensor, resumed.model.state_dict()[name]), name
    assert not (tmp_path / "again.training").exists()


def test_every_word_of_long_texts_is_read_once_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = run_config("masked", text={"tokenizer": "bpe", "max_vocabulary": 300, "cleaning": ["whitespace"]})
    tokenizer = corpus_in(tmp_path / "corpus", config).tokenizer
    text = "\n".join(f"line {n} of a long text" for n in range(200)) + "\n" + "word " * 60
    whole = encode_windows(tokenizer, [text])
    monkeypatch.setattr("txcls.training.corpus.WINDOW", 100)
    split = encode_windows(tokenizer, [text])
    ordinary = [corpus_in.ids[corpus_in.ids != CLS] for corpus_in in (whole, split)]
    assert len(split) > len(whole) and np.array_equal(*ordinary)
