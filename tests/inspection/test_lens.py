import numpy as np
import pytest
import torch

from tests.conftest import TEXTS, Untrained
from tests.inspection.test_ablation import MODELS, SOME, altered, probabilities
from txcls.inspection.lens import class_lens
from txcls.inspection.tracing import trace_text


@pytest.mark.parametrize("model", [*MODELS, {"norm": "post", "pooling": "mean"}])
def test_the_last_state_is_the_prediction(untrained: Untrained, model: dict[str, object]) -> None:
    classifier = untrained(**model)
    for text in SOME:
        lens, traced = class_lens(classifier, text), trace_text(classifier, text)
        assert lens.probabilities.shape == (2 * classifier.checkpoint.config.model.n_layers + 1, 4)
        assert len(lens.states) == len(lens.probabilities)
        np.testing.assert_allclose(lens.probabilities[-1], probabilities(classifier, text), atol=1e-6)
        np.testing.assert_allclose(lens.probabilities.sum(axis=1), 1.0)
        np.testing.assert_allclose(lens.logits[-1], traced["logits"], atol=1e-6)
        np.testing.assert_allclose(class_lens(classifier, traced).logits, lens.logits, atol=1e-6)


def test_earlier_states_equal_a_model_with_fewer_layers(untrained: Untrained) -> None:
    classifier = untrained()
    lens = class_lens(classifier, TEXTS[0])
    for state, n_layers in ((0, 0), (2, 1)):
        shorter = altered(classifier, lambda network, n=n_layers: network.layers.__delitem__(slice(n, None)))  # type: ignore[misc]
        np.testing.assert_allclose(lens.probabilities[state], probabilities(shorter, TEXTS[0]), atol=1e-6)

    def no_feed_forward(network: torch.nn.Module) -> None:
        network.layers[1].ff.contract.weight.zero_()
        network.layers[1].ff.contract.bias.zero_()

    np.testing.assert_allclose(
        lens.probabilities[3], probabilities(altered(classifier, no_feed_forward), TEXTS[0]), atol=1e-6
    )
