"""The walk through the forward pass: its numbers are the model's, its arithmetic comes out, its code stands there."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.conftest import TEXTS, make_checkpoint
from txcls.errors import TraceError
from txcls.inspection.walk import SYMBOLS, Walk, WalkStep, walk_through
from txcls.inspection.walk.arithmetic import number
from txcls.predictor import Predictor

ROOT = Path(__file__).parents[3]
RECIPES: dict[str, dict[str, object]] = {
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
SOME_TEXTS = (TEXTS[0], "bank", "zyzzyva qwertz", "the bank " * 30)


def walks(tmp_path: Path, recipe: str) -> list[tuple[Predictor, str, Walk]]:
    classifier = Predictor(make_checkpoint(tmp_path / "tiny", **RECIPES[recipe]))
    return [(classifier, text, walk_through(classifier, text)) for text in SOME_TEXTS]


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_arithmetic_of_every_number_comes_to_that_number(tmp_path: Path, recipe: str) -> None:
    random = np.random.default_rng(0)
    for _, _, walk in walks(tmp_path, recipe):
        for step in walk.steps:
            if step.values is None:
                continue
            n_heads, n_rows, n_columns = step.values.shape
            for _ in range(12):
                head, row, column = (int(random.integers(n)) for n in (n_heads, n_rows, n_columns))
                made, shown = step.explain(row, column, head=head), float(step.cells(head)[row, column])
                assert made.value == pytest.approx(shown, abs=2e-5, rel=1e-5), (step.name, head, row, column)
                assert made.lines[-1].endswith(number(made.value))
                if made.terms is not None:
                    assert made.terms.shape == (len(made.labels), len(made.headers))


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_walk_ends_at_the_answer_that_predict_gives(tmp_path: Path, recipe: str) -> None:
    for classifier, text, walk in walks(tmp_path, recipe):
        [plain] = classifier.predict([text])
        shares = dict(zip(classifier.classes, walk.steps[-1].cells()[:, 0], strict=True))
        assert shares == pytest.approx({one.label: one.probability for one in plain.ranked}, abs=1e-6)
        best = walk.steps[walk.find("logits", 0)].question()
        assert best is not None and best.options[best.answer] == plain.label


@pytest.mark.parametrize("recipe", RECIPES)
def test_shapes_are_those_of_the_letters_and_questions_have_one_right_answer(tmp_path: Path, recipe: str) -> None:
    for _, _, walk in walks(tmp_path, recipe):
        names = [(step.name, step.layer) for step in walk.steps]
        assert len(set(names)) == len(names)
        titles = {step.title for step in walk.steps}
        for place, step in enumerate(walk.steps):
            assert walk.find(step.name, step.layer or 0) == place
            assert set(step.reads) <= titles and step.says and step.code
            for head in range(walk.sizes["H"]):
                question = step.question(head=head)
                if question is not None:
                    assert 0 <= question.answer < len(question.options) == len(set(question.options)) > 1
                    assert question.because
            if step.values is None:
                with pytest.raises(ValueError, match="has no numbers"):
                    step.cells()
                continue
            assert step.rows is not None and step.columns is not None
            assert step.cells().shape == (step.rows.size, step.columns.size)
            assert (step.rows.size, step.columns.size) == (
                walk.sizes[step.rows.letter],
                walk.sizes[step.columns.letter],
            )
            assert len(step.values) == (walk.sizes["H"] if step.by_head else 1)
            if step.quantity != "value":
                np.testing.assert_allclose(step.values.sum(1 if step.columns.what == "text" else 2), 1.0, atol=1e-5)
        with pytest.raises(KeyError):
            walk.find("no such step", 0)


def left_sides(step: WalkStep) -> set[str]:
    """The symbols, without their indices, that the step's formula and arithmetic define."""
    lines = [] if step.values is None else step.explain(0, 0).lines
    defined = [*step.formula.split(r", \quad"), *(line for line in lines if not line.startswith("&"))]
    sides = {re.split(r"(?<!\\)&?=|\\leftarrow", line)[0].strip(" &") for line in defined if line}
    return {re.sub(r"_(\w|\{[^{}]*\})$", "", side) for side in sides}


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_symbol_has_one_meaning(tmp_path: Path, recipe: str) -> None:
    """A step defines its own symbol alone, but for a norm's mean and variance and what calibration starts from."""
    shared = {"x": {"sum", "add_attn", "add_ff"}, "y": {"norm_attn", "norm_ff", "norm"}}
    helpers = {"y": {r"\mu", r"\sigma^2"}, "P'": {r"-\ln P", r"\ell'"}}
    names: dict[str, set[str]] = {}
    for _, _, walk in walks(tmp_path, recipe):
        for step in walk.steps:
            assert left_sides(step) - helpers.get(step.symbol, set()) == ({step.symbol} if step.symbol else set())
            if step.symbol:
                names.setdefault(step.symbol, set()).add(step.name)
    assert set(names) <= set(SYMBOLS)
    assert all(len(found - shared.get(symbol, set())) <= (symbol not in shared) for symbol, found in names.items())


