"""A training run as a film for one text, snapshot by snapshot: curves, bars, heads and class lens."""

import numpy as np
import streamlit as st

from txcls.app import menu
from txcls.app.components.training_film import film_data, training_film
from txcls.app.lessons import lesson
from txcls.app.shell import cached_results, checkpoints, layout, lecture, view_state
from txcls.app.shell.charts import window
from txcls.app.shell.prediction import classify_text
from txcls.checkpoint.checkpoint import Checkpoint
from txcls.figures import visible
from txcls.inspection.training_film import TrainingFilm

ABOUT = (
    "The snapshots are stored in half precision, and each classifies the text, with the trained model's calibration, "
    "which does not fit early ones. Only training values include dropout. Keys: ← → or PageUp PageDown for the "
    "previous and next snapshot, space to play."
)
TRAIN_COMMAND = "python -m txcls train who_won --set train.snapshots=24"


def main() -> None:
    """Draw the page."""
    page = layout.open_page(
        menu.FILM,
        supports=lambda checkpoint: checkpoint.has_snapshots,
        why_not="has no snapshots of its training",
    )
    if not checkpoints.summary(page.view.checkpoint).has_snapshots:
        st.info(f"No checkpoint here was trained with snapshots. `{TRAIN_COMMAND}` trains one in about three minutes.")
    classified = classify_text(page, "watch how the model learned to classify it.", before="Prediction after training")
    if classified is not None and classified.has_label and classified.classifier.checkpoint.snapshots is not None:
        with lecture.slide(own_keys=True):
            _draw_film(page, classified.classifier.checkpoint)
    layout.close_page(page)


def _draw_film(page: layout.Page, checkpoint: Checkpoint) -> None:
    tokens = cached_results.predict(page.source, page.view.text).tokens
    shown_tokens = window(len(tokens), key="film_window")
    film = cached_results.training_film(page.source, page.view.text, first=shown_tokens.start, last=shown_tokens.stop)
    steps = np.array([row.step for row in film.rows])
    data = film_data(
        film,
        checkpoint.classes,
        name=page.view.checkpoint,
        question=page.info.question * lecture.is_on(),
        opened=f"{page.source.name} {page.source.state} {lesson.n_opened()}",
        tokens=[visible(token.label[:40]) for token in tokens[shown_tokens]],
        snapshot=int(np.abs(steps - page.view.training_step).argmin()),
        default=int(np.abs(steps - view_state.default_training_step()).argmin()),
    )
    training_film(data, key="training_film")
    st.caption(_describe_snapshots(checkpoint, film), help=ABOUT)


def _describe_snapshots(checkpoint: Checkpoint, film: TrainingFilm) -> str:
    last_step = film.rows[-1].step
    best_steps = [row.get("step", 0) for row in checkpoint.history if row.get("best")]
    if not best_steps or best_steps[-1] == last_step:
        about_last = "the last one is the model on the other pages"
    else:
        about_last = (
            f"the other pages use the weights of step {best_steps[-1]:,}, which were best on the validation rows; the "
            f"film continues to step {last_step:,}"
        )
    return f"{len(film.rows)} snapshots of the weights, more of early steps than of late ones; {about_last}."


if __name__ == "__main__":
    main()
