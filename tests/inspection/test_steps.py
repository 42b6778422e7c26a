import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.conftest import TEXTS, make_checkpoint
from txcls.errors import TraceError
from txcls.inference.predictor import Predictor
from txcls.inspection.steps import Walk, WalkStep, walk_through
from txcls.inspection.steps.arithmetic import number, softmax_entry
from txcls.inspection.steps.step import source_of
from txcls.model import Pooling

ROOT = Path(__file__).parents[2]
MODELS: dict[str, dict[str, object]] = {
    "plain": {},
    "learned positions": {"positions": "learned"},
    "one layer, one head, post": {"n_layers": 1, "n_heads": 1, "pooling": "first", "norm": "post"},
    "causal": {"pooling": "class_token", "positions": "none", "causal": True, "activation": "relu"},
    "narrow, scaled": {"d_embedding": 6, "scale_embeddings": True, "pooling": "mean", "activation": "gelu_tanh"},
    "scaled": {"scale_embeddings": True, "norm": "post", "qkv_bias": False, "output_bias": False},
    "padded": {"fixed_length": True, "pooling": "mean"},
    "padding unmasked": {"fixed_length": True, "mask_padding": False, "pooling": "mean"},
    "padding pooled": {"fixed_length": True, "pool_padding": True},
    "bytes": {"text": {"tokenizer": "bpe", "max_vocabulary": 320, "cleaning": ()}, "max_length": 24},
}
Walks = list[tuple[Predictor, str, Walk]]


