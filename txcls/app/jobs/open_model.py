"""A visitor's own checkpoints: check and open an archive, and pack a checkpoint for download."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from txcls.app.jobs.own_table import stored_examples
from txcls.app.jobs.worker import Job
from txcls.checkpoint.archive import pack, unpack
from txcls.checkpoint.checkpoint import Checkpoint
from txcls.config import ModelConfig
from txcls.errors import CheckpointError
from txcls.inference.predictor import Predictor
from txcls.inspection.attribution import ACTIVATION_BYTES, activation_bytes
from txcls.web.export import single_page

MAX_MEGABYTES = 175
"""Maximum memory, in the app's process, of a visitor's model on the most expensive page; `imdb` takes 171 MB."""


def run(job: Job) -> dict[str, Any]:
    """Open the model; return its name and its number of classes."""
    job.progress("checking the archive")
    archive = job.session / job.spec["file"]
    checkpoint = unpack(archive, job.session / "own", name=job.spec["as"], check=refuse_costly)
    assert checkpoint.path is not None
    Predictor.load(checkpoint.path).predict(["check that it can classify a text"])
    write_downloads(job.session, checkpoint.path.name)
    archive.unlink(missing_ok=True)
    return {"name": checkpoint.path.name, "classes": len(checkpoint.classes)}


def refuse_costly(checkpoint: Checkpoint) -> None:
    """Raise a CheckpointError if a page may need more than `MAX_MEGABYTES`: a small file can describe a large model."""
    if (megabytes := page_bytes(checkpoint.config.model, checkpoint.n_parameters) >> 20) > MAX_MEGABYTES:
        model = checkpoint.config.model
        raise CheckpointError(
            f"its {model.n_layers} layers of {model.n_heads} heads, {model.d_model:,} wide, over {model.max_length:,} "
            f"tokens would take about {megabytes:,} MB for one text; at most {MAX_MEGABYTES:,} MB may be used here"
        )


def page_bytes(model: ModelConfig, n_parameters: int) -> int:
    """Upper bound on the memory that the most expensive page needs for a text of full length, including the weights.

    The largest of three estimates, each at most a third above the measured peak: for the arrays of Step by step, the
    averages over an attention map on Attention, and the gradients on Explanation.
    """
    square, heads = model.max_length**2, model.n_layers * model.n_heads
    activations = activation_bytes(model) * model.max_length
    steps_bytes = (16 * heads + 12) * square + activations
    averages_bytes = (4 * heads + 44) * square
    gradients_bytes = (8 * heads + 16) * square + max(activations, ACTIVATION_BYTES)
    return max(steps_bytes, averages_bytes, gradients_bytes) + 4 * n_parameters


def write_downloads(session: Path, name: str) -> None:
    """Pack the visitor's checkpoint of this name as a zip and, if possible, as a page that needs no server."""
    checkpoint, downloads = session / "own" / name, session / "downloads"
    (downloads / f"{name}.zip").write_bytes(pack(checkpoint))
    with suppress(CheckpointError):  # its settings are not supported by the page
        page = single_page(checkpoint, stored_examples(session / "kept", name))
        (downloads / f"{name}.html").write_bytes(page)
