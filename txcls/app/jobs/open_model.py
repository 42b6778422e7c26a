"""Check an uploaded archive of a checkpoint, and put it among the visitor's own."""

from typing import Any

from txcls.app.jobs.worker import Job
from txcls.checkpoint.archive import unpack
from txcls.predictor import Predictor


def run(job: Job) -> dict[str, Any]:
    """The name of the opened model and what it classifies."""
    job.tell("checking the archive")
    made = unpack(job.desk / job.spec["file"], job.desk / "own", name=job.spec["as"])
    assert made.path is not None
    Predictor.load(made.path).predict(["a text to try it on"])  # it answers
    (job.desk / job.spec["file"]).unlink(missing_ok=True)
    return {"name": made.path.name, "classes": len(made.classes), "parameters": made.n_parameters}
