"""The last state of the class lens gives the prediction, and the parts' contributions sum to the logits."""

import numpy as np
import pytest
import torch

from tests.conftest import TEXTS, Untrained
from tests.inspection.test_ablation import MODELS, SOME, altered, probabilities
from txcls.inference.predictor import Predictor
from txcls.inspection.lens import class_lens
from txcls.inspection.tracing import trace_text


@pytest.mark.parametrize("model", [*MODELS, {"norm": "post", "pooling": "mean"}])
def test_the_last_state_is_the_prediction_and_contributions_sum_to_the_logits(
    untrained: Untrained, model: dict[str, object]
) -> None:
    classifier = untrained(**model)
    n_states = 2 * classifier.checkpoint.config.model.n_layers + 1
    for text in SOME:
        lens = class_lens(classifier, text)
        length = len(lens.traced.tokens)
        assert lens.probabilities.shape == (n_states, 4) and len(lens.states) == n_states
        np.testing.assert_allclose(lens.probabilities[-1], probabilities(classifier, text), atol=1e-6)
        np.testing.assert_allclose(lens.probabilities.sum(axis=1), 1.0)
        assert lens.norms.shape == (n_states, length)
        assert lens.contributions.shape == (len(lens.sources), length, 4)
        np.testing.assert_allclose(lens.contributions.sum(axis=(0, 1)) + lens.bias, lens.logits, atol=1e-4)
        np.testing.assert_array_equal(lens.logits, lens.traced.values["logits"])
        norms = np.linalg.norm(lens.traced.values["layers.0.resid_post"], axis=1)
        np.testing.assert_allclose(lens.norms[2], norms, rtol=1e-5)


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


def test_contributions_equal_the_loss_in_logits_with_scale_and_pooling_fixed(
    classifier: Predictor,
) -> None:
    lens = class_lens(classifier, TEXTS[0])
    values = trace_text(classifier, TEXTS[0]).values
    model = classifier.checkpoint.model
    last = torch.from_numpy(values["layers.1.resid_post"])  # T D
    pattern = torch.from_numpy(values["pool.pattern"])  # T
    scale = (last.var(dim=-1, correction=0, keepdim=True) + 1e-5).sqrt()  # T 1

    def logits(state: torch.Tensor) -> torch.Tensor:
        centred = state - state.mean(dim=-1, keepdim=True)
        return model.head(pattern @ (centred / scale * model.norm.weight + model.norm.bias))

    with torch.inference_mode():
        for source, tap in (("layer 1: attention", "layers.0.attn_out"), ("position vectors", "embeddings.positions")):
            lost = (logits(last) - logits(last - torch.from_numpy(values[tap]))).numpy()
            contributed = lens.contributions[lens.sources.index(source)].sum(axis=0)
            np.testing.assert_allclose(contributed, lost, atol=1e-5)
