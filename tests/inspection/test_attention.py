import numpy as np
import pytest

from tests.conftest import TEXTS
from txcls.errors import TraceError
from txcls.inference.predictor import Predictor
from txcls.inspection.attention import attention_rollout, query_key
from txcls.inspection.tracing import trace_text


def test_rollout_of_three_tokens_computed_by_hand() -> None:
    first = np.array([[[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]], [[0.0, 0.0, 1.0]] * 3])  # H T T
    second = np.array([[[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.2, 0.2, 0.6]]] * 2)
    # Heads averaged, and half the weight on the token itself:
    # layer 1: [.75 0 .25] [.125 .625 .25] [0 0 1]    layer 2: [.5 .5 0] [0 .5 .5] [.1 .1 .8]
    expected = [[0.4375, 0.3125, 0.25], [0.0625, 0.3125, 0.625], [0.0875, 0.0625, 0.85]]
    rollout = attention_rollout(np.stack([first, second]))
    np.testing.assert_allclose(rollout, expected, atol=1e-12)
    np.testing.assert_allclose(rollout.sum(axis=1), 1.0)
    np.testing.assert_allclose(attention_rollout(np.ones((1, 1, 1, 1))), [[1.0]])


def test_products_sum_to_the_score_which_gives_the_weight(classifier: Predictor) -> None:
    traced = trace_text(classifier, TEXTS[0])
    length = len(traced.tokens)
    for layer, head, query in ((0, 0, 0), (1, 1, 3)):
        pairs = [query_key(traced, layer=layer, head=head, query=query, key=key) for key in range(length)]
        scores = np.array([pair.score for pair in pairs])
        np.testing.assert_allclose(scores, traced.values[f"layers.{layer}.attn.scores"][head, query], atol=1e-5)
        weights = np.exp(scores) / np.exp(scores).sum()
        np.testing.assert_allclose([pair.weight for pair in pairs], weights, atol=1e-5)
        assert pairs[0].products == pytest.approx(pairs[0].query * pairs[0].key / np.sqrt(8), abs=1e-6)
    traced.values["layers.0.attn.scores"][0, 1, 2] += 0.1
    with pytest.raises(TraceError, match="divided by √8"):
        query_key(traced, layer=0, head=0, query=1, key=2)
