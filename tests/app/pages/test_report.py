from pathlib import Path

import pytest

from tests.app.drawn import body_text, charts_of, open_page
from tests.app.shell.test_charts import described
from tests.app.tiny import PLAIN
from tests.conftest import make_checkpoint, measured_on_texts
from txcls.app.shell import checkpoints


def test_the_stored_figures_are_shown_and_the_command_for_more_is_named() -> None:
    app = open_page("report", checkpoint=PLAIN, section="numbers")
    assert [element.value for element in app.metric] == ["92.5\u00a0%"]
    assert all(f"**{value}**" in body_text(app) for value in ("92.5\u00a0%", "92.0\u00a0%", "1.0\u00a0%", "0.300"))
    assert {drawing.key for drawing in charts_of(app)} == {"chart_confusion"}
    app.segmented_control(key="section").set_value("training").run()
    assert {drawing.key for drawing in charts_of(app)} == {"chart_training_report", "chart_confusion"}
    app.segmented_control(key="section").set_value("numbers").run()
    assert f"`python -m txcls report {PLAIN} --out report.html`" in body_text(app)


def test_every_chart_has_a_description(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(tmp_path))
    measured_on_texts(make_checkpoint(tmp_path / "measured"))
    app = open_page("report", section="confidence")
    assert app.metric[0].label == "Accuracy on 8 validation texts"
    charts = charts_of(app)
    assert {drawing.key for drawing in charts} >= {"chart_confusion", "chart_reliability"}
    for one in charts:
        described(one)


def test_a_class_that_is_never_predicted_has_a_dash_and_the_most_confused_classes_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checkpoint = checkpoints.classifier(checkpoints.source(PLAIN)).checkpoint
    confusion = [[10, 0, 0, 0], [10, 0, 0, 0], [0, 0, 10, 0], [0, 0, 0, 10]]
    monkeypatch.setitem(checkpoint.metrics["test"], "confusion", confusion)
    app = open_page("report", checkpoint=PLAIN, section="classes")
    assert body_text(app).count(" – |") == 1
    assert "Most often confused: **World** and **Sports**, 10 of" in body_text(app)
    app.segmented_control(key="section").set_value("pairs").run()
    assert "| World / Sports | 0 | 10 | 50.0\u00a0% |" in body_text(app)
