"""The Class lens page."""

import numpy as np
import pytest

from tests.app.drawn import body_text, chart, html_of, numbers, open_page
from tests.app.tiny import PLAIN
from txcls.inference.predictor import Predictor
from txcls.inspection.lens import class_lens

TEXT = "banks signed a deal after the election"


def test_lens_prints_the_librarys_numbers_and_says_that_it_is_approximate() -> None:
    app = open_page("lens", text=TEXT)
    lens = class_lens(Predictor.load(PLAIN), TEXT)
    html = html_of(app)
    for state, row in zip(lens.states, lens.probabilities, strict=True):
        best = Predictor.load(PLAIN).classes[int(row.argmax())]
        assert f"<div>{state}</div><b>{best}</b><div>{row.max():.1%}</div>".replace("%", "\u00a0%") in html
    words = body_text(app)
    assert "**Approximate**" in words
    for length in lens.norms.mean(axis=1)[[0, -1]]:
        assert f"**{length:.1f}**" in words
    winner, second = np.argsort(-lens.logits)[:2]
    between = lens.contributions[:, :, winner] - lens.contributions[:, :, second]
    for key, expected in (("chart_lengths", lens.norms), ("chart_contribution_map", between)):
        np.testing.assert_allclose(numbers(chart(app, key).figure["data"][0]["z"]), expected, atol=1e-5)
    bars = [float(number.replace("−", "-")) for number in chart(app, "chart_contributions").figure["data"][1]["text"]]
    assert bars == pytest.approx([*between.sum(axis=1), lens.bias[winner] - lens.bias[second]], abs=0.00501)
    lines = {line["name"]: line["line"]["color"] for line in chart(app, "chart_lens").figure["data"]}
    classes = Predictor.load(PLAIN).classes
    first, *_ = chart(app, "chart_contributions").figure["data"][0]["marker"]["color"]
    assert first == lines[classes[winner if bars[0] >= 0 else second]], "a class has one colour on the page"
    assert f"is **{lens.logits[winner] - lens.logits[second]:.2f}** above" in words
