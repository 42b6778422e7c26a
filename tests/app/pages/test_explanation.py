"""The Explanation page: every number agrees with the library."""

import numpy as np
import pytest

from tests.app.drawn import body_text, chart, figures_of, html_of, open_page
from tests.app.tiny import PLAIN
from tests.conftest import TEXTS
from txcls.app.shell import cached_results
from txcls.checkpoint.card import METHODS
from txcls.checkpoint.checkpoint import save_checkpoint
from txcls.inference.predictor import Predictor
from txcls.inspection.attribution import SIGNED, deletion_curves, explain

TEXT = "banks signed a deal after the election"


def test_the_page_opens_on_three_methods_and_computes_no_other() -> None:
    app = open_page("explanation", text=TEXT)
    html = html_of(app)
    assert [METHODS[name] in html for name in METHODS] == [True, False, True, True]
    explanation = explain(Predictor.load(PLAIN), TEXT)
    for name in cached_results.FIRST:
        sign = "+" * (name in SIGNED)
        for word, score in zip(explanation.words, explanation.scores[name], strict=True):
            number = f"{score:{sign}.4f}".replace("-", "−").replace("−0.0000", "0.0000").replace("+0.0000", "0.0000")
            assert f'title="{word.label}: {number}"' in html
    assert not figures_of(app) and "not measured" in body_text(app).lower()
    assert len(app.expander) == 2


def test_a_slide_shows_the_deletion_curves_of_all_methods() -> None:
    app = open_page("explanation", text=TEXT, mode="lecture")
    classifier = Predictor.load(PLAIN)
    curves = deletion_curves(classifier, TEXT, explain(classifier, TEXT).scores)
    names = [trace.get("name") for trace in chart(app, "chart_deletion").figure["data"]]
    assert names[2:] == ["random (10 orders)", *METHODS.values()]
    html = html_of(app)
    for area in (*curves.areas.values(), *curves.areas_by_magnitude.values(), curves.random_area):
        assert f"<td>{area:.3f}</td>" in html
    n_larger = sum(np.trapezoid(order, curves.shares) > curves.areas["rollout"] for order in curves.random)
    assert f"sooner than {n_larger} of 10 random orders" in body_text(app)


def test_stored_averages_are_shown_as_bars(measured: Predictor) -> None:
    html = html_of(open_page("explanation", text=TEXTS[0]))
    stored = measured.checkpoint.metrics["explanations"]
    shown = [stored[areas][method] for method in cached_results.FIRST for areas in ("areas", "areas_by_magnitude")]
    for area in (*shown, stored["random_area"]):
        assert f'style="width: {100 * area:.1f}%"' in html and f">{area:.0%}<".replace("%", "\u00a0%") in html


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


def test_a_comparison_says_what_it_is_measured_by(measured: Predictor) -> None:
    areas = dict.fromkeys(METHODS, 0.9) | {"rollout": 0.6, "integrated": 0.1}
    magnitude = areas | {"leave_one_out": 0.05}
    intervals = {"by_score": [0.41, 0.48], "by_magnitude": [0.78, 0.95]}
    stored = {**measured.checkpoint.metrics["explanations"], "areas": areas, "random_area": 1.0, "intervals": intervals}
    save_checkpoint(measured.checkpoint.with_metrics(explanations=stored | {"areas_by_magnitude": magnitude}))
    text = body_text(open_page("explanation", text=TEXTS[0])).replace("\u00a0", " ")
    said = "half as much as those of integrated gradients; with the sign of the scores ignored, less than those of"
    assert f"{said} leave one out." in text
