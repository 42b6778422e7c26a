from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import TEXTS, Untrained, make_checkpoint
from tests.inspection.test_ablation import MODELS, SOME
from txcls.errors import TraceError
from txcls.inference.predictor import Predictor
from txcls.inspection.attribution import explain
from txcls.inspection.counterfactuals import search_flips
from txcls.inspection.lens import class_lens
from txcls.inspection.positions import predict_shuffled
from txcls.inspection.steps import walk_through
from txcls.inspection.tracing import trace_text
from txcls.tap import Tap


@pytest.mark.parametrize("model", MODELS[:4])
def test_tracing_does_not_change_the_prediction(untrained: Untrained, model: dict[str, object]) -> None:
    classifier = untrained(**model)
    config = classifier.checkpoint.config.model
    for text in SOME:
        traced, [untraced] = trace_text(classifier, text), classifier.predict([text])
        assert (traced.prediction.label, traced.tokens) == (untraced.label, untraced.tokens)
        assert [ranked.probability for ranked in traced.prediction.ranked] == pytest.approx(
            [ranked.probability for ranked in untraced.ranked], abs=1e-6
        )
        length = len(traced.tokens)
        assert traced.attention.shape == (config.n_layers, config.n_heads, length, length)
        np.testing.assert_allclose(traced.attention.sum(-1), 1.0, atol=1e-5)
        assert (traced.pooling is not None) == (config.pooling in ("mean", "attention"))
        assert traced.pooling is None or traced.pooling.sum() == pytest.approx(1.0, abs=1e-5)
        sizes = {"B": 1, "T": length, "D": 16, "H": config.n_heads, "E": 16 // config.n_heads, "F": 32, "C": 4}
        for stage in traced.stages:
            assert stage.shape == tuple(sizes[letter] for letter in stage.letters.split()), stage.name
            assert stage.note
        names = [stage.name for stage in traced.stages]
        assert names[0] == "ids" and names[-2:] == ["logits", "probabilities"] and len(names) == len(set(names))


def test_the_residual_stream_is_the_sum_of_all_outputs(classifier: Predictor) -> None:
    values = trace_text(classifier, TEXTS[2]).values
    total = values["embeddings.tokens"] + values["embeddings.positions"]
    np.testing.assert_allclose(values["embeddings.out"], total, atol=1e-5)
    for layer in range(2):
        total = total + values[f"layers.{layer}.attn_out"] + values[f"layers.{layer}.ff_out"]
        np.testing.assert_allclose(values[f"layers.{layer}.resid_post"], total, atol=1e-4)


@pytest.mark.parametrize("text", ["", "  \n "])
@pytest.mark.parametrize(
    "inspect",
    [trace_text, class_lens, explain, walk_through, predict_shuffled, lambda *given: next(search_flips(*given))],
)
def test_a_text_without_words_is_refused(classifier: Predictor, inspect: Callable[..., object], text: str) -> None:
    with pytest.raises(TraceError, match="no word in this text"):
        inspect(classifier, text)


def test_a_tap_that_is_not_described_is_listed_and_traced(tmp_path: Path) -> None:
    classifier = Predictor(make_checkpoint(tmp_path / "changed"))
    model = classifier.checkpoint.model
    model.pool.extra = Tap()
    model.pool.extra.name = "pool.extra"
    unchanged = model.pool.forward
    model.pool.forward = lambda x, real: unchanged(model.pool.extra(x), real)
    traced = trace_text(classifier, TEXTS[0])
    assert traced["pool.extra"].shape == (len(traced.tokens), 16)
    assert "a tap of a changed model.py" in repr(traced)
