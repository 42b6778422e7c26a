from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.conftest import TEXTS
from txcls import training
from txcls.checkpoint.checkpoint import Checkpoint
from txcls.config import DataConfig, load_preset
from txcls.data.datasets import open_dataset
from txcls.data.types import Dataset, LabelledTexts
from txcls.errors import TrainingError
from txcls.model import LanguageModel
from txcls.text.tokenizer import Tokenizer
from txcls.training.from_pretrained import check_unread

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.slow
@pytest.mark.parametrize("name", ["reference_ag_news", "reference_huffpost", "reference_imdb", "reference_intents"])
def test_a_published_system_trains_on_its_own_data(
    name: str, published_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TXCLS_CACHE", str(tmp_path / "cache"))

    def sample_rows(dataset: Dataset, config: DataConfig) -> tuple[LabelledTexts, LabelledTexts]:
        """A sample, since all rows would take minutes: texts of 512 tokens, models of width 512."""
        rows = dataset.load("train")
        step = max(1, len(rows) // 1000)
        return rows.subset(range(0, len(rows), step)), rows.subset(range(1, len(rows), 20 * step))

    monkeypatch.setattr("txcls.training.supervised.training_and_validation", sample_rows)
    preset = load_preset(name)
    checkpoint = training.train(
        preset, out=tmp_path / name, data_path=published_data / preset.data.dataset, max_steps=2
    )
    assert checkpoint.metrics["training"]["steps"] == 2 and checkpoint.metrics["validation"]["n"] >= 50
    assert checkpoint.config == preset


def test_the_published_language_model_trains_on_plain_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TXCLS_CACHE", str(tmp_path / "cache"))
    text = "\n".join((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md"))
    (tmp_path / "own.txt").write_text(text, encoding="utf-8")
    checkpoint = training.pretrain(
        load_preset("reference_lm"), out=tmp_path / "lm", data_path=tmp_path / "own.txt", max_steps=2
    )
    assert checkpoint.metrics["language"]["perplexity"] > 1


@pytest.mark.parametrize("name", ["ag_news", "huffpost", "imdb", "clinc150"])
def test_the_encoder_has_not_read_the_rows_that_a_classifier_holds_out(
    name: str, published_data: Path, tmp_path: Path
) -> None:
    preset = load_preset("encoder")
    tokenizer = Tokenizer.fit(TEXTS, preset.text, max_length=preset.model.max_length)
    pretrained = Checkpoint(
        tmp_path, preset, tokenizer, (), LanguageModel(preset.model, vocab_size=tokenizer.vocab_size)
    )
    config = load_preset(name)
    dataset = open_dataset(config.data, path=published_data / name)
    check_unread(pretrained, dataset, config)
    refused = (
        nullcontext()  # its validation rows are published, whatever the seed
        if "validation" in dataset.splits
        else pytest.raises(TrainingError, match=f"pre-trained on rows of {name} that this run holds out")
    )
    with refused:
        check_unread(pretrained, dataset, config.with_settings(["data.split_seed=1"]))
