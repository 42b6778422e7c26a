from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.conftest import make_checkpoint
from tests.inspection.plain import Site, Substitute, plain_forward
from tests.inspection.planted import LENGTH, planted
from txcls.inference.predictor import Predictor
from txcls.inspection.patching import Direction, PatchGrid, patch_grid, patch_route

CLEAN, CORRUPTED = "the striker scored twice before half time", "the bank raised twice the report again"


def forward(classifier: Predictor, text: str, *substitute: Substitute) -> Tensor:
    return plain_forward(classifier, classifier.encode(text).ids, *substitute)


def patch(source: dict[Site, Tensor], target: Site, index: tuple[int, ...], site: Site, value: Tensor) -> Tensor:
    """The value at a site; at the site `target`, with the entry at `index` taken from `source`."""
    if site == target:
        value = value.clone()
        value[index] = source[site][index]
    return value


def plain_grid(classifier: Predictor, clean: str, corrupted: str, direction: Direction) -> np.ndarray:
    """The grid of logit differences, computed cell by cell."""
    config = classifier.checkpoint.config.model
    text, source_text = (corrupted, clean) if direction == "denoising" else (clean, corrupted)
    source: dict[Site, Tensor] = {}
    forward(classifier, source_text, lambda site, value: source.setdefault(site, value.clone()))
    logits = [forward(classifier, each) for each in (clean, corrupted)]
    clean_class, corrupted_class = (int(each.argmax()) for each in logits)
    of_clean, of_corrupted = (float(each[clean_class] - each[corrupted_class]) for each in logits)
    sites: list[tuple[Site, int | None]] = [(("embeddings", 0), None)]
    for layer in range(config.n_layers):
        sites += [(("heads", layer), head) for head in range(config.n_heads)]
        sites += [((kind, layer), None) for kind in ("attention", "feed-forward", "stream")]
    grid = np.zeros((len(sites), len(classifier.tokenizer.encode(clean).ids)))
    for row, (site, head) in enumerate(sites):
        for token in range(grid.shape[1]):
            index = (token,) if head is None else (head, token)
            patched = forward(classifier, text, partial(patch, source, site, index))
            of_patched = float(patched[clean_class] - patched[corrupted_class])
            transferred = of_patched - of_corrupted if direction == "denoising" else of_clean - of_patched
            grid[row, token] = transferred / (of_clean - of_corrupted)
    return grid


@pytest.mark.parametrize("direction", ["denoising", "noising"])
@pytest.mark.parametrize("norm, pooling", [("pre", "class_token"), ("post", "mean")])
def test_the_grid_equals_an_independent_forward_pass(
    tmp_path: Path, norm: str, pooling: str, direction: Direction
) -> None:
    classifier = Predictor(make_checkpoint(tmp_path / "model", norm=norm, pooling=pooling))
    with torch.no_grad():  # shift the bias to make the two predictions differ
        logits = [forward(classifier, text) for text in (CLEAN, CORRUPTED)]
        classifier.checkpoint.model.head.bias -= (logits[0] + logits[1]) / 2
    grid = patch_grid(classifier, CLEAN, CORRUPTED, direction=direction)
    expected = plain_grid(classifier, CLEAN, CORRUPTED, direction)
    assert grid.values.shape == expected.shape == (len(grid.parts), len(grid.clean_tokens))
    np.testing.assert_allclose(grid.values, expected, atol=2e-4)


def row(grid: PatchGrid, name: str) -> np.ndarray:
    return grid.values[[part.name for part in grid.parts].index(name)]


@pytest.mark.parametrize("direction", ["denoising", "noising"])
def test_a_known_circuit_is_found(direction: Direction) -> None:
    classifier = planted(reads={3: 1.0}, idle={5: 1.0})
    words = ["start", "gain", "dip", "rise", "dip", "gain", "dip", "gain"]
    clean = " ".join(words)
    corrupted = " ".join("fall" if place == 3 else "dip" if place == 5 else word for place, word in enumerate(words))
    grid = patch_grid(classifier, clean, corrupted, direction=direction)
    only = {token: np.eye(LENGTH)[token] for token in (0, 3)}
    np.testing.assert_allclose(row(grid, "embeddings"), only[3], atol=1e-3)  # token 5 differs, but nothing reads it
    np.testing.assert_allclose(row(grid, "head 1.1"), only[0], atol=1e-3)
    np.testing.assert_allclose(row(grid, "head 1.2"), 0.0, atol=1e-3)
    np.testing.assert_allclose(row(grid, "attention 1"), only[0], atol=1e-3)
    np.testing.assert_allclose(row(grid, "feed-forward 1"), 0.0, atol=1e-3)
    np.testing.assert_allclose(row(grid, "residual after 1"), only[0], atol=1e-3)


@pytest.mark.parametrize("direction", ["denoising", "noising"])
@pytest.mark.parametrize("pooling", ["class_token", "mean"])
def test_the_route_equals_an_independent_forward_pass(tmp_path: Path, pooling: str, direction: Direction) -> None:
    classifier = Predictor(make_checkpoint(tmp_path / "model", norm="pre", pooling=pooling))
    clean, corrupted = "the bank raised its rates", "the club raised its rates"
    with torch.no_grad():
        logits = [forward(classifier, text) for text in (clean, corrupted)]
        classifier.checkpoint.model.head.bias -= (logits[0] + logits[1]) / 2
    route = patch_route(classifier, clean, corrupted, direction=direction)
    text, source_text = (corrupted, clean) if direction == "denoising" else (clean, corrupted)
    source: dict[Site, Tensor] = {}
    forward(classifier, source_text, lambda site, value: source.setdefault(site, value.clone()))
    of = {each: forward(classifier, each) for each in (clean, corrupted)}
    first, second = int(of[clean].argmax()), int(of[corrupted].argmax())

    def difference(logits: Tensor) -> float:
        return float(logits[first] - logits[second])

    whole = difference(of[clean]) - difference(of[corrupted])
    sites: list[Site] = [("embeddings", 0), *(("stream", layer) for layer in range(2))]
    for group, positions in route.tokens.items():
        for n, target in enumerate(sites):
            index = (list(positions),)
            patched = difference(forward(classifier, text, partial(patch, source, target, index)))  # type: ignore[arg-type]
            moved = patched - difference(of[corrupted]) if direction == "denoising" else difference(of[clean]) - patched
            assert route.states[group][n] == pytest.approx(moved / whole, abs=2e-3), (group, target)
    assert sum(len(positions) for positions in route.tokens.values()) == len(classifier.encode(clean).ids)


def test_a_difference_in_the_values_moves_with_the_values_only() -> None:
    classifier = planted(reads={3: 1.0}, idle={5: 1.0})
    clean = "start gain dip rise dip gain dip gain"
    route = patch_route(classifier, clean, clean.replace("rise", "fall"))
    assert route.patterns == pytest.approx(0.0, abs=1e-3) and route.values == pytest.approx(1.0, abs=1e-3)
