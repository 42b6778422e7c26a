from pathlib import Path

import numpy as np
import pytest
import torch

from txcls.checkpoint.listing import checkpoint_names
from txcls.config import ModelConfig, RunConfig
from txcls.data.batches import TokenisedTexts
from txcls.errors import CheckpointError
from txcls.inference.predictor import Predictor
from txcls.model import LanguageModel
from txcls.text.vocabulary import MASK
from txcls.training import Progress, TrainingInterruptedError, pretrain, train
from txcls.training.objectives import FillMasked, PredictNext, mask_tokens

VOCAB = 30
SMALL = {"d_model": 16, "n_heads": 2, "n_layers": 1, "d_ff": 32, "max_length": 16, "positions": "learned"}


def run_config(objective: str, **sections: object) -> RunConfig:
    values: dict[str, object] = {
        "name": "small",
        "objective": objective,
        "text": {"min_frequency": 1, "max_vocabulary": 400},
        "model": {**SMALL, "causal": objective == "causal"},
        "train": {"epochs": 2, "precision": "float32", "learning_rate": 0.01},
    }
    return RunConfig.from_mapping({**values, **sections}, source="test")


def language_model(**changes: object) -> LanguageModel:
    torch.manual_seed(0)
    return LanguageModel(ModelConfig.model_validate({**SMALL, **changes}), vocab_size=VOCAB)


@pytest.mark.parametrize("expected", [0.15, 0.3])
def test_masking_predicts_the_given_share_and_splits_it_as_in_the_paper(expected: float) -> None:
    ids = torch.randint(4, VOCAB, (400, 100), generator=torch.Generator().manual_seed(1))
    ids[:, 0], ids[:, -10:] = 3, 0
    changed, predicted = mask_tokens(ids, vocab_size=VOCAB, share=expected, random=torch.Generator().manual_seed(2))
    assert not predicted[ids < 4].any(), "special tokens are never predicted"
    share = predicted.sum() / (ids >= 4).sum()
    assert share.item() == pytest.approx(expected, abs=0.01)
    assert torch.equal(changed[~predicted], ids[~predicted])
    masked = (changed == MASK)[predicted].float().mean().item()
    unchanged = (changed == ids)[predicted].float().mean().item()
    assert masked == pytest.approx(0.8, abs=0.02) and unchanged == pytest.approx(0.1 + 0.1 / (VOCAB - 4), abs=0.02)


def test_the_next_tokens_loss_is_that_of_a_loop() -> None:
    model = language_model(causal=True).eval()
    rows = [[3, 5, 6, 7], [3, 9]]
    ids = torch.tensor([[3, 5, 6, 7], [3, 9, 0, 0]])
    losses = []
    with torch.no_grad():
        outcome = PredictNext().batch_loss(model, ids, torch.zeros(2))
        for row in rows:
            for place in range(1, len(row)):
                scores = model(torch.tensor([row[:place]]))[0, -1]
                losses.append(-torch.log_softmax(scores, -1)[row[place]].item())
    assert outcome.n == 4 and outcome.loss.item() == pytest.approx(np.mean(losses), rel=1e-5)


def test_masked_validation_is_deterministic_and_leaves_the_random_state_alone() -> None:
    model = language_model()
    random = np.random.default_rng(0)
    texts = TokenisedTexts(
        random.integers(4, VOCAB, 600).astype(np.int32), np.arange(0, 601, 10), np.zeros(60, np.int64)
    )
    objective = FillMasked(VOCAB, share=0.15)
    before = torch.get_rng_state()
    first = objective.validate(model, texts, torch.device("cpu"))
    assert first == objective.validate(model, texts, torch.device("cpu"))
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("objective", ["masked", "causal"])
def test_pretraining_learns_and_a_classifier_starts_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, objective: str
) -> None:
    monkeypatch.setenv("TXCLS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(tmp_path))
    pretrained = pretrain(run_config(objective), out=tmp_path / "lm")
    losses = [row["validation_loss"] for row in pretrained.history]
    assert losses[-1] < losses[0] < np.log(400)
    assert pretrained.metrics["language"]["perplexity"] == pytest.approx(np.exp(min(losses)), rel=1e-3)
    card = (tmp_path / "lm" / "README.md").read_text(encoding="utf-8")
    assert "language model trained from scratch" in card and "perplexity" in card
    assert (checkpoint_names(), checkpoint_names(language_models=True)) == ((), ("lm",))
    with pytest.raises(CheckpointError, match="lm is a language model and has no classes"):
        Predictor.load(tmp_path / "lm")
    config = run_config("classify", model={**SMALL, "max_length": 12, "causal": objective == "causal"})
    stopped = config.with_settings(["train.learning_rate=1e-12"])
    started = train(stopped, out=tmp_path / "classifier", init=pretrained)
    assert started.tokenizer.vocabulary.tokens == pretrained.tokenizer.vocabulary.tokens
    pretrained_weights = pretrained.model.state_dict()
    for name, tensor in started.model.state_dict().items():
        if name.startswith(("layers.", "norm.", "embeddings.token")):
            torch.testing.assert_close(tensor, pretrained_weights[name], atol=1e-3, rtol=1e-2)
    torch.testing.assert_close(
        started.model.embeddings.positional, pretrained_weights["embeddings.positional"][:12], atol=1e-3, rtol=1e-2
    )


def test_minutes_given_on_resuming_bring_the_run_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TXCLS_CACHE", str(tmp_path / "cache"))
    planned = run_config("masked").with_settings(["train.epochs=1000"])

    def interrupt(progress: Progress) -> None:
        if progress.step == 20:
            raise KeyboardInterrupt

    with pytest.raises((KeyboardInterrupt, TrainingInterruptedError)):
        pretrain(planned, out=tmp_path / "lm", on_step=interrupt)
    state = torch.load(tmp_path / "lm.training" / "state.pt", weights_only=True)
    resumed = pretrain(planned, out=tmp_path / "lm", resume=True, minutes=(state["seconds"] + 2) / 60)
    last = resumed.history[-1]
    assert last["step"] > state["position"][2] and last["learning_rate"] < 0.05 * planned.train.learning_rate
