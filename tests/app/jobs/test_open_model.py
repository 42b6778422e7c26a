"""Uploaded models: the memory that one may need is estimated from its settings before it is accepted."""

import json
import re
from pathlib import Path

import pytest

from tests.app.jobs.conftest import finish, put
from tests.conftest import TEXTS, make_checkpoint
from txcls.app.jobs.open_model import MAX_MEGABYTES, refuse_costly, write_downloads
from txcls.app.jobs.own_table import StoredRows, write_rows
from txcls.app.jobs.sessions import Session
from txcls.checkpoint.archive import pack
from txcls.checkpoint.listing import list_checkpoints
from txcls.checkpoint.load import load_checkpoint
from txcls.inference.predictor import Predictor

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


def test_the_page_without_a_server_opens_on_a_stored_example_that_is_classified_correctly(session: Session) -> None:
    make_checkpoint(session.own / "mine")
    classifier = Predictor.load(session.own / "mine")
    predictions = sorted(classifier.predict(TEXTS), key=lambda prediction: -(prediction.probability or 0))[:3]
    texts = [prediction.text for prediction in predictions]
    wrong, right, _ = (str(prediction.label) for prediction in predictions)
    labels = [next(name for name in classifier.classes if name != wrong), right, right]
    rows = StoredRows(texts, labels, (), [0, 1, 2], ((), ()), {})
    write_rows(session.folder / "kept", "mine", rows, texts)
    write_downloads(session.folder, "mine")
    page = (session.folder / "downloads" / "mine.html").read_text("utf-8")
    data = re.search(r'id="page-data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    description = json.loads(data[1])["models"][0]["description"]
    assert [text for _, text in description["examples"]] == texts
    assert description["start"] == 1 and description["opening"][0][0] == right
