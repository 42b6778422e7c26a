"""Show a training run on standard error: a progress bar, its stages and a line per validation."""

from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, TaskProgressColumn, TextColumn
from rich.progress import Progress as Bar

from txcls.checkpoint.schema import HistoryRow
from txcls.training.auto.run import RunProgress
from txcls.training.loop import Progress
from txcls.wording import percentage


class Display:
    """A progress bar with facts at its end, on standard error; open it as a context. Silent unless `shown`.

    In a notebook, which has no terminal, the bar is printed once, at the end.
    """

    def __init__(self, *columns: ProgressColumn, shown: bool) -> None:
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            *columns,
            TextColumn("{task.fields[facts]}"),
            # Rich would show its bar in a notebook through ipywidgets, which need not be installed.
            console=Console(stderr=True, quiet=not shown, force_jupyter=False),
        )
        self._task = self._bar.add_task("", total=None, facts="", visible=False)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def say(self, sentence: str) -> None:
        """Print a sentence above the bar."""
        self._bar.console.print(sentence, highlight=False, markup=False)

    def _update(self, description: str, *, completed: float, total: float, facts: list[str]) -> None:
        self._bar.update(
            self._task, description=description, completed=completed, total=total, facts="  ".join(facts), visible=True
        )


class TrainingDisplay(Display):
    """The display of a run of `train` or `pretrain`, which get its `callbacks`."""

    @property
    def callbacks(self) -> dict[str, Any]:
        """The keyword arguments of `train` and `pretrain` that report."""
        return {"on_stage": self.say, "on_step": self._step, "on_validation": self._validation}

    def _step(self, progress: Progress) -> None:
        self._update(
            f"epoch {progress.epoch}/{progress.epochs}",
            completed=progress.step,
            total=progress.total_steps,
            facts=[
                f"loss {progress.loss:.4f}",
                f"accuracy {percentage(progress.accuracy, 2)}",
                f"{progress.tokens_per_second:,.0f} tokens/s",
                _time_left(progress.seconds_left),
            ],
        )

    def _validation(self, row: HistoryRow) -> None:
        self.say(
            f"epoch {row.epoch} step {row.step}: "
            f"train loss {row.train_loss:.4f} accuracy {percentage(row.train_accuracy, 2)}, "
            f"validation loss {row.validation_loss:.4f} accuracy {percentage(row.validation_accuracy, 2)}"
            f"{' (best so far)' if row.best else ''}, {row.tokens_per_second:,.0f} tokens/s, {row.seconds:.0f} s"
        )


class PlanDisplay(Display):
    """The progress display for `run_plan`, to which its `callbacks` are passed: one bar for the whole run."""

    def __init__(self, *, shown: bool) -> None:
        super().__init__(TaskProgressColumn(), shown=shown)

    @property
    def callbacks(self) -> dict[str, Any]:
        """The keyword arguments of `run_plan` that report."""
        return {"on_progress": self._progress}

    def _progress(self, progress: RunProgress) -> None:
        facts = []
        if progress.loss is not None and progress.accuracy is not None:
            facts = [
                f"loss {progress.loss:.3f}",
                f"accuracy {percentage(progress.accuracy)}",
                f"{progress.tokens_per_second:,.0f} tokens/s",
            ]
        facts.append(_time_left(progress.seconds_left))
        epoch = f", epoch {progress.epoch}/{progress.epochs}" if progress.epochs else ""
        self._update(f"{progress.message}{epoch}", completed=progress.share, total=1.0, facts=facts)


def _time_left(seconds: float) -> str:
    """Minutes and seconds, as in "2:05 left"."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d} left"
