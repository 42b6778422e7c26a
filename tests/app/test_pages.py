"""The pages as Streamlit draws them, without a browser."""

import json
import re
from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest

from tests.app.tiny import LEARNED, PLAIN
from tests.conftest import CLASSES, make_checkpoint
from txcls.app.examples import EXAMPLES
from txcls.app.page import QUESTIONS
from txcls.app.state import LONGEST_LINKED_TEXT
from txcls.checkpoint import save_checkpoint

ENTRY = str(Path(__file__).parents[2] / "streamlit_app.py")
CHARTS = ("classify", "attention", "positions", "switchboard", "explanation", "lens")
PAGES = (*CHARTS, "tokens_page", "steps", "whatif", "neighbourhood")

BAD_TEXTS = {
    "empty": "",
    "white space": " \t\n\u3000 ",
    "megabyte": "shares fell in the market after the election. " * 22_000,
    "one long word": "x" * 100_000,
    "only unknown words": "zyzzyva qwertz",
    "emoji": "🦊🎉👩‍👩‍👧‍👦🇪🇺",
    "right to left": "ارتفعت أسعار النفط שלום עולם",
    "cjk": "東京で新しい望遠鏡が公開された",
    "combining": "Z̸̡̛a̷l̶g̵o̴ e\u0301\u0301\u0301",
    "control characters": "shares\x00fell\x07in\x1b[31m the\x7f market\u202e",
    "script": "<script>alert('x')</script> <img src=x onerror=alert(1)> shares & <b>prices</b> fell",
    "markdown": "# **shares** [fell](http://example.com) $x^2$ :red[prices] `a`",
    "only markup": "<p></p><br>",
    "entities": "&lt;script&gt;alert(1)&lt;/script&gt; &#0; &amp;amp;",
}


def open_page(page: str, **params: str) -> AppTest:
    app = AppTest.from_file(ENTRY, default_timeout=60)
    for name, value in params.items():
        app.query_params[name] = value
    if page != "classify":
        app.run()
        app.switch_page(f"txcls/app/{page}.py")
    app.run()
    assert not app.exception, app.exception
    return app


def html_of(app: AppTest) -> str:
    return "\n".join(element.proto.body for element in app.get("html"))


def words_of(app: AppTest) -> str:
    return "\n".join(
        [html_of(app), *(e.value for kind in (app.markdown, app.info, app.warning, app.caption) for e in kind)]
    )


def charts_of(app: AppTest) -> list[dict[str, object]]:
    return [json.loads(element.proto.spec) for element in app.get("plotly_chart")]


@pytest.mark.parametrize("page", PAGES)
def test_page_shows_checkpoint_accuracy_parameters_and_text(page: str) -> None:
    app = open_page(page)
    shown = html_of(app)
    assert PLAIN in shown and "92.5 %" in shown and "parameters" in shown
    assert app.text_area[0].value == EXAMPLES[0].text


@pytest.mark.parametrize("page", CHARTS)
def test_page_has_charts(page: str) -> None:
    assert open_page(page).get("plotly_chart")


@pytest.mark.parametrize("page", PAGES)
def test_every_chart_has_a_description_and_axis_titles_or_labels(page: str) -> None:
    app = open_page(page)
    for element in app.get("plotly_chart"):
        assert len(element.proto.alt) > 20


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("kind", BAD_TEXTS)
def test_bad_text_is_answered_calmly_on_every_page(page: str, kind: str) -> None:
    app = open_page(page)
    app.text_area[0].set_value(BAD_TEXTS[kind]).run()
    assert not app.exception
    assert not app.error
    if kind in ("empty", "white space"):
        assert any("Type a few words" in info.value for info in app.info)
    shown = html_of(app)
    assert "<script>" not in shown and "<img" not in shown
    shown.encode("utf-8")


def test_text_is_shown_as_text() -> None:
    app = open_page("classify")
    app.text_area[0].set_value("<script>alert(1)</script> <b>shares</b> fell").run()
    assert "&lt;script&gt;" in html_of(app)
    assert "<b>shares" not in html_of(app)


def test_unknown_words_and_cut_off_part_are_marked() -> None:
    app = open_page("classify")
    app.text_area[0].set_value("zyzzyva " + "shares fell " * 30).run()
    shown = html_of(app)
    assert "txcls-unknown" in shown and "1 not in the vocabulary" in shown
    assert "txcls-cut" in shown and "stops after 24 tokens" in shown


def test_example_fills_box_and_url() -> None:
    app = open_page("classify")
    app.button(key=f"example_{EXAMPLES[2].title}").click().run()
    assert app.text_area[0].value == EXAMPLES[2].text
    assert app.query_params["text"] == EXAMPLES[2].text


def test_fewer_classes_leave_an_other_bar_that_completes_one_hundred_percent() -> None:
    app = open_page("classify", k="2")
    bars = charts_of(app)[0]["data"][0]
    assert len(bars["text"]) == 3
    assert "2 others" in bars["customdata"][2]


