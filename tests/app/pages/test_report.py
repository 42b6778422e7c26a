"""The Report page."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.drawn import body_text, charts_of, html_of, open_page, says
from tests.app.shell.test_charts import described
from tests.app.tiny import PLAIN
from tests.conftest import CLASSES, TEXTS, make_checkpoint
from txcls.app.pages.report import compute as compute_report
from txcls.app.pages.report import rows as report_rows
from txcls.app.pages.report.rows import MAX_CARD, MAX_CARDS, MAX_CELL
from txcls.app.shell import checkpoints
from txcls.app.shell.markdown import plain
from txcls.data.types import LabelledTexts
from txcls.evaluation.confusions import words_table
from txcls.evaluation.report import predict_rows
from txcls.evaluation.thresholds import CONFIDENCES, cheapest_policy, coverage_above, make_costs
from txcls.wording import percentage, start_of

ROWS = LabelledTexts(
    [f"{text} {n} " * (1 + 3 * (n % 3)) for n in range(5) for text in TEXTS], [1, 2, 3, 0, 1, 2, 3, 0] * 5, CLASSES
)


@pytest.fixture
def rows_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use `ROWS` as the test and training rows of every checkpoint."""
    monkeypatch.setattr(checkpoints, "test_rows", lambda source: ROWS)
    monkeypatch.setattr(compute_report, "fitted_rows", lambda source: ROWS)
    monkeypatch.setattr(compute_report, "why_no_rows", lambda source: "")


@pytest.fixture
def no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TXCLS_DATA", raising=False)
    monkeypatch.setattr(compute_report, "is_available", lambda name: False)


def test_without_texts_stored_figures_are_shown_and_the_rest_is_explained(no_rows: None) -> None:
    app = open_page("report", checkpoint=PLAIN)
    assert [element.value for element in app.metric] == ["92.5\u00a0%", "92.0\u00a0%", "1.0\u00a0%", "0.300"]
    assert {drawing.key for drawing in charts_of(app)} == {"chart_training_report", "chart_confusion"}
    assert "not on this machine" in body_text(app)
    assert not says(app.subheader, "mistakes")


def mistakes(app: AppTest) -> list[str]:
    (table,) = (element.value for element in app.dataframe if "label's probability" in element.value)
    return [str(text) for text in table["text"]]


def test_mistakes_are_listed_most_confident_first_and_open_in_classify(rows_here: None) -> None:
    app = open_page("report", checkpoint=PLAIN)
    expected = predict_rows(checkpoints.classifier(checkpoints.source(PLAIN)), ROWS).mistakes()
    assert mistakes(app) == [start_of(row.text, limit=MAX_CELL) for row in expected]
    assert any(text.endswith("…") and len(text) <= MAX_CELL + 1 for text in mistakes(app)), "there is no room for more"
    for row in expected[:MAX_CARDS]:  # as on a phone
        assert f"label: <b><bdi>{row.label} {percentage(row.label_probability)}</bdi></b>" in html_of(app)
        assert f">{start_of(row.text, limit=MAX_CARD)}</bdi></p>" in html_of(app)
    app.session_state["_report_open"] = expected[1].text  # set by a click on the row
    app.run()
    assert not app.exception and app.text_area[0].value == expected[1].text


def test_every_chart_has_a_description(rows_here: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(tmp_path))
    make_checkpoint(tmp_path / "unmeasured")
    app = open_page("report")
    assert says(app.subheader, "On 40 test rows")
    charts = charts_of(app)
    assert {drawing.key for drawing in charts} >= {"chart_confusion", "chart_reliability", "chart_groups_by_length"}
    for one in charts:
        described(one)


def test_the_words_behind_each_confusion_are_those_of_the_classified_rows(rows_here: None) -> None:
    app = open_page("report", checkpoint=PLAIN)
    lines, caption = words_table(predict_rows(checkpoints.classifier(checkpoints.source(PLAIN)), ROWS))
    assert caption in body_text(app).replace("\\", "")
    tables = [element.value for element in app.dataframe if "word" in element.value]
    assert [tuple(line) for table in tables for line in table.to_numpy()] == lines


def test_a_class_that_is_never_predicted_has_a_dash_and_a_phone_gets_narrow_tables(
    rows_here: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [("Science & Technology", "Business", "merger", "12 of 30 (40.0 %)", "3 of 160 (1.9 %)")]
    monkeypatch.setattr(report_rows, "words_table", lambda predictions: (lines, "caption"))
    checkpoint = checkpoints.classifier(checkpoints.source(PLAIN)).checkpoint
    confusion = [[10, 0, 0, 0], [10, 0, 0, 0], [0, 0, 10, 0], [0, 0, 0, 10]]
    monkeypatch.setitem(checkpoint.metrics["test"], "confusion", confusion)
    app = open_page("report", checkpoint=PLAIN)
    (classes,) = (element for element in app.dataframe if "precision" in element.value)
    assert classes.proto.placeholder == "–" and classes.value["precision"].isna().tolist().count(True) == 1
    assert html_of(app).count("<td><bdi>–</bdi></td>") == 1, "on a phone"
    assert "<bdi>Science &amp; Technology</bdi><br><bdi>→ Business:</bdi><br><bdi>“merger”</bdi>" in html_of(app)
    assert "<bdi>12 of 30 (40.0 %)</bdi><br><bdi>3 of 160 (1.9 %)</bdi>" in html_of(app)
    assert "Hover" not in body_text(app)


def test_the_share_answered_above_each_threshold_follows_the_slider_and_stands_in_a_table(rows_here: None) -> None:
    app = open_page("report", checkpoint=PLAIN)
    predictions = predict_rows(checkpoints.classifier(checkpoints.source(PLAIN)), ROWS)
    app.select_slider(key="report_confidence").set_value(0.5).run()
    text = body_text(app).replace("\\", "")
    assert str(coverage_above(predictions, 0.5)) in text
    for confidence in CONFIDENCES:
        assert " | ".join(coverage_above(predictions, confidence).cells) in text


def test_the_cheapest_threshold_follows_the_costs(rows_here: None) -> None:
    app = open_page("report", checkpoint=PLAIN)
    app.number_input(key="report_cost_human").set_value(4.0).run()
    app.number_input(key="report_cost_error").set_value(5.0).run()
    assert not app.exception
    predictions = predict_rows(checkpoints.classifier(checkpoints.source(PLAIN)), ROWS)
    cheapest = cheapest_policy(predictions, make_costs(CLASSES, error=5, human=4))
    assert str(cheapest) in body_text(app).replace("\\", "")


def test_the_linear_baseline_is_fitted_on_request(rows_here: None) -> None:
    app = open_page("report", checkpoint=PLAIN)
    app.button(key="report_baseline").click().run()
    assert not app.exception
    text = body_text(app).replace("\\", "")
    assert f"the linear baseline, fitted to {len(ROWS)} rows, 100.0\u00a0%" in text, "rows that it was fitted to"


def test_doubtful_labels_are_offered_for_correction(rows_here: None) -> None:
    app = open_page("report", checkpoint=PLAIN)
    app.button(key="report_doubtful").click().run()
    assert not app.exception
    predictions = compute_report.on_test_rows(checkpoints.source(PLAIN)).predictions
    assert predictions is not None
    check = compute_report.check_row_labels(
        predictions, was_trained_on_rows=False, which="test rows", on_fold=lambda done, total: None
    )
    assert "of 40 labels with high confidence" in check.sentence and plain(check.sentence) in body_text(app)
