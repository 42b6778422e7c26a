"""The Explanation page: every number agrees with the library."""

import numpy as np
import pytest

from tests.app.drawn import body_text, chart, figures_of, html_of, open_page
from tests.app.tiny import PLAIN
from tests.conftest import TEXTS
from txcls.app.shell import cached_results
from txcls.checkpoint.checkpoint import save_checkpoint
from txcls.inference.predictor import Predictor
from txcls.inspection.attribution import METHODS, SIGNED, deletion_curves, explain

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


def test_a_slide_shows_the_deletion_curves_of_the_first_methods() -> None:
    app = open_page("explanation", text=TEXT, mode="lecture")
    classifier = Predictor.load(PLAIN)
    curves = deletion_curves(classifier, TEXT, explain(classifier, TEXT).scores)
    names = [trace.get("name") for trace in chart(app, "chart_deletion").figure["data"]]
    assert names[2:] == ["random (10 orders; band: their range)", *(METHODS[name] for name in cached_results.FIRST)]
    html = html_of(app)
    for area in (*curves.areas.values(), *curves.areas_by_magnitude.values(), curves.random_area):
        assert f"<td>{area:.3f}</td>" in html
    n_larger = sum(np.trapezoid(order, curves.shares) > curves.areas["rollout"] for order in curves.random)
    assert f"sooner than {n_larger} of 10 random orders" in body_text(app)


def test_stored_averages_are_shown_as_bars(measured: Predictor) -> None:
    html = html_of(open_page("explanation", text=TEXTS[0]))
    stored = measured.checkpoint.metrics["explanations"]
    shown = [stored["areas"][method] for method in cached_results.FIRST]
    for area in (*shown, stored["random_area"]):
        assert f'style="width: {100 * area:.1f}%"' in html and f">{area:.0%}<".replace("%", "\u00a0%") in html


def test_all_stored_averages_are_in_a_table_with_what_they_are_compared_by(measured: Predictor) -> None:
    stored = measured.checkpoint.metrics["explanations"]
    intervals = {"by_score": [0.41, 0.48], "by_magnitude": [0.78, 0.95]}
    save_checkpoint(measured.checkpoint.with_metrics(explanations=stored | {"intervals": intervals}))
    app = open_page("explanation", text=TEXTS[0])
    app.session_state["explain_averages"] = True
    app.run()
    html = html_of(app)
    for area in (*stored["areas"].values(), *stored["areas_by_magnitude"].values(), stored["random_area"]):
        assert f"<td>{area:.3f}</td>" in html
    said = app.caption[-1].value.replace("\u00a0", " ")
    assert "41 to 48 % by score, 78 to 95 % by magnitude (95 % intervals)" in said


@pytest.mark.parametrize(
    "rollout, integrated, interval, answer",
    [
        (0.6, 0.1, [0.41, 0.48], "Only partly"),
        (0.6, 0.1, [0.38, 0.52], "Only partly"),
        (0.5, 0.2, [0.4, 1.2], "Unclear"),
        (0.1, 0.05, [0.9, 0.98], "Largely"),
        (0.1, 0.2, [1.0, 1.3], "Largely"),
        (1.1, 0.2, [-0.3, 0.1], "No"),
        (0.8, 1.1, [0.1, 0.2], "Yes"),
    ],
)
def test_the_answer_follows_from_the_probabilities_that_it_names(
    measured: Predictor, rollout: float, integrated: float, interval: list[float], answer: str
) -> None:
    areas = dict.fromkeys(METHODS, 1.2) | {"rollout": rollout, "integrated": integrated}
    stored = {**measured.checkpoint.metrics["explanations"], "areas": areas, "random_area": 1.0}
    save_checkpoint(measured.checkpoint.with_metrics(explanations=stored | {"intervals": {"by_score": interval}}))
    said = body_text(open_page("explanation", text=TEXTS[0])).replace("\u00a0%", "%")
    assert f"**{answer}**: if words are deleted in the order of attention" in said
    assert f"is **{rollout:.0%}** on average; in that of integrated gradients, **{integrated:.0%}**" in said
