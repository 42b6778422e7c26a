"""A visitor's own checkpoints: opened from an archive that is checked first, and packed to be taken away."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from txcls.app.jobs.queue import Job
from txcls.checkpoint.archive import pack, unpack
from txcls.checkpoint.checkpoint import Checkpoint
from txcls.config import ModelConfig
from txcls.errors import CheckpointError
from txcls.inspection.attribution import ACTIVATION_BYTES, activation_bytes
from txcls.predictor import Predictor
from txcls.web.export import single_page

MAX_MEGABYTES = 175
"""Most memory that a visitor's model may take on the dearest page, in the app's process; `imdb` takes 171."""


def run(job: Job) -> dict[str, Any]:
    """The name of the opened model and what it classifies."""
    job.progress("checking the archive")
    archive = job.session / job.spec["file"]
    checkpoint = unpack(archive, job.session / "own", name=job.spec["as"], check=refuse_costly)
    assert checkpoint.path is not None
    Predictor.load(checkpoint.path).predict(["a text to try it on"])  # it answers
    write_downloads(job.session, checkpoint.path.name)
    archive.unlink(missing_ok=True)
    return {
        "name": checkpoint.path.name,
        "classes": len(checkpoint.classes),
        "parameters": checkpoint.n_parameters,
    }


def refuse_costly(checkpoint: Checkpoint) -> None:
    """Refuse a model of which a page may need more than `MAX_MEGABYTES`: a small file can describe a large one.

    Raises:
        CheckpointError: it is one.
    """
    if (megabytes := page_bytes(checkpoint.config.model, checkpoint.n_parameters) >> 20) > MAX_MEGABYTES:
        model = checkpoint.config.model
        raise CheckpointError(
            f"its {model.n_layers} layers of {model.n_heads} heads, {model.d_model:,} wide, over {model.max_length:,} "
            f"tokens would take about {megabytes:,} MB for one text; at most {MAX_MEGABYTES:,} MB may be used here"
        )


def page_bytes(model: ModelConfig, n_parameters: int) -> int:
    """About how much memory the dearest page takes for a text of full length, with the model's weights.

    Above the measured peaks, by at most a third: of the arrays of Step by step, of the averages over an attention map
    on Attention, and of the gradients on Explanation.
    """
    square, heads = model.max_length**2, model.n_layers * model.n_heads
    activations = activation_bytes(model) * model.max_length
    steps = (16 * heads + 12) * square + activations
    averages = (4 * heads + 44) * square
    gradients = (8 * heads + 16) * square + max(activations, ACTIVATION_BYTES)
    return max(steps, averages, gradients) + 4 * n_parameters


def write_downloads(session: Path, name: str) -> None:
    """Write the visitor's checkpoint of this name as a zip, and as a page that needs no server where that can be."""
    checkpoint, downloads = session / "own" / name, session / "downloads"
    (downloads / f"{name}.zip").write_bytes(pack(checkpoint))
    with suppress(CheckpointError):  # it has settings that a page lacks
        (downloads / f"{name}.html").write_bytes(single_page(checkpoint))
