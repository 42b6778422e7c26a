"""Controls that several pages share: a choice stored in the URL, sections drawn on demand, and clicks on a chart."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from txcls.app.shell import lecture, view_state
from txcls.lessons.page_address import Section, View


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

    `names` returns an option's label; `selected` is the option shown as selected, the view's if None; `about` is shown
    on demand; unless `required`, a click on the selected option selects none, which is "" in the view.
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
        on_change=view_state.store_value_of(field, key),
    )


def clicked_point(chart_key: str) -> Any:
    """The `customdata` of the clicked point of a chart; None if the click selected nothing."""
    points = st.session_state[chart_key]["selection"]["points"]
    return points[0]["customdata"] if points else None


@dataclass(frozen=True)
class PageSection:
    """A section: its name in the URL, its title, what draws it, and the parts of the architecture that it is about."""

    name: Section
    title: str
    draw: Callable[[], None]
    shows: tuple[str, ...] = ()


def draw_sections(view: View, sections: Sequence[PageSection]) -> None:
    """Draw a control that chooses one of the sections, and the chosen one; in lecture mode, each section is a slide."""
    if lecture.is_on():
        for section in sections:
            with lecture.slide(*section.shows):
                section.draw()
        return
    titles = {section.name: section.title for section in sections}
    chosen = view.section if view.section in titles else ""
    names: tuple[Section, ...] = tuple(titles)
    choice(
        st, "More", names, view, "section", key="section", names=titles.__getitem__, selected=chosen or None,
        required=False,
    )  # fmt: skip
    for section in sections:
        if section.name == chosen:
            with lecture.slide():
                section.draw()
