"""Which layer and head a page shows: the one that it opens on, and the controls that select another."""

from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from txcls.app.shell import head_stories, layout, lecture, state
from txcls.predictor import Predictor


def open_on_head(page: layout.Page, classifier: Predictor) -> layout.Page:
    """The page with a head that its checkpoint has: the one that the address names, else the one worth most."""
    model = classifier.checkpoint.config.model
    page = layout.fit_view(page, of=page.view.checkpoint, layer=model.n_layers - 1, head=model.n_heads - 1)
    worth = head_stories.worth_of_heads(classifier)
    named = np.array([page.view.layer, page.view.head])
    fits = [place for place in np.ndindex(worth.shape) if ((named == state.OPEN) | (named == place)).all()]
    layer, head = max(fits, key=worth.__getitem__)
    return replace(page, view=replace(page.view, layer=layer, head=head))


def choose_head(view: state.View, n_layers: int, n_heads: int) -> None:
    """Two controls that select the layer and the head, in lecture mode beside one another."""
    place = st.container(horizontal=True) if lecture.is_on() else st
    for field, n in (("layer", n_layers), ("head", n_heads)):
        key = f"{field}_box"
        st.session_state[key] = getattr(view, field) + 1
        change: dict[str, Any] = {"on_change": _box_changed}
        if n <= 12:
            place.segmented_control(field.capitalize(), range(1, n + 1), key=key, required=True, **change)
        else:
            place.number_input(field.capitalize(), 1, n, key=key, **change)


def _box_changed() -> None:
    state.change_view(**{field: int(st.session_state[f"{field}_box"]) - 1 for field in ("layer", "head")})
