"""Language models: fill a blank, or predict and sample the next token."""

from collections.abc import Callable
from typing import Any, get_args

import streamlit as st

from txcls.app import menu
from txcls.app.pages.language import continuation, fill
from txcls.app.pages.language.model import PRESETS
from txcls.app.shell import checkpoints, layout, lecture
from txcls.app.shell.controls import choice
from txcls.lessons.page_address import LanguagePart

PART_NAMES = {"fill": "Fill a blank", "continue": "Continue"}


def main() -> None:
    """Draw the page."""
    names = [name for objective in PRESETS for name in checkpoints.language_names(objective)]
    dataset = checkpoints.summary(names[0]).dataset if names else ""
    page, controls = layout.open_language_page(menu.LANGUAGE, dataset=dataset)
    parts: dict[LanguagePart, Callable[[layout.PlainPage, Any], None]] = {
        "fill": fill.draw,
        "continue": continuation.draw,
    }
    if lecture.is_on():
        for draw in parts.values():
            draw(page, st)
    else:
        row = controls.container(horizontal=True, vertical_alignment="center", gap="small")
        choice(
            row,
            "Part of this page",
            get_args(LanguagePart),
            page.view,
            "part",
            key="part_box",
            names=PART_NAMES.__getitem__,
            label_visibility="collapsed",
        )
        parts[page.view.part](page, row)
    layout.close_page(page)


if __name__ == "__main__":
    main()
