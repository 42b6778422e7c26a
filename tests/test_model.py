import math
from contextlib import nullcontext

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from tests.conftest import add_noise
from txcls.config import ModelConfig
from txcls.model import Block, Dropout, LayerNorm, SelfAttention, TextClassifier, sinusoidal_encoding
from txcls.tap import trace

VOCAB, CLASSES = 50, 3


def small(**changes: object) -> ModelConfig:
    settings: dict[str, object] = {
        "d_model": 16,
        "n_heads": 4,
        "n_layers": 2,
        "d_ff": 32,
        "max_length": 24,
        "dropout": 0.0,
    }
    return ModelConfig.model_validate({**settings, **changes})


def build(config: ModelConfig, *, seed: int = 0) -> TextClassifier:
    torch.manual_seed(seed)
    model = TextClassifier(config, vocab_size=VOCAB, n_classes=CLASSES).eval()
    add_noise(model, 0.2)
    return model


def padded(rows: list[list[int]]) -> Tensor:
    width = max(map(len, rows))
    return torch.tensor([row + [0] * (width - len(row)) for row in rows])


ROWS = st.lists(st.lists(st.integers(1, VOCAB - 1), min_size=1, max_size=12), min_size=1, max_size=5)
CONFIGS = st.builds(
    small,
    positions=st.sampled_from(["sinusoidal", "learned", "none"]),
    norm=st.sampled_from(["pre", "post"]),
    activation=st.sampled_from(["relu", "gelu"]),
    pooling=st.sampled_from(["first", "class_token", "mean", "attention"]),
    causal=st.booleans(),
    qkv_bias=st.booleans(),
    output_bias=st.booleans(),
    scale_embeddings=st.booleans(),
    init=st.sampled_from(["xavier", "normal", "default"]),
    fixed_length=st.booleans(),
    d_embedding=st.sampled_from([None, 8]),
)


def torch_attention(ours: SelfAttention, d_model: int) -> nn.MultiheadAttention:
    """torch's module with our weights."""
    theirs = nn.MultiheadAttention(d_model, ours.n_heads, bias=True, batch_first=True).eval()
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.key.weight, ours.value.weight]))
        theirs.in_proj_bias.copy_(torch.cat([ours.query.bias, ours.key.bias, ours.value.bias]))
        theirs.out_proj.load_state_dict(ours.output.state_dict())
    return theirs


