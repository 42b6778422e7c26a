"""A visitor's own checkpoints: opened from an archive that is checked first, and packed to be taken away."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from txcls.app.jobs.queue import Job
from txcls.checkpoint.archive import pack, unpack
from txcls.errors import CheckpointError
from txcls.predictor import Predictor
from txcls.web.export import single_page


def run(job: Job) -> dict[str, Any]:
    """The name of the opened model and what it classifies."""
    job.progress("checking the archive")
    archive = job.session / job.spec["file"]
    checkpoint = unpack(archive, job.session / "own", name=job.spec["as"])
    assert checkpoint.path is not None
    Predictor.load(checkpoint.path).predict(["a text to try it on"])  # it answers
    write_downloads(job.session, checkpoint.path.name)
    archive.unlink(missing_ok=True)
    return {
        "name": checkpoint.path.name,
        "classes": len(checkpoint.classes),
        "parameters": checkpoint.n_parameters,
    }


def write_downloads(session: Path, name: str) -> None:
    """Write the visitor's checkpoint of this name as a zip, and as a page that needs no server where that can be."""
    checkpoint, downloads = session / "own" / name, session / "downloads"
    (downloads / f"{name}.zip").write_bytes(pack(checkpoint))
    with suppress(CheckpointError):  # it has settings that a page lacks
        (downloads / f"{name}.html").write_bytes(single_page(checkpoint))
