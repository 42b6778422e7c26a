import numpy as np
import pytest

from tests.app.drawn import body_text, html_of, open_page
from tests.app.tiny import PLAIN
from tests.conftest import TEXTS
from txcls.app.pages.explanation import _judge
from txcls.app.shell import cached_results
from txcls.checkpoint.checkpoint import save_checkpoint
from txcls.inference.predictor import Predictor
from txcls.inspection.attribution import METHODS, SIGNED, delete_until_changed, explain

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
    assert "not measured" in body_text(app).lower()


def test_the_answer_and_the_bars_are_the_numbers_of_words_deleted_until_the_class_changes() -> None:
    app, classifier = open_page("explanation", text=TEXT), Predictor.load(PLAIN)
    scores = explain(classifier, TEXT, methods=cached_results.FIRST).scores
    deletion = delete_until_changed(classifier, TEXT, scores)
    html = html_of(app)
    for count in (*deletion.counts.values(), deletion.random):
        shown = str(count) if count <= deletion.n_words else "never"
        assert f'style="width: {100 * min(count / 7, 1):.1f}%"></i></s><b>{shown}</b>' in html
    best = min(deletion.counts, key=deletion.counts.__getitem__)
    first = explain(classifier, TEXT).words[int(np.argmax(scores[best]))].label
    assert f"(**{first}**" in body_text(app) or "Not shown here" in body_text(app)


@pytest.mark.parametrize("mode", ["", "lecture"])
def test_stored_averages_are_bars_with_intervals_on_demand(measured: Predictor, mode: str) -> None:
    stored = measured.checkpoint.metrics["explanations"]
    intervals = {"by_score": [0.41, 0.48], "by_magnitude": [0.78, 0.95]}
    save_checkpoint(measured.checkpoint.with_metrics(explanations=stored | {"intervals": intervals}))
    app = open_page("explanation", text=TEXTS[0], mode=mode)
    html = html_of(app)
    for area in (*stored["areas"].values(), stored["random_area"]):
        assert f'style="width: {100 * area:.1f}%"' in html and f">{area:.0%}<".replace("%", "\u00a0%") in html
    said = [element.help.replace("\u00a0", " ") for element in app.markdown if "test texts" in element.value]
    assert any("41 to 48 % by score, 78 to 95 % by magnitude" in words for words in said)


@pytest.mark.parametrize(
    "rollout, integrated, interval, answer",
    [
        (0.6, 0.1, [0.38, 0.52], "Only partly"),
        (0.9, 0.1, [0.08, 0.15], "Hardly"),
        (0.5, 0.2, [0.4, 1.2], "Unclear"),
        (0.1, 0.05, [0.9, 0.98], "Largely"),
        (1.1, 0.2, [-0.3, 0.1], "No"),
        (0.8, 1.1, [0.1, 0.2], "Yes"),
    ],
)
def test_the_answer_follows_from_the_numbers(
    rollout: float, integrated: float, interval: list[float], answer: str
) -> None:
    assert _judge({"rollout": rollout, "integrated": integrated}, 1.0, interval) == answer
