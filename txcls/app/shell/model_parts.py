"""What a model is made of: a table of its parameters, and formulas with the source code that computes them."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from txcls.app.shell.markdown import plain
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
        rows = ["| part | shape | times | parameters | share |", "|---|---|---:|---:|---:|"]
        for part in parts:
            shape = " + ".join(" × ".join(f"{n:,}" for n in one) for one in part.shapes)
            share = percentage(part.total / total)
            rows.append(f"| {plain(part.name)} | {shape} | {part.times} | {part.total:,} | {share} |")
        rows.append(f"| **all** | | | **{total:,}** | |")
        st.markdown("\n".join(rows))
        st.caption("Names as in txcls/model.py; \\* stands for the layer number: all layers have the same shapes.")


def code(thing: type | Callable[..., Any], *, formula: str) -> None:
    """A formula and the source code that computes it."""
    found = source_of(thing)
    st.latex(formula)
    st.code(found.code, language="python")
    st.caption(f"{plain(found.file)}, line {found.line}, as it runs here.")