def of(walk: Walk, name: str, layer: int = 0) -> WalkStep:
    return walk.steps[walk.find(name, layer)]


@pytest.mark.parametrize("layer", [0, 1])
def test_a_layer_is_torchs_own_encoder_layer(classifier: Predictor, layer: int) -> None:
    """`nn.TransformerEncoderLayer` with the same weights, given what the walk says went in, gives what it says came
    out, and its attention the same pattern."""
    walk = walk_through(classifier, TEXTS[1])
    block = classifier.checkpoint.model.layers[layer]
    theirs = torch.nn.TransformerEncoderLayer(16, 2, 32, activation="gelu", norm_first=True, batch_first=True).eval()
    with torch.no_grad():
        three = (block.attn.query, block.attn.key, block.attn.value)
        theirs.self_attn.in_proj_weight.copy_(torch.cat([one.weight for one in three]))
        theirs.self_attn.in_proj_bias.copy_(torch.cat([one.bias for one in three]))
        for mine, other in (
            (block.attn.output, theirs.self_attn.out_proj),
            (block.norm_attn, theirs.norm1),
            (block.norm_ff, theirs.norm2),
            (block.ff.expand, theirs.linear1),
            (block.ff.contract, theirs.linear2),
        ):
            other.weight.copy_(mine.weight)
            other.bias.copy_(mine.bias)
        before = of(walk, "sum") if layer == 0 else of(walk, "add_ff", layer - 1)
        given = torch.from_numpy(before.cells())[None]
        np.testing.assert_allclose(of(walk, "add_ff", layer).cells(), theirs(given)[0].numpy(), atol=1e-5)
        normed = theirs.norm1(given)
        np.testing.assert_allclose(of(walk, "norm_attn", layer).cells(), normed[0].numpy(), atol=1e-5)
        written, pattern = theirs.self_attn(normed, normed, normed, average_attn_weights=False)
    softmax, project = of(walk, "softmax", layer), of(walk, "project", layer)
    assert softmax.values is not None
    np.testing.assert_allclose(softmax.values, pattern[0].numpy(), atol=1e-6)
    np.testing.assert_allclose(project.cells(), written[0].numpy(), atol=1e-5)


def test_masked_scores_are_minus_infinity_and_the_unmasked_ones_are_shown_before(tmp_path: Path) -> None:
    classifier = Predictor(make_checkpoint(tmp_path / "tiny", causal=True))
    walk = walk_through(classifier, TEXTS[0])
    before, after = of(walk, "scores").cells(1), of(walk, "mask").cells(1)
    later = np.triu(np.ones_like(after, dtype=bool), 1)
    assert np.isfinite(before).all() and np.isneginf(after[later]).all()
    np.testing.assert_array_equal(before[~later], after[~later])
    assert of(walk, "mask").explain(0, 1, head=1).value == -math.inf
    n = len(walk.traced.tokens)
    question = of(walk, "mask").question()
    assert question is not None and question.options[question.answer] == str(n * (n - 1) // 2)


def test_what_a_recipe_leaves_out_is_no_step(tmp_path: Path) -> None:
    plain = {step.name for step in walk_through(Predictor(make_checkpoint(tmp_path / "a")), "bank").steps}
    bare = Predictor(make_checkpoint(tmp_path / "b", positions="none", norm="post", pooling="first"))
    left_out = {"positions", "norm", "pool_weights"}
    assert left_out <= plain and not left_out & {step.name for step in walk_through(bare, "bank").steps}


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_line_of_code_stands_in_the_source_where_the_step_says(tmp_path: Path, recipe: str) -> None:
    _, _, walk = walks(tmp_path, recipe)[0]
    for step in walk.steps:
        for code in step.code:
            lines = (ROOT / code.file).read_text(encoding="utf-8").splitlines()
            quoted = code.code.splitlines()
            there = lines[code.line - 1 : code.line - 1 + len(quoted)]
            assert [line.strip() for line in there] == [line.strip() for line in quoted], step.name


def test_cells_that_are_not_there_are_refused(classifier: Predictor) -> None:
    step = of(walk_through(classifier, "bank"), "scores")
    for row, column in ((1, 0), (0, 1), (-1, 0)):
        with pytest.raises(IndexError, match="scores has 1 by 1"):
            step.explain(row, column)


@pytest.mark.parametrize("text", ["", "  \n "])
def test_a_text_without_words_has_no_walk(classifier: Predictor, text: str) -> None:
    with pytest.raises(TraceError, match="no word in this text"):
        walk_through(classifier, text)
