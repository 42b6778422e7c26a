import json
import re
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st

from txcls.figures import (
    attention_arcs,
    attention_map,
    choose_arcs,
    colours,
    label,
    percent,
    pooling_bars,
    surprisal_bars,
    token_bars,
    visible,
)
from txcls.figures.colours import CLASSES, CLASSES_ON_DARK, DIVERGING, DIVERGING_ON_DARK
from txcls.web import assemble

ODD_TOKENS = ["<b>bold</b>", "&amp;", "\x00", "\ud800", "שלום", "🦊", "the", "the", "x" * 500, ""]
FIGURES: dict[str, Callable[[int], go.Figure]] = {
    "map": lambda n: attention_map(np.full((n, n), 1 / n), ODD_TOKENS[:n]),
    "arcs": lambda n: attention_arcs(np.full((n, n), 1 / n), ODD_TOKENS[:n], choose_arcs(np.full((n, n), 1 / n))),
    "pooling": lambda n: pooling_bars(np.full(n, 1 / n), ODD_TOKENS[:n]),
    "surprisal": lambda n: surprisal_bars(np.arange(n, dtype=float), ODD_TOKENS[:n], mean=2.0),
    "tokens": lambda n: token_bars(ODD_TOKENS[:n], [0.05] * n, other=(3, 0.5), filtered=[0.1] * n),
}


@pytest.mark.parametrize("n", [1, 2, 10])
@pytest.mark.parametrize("name", FIGURES)
def test_odd_and_repeated_tokens_are_drawn_apart_and_without_markup(name: str, n: int) -> None:
    figure = FIGURES[name](n)
    sent = figure.to_json()
    sent.encode("utf-8")
    json.loads(sent)
    assert "<b>bold" not in sent
    if name not in ("arcs", "tokens"):  # these have a numeric axis
        assert len(set(figure.data[0].x)) == n


@given(st.text(st.characters(codec=None)))
def test_any_token_becomes_a_label_without_markup(text: str) -> None:
    written = label(text)
    written.encode()
    visible(text).encode()
    assert "<" not in written and ">" not in written
    assert not any(ord(character) < 32 for character in written)


@pytest.mark.parametrize(
    "probability, text",
    [
        (1.0, "100.0\u00a0%"),
        (0.9999, "&gt;\u00a099.9\u00a0%"),
        (0.0001, "&lt;\u00a00.1\u00a0%"),
        (0.931, "93.1\u00a0%"),
    ],
)
def test_percentages_never_round_to_certainty(probability: float, text: str) -> None:
    assert percent(probability) == text


# Machado, Oliveira & Fernandes 2009, "A physiologically-based model for simulation of color vision deficiency",
# severity 1.0, applied to linear RGB: https://www.inf.ufrgs.br/~oliveira/pubs_files/CVD_Simulation/CVD_Simulation.html
VISION = {
    "common": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
LEAST_DIFFERENCE, LEAST_DIFFERENCE_OF_FOUR = 20.0, 34.0
"""In CIELAB (CIE 1976), where 2.3 is just noticeable; the first four colours serve classifiers with few classes."""
PALETTES = {"#ffffff": CLASSES, "#12161b": CLASSES_ON_DARK}
LEAST_CONTRAST = {"#ffffff": 2.4, "#12161b": 4.0}
"""Contrast ratio (WCAG 2) to the page's background in the light and the dark theme; names stand beside the colours."""


def linear_rgb(colour: str) -> np.ndarray:
    """sRGB, IEC 61966-2-1."""
    encoded = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    return np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)


def cielab(linear: np.ndarray) -> np.ndarray:
    """CIELAB under D65 of a colour in linear RGB."""
    to_xyz = np.array(
        [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    )
    relative = to_xyz @ np.clip(linear, 0, 1) / np.array([0.95047, 1.0, 1.08883])
    x, y, z = np.where(relative > (6 / 29) ** 3, np.cbrt(relative), relative / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("ground", PALETTES)
@pytest.mark.parametrize("kind", VISION)
def test_classes_differ_in_colour_for_every_kind_of_colour_vision(kind: str, ground: str) -> None:
    perceived = [cielab(VISION[kind] @ linear_rgb(colour)) for colour in PALETTES[ground]]
    for a, b in combinations(range(len(perceived)), 2):
        least = LEAST_DIFFERENCE_OF_FOUR if b < 4 else LEAST_DIFFERENCE
        assert np.linalg.norm(perceived[a] - perceived[b]) >= least, (a, b)


@pytest.mark.parametrize("ground", LEAST_CONTRAST)
def test_class_colours_stand_out_from_the_page_in_both_themes(ground: str) -> None:
    def luminance(colour: str) -> float:
        return float(linear_rgb(colour) @ [0.2126, 0.7152, 0.0722]) + 0.05

    for colour in PALETTES[ground]:
        dark, light = sorted((luminance(colour), luminance(ground)))
        assert light / dark >= LEAST_CONTRAST[ground], colour


def test_colours_are_defined_in_one_place() -> None:
    package = Path(colours.__file__).parents[1]
    defined = {colour.lower() for colour in re.findall("#[0-9A-Fa-f]{6}", Path(colours.__file__).read_text("utf-8"))}
    files = [file for kind in ("py", "js", "css", "html") for file in package.rglob(f"*.{kind}")]
    again = {
        f"{file.name}: {colour}"
        for file in files
        if file != Path(colours.__file__)
        for colour in re.findall(r"#[0-9A-Fa-f]{6}\b", file.read_text("utf-8"))
        if colour.lower() in defined
    }
    assert not again
    assert json.dumps(CLASSES) in assemble.script("picture/colour_scales")


@pytest.mark.parametrize("scale", [DIVERGING, DIVERGING_ON_DARK])
@pytest.mark.parametrize("kind", VISION)
def test_gains_and_losses_differ_for_every_kind_of_colour_vision(kind: str, scale: tuple[str, ...]) -> None:
    less, more = (cielab(VISION[kind] @ linear_rgb(colour)) for colour in (scale[0], scale[-1]))
    assert np.linalg.norm(less - more) > LEAST_DIFFERENCE_OF_FOUR
