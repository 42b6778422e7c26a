"""The Explanation page: every number agrees with the library."""

import re

import numpy as np
import pytest

from tests.app.drawn import body_text, chart, html_of, numbers, open_page
from tests.app.tiny import PLAIN
from tests.conftest import TEXTS
from txcls.checkpoint.card import METHODS
from txcls.checkpoint.checkpoint import save_checkpoint
from txcls.inference.predictor import Predictor
from txcls.inspection.attribution import deletion_curves, explain, n_top, top_overlaps

TEXT = "banks signed a deal after the election"


@pytest.mark.parametrize("target", ["logit", "probability"])
def test_scores_curves_and_errors_are_the_librarys(target: str) -> None:
    app = open_page("explanation", text=TEXT)
    app.segmented_control(key="explain_target").set_value(target).run()
    app = open_page("explanation", **dict(app.query_params))  # the same view opened by a link
    assert app.segmented_control(key="explain_target").value == target
    explanation = explain(Predictor.load(PLAIN), TEXT, target=target)  # type: ignore[arg-type]
    html = html_of(app)
    assert f"<small>How much the {target} of {explanation.label} falls when" in html
    for name in METHODS:
        assert METHODS[name] in html
        for score in explanation.scores[name]:
            has_sign = name in ("gradient", "integrated", "leave_one_out") and f"{abs(score):.4f}" != "0.0000"
            assert f"<td>{score:{'+' * has_sign}.4f}</td>".replace("-", "−").replace("−0.0000", "0.0000") in html
    curves = deletion_curves(Predictor.load(PLAIN), TEXT, explanation.scores)
    assert curves.areas_by_magnitude["integrated"] != curves.areas["integrated"]
    for area in (*curves.areas.values(), *curves.areas_by_magnitude.values(), curves.random_area):
        assert f"<td>{area:.3f}</td>" in html
    attention = min(curves.areas[name] for name in ("attention", "rollout", "pooling") if name in curves.areas)
    n_larger = sum(np.trapezoid(order, curves.shares) > attention for order in curves.random)
    sentence = f"{attention:.3f}) is smaller than that of {n_larger} of {len(curves.random)} random orders"
    assert sentence in body_text(app)
    overlaps = chart(app, "chart_overlaps").figure["data"][0]["z"]
    np.testing.assert_allclose(numbers(overlaps), top_overlaps(explanation.scores), atol=1e-6)
    words = body_text(app)
    error = f"{explanation.integrated.completeness_error:.4f}"
    assert f"**{'less than 0.0001' if error == '0.0000' else error}**" in words
    assert f"Two random choices of {n_top(len(explanation.words))} from its {len(explanation.words)} tokens" in words
    assert f"{explanation.integrated.value:.4f} for this text" in words
    assert f"{explanation.integrated.baseline_value:.4f} for the baseline" in words
    shown = [
        float(number.replace("−", "-")) for number in re.findall(r"(?:target is|and|sum to) (−?\d+\.\d{4})", words)
    ]
    assert round(shown[1] - shown[0], 4) == shown[2], "the shown numbers add up"
    assert "Jain & Wallace 2019" in words and "Wiegreffe & Pinter 2019" in words and "recurrent" in words


def test_stored_averages_are_shown(measured: Predictor) -> None:
    html = html_of(open_page("explanation", text=TEXTS[0]))
    stored = measured.checkpoint.metrics["explanations"]
    for area in (*stored["areas"].values(), *stored["areas_by_magnitude"].values(), stored["random_area"]):
        assert f"<td>{area:.3f}</td>" in html
    assert "pooling" in stored["areas"] and "<td>Pooling attention</td>" in html


@pytest.mark.parametrize(
    "intervals, by_score, by_magnitude",
    [
        (
            {"by_score": [0.5, 0.7], "by_magnitude": [0.9, 1.3]},
            "62\u00a0% (50 to 70\u00a0%) of what integrated gradients achieves",
            "125\u00a0% (90 to 130\u00a0%) of what leave one out achieves (95 % intervals over texts)",
        ),
        (
            {},
            "62\u00a0% of what integrated gradients achieves",
            "125\u00a0% of what leave one out achieves (no interval was measured)",
        ),
    ],
)
def test_averages_are_compared_in_both_orders(
    measured: Predictor, intervals: dict[str, list[float]], by_score: str, by_magnitude: str
) -> None:
    areas = {"attention": 0.9, "rollout": 0.5, "pooling": 0.8, "gradient": 0.9, "integrated": 0.2, "leave_one_out": 0.4}
    magnitudes = {**areas, "integrated": 0.7, "leave_one_out": 0.6}
    stored = {**measured.checkpoint.metrics["explanations"], "areas": areas, "areas_by_magnitude": magnitudes}
    stored |= {"random_area": 1.0, "intervals": intervals}
    save_checkpoint(measured.checkpoint.with_metrics(explanations=stored))
    words = body_text(open_page("explanation", text=TEXTS[0]))
    assert f"the best of 3 attention methods, achieves, as improvement over a random order, {by_score}" in words
    assert f"by magnitude, the only order that attention has, {by_magnitude}" in words
    partly = "**Only partly**: the words that attention ranks highest matter less than those of integrated gradients."
    assert f"{partly} Averaged over {stored['n']} " in words
    assert "most faithful attention method in the deletion test, with 62\u00a0% of the gain of integrated grad" in words
    assert "gradients over a random order. Last-layer attention shares" in words


@pytest.mark.parametrize(
    "rollout, integrated, interval, answer",
    [
        (0.6, 0.1, [0.41, 0.48], "**Only partly**: the words that attention ranks highest matter less than half as m"),
        (0.6, 0.1, [0.38, 0.52], "**Only partly**: the words that attention ranks highest matter less than those of"),
        (0.5, 0.2, [0.4, 1.2], "**Unclear**: the words that attention ranks highest matter perhaps less than those"),
        (0.1, 0.05, [0.9, 0.98], "**Largely**: the words that attention ranks highest matter almost as much as those"),
        (0.1, 0.2, [1.0, 1.3], "**Largely**: the words that attention ranks highest matter at least as much as those"),
        (1.1, 0.2, [-0.3, 0.1], "**No**: the words that attention ranks highest matter no more than random words."),
        (0.8, 1.1, [0.1, 0.2], "**Yes**: only the words that attention ranks highest matter more than random words."),
    ],
)
def test_the_answer_in_words_follows_from_the_share(
    measured: Predictor, rollout: float, integrated: float, interval: list[float], answer: str
) -> None:
    areas = dict.fromkeys(METHODS, 1.2) | {"rollout": rollout, "integrated": integrated}
    stored = {**measured.checkpoint.metrics["explanations"], "areas": areas, "random_area": 1.0}
    save_checkpoint(measured.checkpoint.with_metrics(explanations=stored | {"intervals": {"by_score": interval}}))
    assert answer in body_text(open_page("explanation", text=TEXTS[0]))
