"""Training jobs: the time budget starts with the job, and training does what was forecast."""

import time

import pytest
import skops.io

from tests.app.drawn import body_text, open_page
from tests.app.jobs.conftest import put
from tests.app.pages.test_train import TABLE
from txcls.app.jobs import train_model
from txcls.app.jobs.sessions import Session
from txcls.app.jobs.worker import Job
from txcls.checkpoint.comparison import Comparison
from txcls.training import speed
from txcls.training.auto.plan import TrainingPlan


def test_the_minutes_count_from_the_start_of_the_job_and_training_does_what_was_forecast(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading takes half a minute."""
    monkeypatch.setattr(speed, "SECONDS", 0.05)
    plans: list[TrainingPlan] = []

    def run_plan(plan: TrainingPlan, **_: object) -> None:
        plans.append(plan)
        raise InterruptedError

    monkeypatch.setattr(train_model, "run_plan", run_plan)
    spec = {**put(session, "table.csv", TABLE), "minutes": 2, "as": "mine"}
    folders = [session.job(kind) for kind in ("plan", "train")]
    for folder in (*folders, session.folder / "kept"):
        folder.mkdir(parents=True, exist_ok=True)
    long_ago = time.monotonic() - 30
    measured = train_model.run(Job(folders[0], "plan", {**spec, "only_plan": True}, started=long_ago))
    forecast = train_model.forecast(measured, 2)
    assert forecast["forecast"] > 30 and not forecast["shortage"]
    assert (
        "need at least"
        in train_model.forecast({**measured, "measured": measured["measured"] | {"planning": 90.0}}, 1)["shortage"]
    )
    job = Job(folders[1], "train", {**spec, "speed": forecast["speed"]}, started=time.monotonic() - 40)
    with pytest.raises(InterruptedError):
        train_model.run(job)
    [plan] = plans
    assert plan.seconds > 40 and plan.recipe.forecast == pytest.approx(forecast["forecast"])
    assert plan.recipe.epochs == forecast["epochs"]


@pytest.mark.slow
def test_a_linear_baseline_that_is_better_can_be_downloaded(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "SECONDS", 0.05)
    monkeypatch.setattr(Comparison, "linear_is_better", property(lambda _: True))
    folder = session.job("train")
    folder.mkdir(parents=True)
    train_model.run(Job(folder, "train", {**put(session, "table.csv", TABLE), "minutes": 0.05, "as": "mine"}))
    model = skops.io.load(session.folder / "downloads" / "mine.skops")
    assert model.predict(["please refund my bill", "my parcel is late"]).tolist() == ["money", "post"]
    assert "Download the linear baseline" in body_text(open_page("train", job=session.token))
