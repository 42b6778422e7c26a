"""Looking inside: the traced pass is the real one, and what it shows has the shape it says."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import TEXTS, make_checkpoint
from txcls.classifier import Classifier
from txcls.errors import TraceError
from txcls.inspection import position_encoding, position_products, shuffle_words, sinusoids, trace_text


@pytest.mark.parametrize(
    "model",
    [
        {},
        {"n_layers": 1, "n_heads": 1, "pooling": "first", "norm": "post"},
        {"pooling": "class_token", "positions": "learned", "causal": True},
        {"pooling": "mean", "positions": "none", "ngram_buckets": 32, "d_ngram": 4},
        {"phrases": 20},
    ],
)
@pytest.mark.parametrize("text", [TEXTS[0], "bank", "zyzzyva", "the bank " * 30])
def test_a_traced_text_gets_the_answer_it_gets_untraced(tmp_path: Path, model: dict[str, object], text: str) -> None:
    classifier = Classifier(make_checkpoint(tmp_path / "tiny", **model))
    traced = trace_text(classifier, text)
    [plain] = classifier.predict([text])
    assert (traced.prediction.label, traced.tokens) == (plain.label, plain.tokens)
    assert [s.probability for s in traced.prediction.scores] == pytest.approx(
        [s.probability for s in plain.scores], abs=1e-6
    )
    config = classifier.checkpoint.config.model
    length = len(traced.tokens)
    assert traced.attention.shape == (config.n_layers, config.n_heads, length, length)
    np.testing.assert_allclose(traced.attention.sum(-1), 1.0, atol=1e-5)
    if config.pooling in ("mean", "attention"):
        assert traced.pooling is not None and traced.pooling.sum() == pytest.approx(1.0, abs=1e-5)
    else:
        assert traced.pooling is None
    sizes = {"B": 1, "T": length, "D": 16, "H": config.n_heads, "E": 16 // config.n_heads, "F": 32, "C": 4}
    for stage in traced.stages:
        assert stage.shape == tuple(sizes[letter] for letter in stage.letters.split()), stage.name
        assert stage.note
    names = [stage.name for stage in traced.stages]
    assert names[0] == "ids" and names[-2:] == ["logits", "probabilities"] and len(names) == len(set(names))


def test_the_residual_stream_is_the_sum_of_what_was_written(classifier: Classifier) -> None:
    values = trace_text(classifier, TEXTS[2]).values
    total = values["embeddings.tokens"] + values["embeddings.positions"]
    np.testing.assert_allclose(values["embeddings.out"], total, atol=1e-5)
    for layer in range(2):
        total = total + values[f"layers.{layer}.attn_out"] + values[f"layers.{layer}.ff_out"]
        np.testing.assert_allclose(values[f"layers.{layer}.resid_post"], total, atol=1e-4)


@pytest.mark.parametrize("text", ["", "  \n "])
def test_a_text_without_words_cannot_be_traced(classifier: Classifier, text: str) -> None:
    with pytest.raises(TraceError, match="no word in this text"):
        trace_text(classifier, text)
    with pytest.raises(TraceError, match="no word in this text"):
        shuffle_words(classifier, text)


def test_threads_trace_side_by_side(classifier: Classifier) -> None:
    expected = {text: trace_text(classifier, text).attention for text in TEXTS}
    with ThreadPoolExecutor(4) as pool:
        jobs = [(text, pool.submit(trace_text, classifier, text)) for text in TEXTS * 10]
        for text, job in jobs:
            np.testing.assert_allclose(job.result().attention, expected[text], atol=1e-6)


@pytest.mark.parametrize("kind", ["sinusoidal", "learned", "none"])
def test_the_position_encoding_is_what_the_model_adds(tmp_path: Path, kind: str) -> None:
    classifier = Classifier(make_checkpoint(tmp_path / "tiny", positions=kind))
    encoding = position_encoding(classifier, 5)
    assert encoding.kind == kind and encoding.values.shape == (5, 16)
    assert position_encoding(classifier).values.shape == (12, 16)
    if kind == "none":
        assert not encoding.values.any()
    else:
        text = "the bank raised its rates"
        np.testing.assert_allclose(encoding.values, trace_text(classifier, text).values["embeddings.positions"])
    for length in (0, 13):
        with pytest.raises(ValueError, match="this model has 1 to 12 positions"):
            position_encoding(classifier, length)


def test_the_product_of_sinusoids_depends_on_their_distance_only() -> None:
    products = position_products(sinusoids(30, 16))
    for distance in range(30):
        np.testing.assert_allclose(np.diag(products, distance), products[0, distance], atol=1e-4)
    assert products[0, 0] == pytest.approx(8.0)
    for wrong in ((0, 16), (5, 15), (5, 0)):
        with pytest.raises(ValueError, match="wanted at least 1 and a positive even number"):
            sinusoids(*wrong)


def test_shuffling_keeps_the_words_and_repeats_itself(classifier: Classifier) -> None:
    text = TEXTS[3]
    result = shuffle_words(classifier, text, n=7, seed=3)
    assert all(sorted(one.split()) == sorted(text.split()) for one in result.texts)
    np.testing.assert_allclose(result.probabilities.sum(1), 1.0)
    assert result.texts == shuffle_words(classifier, text, n=7, seed=3).texts
    winners = [classifier.classes[row.argmax()] for row in result.probabilities]
    assert result.label_kept == pytest.approx(np.mean([winner == result.original.label for winner in winners]))
    one = shuffle_words(classifier, "bank", n=2)
    assert one.label_kept == 1.0
    with pytest.raises(ValueError, match="got n = 0"):
        shuffle_words(classifier, text, n=0)


def test_without_positions_and_bigrams_the_order_of_words_does_not_matter(tmp_path: Path) -> None:
    classifier = Classifier(make_checkpoint(tmp_path / "tiny", positions="none"))
    result = shuffle_words(classifier, TEXTS[0], n=5)
    expected = {score.label: score.probability for score in result.original.scores}
    for row in result.probabilities:
        assert dict(zip(classifier.classes, row, strict=True)) == pytest.approx(expected, abs=1e-5)
