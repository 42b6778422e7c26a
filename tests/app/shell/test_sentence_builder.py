"""The menu that builds a sentence of `who_won`."""

from pathlib import Path

import pytest

from tests.app.drawn import html_of, open_page
from tests.app.reports import save_reports_model


def test_select_boxes_write_a_sentence_of_the_grammar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(tmp_path))
    save_reports_model(tmp_path / "who_won")
    app = open_page("classify", checkpoint="who_won", text="anything")
    for name, value, expected in (
        ("winner", "United", "United beat City."),
        ("main", "passive", "City were beaten by United."),
        ("loser", "Albion", "Albion were beaten by United."),
        ("first", "lost to", "Albion, who lost to Athletic last week, were beaten by United."),
        ("second", "whom", "Albion, who lost to Athletic last week, were beaten by United, whom City beat last week."),
        ("first", "", "Albion were beaten by United, whom City beat last week."),
        ("second", "", "Albion were beaten by United."),
        ("main", "inverse", "Albion lost to United."),
        ("ending", "at home", "Albion lost to United at home."),
        ("winner", "Albion", "Athletic lost to Albion at home."),
    ):
        app.selectbox(key=f"report_{name}").set_value(value).run()
        assert not app.exception
        assert app.text_area[0].value == app.query_params["text"] == expected, (name, value)
    app.button(key="report_exchange").click().run()
    assert app.text_area[0].value == "Albion lost to Athletic at home."
    assert "txcls-answer" in html_of(app)
