"""Replaced-token detection: what it draws, what it asks, that it learns, and that its state survives being stopped."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch

from txcls.checkpoint import load_checkpoint
from txcls.config import ModelConfig, TrainConfig
from txcls.data.batches import TokenisedTexts
from txcls.errors import ConfigError
from txcls.model import ReplacedTokenDetector
from txcls.text.vocabulary import MASK
from txcls.training import Progress, TrainingInterruptedError, fit, pretrain, train
from txcls.training.replaced_tokens import (
    DETECTION_WEIGHT,
    DetectorWithGenerator,
    DetectReplaced,
    generator_config,
    sample_tokens,
)

from .test_pretraining import SMALL, run_config

VOCAB = 30


def detector(**changes: object) -> DetectorWithGenerator:
    torch.manual_seed(0)
    config = ModelConfig.model_validate({**SMALL, "dropout": 0.0, **changes})
    return DetectorWithGenerator(config, vocab_size=VOCAB)


def chains(n: int) -> TokenisedTexts:
    """Texts in which each token follows from the one before, so that a replaced one can be told."""
    starts = np.random.default_rng(0).integers(0, VOCAB - 4, n)
    ids = 4 + (starts[:, None] + 3 * np.arange(12)) % (VOCAB - 4)
    return TokenisedTexts(ids.astype(np.int32).ravel(), np.arange(0, 12 * n + 1, 12), np.zeros(n, np.int64))


def test_tokens_are_drawn_as_often_as_their_softmax_says_and_special_ones_never() -> None:
    scores = torch.tensor([9.0, 9.0, 9.0, 9.0, 0.0, 1.0, 2.0, -1.0])
    drawn = sample_tokens(scores.expand(40_000, -1), random=torch.Generator().manual_seed(1))
    shares = torch.bincount(drawn, minlength=8) / 40_000
    assert not shares[:4].any()
    torch.testing.assert_close(shares[4:], torch.softmax(scores[4:], -1), atol=0.01, rtol=0)


def test_the_loss_is_that_of_generator_and_detector_token_by_token() -> None:
    model = detector().eval()
    ids = torch.randint(4, VOCAB, (6, 16), generator=torch.Generator().manual_seed(3))
    ids[0, 9:] = 0
    with torch.no_grad():
        outcome = DetectReplaced(share=0.15)._outcome(model, ids, torch.Generator().manual_seed(4))
        random = torch.Generator().manual_seed(4)
        asked = (torch.rand(ids.shape, generator=random) < 0.15) & (ids != 0)
        places = asked.nonzero().tolist()
        masked, changed, generated = ids.clone(), ids.clone(), []
        for row, place in places:
            masked[row, place] = MASK
        scores = model.generator(masked)
        drawn = sample_tokens(torch.stack([scores[row, place] for row, place in places]), random=random)
        for (row, place), token in zip(places, drawn.tolist(), strict=True):
            generated.append(-scores[row, place].log_softmax(-1)[ids[row, place]].item())
            changed[row, place] = token
        found = model(changed).sigmoid()
        detected = [
            -np.log(
                found[row, place].item() if changed[row, place] != ids[row, place] else 1 - found[row, place].item()
            )
            for row, place in (ids != 0).nonzero().tolist()
        ]
    assert 5 < len(places) < 30 and (changed != ids).any()
    assert outcome.n == len(detected) == 16 * 6 - 7
    assert outcome.loss.item() == pytest.approx(np.mean(generated) + DETECTION_WEIGHT * np.mean(detected), rel=1e-4)
    right = [(found[r, c] > 0.5) == (changed[r, c] != ids[r, c]) for r, c in (ids != 0).nonzero().tolist()]
    assert outcome.right == sum(right)


def test_the_generator_is_narrower_and_shares_the_token_embeddings() -> None:
    model = detector(d_model=24, n_heads=4, d_ff=48)
    small = model.generator.config
    assert (small.d_model, small.n_heads, small.d_ff, small.n_layers) == (12, 2, 24, 1)
    assert model.generator.embeddings.token is model.embeddings.token
    names = [name for name, _ in model.named_parameters() if "embeddings.token" in name]
    assert names == ["embeddings.token.weight"], "trained once"


@pytest.mark.parametrize("d_model, n_heads", [(2, 1), (6, 3), (16, 2), (100, 5), (192, 6), (257, 1)])
def test_every_detector_has_a_generator_that_fits_together(d_model: int, n_heads: int) -> None:
    config = ModelConfig.model_validate({"d_model": d_model, "n_heads": n_heads, "positions": "learned"})
    small = generator_config(config)
    assert small.d_model % small.n_heads == 0 and small.d_embedding == d_model


def test_it_learns_to_tell_the_token_that_was_replaced() -> None:
    texts, model = chains(200), detector(d_model=32, d_ff=64)
    held_out = texts.subset(np.arange(50))
    objective = DetectReplaced(share=0.15)
    before = objective.validate(model, held_out, torch.device("cpu"))
    config = TrainConfig(epochs=30, batch_size=40, learning_rate=1e-2, monitor="last", precision="float32")
    fit(model, texts, held_out, config, objective=objective)
    after = objective.validate(model, held_out, torch.device("cpu"))
    assert after == objective.validate(model, held_out, torch.device("cpu")), "validation repeats itself"
    assert after.loss < before.loss
    ids = torch.from_numpy(texts.ids.astype(np.int64)).view(-1, 12)
    place = torch.arange(len(ids)) % 12
    changed = ids.clone()
    changed[torch.arange(len(ids)), place] = 4 + (ids[torch.arange(len(ids)), place] - 4 + 7) % (VOCAB - 4)
    with torch.no_grad():
        found = model(changed).argmax(-1)
    assert (found == place).float().mean() > 0.5  # by chance 1 in 12


def test_texts_too_short_to_ask_for_anything_do_no_harm() -> None:
    model = detector()
    outcome = DetectReplaced(share=0.15).batch(model, torch.tensor([[3], [1]]), torch.zeros(2))
    outcome.loss.backward()
    assert outcome.n == 0 and outcome.loss.item() == 0.0


def test_an_interrupted_run_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    texts = chains(96)
    config = TrainConfig(epochs=2, batch_size=16, monitor="last", precision="float32", ema_decay=0.9)

    def interrupt(progress: Progress) -> None:
        if progress.step == 7:
            os.kill(os.getpid(), signal.SIGINT)

    whole, stopped, again = detector(), detector(), detector()
    fit(whole, texts, texts, config, objective=DetectReplaced(share=0.15))
    path = tmp_path / "state.pt"
    with pytest.raises(TrainingInterruptedError):
        fit(stopped, texts, texts, config, objective=DetectReplaced(share=0.15), state_path=path, on_step=interrupt)
    fit(again, texts, texts, config, objective=DetectReplaced(share=0.15), state_path=path, resume=True)
    assert all(torch.equal(again.state_dict()[name], tensor) for name, tensor in whole.state_dict().items())


def test_only_the_encoder_is_kept_and_a_classifier_starts_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TXCLS_CACHE", str(tmp_path / "cache"))
    settings = ["train.monitor=last", "train.epochs=3"]
    config = run_config("masked").with_settings([*settings, "objective=replaced"])
    made = pretrain(config, out=tmp_path / "encoder")
    assert isinstance(load_checkpoint(tmp_path / "encoder").model, ReplacedTokenDetector)
    assert not [name for name in made.model.state_dict() if "generator" in name]
    assert [row["best"] for row in made.history] == [True] * 3, "the last weights are kept"
    assert set(made.metrics["language"]) == {"loss", "accuracy"}
    card = (tmp_path / "encoder" / "README.md").read_text(encoding="utf-8")
    assert "pre-trained from scratch with txcls by replaced-token detection" in card and "perplexity" not in card
    frozen = run_config("classify").with_settings(["train.learning_rate=1e-12"])
    started = train(frozen, out=tmp_path / "classifier", init=made)
    theirs = made.model.state_dict()
    for name, tensor in started.model.state_dict().items():
        if name.startswith(("layers.", "norm.", "embeddings.")):
            torch.testing.assert_close(tensor, theirs[name], atol=1e-3, rtol=1e-2)


def test_an_early_validation_is_never_taken_for_the_best() -> None:
    with pytest.raises(ConfigError, match=r"train\.monitor: accuracy falls during replaced-token training"):
        run_config("masked").with_settings(["objective=replaced"])
