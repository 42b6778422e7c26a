"""Uploaded models: the memory that one may need is estimated from its settings before it is accepted."""

from pathlib import Path

import pytest

from tests.app.jobs.conftest import finish, put
from tests.conftest import make_checkpoint
from txcls.app.jobs.open_model import MAX_MEGABYTES, refuse_costly
from txcls.app.jobs.sessions import Session
from txcls.checkpoint.archive import pack
from txcls.checkpoint.listing import list_checkpoints
from txcls.checkpoint.load import load_checkpoint

SHIPPED = Path(__file__).parents[3] / "checkpoints"


@pytest.mark.attack
def test_a_small_file_that_describes_a_large_model_is_refused(session: Session, tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path / "long", n_layers=1, n_heads=1, max_length=5792, positions="none").path
    assert path is not None
    job = finish(session, "open", {**put(session, "long.zip", pack(path)), "as": "long"})
    assert job.status == "failed" and f"at most {MAX_MEGABYTES} MB" in job.message
    assert not list(session.own.iterdir())


def test_every_shipped_classifier_could_be_opened() -> None:
    for summary in list_checkpoints(SHIPPED).classifiers:
        refuse_costly(load_checkpoint(SHIPPED / summary.name))