@pytest.mark.parametrize("masking", ["none", "padding", "causal", "both"])
@pytest.mark.parametrize("traced", [False, True], ids=["fused", "written out"])
def test_attention_equals_torchs_own(masking: str, traced: bool) -> None:
    torch.manual_seed(1)
    config = small()
    ours = SelfAttention(config).eval()
    for name in ("q", "k", "v", "scores", "pattern", "z"):
        getattr(ours, name).name = name
    theirs = torch_attention(ours, config.d_model)
    x = torch.randn(3, 7, config.d_model)
    real = torch.ones(3, 7, dtype=torch.bool)
    real[1, 4:] = real[2, 1:] = False
    earlier = torch.ones(7, 7, dtype=torch.bool).tril()
    mask = {"none": None, "padding": real[:, None, None], "causal": earlier, "both": real[:, None, None] & earlier}[
        masking
    ]
    expected, weights = theirs(
        x,
        x,
        x,
        key_padding_mask=~real if masking in ("padding", "both") else None,
        attn_mask=~earlier if masking in ("causal", "both") else None,
        average_attn_weights=False,
    )
    with torch.no_grad():
        if traced:
            with trace() as activations:
                result = ours(x, mask)
            torch.testing.assert_close(activations["pattern"], weights, atol=1e-5, rtol=0)
        else:
            result = ours(x, mask)
    torch.testing.assert_close(result, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("masked", [False, True])
def test_block_equals_torchs_encoder_layer(norm: str, activation: str, masked: bool) -> None:
    torch.manual_seed(2)
    config = small(norm=norm, activation=activation)
    ours = Block(config).eval()
    theirs = nn.TransformerEncoderLayer(
        config.d_model, config.n_heads, config.d_ff, 0.0, activation, batch_first=True, norm_first=norm == "pre"
    ).eval()
    theirs.self_attn.load_state_dict(torch_attention(ours.attn, config.d_model).state_dict())
    theirs.linear1.load_state_dict(ours.ff.expand.state_dict())
    theirs.linear2.load_state_dict(ours.ff.contract.state_dict())
    for own, other in ((ours.norm_attn, theirs.norm1), (ours.norm_ff, theirs.norm2)):
        nn.init.normal_(own.weight)
        nn.init.normal_(own.bias)
        other.load_state_dict(own.state_dict())
    x = torch.randn(3, 7, config.d_model)
    real = torch.ones(3, 7, dtype=torch.bool)
    if masked:
        real[1, 4:] = real[2, 1:] = False
    with torch.no_grad():
        result = ours(x, real[:, None, None] if masked else None)
        theirs.train()  # torch's standard path rather than its fused one; there is no dropout
        expected = theirs(x, src_key_padding_mask=~real if masked else None)
    torch.testing.assert_close(result[real], expected[real], atol=1e-5, rtol=0)


@pytest.mark.parametrize("traced", [False, True], ids=["fused", "written out"])
def test_layer_norm_equals_torchs_own(traced: bool) -> None:
    torch.manual_seed(3)
    ours, theirs = LayerNorm(16), nn.LayerNorm(16)
    for parameter in (ours.weight, ours.bias):
        nn.init.normal_(parameter)
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(3, 7, 16) * 5 + 2
    x[0, 0] = 4.0  # all equal, so the variance is zero
    with torch.no_grad(), trace(record=()) if traced else nullcontext():
        result = ours(x)
    torch.testing.assert_close(result, theirs(x).detach(), atol=1e-5, rtol=1e-5)


def test_sinusoids_equal_the_papers_formula() -> None:
    encoding = sinusoidal_encoding(40, 10)
    for position in (0, 1, 17, 39):
        for pair in range(5):
            angle = position / 10_000 ** (2 * pair / 10)
            assert encoding[position, 2 * pair].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert encoding[position, 2 * pair + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


@settings(max_examples=60)
@given(config=CONFIGS, rows=ROWS, extra=st.integers(1, 8))
def test_padding_never_changes_logits(config: ModelConfig, rows: list[list[int]], extra: int) -> None:
    model = build(config)
    ids = padded(rows)
    with torch.no_grad():
        plain = model(ids)
        wider = model(nn.functional.pad(ids, (0, extra)))
    torch.testing.assert_close(plain, wider, atol=1e-5, rtol=1e-5)


@settings(max_examples=60)
@given(config=CONFIGS, rows=ROWS)
def test_a_batch_equals_its_items_one_by_one(config: ModelConfig, rows: list[list[int]]) -> None:
    model = build(config)
    with torch.no_grad():
        batched = model(padded(rows))
        single = torch.cat([model(torch.tensor([row])) for row in rows])
    torch.testing.assert_close(batched, single, atol=1e-5, rtol=1e-5)


@settings(max_examples=40)
@given(config=CONFIGS, row=st.lists(st.integers(1, VOCAB - 1), min_size=2, max_size=12), data=st.data())
def test_causal_attention_leaks_nothing_from_later_tokens(
    config: ModelConfig, row: list[int], data: st.DataObject
) -> None:
    model = build(config.model_copy(update={"causal": True}))
    cut = data.draw(st.integers(1, len(row) - 1))
    other = row[:cut] + [(token % (VOCAB - 1)) + 1 for token in row[cut:]]
    streams = []
    for ids in (row, other):
        with torch.no_grad(), trace(record=["layers.1.resid_post"]) as activations:
            model(torch.tensor([ids]))
        streams.append(activations["layers.1.resid_post"][0])
    torch.testing.assert_close(streams[0][:cut], streams[1][:cut], atol=1e-6, rtol=1e-6)
    assert not torch.allclose(streams[0][cut:], streams[1][cut:])


@settings(max_examples=30)
@given(config=CONFIGS, rows=ROWS)
def test_tracing_changes_no_logit_and_patterns_sum_to_one(config: ModelConfig, rows: list[list[int]]) -> None:
    model = build(config)
    ids = padded(rows)
    with torch.no_grad():
        plain = model(ids)
        with trace() as activations:
            traced = model(ids)
    torch.testing.assert_close(plain, traced, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(activations["logits"], traced)
    for layer in range(config.n_layers):
        pattern = activations[f"layers.{layer}.attn.pattern"]
        torch.testing.assert_close(pattern.sum(-1), torch.ones(pattern.shape[:-1]), atol=1e-5, rtol=0)
        hidden = (model.pad(ids) == 0)[:, None, None].expand_as(pattern)
        assert pattern[hidden].abs().sum() == 0, "padding takes part in attention"


def test_the_mean_may_take_padding_in_where_attention_does_not() -> None:
    model = build(small(pool_padding=True, pooling="mean", norm="post"))
    with torch.no_grad(), trace() as activations:
        model(torch.tensor([[5, 6, 7, 0, 0]]))
    torch.testing.assert_close(activations["pooled"], activations["layers.1.resid_post"].mean(1), atol=1e-6, rtol=1e-5)
    assert activations["layers.1.attn.pattern"][..., 3:].abs().sum() == 0


def test_a_fixed_length_pads_every_text_and_without_a_mask_that_counts() -> None:
    fixed = build(small(fixed_length=True, mask_padding=False))
    with torch.no_grad(), trace() as activations:
        logits = fixed(torch.tensor([[5, 6, 7]]))
    assert activations["layers.0.attn.pattern"].shape == (1, 4, 24, 24)
    free = build(small(mask_padding=False))
    with torch.no_grad():
        torch.testing.assert_close(logits, free(torch.tensor([[5, 6, 7] + [0] * 21])))
        assert not torch.allclose(logits, free(torch.tensor([[5, 6, 7]])), atol=1e-3)


@pytest.mark.parametrize("pooling", ["first", "class_token", "mean", "attention"])
def test_pooling_is_what_its_name_says(pooling: str) -> None:
    model = build(small(pooling=pooling, norm="post"))
    ids = padded([[3, 8, 9, 4], [7, 5]])
    with torch.no_grad(), trace() as activations:
        model(ids)
    last = activations["layers.1.resid_post"]
    if pooling in ("first", "class_token"):
        expected = last[:, 0]
    elif pooling == "mean":
        expected = torch.stack([last[0].mean(0), last[1, :2].mean(0)])
    else:
        weights = [(last[n, :length] @ model.pool.score.weight[0]).softmax(0) for n, length in enumerate((4, 2))]
        expected = torch.stack([weights[0] @ last[0], weights[1] @ last[1, :2]])
    torch.testing.assert_close(activations["pooled"], expected, atol=1e-5, rtol=1e-5)


def test_embeddings_are_scaled_by_the_root_of_d_model() -> None:
    model = build(small(scale_embeddings=True))
    with torch.no_grad(), trace(record=["embeddings.tokens"]) as activations:
        model(torch.tensor([[5]]))
    torch.testing.assert_close(activations["embeddings.tokens"][0, 0], model.embeddings.token.weight[5] * 4.0)


@pytest.mark.parametrize("init", ["xavier", "normal"])
def test_initial_matrices_have_the_spread_they_should(init: str) -> None:
    torch.manual_seed(0)
    model = TextClassifier(small(d_model=64, d_ff=256, init=init), vocab_size=VOCAB, n_classes=CLASSES)
    weight = model.layers[0].ff.expand.weight
    expected = 0.02 if init == "normal" else math.sqrt(2 / (64 + 256))
    assert weight.std().item() == pytest.approx(expected, rel=0.05)
    assert model.layers[0].ff.expand.bias.abs().sum() == 0
    assert model.embeddings.token.weight[0].abs().sum() == 0, "padding starts at zero"


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_zeroes_its_share_and_scales_the_rest_and_the_gradient(p: float) -> None:
    torch.manual_seed(0)
    dropout = Dropout(p)
    x = torch.full((401, 999), 2.0, requires_grad=True)  # an odd number of values
    out = dropout(x)
    passed = (out != 0).double()
    torch.testing.assert_close(out, passed.float() * 2 / (1 - p))
    spread = (p * (1 - p)) ** 0.5
    assert abs(passed.mean() - (1 - p)) < 5 * spread / x.numel() ** 0.5
    for distance in (1, 2, 3, 4):  # four values share one random number; neighbours must still be independent
        both_kept = (passed.flatten()[distance:] * passed.flatten()[:-distance]).mean()
        assert abs(both_kept - (1 - p) ** 2) < 5 / x.numel() ** 0.5
    out.sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad, out.detach() / 2)
    assert not torch.equal(dropout(x) != 0, out != 0), "drawn anew each time"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.75])
