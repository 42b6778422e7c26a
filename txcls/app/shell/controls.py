"""Controls that several pages share: a choice stored in the URL, and clicks on the points of a chart."""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from txcls.app.shell import view_state
from txcls.lessons.page_address import View


def choice(
    container: Any,
    label: str,
    options: Sequence[Any],
    view: View,
    field: str,
    *,
    key: str,
    names: Callable[[Any], Any] = str,
    selected: Any = None,
    label_visibility: str = "visible",
    about: str | None = None,
    required: bool = True,
) -> None:
    """Draw a segmented control for a field of the view.

    `names` returns the label of an option's button; `selected` is the option shown as selected, the view's if None;
    `about` is shown when the visitor points at the question mark beside the label; unless `required`, a click on the
    selected option selects none, which is "" in the view.
    """
    shown = getattr(view, field) if selected is None else selected
    st.session_state[key] = shown if shown in options else None
    container.segmented_control(
        label,
        options,
        format_func=names,
        required=required,
        key=key,
        label_visibility=label_visibility,
        help=about,
        on_change=view_state.follow(field, key),
    )


def clicked_point(chart_key: str) -> Any:
    """The `customdata` of the clicked point of a chart; None if the click selected nothing."""
    points = st.session_state[chart_key]["selection"]["points"]
    return points[0]["customdata"] if points else None
