"""A training as a film: the numbers of all states, sent once; sliding and playing happen in the browser."""

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st
from plotly.colors import sample_colorscale, unlabel_rgb

from txcls.app.components.register import read
from txcls.figures import visible
from txcls.figures.style import SEQUENTIAL
from txcls.inspection.training_film import TrainingFilm, flips, questions
from txcls.web.sources import script, style

_film = st.components.v2.component(
    "txcls_training_film",
    html=read("training_film.html"),
    js=f"{script('picture/saving')}\n{read('training_film.js')}",
    css=style("picture/buttons", "picture/saving") + read("training_film.css"),
)

MOST_BARS = 8
"""Most classes with a bar of their own in a state."""
DIGITS = 6
MOST = 2**16 - 1
"""What a weight of 1 is sent as."""


def film_data(
    film: TrainingFilm,
    classes: Sequence[str],
    *,
    name: str,
    opened: str,
    tokens: Sequence[str],
    at: int,
    unsaid: int = 0,
) -> Any:
    """What the browser draws the film from; attention as 16-bit integers, so that two decimals are right.

    Args:
        film: with attention among `tokens`.
        classes: all C names.
        name: of the checkpoint.
        opened: identifies the model and what the page was opened by; another one begins at `at` again.
        tokens: in printable form.
        at: the state to begin with.
        unsaid: the state that an address without a training step means.
    """
    ranked = np.argsort(-film.probabilities, axis=-1, kind="stable")[:, :MOST_BARS]  # N bars
    lens_answers = film.lens.argmax(axis=-1)  # N S
    sent = np.unique(np.concatenate([ranked.ravel(), lens_answers.ravel(), film.answers]))
    place = {int(index): n for n, index in enumerate(sent)}
    return {
        "opened": opened,
        "name": name,
        "at": at,
        "unsaid": unsaid,
        "steps": [row.step for row in film.rows],
        **{
            field: [getattr(row, field) for row in film.rows]
            for field in ("train_loss", "train_accuracy", "validation_loss", "validation_accuracy")
        },
        "classes": [visible(classes[index]) for index in sent],
        "rows": MOST_BARS,
        "has_others": len(classes) > MOST_BARS,
        "probabilities": np.round(film.probabilities[:, sent], DIGITS).tolist(),
        "answers": [place[int(index)] for index in film.answers],
        "flips": flips(film.answers),
        "asked": questions(film.answers),
        "tokens": list(tokens),
        "shape": film.attention.shape[:4],
        "attention": _sent(film.attention * MOST, "<u2"),
        "colours": _colours(),
        "states": film.states,
        "lens": np.round(film.lens.max(axis=-1), DIGITS).tolist(),
        "lens_answers": [[place[int(index)] for index in row] for row in lens_answers],
    }


def training_film(data: Any, *, key: str) -> None:
    """Draw the film that `film_data` describes."""
    _film(data=data, key=key)


def _colours() -> str:
    """The colours of the weights 0 to 255: red, green and blue in turn."""
    sampled = sample_colorscale([list(stop) for stop in SEQUENTIAL], [n / 255 for n in range(256)])
    return _sent(np.array([unlabel_rgb(colour) for colour in sampled]), "u1")


def _sent(values: np.ndarray[Any, Any], kind: str) -> str:
    return base64.b64encode(np.rint(values).astype(kind).tobytes()).decode("ascii")
