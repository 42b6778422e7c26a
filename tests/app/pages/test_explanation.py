"""The Explanation page: every number agrees with the library."""

import numpy as np
import pytest

from tests.app.drawn import body_text, chart, html_of, numbers, open_page
from tests.app.tiny import PLAIN
from tests.conftest import TEXTS
from txcls.checkpoint.card import METHODS
from txcls.inference.predictor import Predictor
from txcls.inspection.attribution import deletion_curves, explain, top_overlaps

TEXT = "banks signed a deal after the election"


@pytest.mark.parametrize("target", ["logit", "probability"])
def test_scores_curves_and_errors_are_the_librarys(target: str) -> None:
    app = open_page("explanation", text=TEXT)
    app.segmented_control(key="explain_target").set_value(target).run()
    app = open_page("explanation", **dict(app.query_params))  # the same view opened by a link
    assert app.segmented_control(key="explain_target").value == target
    explanation = explain(Predictor.load(PLAIN), TEXT, target=target)  # type: ignore[arg-type]
    html = html_of(app)
    for name in METHODS:
        assert METHODS[name] in html
        for score in explanation.scores[name]:
            sign = "+" if name in ("gradient", "integrated", "leave_one_out") else ""
            assert f"<td>{score:{sign}.4f}</td>".replace("-", "−") in html
    curves = deletion_curves(Predictor.load(PLAIN), TEXT, explanation.scores)
    assert curves.areas_by_magnitude["integrated"] != curves.areas["integrated"]
    for area in (*curves.areas.values(), *curves.areas_by_magnitude.values(), curves.random_area):
        assert f"<td>{area:.3f}</td>" in html
    overlaps = chart(app, "chart_overlaps").figure["data"][0]["z"]
    np.testing.assert_allclose(numbers(overlaps), top_overlaps(explanation.scores), atol=1e-6)
    words = body_text(app)
    assert f"**{explanation.integrated.completeness_error:.4f}**" in words
    assert f"{explanation.integrated.value:.4f} for this text" in words
    assert f"{explanation.integrated.baseline_value:.4f} for the baseline" in words
    assert "Jain & Wallace 2019" in words and "Wiegreffe & Pinter 2019" in words and "recurrent" in words


def test_stored_averages_are_shown(measured: Predictor) -> None:
    html = html_of(open_page("explanation", text=TEXTS[0]))
    stored = measured.checkpoint.metrics["explanations"]
    for area in (*stored["areas"].values(), *stored["areas_by_magnitude"].values(), stored["random_area"]):
        assert f"<td>{area:.3f}</td>" in html
    assert "pooling" in stored["areas"] and "<td>Pooling attention</td>" in html
