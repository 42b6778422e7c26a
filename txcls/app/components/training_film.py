"""A training run as a film: the numbers of all snapshots are sent once; the browser plays them."""

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st

from txcls.app.components.widgets import register
from txcls.figures import class_colours, on_dark, visible
from txcls.inspection.training_film import TrainingFilm, class_changes, snapshots_to_ask_about

_film = register("training_film", modules=("picture/saving", "picture/colour_scales"), sheets=("picture/saving",))

MAX_BARS = 8
"""Maximum number of classes with a bar in a snapshot."""
DIGITS = 6
MAX_CODE = 2**16 - 1
"""The integer that represents an attention weight of 1."""


def film_data(
    film: TrainingFilm,
    classes: Sequence[str],
    *,
    name: str,
    question: str = "",
    opened: str,
    tokens: Sequence[str],
    snapshot: int,
    default: int = 0,
) -> Any:
    """The data of the film; attention as 16-bit integers, exact to four decimals.

    Args:
        film: the film to show, with attention among `tokens` only.
        classes: names of all C classes.
        name: name of the checkpoint.
        question: a question to show before the answer; "" if the page shows it.
        opened: identifies the model and how the page was opened; a new value restarts the film at `snapshot`.
        tokens: printable labels of the tokens.
        snapshot: the first snapshot to show.
        default: the snapshot shown for a URL without a training step.
    """
    ranked = np.argsort(-film.probabilities, axis=-1, kind="stable")[:, :MAX_BARS]  # N bars
    lens_answers = film.lens.argmax(axis=-1)  # N S
    sent_classes = np.unique(np.concatenate([ranked.ravel(), lens_answers.ravel(), film.predicted]))
    position = {int(index): n for n, index in enumerate(sent_classes)}
    colours = class_colours(film.probabilities[-1])
    if st.context.theme.type == "dark":
        colours = on_dark(colours)
    return {
        "opened": opened,
        "name": name,
        "question": question,
        "at": snapshot,
        "default": default,
        "steps": [row.step for row in film.rows],
        **{
            field: [getattr(row, field) for row in film.rows]
            for field in ("train_loss", "train_accuracy", "validation_loss", "validation_accuracy")
        },
        "classes": [visible(classes[index]) for index in sent_classes],
        "colours": [colours[index] for index in sent_classes],
        "n_classes": len(classes),
        "rows": MAX_BARS,
        "has_others": len(classes) > MAX_BARS,
        "probabilities": np.round(film.probabilities[:, sent_classes], DIGITS).tolist(),
        "answers": [position[int(index)] for index in film.predicted],
        "flips": class_changes(film.predicted),
        "asked": snapshots_to_ask_about(film.predicted),
        "tokens": list(tokens),
        "shape": film.attention.shape[:4],
        "attention": base64.b64encode(np.rint(film.attention * MAX_CODE).astype("<u2").tobytes()).decode("ascii"),
        "states": film.states,
        "lens": np.round(film.lens.max(axis=-1), DIGITS).tolist(),
        "lens_answers": [[position[int(index)] for index in row] for row in lens_answers],
    }


def training_film(data: Any, *, key: str) -> None:
    """Draw the film that `film_data` describes."""
    _film(data=data, key=key)
