"""A table of a model's parameters."""

import streamlit as st

from txcls.app.shell.markdown import plain, table
from txcls.inspection.parameters import part_sizes
from txcls.model import Encoder
from txcls.text.formatting import percentage


def parameters(model: Encoder, name: str) -> None:
    """Draw an expander with a table of the model's parameters."""
    with st.expander("Its parameters, part by part", key=f"sizes_{name}", on_change="rerun") as opened:
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
