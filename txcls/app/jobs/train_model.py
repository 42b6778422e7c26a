"""Plan a training on a visitor's rows, and train: the classifier lands among the visitor's own."""

import shutil
import time
from collections.abc import Mapping, Sequence
from typing import Any

from txcls.app.jobs import files
from txcls.app.jobs.own_files import KeptRows, Rows, labelled_rows, write_kept
from txcls.app.jobs.worker import Job
from txcls.app.shell.limits import limits
from txcls.checkpoint.schema import HistoryRow
from txcls.training.auto import OwnPlan, OwnProgress, plan_own, train_own
from txcls.training.auto.recipe import Measured, recipe_for
from txcls.training.speed import Speed

MOST_POINTS = 2000
"""Points of a curve after which only every second one is written, and so on."""
EXAMPLES, LONGEST_EXAMPLE, LONGEST_OF_LONG = 8, 400, 4000
"""How many test texts are kept to try, and most characters of one, where texts are short and where they are long."""
SPEED_HOLDS = 300.0
"""Seconds for which the speed of the forecast is that of the training too, which then does what was forecast; later, as
after a wait in the queue, the server may be more or less busy, and it is measured again."""


def run(job: Job) -> dict[str, Any]:
    """Train, and say how the classifier does on the test rows; with `only_plan`, what `forecast` needs."""
    job.tell("reading the rows", share=0.0)
    rows = labelled_rows(job.desk, job.spec)
    job.tell("planning: counting tokens and measuring this server's speed", share=0.0)
    plan = _planned(job, rows)
    if job.spec.get("only_plan"):
        return {
            "measured": plan.measured.to_dict(),
            "threads": plan.threads,
            "at": time.time(),
            "validation": plan.n_validation,
            "test": plan.n_test,
        }
    about: dict[str, Any] = {
        "notes": [*rows.notes, *plan.notes],
        "forecast": plan.forecast,
        "epochs": plan.epochs,
        "runs": plan.config.train.runs,
        "steps": plan.steps,
        "tokens_per_second": plan.tokens_per_second,
        "threads": plan.threads,
        "training": plan.n_training,
        "validation": plan.n_validation,
        "unused": len(plan.unused),
        "test": plan.n_test,
        "classes": len(plan.classes),
    }
    files.write(job.folder / "plan.json", about)
    return about | _trained(job, plan, _kept_rows(rows, plan, job.spec))


def _planned(job: Job, rows: Rows) -> OwnPlan:
    minutes = min(float(job.spec.get("minutes", limits().minutes)), float(limits().minutes))
    name = str(job.spec.get("as", "mine"))
    speed = None
    if (known := job.spec.get("speed")) and time.time() - known["at"] < SPEED_HOLDS:
        threads, rate = int(known["threads"]), float(known["tokens_per_second"])
        speed = Speed(threads, rate, ((threads, rate),))
    return plan_own(
        rows.train,
        test=rows.test,
        minutes=minutes,
        name=name,
        source=rows.source,
        columns=rows.columns,
        speed=speed,
    )


def forecast(found: Mapping[str, Any], minutes: int) -> dict[str, Any]:
    """What a training would do within these minutes, by what a job with `only_plan` has found.

    Returns the seconds of all ("forecast"), "epochs", "runs", rows to learn from ("training") and rows that do not fit
    into the time ("unused"), "validation", "test", and the measured "speed" for the job that trains.
    """
    measured = Measured.from_dict(found["measured"])
    recipe = recipe_for(measured, minutes=minutes)
    speed = {"threads": found["threads"], "tokens_per_second": measured.tokens_per_second, "at": found["at"]}
    return {
        "forecast": recipe.seconds + recipe.overhead,
        "epochs": recipe.epochs,
        "runs": recipe.runs,
        "training": recipe.rows,
        "unused": measured.n - recipe.rows,
        "validation": found["validation"],
        "test": found["test"],
        "speed": speed,
    }


def _trained(job: Job, plan: OwnPlan, kept: KeptRows) -> dict[str, Any]:
    out = job.desk / "own" / str(job.spec["as"])
    teller = _Teller(job)
    end = time.monotonic() + 60 * plan.minutes  # a busy server is slower than it was when measured

    def is_over() -> bool:
        return job.is_stopped or time.monotonic() > end

    try:
        result = train_own(
            plan,
            out=out,
            on_progress=teller.progress,
            on_epoch=teller.epoch,
            should_stop=is_over,
            overwrite=True,
            command="the page Train of the app",
        )
        job.check()
    except BaseException:
        shutil.rmtree(out, ignore_errors=True)
        shutil.rmtree(out.with_name(f"{out.name}.training"), ignore_errors=True)
        raise
    write_kept(job.desk / "kept", out.name, kept, _examples(plan.test.texts, plan.test.labels))
    return {
        "name": out.name,
        "comparison": result.comparison.to_dict(),
        "verdict": result.comparison.verdict,
        "seconds": result.seconds,
        "stopped_early": result.stopped_early,
        "asked_to_stop": job.is_stopped,
    }


def _kept_rows(rows: Rows, plan: OwnPlan, spec: Mapping[str, Any]) -> KeptRows:
    """What is kept of the rows that a plan trains on."""
    classes = rows.train.classes
    given = plan.test if plan.given_test else plan.test.subset([])
    return KeptRows(
        texts=list(rows.train.texts),
        labels=[classes[label] for label in rows.train.labels],
        places=list(rows.places),
        test=[int(row) for row in plan.test_rows],
        given_test=(list(given.texts), [given.classes[label] for label in given.labels]),
        spec={name: spec[name] for name in ("file", "names", "text_column", "label_column") if name in spec},
    )


class _Teller:
    """Writes the progress, and the points of the curves."""

    def __init__(self, job: Job) -> None:
        self.job, self.points, self.every = job, 0, 1

    def progress(self, now: OwnProgress) -> None:
        """Called after each step and at each stage."""
        known = {
            name: getattr(now, name)
            for name in ("share", "seconds_left", "epoch", "epochs", "step", "steps", "loss", "accuracy")
        }
        self.job.tell(now.message or now.stage, now=not now.step, tokens_per_second=now.tokens_per_second, **known)
        if now.step and now.loss is not None and now.step % self.every == 0:
            row = {"step": now.step, "loss": now.loss, "accuracy": now.accuracy}
            files.append(self.job.folder / "curve.jsonl", row)
            self.points += 1
            if self.points >= MOST_POINTS:
                self.points, self.every = self.points // 2, 2 * self.every

    def epoch(self, row: HistoryRow) -> None:
        """Called after each validation."""
        values = {"step": row.step, "loss": row.validation_loss, "accuracy": row.validation_accuracy, "best": row.best}
        files.append(self.job.folder / "validations.jsonl", values)


def _examples(texts: Sequence[str], labels: Sequence[int]) -> list[str]:
    """Some short test texts, of different classes as far as there are any; of long ones the shortest."""
    by_length = sorted(range(len(texts)), key=lambda place: len(texts[place]))
    few = {place for place in by_length[: 2 * EXAMPLES] if len(texts[place]) <= LONGEST_OF_LONG}
    short = [place for place, text in enumerate(texts) if len(text) <= LONGEST_EXAMPLE]
    if len(short) < EXAMPLES:
        short = sorted({*short, *few})
    first = {labels[place]: place for place in reversed(short)}
    order = [*sorted(first.values()), *(place for place in short if place not in first.values())]
    return list(dict.fromkeys(texts[place].strip() for place in order))[:EXAMPLES]
