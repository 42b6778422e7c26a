"""The page Class lens."""

import pytest

from tests.app.drawn import chart, html_of, open_page, words_of
from tests.app.tiny import PLAIN
from txcls.inspection.lens import class_lens
from txcls.predictor import Predictor

TEXT = "banks signed a deal after the election"


def test_lens_prints_the_librarys_numbers_and_says_that_it_is_approximate() -> None:
    app = open_page("lens", text=TEXT)
    lens = class_lens(Predictor.load(PLAIN), TEXT)
    shown = html_of(app)
    for state, row in zip(lens.states, lens.probabilities, strict=True):
        best = Predictor.load(PLAIN).classes[int(row.argmax())]
        assert f"<div>{state}</div><b>{best}</b><div>{row.max():.1%}</div>".replace("%", " %") in shown
    words = words_of(app)
    assert "**Approximate**" in words
    for length in lens.lengths.mean(axis=1):
        assert f"**{length:.1f}**" in words
    bars = chart(app, "chart_shares").figure["data"][1]["text"]
    mean = [100 * float(one) for one in lens.shares @ lens.weights]
    assert [float(one.removesuffix(" %").replace("−", "-")) for one in bars] == pytest.approx(mean, abs=0.0501)