def test_numbers_of_classes_out_of_range_show_what_there_is() -> None:
    for k in ("99", "0", "-3"):
        app = open_page("classify", k=k)
        assert app.get("plotly_chart")


def test_text_too_long_for_a_link_stays_out_of_the_url_and_this_is_said() -> None:
    app = open_page("classify")
    app.text_area[0].set_value("shares " * LONGEST_LINKED_TEXT).run()
    assert "text" not in app.query_params
    assert any("too long" in caption.value for caption in app.caption)


def test_text_and_checkpoint_are_carried_to_every_page() -> None:
    app = open_page("classify")
    app.text_area[0].set_value("banks signed a deal").run()
    app.selectbox(key="checkpoint_box").set_value(LEARNED).run()
    for page in ("attention", "tokens_page", "positions", "classify"):
        app.switch_page(f"txcls/app/{page}.py").run()
        assert not app.exception
        assert app.text_area[0].value == "banks signed a deal"
        assert LEARNED in html_of(app)
        assert app.query_params["text"] == "banks signed a deal"
        assert app.query_params["checkpoint"] == LEARNED


def test_deep_link_opens_the_layer_and_head_it_names() -> None:
    app = open_page("attention", text="banks signed a deal", layer="2", head="2")
    assert any("Layer 2, head 2" in heading.value for heading in app.subheader)
    assert app.text_area[0].value == "banks signed a deal"


def test_layer_that_is_not_there_becomes_the_last_and_this_is_said() -> None:
    app = open_page("attention", layer="99", head="1")
    assert any("Layer 2, head 1" in heading.value for heading in app.subheader)
    assert any("no layer 99" in warning.value for warning in app.warning)
    assert app.query_params["layer"] == "2"


def test_parameters_that_are_no_numbers_are_ignored_and_this_is_said() -> None:
    app = open_page("classify", layer="99", k="abc", head="", checkpoint="nope <b>")
    assert not app.error
    notes = " ".join(warning.value for warning in app.warning)
    assert "abc" in notes and "nope" in notes


def test_head_is_chosen_by_plain_selectors_too() -> None:
    app = open_page("attention")
    app.segmented_control(key="head_box").set_value(2).run()
    assert any("Layer 1, head 2" in heading.value for heading in app.subheader)
    assert app.query_params["head"] == "2"


def test_attention_says_what_rows_mean_and_that_it_is_no_explanation() -> None:
    shown = words_of(open_page("attention"))
    assert "row" in shown and "columns" in shown
    assert "not by itself an explanation" in shown


def test_hidden_special_tokens_have_their_share_stated() -> None:
    app = open_page("attention", checkpoint=LEARNED, text="banks signed a deal")
    app.toggle(key="hide_special").set_value(True).run()
    assert not app.exception
    assert any("hidden tokens hold" in caption.value for caption in app.caption)


def test_positions_mark_what_the_checkpoint_uses() -> None:
    app = open_page("positions")
    assert any(text.value.startswith("✓ This is what") for text in app.markdown)
    app.slider(key="pe_width").set_value(64).run()
    assert not app.exception
    assert any("uses it with d_model = **16**" in text.value for text in app.markdown)


def test_links_between_pages_follow_the_menus_order() -> None:
    assert re.findall(r'st\.Page\("([^"]+)"', Path(ENTRY).read_text(encoding="utf-8")) == list(QUESTIONS)


def test_learned_positions_are_shown_as_the_checkpoints_own() -> None:
    app = open_page("positions", checkpoint=LEARNED)
    assert any("learned" in text.value for text in app.markdown)


def test_learned_positions_that_no_training_text_reached_are_said_to_be_zeros(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_checkpoint(tmp_path / "short", max_length=24, positions="learned")
    with torch.no_grad():
        made.model.embeddings.positional[:9] = 1.0
        made.model.embeddings.positional[9:] = 0.0
    save_checkpoint(made)
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(tmp_path))
    assert "Those from 9 on are still zeros" in words_of(open_page("positions"))


def test_shuffling_reports_how_many_orders_keep_the_class() -> None:
    app = open_page("positions", text="banks signed a deal after the election")
    assert any("of 20** are still classified" in text.value for text in app.markdown)
    assert any(all(name in str(chart) for name in CLASSES) for chart in charts_of(app))


def test_without_a_checkpoint_the_page_says_how_to_make_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(tmp_path))
    app = open_page("classify")
    assert "txcls train" in app.error[0].value


def test_damaged_checkpoint_is_named_not_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{}")
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(tmp_path))
    app = open_page("classify")
    assert any("broken" in one.value and "format\\_version" in one.value for one in app.caption)


def test_repeated_questions_never_change_the_shared_classifier() -> None:
    from txcls.app import compute

    app = open_page("classify", text="banks signed a deal")
    first = charts_of(app)[0]["data"]
    for page in ("attention", "positions", "classify"):
        app.switch_page(f"txcls/app/{page}.py").run()
    assert charts_of(app)[0]["data"] == first
    assert compute.is_loaded(compute.source(PLAIN))
