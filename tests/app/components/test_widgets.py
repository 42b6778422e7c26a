from typing import Any
from unittest.mock import Mock

import pytest

from txcls.app.components import widgets


@pytest.mark.parametrize("state", [{}, {"lecture": {}, "cells_one": {}, "lesson_answers_one": {}, "one": {}}])
def test_a_callback_without_a_report_does_nothing(state: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """As when a key is pressed while the next page loads."""
    session: dict[str, Any] = {**state, "_classifiers_in_browser": {"one"}}
    component, acted, redraw = Mock(), Mock(), Mock()
    monkeypatch.setattr("streamlit.session_state", session)
    monkeypatch.setattr(widgets, "register", lambda name, **options: component)
    widgets.bar_and_keys({}, on_mode=redraw, on_turn=acted, on_jump=acted)
    widgets.listen_to_cells("one", acted)
    widgets.store_answers("one", None, on_restore=acted)
    widgets.token_strip([], label="", key="one", on_choose=acted)
    widgets.word_bins({"": ["word"]}, label="", key="one", on_move=acted)
    widgets.live_picture(
        "one", bytes, text="", box="", question="", switched_off_heads=(), how="zero", key="one",
        on_arrived=redraw, on_switch=acted, on_open=acted, on_part=acted,
    )  # fmt: skip
    callbacks = [value for call in component.call_args_list for name, value in call.kwargs.items() if "on_" in name]
    assert len(callbacks) == 12
    for callback in callbacks:
        callback()
    acted.assert_not_called()
    assert widgets.IN_SMALL_WINDOW not in session
