from dataclasses import replace
from pathlib import Path

import pytest

from tests.app.drawn import chart, figures_of, html_of, open_page, says
from tests.conftest import TEXTS, make_checkpoint, with_token_counts
from txcls.checkpoint.checkpoint import save_checkpoint
from txcls.checkpoint.load import load_checkpoint
from txcls.config import DataConfig
from txcls.data.datasets import examples_for
from txcls.data.generated.repeated_word import CLASSES
from txcls.evaluation.compare import compare_checkpoints


@pytest.mark.parametrize("page", ["classify", "attention", "positions"])
def test_doubts_stand_at_the_answer(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = with_token_counts(make_checkpoint(tmp_path / "counted", max_length=8))
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(tmp_path))
    assert checkpoint.token_counts is not None
    other = html_of(open_page(page, checkpoint="counted", text="שלום עולם"))
    assert "Unusual for this model: may be wrong." in other and "Only the first" not in other
    long = html_of(open_page(page, checkpoint="counted", text=f"{TEXTS[1]} {TEXTS[5]}"))
    assert "Only the first 8 tokens were read." in long and "Unusual" not in long


def test_the_first_text_fits_the_data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, data in (("first", "ag_news"), ("other", "imdb")):
        checkpoint = make_checkpoint(tmp_path / name)
        config = checkpoint.config.model_copy(update={"data": DataConfig(dataset=data)})
        save_checkpoint(replace(checkpoint, config=config))
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(tmp_path))
    app = open_page("classify", checkpoint="first")
    app.selectbox(key="checkpoint_box").set_value("other").run()
    assert app.text_area[0].value == examples_for("imdb")[0].text == app.query_params["text"]
    app.text_area[0].set_value("my own words").run()
    app.selectbox(key="checkpoint_box").set_value("first").run()
    assert app.text_area[0].value == "my own words"


def test_fewer_classes_leave_an_other_bar_that_completes_one_hundred_percent() -> None:
    app = open_page("classify", k="2")
    bars = chart(app, "chart_bars").figure["data"][0]
    assert [name.strip() for name in bars["customdata"]][2] == "2 others"
    assert len(bars["x"]) == 3 and sum(bars["x"]) == pytest.approx(1.0)


def test_damaged_second_checkpoint_is_named_not_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_checkpoint(tmp_path / "good")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{}")
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(tmp_path))
    app = open_page("classify", checkpoint="good", versus="broken")
    assert any("broken" in element.value and "is not listed" in element.value for element in app.caption)
    assert "There is no checkpoint “broken”" in app.warning[0].value and figures_of(app)
    app.run()
    assert "There is no checkpoint “broken”" in app.warning[0].value, "a second run of the page took the note away"


def test_two_checkpoints_are_compared_on_the_same_test_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, data in (("one", "repeated_word"), ("two", "repeated_word"), ("c", "imdb")):
        checkpoint = make_checkpoint(tmp_path / name, classes=CLASSES)
        config = checkpoint.config.model_copy(update={"data": DataConfig(dataset=data), "title": ""})
        save_checkpoint(replace(checkpoint, config=config))
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(tmp_path))
    app = open_page("classify", checkpoint="one", versus="two", text="river stone lamp key river")
    app.session_state["same_rows"] = True
    app.run()
    rows = compare_checkpoints(*(load_checkpoint(tmp_path / name) for name in ("one", "two")))
    for cells in rows.table:
        assert says(app.markdown, f"| {' | '.join(cells)} |")
    app.selectbox(key="versus_box").set_value("c").run()
    assert says(app.info, "were trained on different data")
