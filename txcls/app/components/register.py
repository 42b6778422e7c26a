"""Register Streamlit components from the files in this folder, and read what they report."""

from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from txcls.web.assemble import script, style

_FOLDER = Path(__file__).parent


@cache
def register(name: str, *, modules: tuple[str, ...] = (), sheets: tuple[str, ...] = ()) -> Any:
    """The component made of NAME.js, and of NAME.html and NAME.css if they exist.

    `modules` and `sheets` of `txcls.web` are put before them, and the shared button style before all style sheets.
    """
    files = {kind: _FOLDER / f"{name}.{kind}" for kind in ("html", "js", "css")}
    sources: dict[str, Any] = {kind: file.read_text("utf-8") for kind, file in files.items() if file.exists()}
    sources["js"] = script(*modules) + sources["js"]
    if "css" in sources:
        sources["css"] = style("picture/buttons", *sheets) + sources["css"]
    return st.components.v2.component(f"txcls_{name}", **sources)


def reported(key: str, name: str) -> Any:
    """What the component with this key has reported under a name; None if nothing.

    A callback may run when its value is already gone, for example after a key press while the next page is loading.
    """
    return st.session_state.get(key, {}).get(name)
