"""The parts of a page that are drawn on demand, one at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st

from txcls.app.shell import lecture
from txcls.app.shell.controls import choice
from txcls.lessons.page_address import Section, View


@dataclass(frozen=True)
class Part:
    """A part: its name in the URL, its title, what draws it, and the parts of the architecture that it is about."""

    name: Section
    title: str
    draw: Callable[[], None]
    shows: tuple[str, ...] = ()


def draw_sections(view: View, parts: Sequence[Part]) -> None:
    """Draw a control that chooses one of the parts, and the chosen one; in lecture mode, each part is a slide."""
    if lecture.is_on():
        for part in parts:
            with lecture.slide(*part.shows):
                part.draw()
        return
    titles = {part.name: part.title for part in parts}
    chosen = view.section if view.section in titles else ""
    names: tuple[Section, ...] = tuple(titles)
    choice(
        st, "More", names, view, "section", key="section", names=titles.__getitem__, selected=chosen or None,
        required=False,
    )  # fmt: skip
    for part in parts:
        if part.name == chosen:
            with lecture.slide():
                part.draw()