def test_dropout_in_16_bits_is_dropout_in_32_bits_rounded(dtype: torch.dtype, p: float) -> None:
    x = torch.randn(77, 33)
    torch.manual_seed(0)
    wide = Dropout(p)(torch.ones_like(x))
    torch.manual_seed(0)
    small = x.to(dtype).requires_grad_()
    narrow = Dropout(p)(small)
    assert narrow.dtype == dtype and torch.equal(narrow, small * wide.to(dtype))
    narrow.sum().backward()
    assert small.grad is not None and torch.equal(small.grad, wide.to(dtype))


@pytest.mark.parametrize("masked", [False, True])
def test_training_in_bfloat16_has_the_fused_kernels_result_and_gradient(
    masked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(1)
    attention = SelfAttention(small()).train()
    mask = torch.ones(3, 1, 1, 7, dtype=torch.bool)
    mask[1, ..., 4:] = not masked
    x = torch.randn(3, 7, small().d_model)
    results = []
    for short in (7, 6):
        monkeypatch.setattr("txcls.model.MAX_EXPLICIT_LENGTH", short)
        attention.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = attention(x, mask).float()
        out.square().mean().backward()
        assert attention.query.weight.grad is not None and attention.value.weight.grad is not None
        results.append((out.detach(), attention.query.weight.grad.clone(), attention.value.weight.grad.clone()))
    for written_out, fused in zip(*results, strict=True):
        torch.testing.assert_close(written_out, fused, atol=0.02 * float(fused.abs().max()), rtol=0)
