import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import add_noise
from txcls.config import ModelConfig
from txcls.inference.generation import Sampling, generate, next_token_probabilities
from txcls.model import LanguageModel

VOCAB = 40
SIZES = {"d_model": 16, "n_heads": 2, "n_layers": 2, "d_ff": 32, "max_length": 16}


def build(**changes: object) -> LanguageModel:
    torch.manual_seed(0)
    config = ModelConfig.model_validate({**SIZES, "causal": True, "mask_padding": False, **changes})
    model = LanguageModel(config, vocab_size=VOCAB).eval()
    add_noise(model, 0.2)
    return model


MODELS = st.fixed_dictionaries(
    {
        "positions": st.sampled_from(["sinusoidal", "learned", "none"]),
        "norm": st.sampled_from(["pre", "post"]),
        "tie_output": st.booleans(),
        "d_embedding": st.sampled_from([None, 8]),
        "activation": st.sampled_from(["relu", "gelu", "gelu_tanh"]),
    }
)
IDS = st.lists(st.integers(1, VOCAB - 1), min_size=1, max_size=12)


@settings(max_examples=40)
@given(changes=MODELS, ids=IDS, cut=st.integers(1, 11))
def test_reading_in_two_parts_with_a_cache_equals_reading_at_once(
    changes: dict[str, object], ids: list[int], cut: int
) -> None:
    model, row = build(**changes), torch.tensor([ids])
    cache = model.new_cache()
    with torch.no_grad():
        whole = model(row)
        parts = [model(part, cache) for part in (row[:, :cut], row[:, cut:]) if part.shape[1]]
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, atol=1e-5, rtol=1e-5)


def test_temperature_zero_is_greedy_up_to_the_models_length() -> None:
    model, text = build(), [5, 6]
    steps = list(generate(model, [5, 6], n=50, sampling=Sampling(temperature=0.0)))
    assert len(steps) == 15, "16 places read, and one token more"
    for step in steps:
        with torch.no_grad():
            assert step.id == int(model(torch.tensor([text]))[0, -1].argmax()) and step.probability == 1.0
        text.append(step.id)


LOGITS = st.lists(st.floats(-8, 8), min_size=2, max_size=20).map(
    lambda values: torch.tensor(values, dtype=torch.float64)
)


@settings(max_examples=200)
@given(logits=LOGITS, k=st.integers(1, 25), p=st.floats(0.01, 1.0), temperature=st.floats(0.1, 4.0))
def test_filters_keep_the_most_probable_and_their_ratios(
    logits: torch.Tensor, k: int, p: float, temperature: float
) -> None:
    filtered = next_token_probabilities(logits, Sampling(temperature=temperature, top_k=k, top_p=p))
    plain = torch.softmax(logits / temperature, -1)
    is_kept = filtered > 0
    assert filtered.sum().item() == pytest.approx(1.0) and 1 <= is_kept.sum() <= k
    assert plain[is_kept].min() >= plain[~is_kept].max() - 1e-12 if (~is_kept).any() else True
    torch.testing.assert_close(filtered[is_kept], plain[is_kept] / plain[is_kept].sum())


def test_top_p_takes_the_fewest_that_reach_it() -> None:
    logits = torch.tensor([0.5, 0.25, 0.15, 0.1], dtype=torch.float64).log()
    for p, expected in ((0.4, 1), (0.5, 1), (0.6, 2), (0.75, 2), (0.76, 3), (0.95, 4), (1.0, 4)):
        assert (next_token_probabilities(logits, Sampling(top_p=p)) > 0).sum() == expected, p
    # top-k first: of the two tokens left, the first has two thirds by itself
    assert (next_token_probabilities(logits, Sampling(top_k=2, top_p=0.6)) > 0).sum() == 1


def test_without_a_filter_every_token_can_be_sampled() -> None:
    logits = torch.linspace(12, -12, 5000)  # in float32, the first tokens' sum rounds to 1
    assert (next_token_probabilities(logits, Sampling()) > 0).all()
