from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import streamlit as st

from tests.app.drawn import open_page
from tests.conftest import make_checkpoint
from txcls.app.menu import FORMER_PAGES
from txcls.app.shell import checkpoints, view_state
from txcls.cli.import_model import how_to_open_in_app
from txcls.errors import CheckpointError
from txcls.lessons.page_address import View

PATHS = [
    "", "playground", "lessons", "tokens", "steps", "attention", "positions", "heads", "whatif", "explanation", "film",
    "language", "report",
]  # fmt: skip
"""Saved links use these paths, in the order of the menu."""


def test_the_menu_and_the_addresses_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    menus: list[dict[str, list[Any]]] = []
    navigation = st.navigation

    def listen(pages: dict[str, list[Any]], **options: Any) -> Any:
        menus.append(pages)
        return navigation(pages, **options)

    monkeypatch.setattr(st, "navigation", listen)
    open_page("classify")
    *shown, former = menus[0].values()
    assert [page.url_path for section in shown for page in section] == PATHS
    assert [page.url_path for page in former] == list(FORMER_PAGES), "old links lead on"


@pytest.mark.attack
def test_a_checkpoint_that_is_removed_while_it_is_open_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    session = {"_view": View(checkpoint="gone"), "_published": {}, "box": ""}
    monkeypatch.setattr(st, "session_state", session)
    monkeypatch.setattr(st, "query_params", SimpleNamespace(to_dict=dict))
    assert view_state.current_view(["ag_news"], text_box="box", first_text=str).checkpoint == "ag_news"
    assert session["_more_notes"] == ["The checkpoint “gone” is no longer here; ag_news is shown instead."]


def test_a_checkpoint_saved_while_the_app_runs_is_offered_and_none_outside_the_folder_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(tmp_path / "checkpoints"))
    make_checkpoint(tmp_path / "checkpoints" / "first")
    app = open_page("classify")
    make_checkpoint(tmp_path / "checkpoints" / "second")
    make_checkpoint(tmp_path / "outside")
    monkeypatch.setattr(checkpoints, "_listed", None)  # it is read again twice a second
    app.run()
    assert app.selectbox(key="checkpoint_box").options == ["A test · first", "A test · second"]
    address = how_to_open_in_app(tmp_path / "checkpoints" / "second")[0]
    assert address == "in the app, also if it is already running: http://localhost:8501/?checkpoint=second"
    for name in ("../outside", str(tmp_path / "outside")):
        with pytest.raises(CheckpointError, match="expected the name of a folder"):
            checkpoints.source(name)
