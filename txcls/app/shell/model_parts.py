"""The parts of a model: a table of its parameters, and formulas with the source code that computes them."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from txcls.app.shell.markdown import plain, table
from txcls.inspection.parameters import part_sizes
from txcls.inspection.walk import source_of
from txcls.model import Encoder
from txcls.wording import percentage


def parameters(model: Encoder, name: str) -> None:
    """An expander with a table of the model's parameters."""
    with st.expander(
        f"The parameters of {plain(name)}, part by part", key=f"sizes_{name}", on_change="rerun"
    ) as opened:
        if not opened.open:
            return
        parts = part_sizes(model)
        total = sum(part.total for part in parts)
        rows = []
        for part in parts:
            shape = " + ".join(" × ".join(f"{n:,}" for n in shape) for shape in part.shapes)
            share = percentage(part.total / total)
            rows.append((plain(part.name), shape, str(part.times), f"{part.total:,}", share))
        rows.append(("**all**", "", "", f"**{total:,}**", ""))
        columns = ("part", "shape", "times", "parameters", "share")
        st.markdown(table(columns, rows, right=columns[2:]))
        st.caption("Names as in txcls/model.py; \\* is the layer number: all layers have the same shapes.")


def code(thing: type | Callable[..., Any], *, formula: str) -> None:
    """A formula and the source code that computes it."""
    lines = source_of(thing)
    st.latex(formula)
    st.code(lines.code, language="python")
    st.caption(f"{plain(lines.file)}, line {lines.line}, as it runs here.")
