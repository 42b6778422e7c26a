"""Plan a training run on a visitor's rows, and train; the classifier is saved among the visitor's own."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from txcls.app.jobs.json_lines import append_line, write_json
from txcls.app.jobs.open_model import write_downloads
from txcls.app.jobs.own_table import READ_OPTIONS, Rows, StoredRows, labelled_rows, write_rows
from txcls.app.jobs.worker import Job
from txcls.app.shell.limits import limits
from txcls.checkpoint.schema import HistoryRow
from txcls.evaluation.report import classes_with_rows
from txcls.training.auto.choose_settings import RecipeInputs, choose_recipe
from txcls.training.auto.plan import TrainingPlan, choice_notes, plan_training, shortage, spare_time
from txcls.training.auto.run import RunProgress, run_plan
from txcls.training.speed import Speed

MAX_POINTS = 2000
"""Once a curve has this many points, only every second step is recorded; the interval doubles again each time half as
many points have been added."""
N_EXAMPLES, MAX_EXAMPLE_CHARACTERS, MAX_FALLBACK_CHARACTERS = 8, 400, 4000
"""Number of test texts stored as examples; their maximum length in characters, and the maximum if too few are short."""


def run(job: Job) -> dict[str, Any]:
    """Train, and return the results on the test rows; with `only_plan`, return the input of `forecast` instead."""
    job.progress("reading the rows", share=0.0)
    rows = labelled_rows(job.session, job.spec)
    job.progress("planning: counting tokens and measuring this server's speed", share=0.0)
    plan = _plan(job, rows)
    if job.spec.get("only_plan"):
        planning = plan.inputs.planning - plan.measuring  # training does not measure again
        return {
            "measured": {**plan.inputs.to_dict(), "planning": planning},
            "speed": asdict(plan.speed),
            "notes": plan.splits.notes,
        }
    before_training = set(shortage(plan.inputs, plan.recipe, plan.minutes, plan.speed))
    notes = [*rows.notes, *(note for note in plan.notes if note not in before_training)]
    summary: dict[str, Any] = {"notes": notes, "steps": plan.steps}
    write_json(job.folder / "plan.json", summary)
    outcome = _train(job, plan, _rows_to_store(rows, plan, job.spec))
    return summary | outcome | {"notes": [*notes, outcome["done"]]}


def _plan(job: Job, rows: Rows) -> TrainingPlan:
    """The plan with the speed of the forecast, however old: it then does what was forecast, and ends with the budget.

    With `only_plan`, the plan for one minute, so that the one-layer model is measured if it suits any budget.
    """
    minutes = min(float(job.spec.get("minutes", 1)), float(limits().minutes))
    name = str(job.spec.get("as", "mine"))
    speed = Speed.from_dict(job.spec["speed"]) if "speed" in job.spec else None
    return plan_training(
        rows.train,
        test=rows.test,
        minutes=minutes,
        name=name,
        source=rows.source,
        data=rows.data,
        speed=speed,
        planning=job.spec.get("planning"),
        started=job.started,
    )


def forecast(plan: Mapping[str, Any], minutes: int) -> dict[str, Any]:
    """Forecast a training run of `minutes` from `plan`, the result of a job with `only_plan`.

    Returns the total time in seconds ("forecast"), "epochs", whether each step reads its texts twice with different
    dropout ("reads_twice"), the number of rows for training ("training"), why the rest of the budget is not used
    ("spare"), "notes" on the split, the choices and the speed, a sentence if the budget is too short ("shortage"), and
    "spec": what the training job needs to follow this forecast.
    """
    inputs, speed = RecipeInputs.from_dict(plan["measured"]), Speed.from_dict(plan["speed"])
    recipe = choose_recipe(inputs, minutes=minutes)
    return {
        "forecast": recipe.forecast,
        "epochs": recipe.epochs,
        "reads_twice": recipe.consistency,
        "training": recipe.rows,
        "spare": " ".join(spare_time(inputs, recipe, minutes)),
        "notes": [
            *plan["notes"],
            *choice_notes(inputs, recipe, minutes),
            speed.of(one_layer=recipe.one_layer).sentence,
        ],
        "shortage": " ".join(shortage(inputs, recipe, minutes, speed)),
        "spec": {"speed": plan["speed"], "planning": inputs.planning},
    }


def _train(job: Job, plan: TrainingPlan, rows: StoredRows) -> dict[str, Any]:
    out = job.session / "own" / str(job.spec["as"])
    write_rows(job.session / "kept", out.name, rows, _examples(plan.splits.test.texts, plan.splits.test.labels))
    curves = _Curves(job, out)
    result = run_plan(
        plan,
        out=out,
        on_progress=curves.progress,
        on_epoch=curves.validation,
        should_stop=lambda: job.is_stopped,
        overwrite=True,
        command="the page Train of the app",
    )
    end = time.monotonic() + curves.packing
    job.progress("packing the files to download", share=1.0, phase="save", end=end)
    write_downloads(job.session, out.name)
    if result.comparison.linear_is_better_in_one:
        result.baseline.save(job.session / "downloads" / f"{out.name}.skops", plan.splits.training.classes)
    return {
        "name": out.name,
        "comparison": result.comparison.to_dict(),
        "tested": classes_with_rows(result.checkpoint.metrics["test"]),
        "seconds": result.seconds,
        "done": result.done,
        "is_complete": result.steps[0] == result.steps[1],
        "longer": result.longer and asdict(result.longer),
    }


def _rows_to_store(rows: Rows, plan: TrainingPlan, spec: Mapping[str, Any]) -> StoredRows:
    """The rows to store with a classifier trained by this plan."""
    classes = rows.train.classes
    splits = plan.splits
    given = splits.test.subset([] if splits.test_rows is not None else range(len(splits.test)))
    return StoredRows(
        texts=list(rows.train.texts),
        labels=[classes[label] for label in rows.train.labels],
        row_numbers=list(rows.row_numbers),
        test=[] if splits.test_rows is None else splits.test_rows.tolist(),
        given_test=(list(given.texts), [given.classes[label] for label in given.labels]),
        spec={name: spec[name] for name in ("file", "names", *READ_OPTIONS) if name in spec},
        trained=splits.training_rows.tolist(),
        validation=splits.validation_rows.tolist(),
    )


class _Curves:
    """Writes the progress and the points of the curves, and packs the classifier when it has been saved."""

    def __init__(self, job: Job, out: Path) -> None:
        self.job, self.out, self.points, self.every = job, out, 0, 1
        self.packing = 0.0  # seconds

    def progress(self, run_progress: RunProgress) -> None:
        """Write the progress; called after each step and at each stage."""
        names = ("share", "epoch", "epochs", "step", "steps", "loss", "accuracy", "tokens_per_second")
        self.job.progress(
            run_progress.message,
            now=not run_progress.step,
            end=time.monotonic() + run_progress.seconds_left,
            phase=run_progress.stage,
            **{name: getattr(run_progress, name) for name in names},
        )
        if run_progress.stage == "compare":  # packed before the comparison, which may run out of memory
            started = time.monotonic()
            write_downloads(self.job.session, self.out.name)
            self.packing = time.monotonic() - started
        if run_progress.step and run_progress.loss is not None and run_progress.step % self.every == 0:
            row = {"step": run_progress.step, "loss": run_progress.loss, "accuracy": run_progress.accuracy}
            append_line(self.job.folder / "curve.jsonl", row)
            self.points += 1
            if self.points >= MAX_POINTS:
                self.points, self.every = self.points // 2, 2 * self.every

    def validation(self, row: HistoryRow) -> None:
        """Write a point of the validation curves; called after each validation."""
        values = {"step": row.step, "loss": row.validation_loss, "accuracy": row.validation_accuracy, "best": row.best}
        append_line(self.job.folder / "validations.jsonl", values)


def _examples(texts: Sequence[str], labels: Sequence[int]) -> list[str]:
    """A few short test texts, from different classes where possible; if most texts are long, the shortest of those."""
    by_length = sorted(range(len(texts)), key=lambda row: len(texts[row]))
    shortest = {row for row in by_length[: 2 * N_EXAMPLES] if len(texts[row]) <= MAX_FALLBACK_CHARACTERS}
    short = [row for row, text in enumerate(texts) if len(text) <= MAX_EXAMPLE_CHARACTERS]
    if len(short) < N_EXAMPLES:
        short = sorted({*short, *shortest})
    first = {labels[row]: row for row in reversed(short)}
    order = [*sorted(first.values()), *(row for row in short if row not in first.values())]
    return list(dict.fromkeys(texts[row].strip() for row in order))[:N_EXAMPLES]
