"""Make a Streamlit component of files in this folder."""

from pathlib import Path
from typing import Any

import streamlit as st

from txcls.web.sources import style

_FOLDER = Path(__file__).parent


def register(name: str, **parts: str) -> Any:
    """A component made of files in this folder, by kind (js, html, css); several files of a kind are joined.

    The style of all buttons comes before its own style sheets.
    """
    sources: dict[str, Any] = {kind: "".join(map(read, files.split())) for kind, files in parts.items()}
    if "css" in sources:
        sources["css"] = style("picture/buttons") + sources["css"]
    return st.components.v2.component(f"txcls_{name}", **sources)


def read(file: str) -> str:
    """A file of this folder."""
    return (_FOLDER / file).read_text(encoding="utf-8")
