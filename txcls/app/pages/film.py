"""The snapshots of a training run as a film for one text: curves, bars, heads and class lens."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from txcls.app import menu
from txcls.app.components.training_film import film_data, training_film
from txcls.app.lessons import lesson
from txcls.app.shell import checkpoints, compute, layout, lecture, state
from txcls.app.shell.charts import window
from txcls.app.shell.markdown import plain, table
from txcls.app.shell.prediction import classify_text
from txcls.checkpoint.checkpoint import Checkpoint
from txcls.figures import percent, visible
from txcls.inspection.patch_history import PatchHistory
from txcls.inspection.training_film import TrainingFilm

COMMAND = "python -m txcls train who_won --snapshots 24"


def main() -> None:
    """Draw the page."""
    opened = layout.open_page(
        menu.FILM,
        box_height=68,
        supports=lambda checkpoint: checkpoint.has_snapshots,
        why_not="has no snapshots of its training",
    )
    if not checkpoints.summary(opened.view.checkpoint).has_snapshots:
        st.info(f"No checkpoint here was trained with snapshots. `{COMMAND}` trains one in about two minutes.")
    read = classify_text(opened, "watch how the model learned to answer it.", before="Prediction after training")
    if read is not None and read.has_label and read.classifier.checkpoint.snapshots is not None:
        with lecture.slide(own_keys=True):
            _film(opened, read.classifier.checkpoint)
    layout.close_page(opened)


def _film(opened: layout.Page, checkpoint: Checkpoint) -> None:
    tokens = compute.predict(opened.source, opened.view.text).prediction.tokens
    shown = window(len(tokens), key="film_window")
    film = compute.training_film(opened.source, opened.view.text, first=shown.start, last=shown.stop)
    steps = np.array([row.step for row in film.rows])
    patched = PatchHistory.of(checkpoint)
    data = film_data(
        film,
        checkpoint.classes,
        name=opened.view.checkpoint,
        opened=f"{opened.source.name} {opened.source.state} {lesson.n_opened()}",
        tokens=[visible(token.label[:40]) for token in tokens[shown]],
        at=int(np.abs(steps - opened.view.training_step).argmin()),
        default=int(np.abs(steps - state.default_training_step()).argmin()),
        patched=patched,
    )
    training_film(data, key="training_film")
    if patched is not None:
        st.caption(_about_patch(patched))
    st.caption(_about(checkpoint, film))
    with st.expander("The film as a table", key="film_table", on_change="rerun") as table:
        if table.open:
            st.markdown(_table(film, checkpoint.classes))


def _about(checkpoint: Checkpoint, film: TrainingFilm) -> str:
    last = film.rows[-1].step
    best_steps = [row.get("step", 0) for row in checkpoint.history if row.get("best")]
    if not best_steps or best_steps[-1] == last:
        end = "the last one is the model on the other pages"
    else:
        end = (
            f"the other pages use the weights of step {best_steps[-1]:,}, the best on validation rows, and the film "
            f"continues to step {last:,}"
        )
    return (
        f"{len(film.rows)} snapshots of the weights, more of early steps than of late ones; {end}. They are stored in "
        "half precision, and each one classifies the text. Probabilities use the calibration of the trained model, "
        "which does not fit early snapshots. ▲ marks where the prediction changes to or from the final one. Keys: ← → "
        "or PageUp PageDown for the previous and next snapshot, space to play."
    )


def _about_patch(patched: PatchHistory) -> str:
    head = f"{patched.row.layer + 1}.{patched.row.head + 1}"
    return (
        f"**When the patch begins to work**: in {patched.n:,} test reports that say “lost to”, the output of head "
        f"{head} at the {patched.row.role} is replaced by its output on the same report with “easily beat”. The brown "
        "line is the share of reports whose answer is then the other team, the grey line the control, the same head at "
        f"the {patched.control_role}. Early snapshots give the other team by mistake: there both lines are high, and "
        f"only their difference counts. In the last snapshot: {percent(patched.moved[-1])} and "
        f"{percent(patched.control[-1])}."
    )


def _table(film: TrainingFilm, classes: Sequence[str]) -> str:
    columns = ("step", "training loss", "validation loss", "validation accuracy", "answer", "probability")
    rows = [
        (
            f"{row.step:,}",
            "" if row.train_loss is None else f"{row.train_loss:.4f}",
            f"{row.validation_loss:.4f}",
            percent(row.validation_accuracy),
            plain(visible(classes[answer])),
            percent(float(probabilities[answer])),
        )
        for row, answer, probabilities in zip(film.rows, film.predicted, film.probabilities, strict=True)
    ]
    return table(columns, rows, right=[name for name in columns if name != "answer"])


if __name__ == "__main__":
    main()