@pytest.fixture(scope="module", params=MODELS)
def walks(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Walks:
    """Walks of several texts through one model."""
    classifier = Predictor(make_checkpoint(tmp_path_factory.mktemp("walk") / "tiny", **MODELS[request.param]))
    texts = (TEXTS[0], "bank", "zyzzyva qwertz", "the bank " * 30)
    return [(classifier, text, walk_through(classifier, text)) for text in texts]


def find(walk: Walk, name: str, layer: int = 0) -> WalkStep:
    return walk.steps[walk.find(name, layer)]


def test_the_arithmetic_of_a_number_gives_that_number(walks: Walks) -> None:
    random = np.random.default_rng(0)
    for _, _, walk in walks:
        for step in walk.steps:
            if step.values is None:
                continue
            for _ in range(12):
                head, row, column = (int(random.integers(n)) for n in step.values.shape)
                arithmetic, shown = step.explain(row, column, head=head), float(step.cells(head)[row, column])
                assert arithmetic.value == pytest.approx(shown, abs=2e-5, rel=1e-5), (step.name, head, row, column)
                assert arithmetic.lines[-1].endswith(number(arithmetic.value))
                if arithmetic.terms is not None:
                    assert arithmetic.terms.shape == (len(arithmetic.labels), len(arithmetic.headers))


def test_the_walk_ends_with_the_prediction(walks: Walks) -> None:
    for classifier, text, walk in walks:
        [prediction] = classifier.predict([text])
        probabilities = dict(zip(classifier.classes, find(walk, "calibrated").cells()[:, 0], strict=True))
        np.testing.assert_allclose(find(walk, "lens").cells()[-1], find(walk, "calibrated").cells()[:, 0], atol=1e-6)
        expected = {ranked.label: ranked.probability for ranked in prediction.ranked}
        assert probabilities == pytest.approx(expected, abs=1e-6)


def test_the_code_of_a_step_is_at_the_stated_line(walks: Walks) -> None:
    for step in walks[0][2].steps:
        for code in step.code:
            assert len(code.code.splitlines()) <= 11, "all lines of a function: one of those that are named is missing"
            lines = (ROOT / code.file).read_text(encoding="utf-8").splitlines()
            quoted = code.code.splitlines()
            in_file = lines[code.line - 1 : code.line - 1 + len(quoted)]
            assert [line.strip() for line in in_file] == [line.strip() for line in quoted], step.name


@pytest.mark.parametrize("layer", [0, 1])
def test_a_layer_equals_torchs_encoder_layer(classifier: Predictor, layer: int) -> None:
    """`nn.TransformerEncoderLayer` with the same weights gives the walk's output and pattern for the walk's input."""
    walk = walk_through(classifier, TEXTS[1])
    block = classifier.checkpoint.model.layers[layer]
    theirs = torch.nn.TransformerEncoderLayer(16, 2, 32, activation="gelu", norm_first=True, batch_first=True).eval()
    with torch.no_grad():
        projections = (block.attn.query, block.attn.key, block.attn.value)
        theirs.self_attn.in_proj_weight.copy_(torch.cat([linear.weight for linear in projections]))
        theirs.self_attn.in_proj_bias.copy_(torch.cat([linear.bias for linear in projections]))
        for ours, copied in (
            (block.attn.output, theirs.self_attn.out_proj),
            (block.norm_attn, theirs.norm1),
            (block.norm_ff, theirs.norm2),
            (block.ff.expand, theirs.linear1),
            (block.ff.contract, theirs.linear2),
        ):
            copied.weight.copy_(ours.weight)
            copied.bias.copy_(ours.bias)
        before = find(walk, "sum") if layer == 0 else find(walk, "add_ff", layer - 1)
        x = torch.from_numpy(before.cells())[None]
        np.testing.assert_allclose(find(walk, "add_ff", layer).cells(), theirs(x)[0].numpy(), atol=1e-5)
        normed = theirs.norm1(x)
        np.testing.assert_allclose(find(walk, "norm_attn", layer).cells(), normed[0].numpy(), atol=1e-5)
        output, pattern = theirs.self_attn(normed, normed, normed, average_attn_weights=False)
    np.testing.assert_allclose(find(walk, "softmax", layer).values, pattern[0].numpy(), atol=1e-6)
    np.testing.assert_allclose(find(walk, "project", layer).cells(), output[0].numpy(), atol=1e-5)


def test_softmax_entries_agree_with_torch_for_large_scores() -> None:
    scores = np.array([3.0, -math.inf, 1000.0, 999.0])
    expected = F.softmax(torch.from_numpy(scores), dim=0).numpy()
    for place in range(4):
        entry = softmax_entry("P", scores, place, labels="abcd")
        assert entry.value == pytest.approx(expected[place], abs=1e-12) and entry.terms is not None
        np.testing.assert_allclose(entry.terms[:, -1], expected, atol=1e-12)


def test_a_model_that_computes_something_else_has_no_steps(tmp_path: Path) -> None:
    classifier = Predictor(make_checkpoint(tmp_path / "changed", pooling="mean"))
    model = classifier.checkpoint.model
    walk_through(classifier, TEXTS[0])
    changes: dict[str, tuple[torch.nn.Module, Callable[..., torch.Tensor]]] = {
        "no tap 'pool.pattern'": (model.pool, lambda x, real: x.amax(dim=1)),
        "in “Pooling: weights”": (model.pool, lambda x, real: model.pool.pattern(x[..., 0].softmax(-1)) @ x[0]),
        "in “Queries” of layer 2": (
            model.layers[1].norm_attn,
            lambda x, unchanged=model.layers[1].norm_attn.forward: unchanged(x) + 1,
        ),
    }
    for problem, (module, forward) in changes.items():
        module.forward = forward
        with pytest.raises(TraceError, match=problem):
            walk_through(classifier, TEXTS[0])
        del module.forward


def test_the_code_of_a_step_is_the_whole_function_if_its_line_has_changed() -> None:
    whole = source_of(Pooling.pool)
    assert source_of(Pooling.pool, "a line that is not there") == source_of(Pooling.pool, "x[:, 0]", "nor this")
    assert source_of(Pooling.pool, "a line that is not there").code == whole.code
    assert source_of(Pooling.pool, "x[:, 0]").code == "return x[:, 0]  # B D"
