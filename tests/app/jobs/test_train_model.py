"""Training jobs: the time budget starts with the job, training does what was forecast, and says what was done."""

import json
import time
from dataclasses import asdict
from typing import Any

import pytest
import skops.io

from tests.app.drawn import body_text, open_page
from tests.app.jobs.conftest import put
from tests.app.pages.test_train import TABLE
from txcls.app.jobs import train_model
from txcls.app.jobs.json_lines import write_json
from txcls.app.jobs.own_table import read_rows
from txcls.app.jobs.sessions import Session
from txcls.app.jobs.worker import Job
from txcls.app.shell import waiting
from txcls.checkpoint.comparison import Comparison
from txcls.training import speed
from txcls.training.auto import plan as planning
from txcls.training.auto import run as running
from txcls.training.auto.plan import TrainingPlan
from txcls.training.speed import Speed


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
    job = Job(folders[1], "train", {**spec, **forecast["spec"]}, started=time.monotonic() - 40)
    with pytest.raises(InterruptedError):
        train_model.run(job)
    plan = plans.pop()
    assert plan.seconds > 40 and plan.recipe.forecast == pytest.approx(forecast["forecast"])
    assert plan.recipe.epochs == forecast["epochs"]
    stored_rows = read_rows(session.folder / "kept", "mine")
    assert stored_rows is not None
    assert stored_rows.labelled(stored_rows.train, plan.splits.test.classes) == plan.splits.fitted, "in the same order"
    slow = {**spec, "minutes": 0.1, "speed": asdict(Speed(1, 5.0, ((1, 5.0),))), "planning": 0.0}
    with pytest.raises(InterruptedError):
        train_model.run(Job(folders[1], "train", slow))
    plan, stored_rows = plans.pop(), read_rows(session.folder / "kept", "mine")
    assert stored_rows is not None and len(plan.splits.unused)
    assert stored_rows.labelled(stored_rows.train, plan.splits.test.classes) == plan.splits.fitted, "with unused rows"


def test_training_follows_the_forecast_of_any_budget_without_measuring_again(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one minute the texts are long for the encoder, in fifteen they are not."""
    encoder, one_layer = Speed(2, 300.0, ((1, 200.0), (2, 300.0))), Speed(1, 900.0, ((1, 900.0),))
    speeds, plans = [encoder, one_layer], []
    clock, measured_seconds = time.monotonic, [0]

    def measure_speed(*_: object) -> Speed:
        measured_seconds[0] += 100
        return speeds.pop(0)  # fails if called a third time

    monkeypatch.setattr(time, "monotonic", lambda: clock() + measured_seconds[0])
    monkeypatch.setattr(planning, "measure_speed", measure_speed)

    def run_plan(plan: TrainingPlan, **_: object) -> None:
        plans.append(plan)
        raise InterruptedError

    monkeypatch.setattr(train_model, "run_plan", run_plan)
    long = TABLE.replace("please ", "please send it to me " * 60).replace(" late", " late for us" * 100)
    spec = put(session, "table.csv", long)
    for kind in ("plan", "train"):
        session.job(kind).mkdir(parents=True)
    measured = train_model.run(Job(session.job("plan"), "plan", {**spec, "only_plan": True}))
    assert not speeds and measured["measured"]["planning"] < 100, "training will not take time to measure"
    for minutes in (1, 15):
        forecast = train_model.forecast(json.loads(json.dumps(measured)), minutes)
        train_spec = {**spec, **forecast["spec"], "minutes": minutes, "as": "mine"}
        with pytest.raises(InterruptedError):
            train_model.run(Job(session.job("train"), "train", train_spec))
        plan = plans[-1]
        assert (plan.recipe.forecast, plan.recipe.epochs) == (forecast["forecast"], forecast["epochs"])
        assert plan.recipe.one_layer == (minutes == 1)
        assert plan.speed.of(one_layer=plan.recipe.one_layer).threads == (1 if minutes == 1 else 2)
        assert set(forecast["notes"]) <= set(plan.notes)
    inputs = measured["measured"] | {"planning": 90.0}
    assert "Training and comparison may take" in train_model.forecast({**measured, "measured": inputs}, 1)["shortage"]


@pytest.mark.slow
def test_the_result_leads_to_its_report_and_offers_a_linear_baseline_that_is_better(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speed, "SECONDS", 0.05)
    monkeypatch.setattr(Comparison, "linear_is_better_in_one", property(lambda _: True))
    folder = session.job("train")
    folder.mkdir(parents=True)
    spec = {**put(session, "table.csv", TABLE), "minutes": 0.05, "as": "mine"}
    seconds_left: dict[str, float] = {}
    progress = Job.progress

    def note(job: Job, stage: str, **values: Any) -> None:
        seconds_left[stage] = values.get("end", 0.0) - time.monotonic()
        progress(job, stage, **values)

    monkeypatch.setattr(Job, "progress", note)
    outcome = train_model.run(Job(folder, "train", spec))
    assert seconds_left["packing the files to download"] > 0 and outcome["notes"][-1] == outcome["done"]
    assert seconds_left["comparing with the linear baseline on the test rows"] > 1
    model = skops.io.load(session.folder / "downloads" / "mine.skops")
    assert model.predict(["please refund my bill", "my parcel is late"]).tolist() == ["money", "post"]
    write_json(folder / "job.json", {"kind": "train", "id": "ended", "spec": spec, "since": 0.0})
    write_json(folder / "result.json", outcome)
    app = open_page("train", job=session.token)
    text = body_text(app)
    assert text.count("Download the linear baseline") == 2, "in the result, and in the list of classifiers"
    assert "python -m txcls" not in text
    links = [link.proto for link in app.get("page_link")][:3]
    assert [link.label for link in links] == ["Report →", "Classify →", "Batch →"]
    assert all("mine" in link.query_string for link in links)


@pytest.mark.slow
def test_a_classifier_that_was_hardly_trained_is_called_so_and_the_time_that_it_needs_is_offered(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The forecast was for a speed that the server does not reach."""
    monkeypatch.setattr(running, "MIN_SECONDS", 0.5)
    folder = session.job("train")
    folder.mkdir(parents=True)
    fast = Speed(1, 1e6, ((1, 1e6),))
    spec = {**put(session, "table.csv", TABLE), "minutes": 0.05, "as": "mine", "speed": asdict(fast), "planning": 0.0}
    outcome = json.loads(json.dumps(train_model.run(Job(folder, "train", spec))))
    made, planned = Comparison.from_dict(outcome["comparison"]).steps or (0, 0)
    assert 0 < made < planned / 2 and outcome["longer"]["speed"]["tokens_per_second"] < 5e5
    write_json(folder / "job.json", {"kind": "train", "id": "ended", "spec": spec, "since": 0.0})
    write_json(folder / "result.json", outcome)
    started: list[dict[str, Any]] = []
    monkeypatch.setattr(waiting, "start", lambda kind, spec: started.append(spec))
    app = open_page("train", job=session.token)
    minutes = outcome["longer"]["minutes"]
    body = body_text(app)
    assert "The machine was slower than planned for. This classifier has hardly been trained." in body
    assert f"all planned steps take about {minutes} minute" in body and "is ready" not in body
    app.button(key="train_again").click().run()
    slower = {name: outcome["longer"][name] for name in ("minutes", "speed")}
    assert started[0] == {**spec, **slower, "as": "my_table"}, "at the speed of this run, under another name"
