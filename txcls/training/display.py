"""Show a training run on standard error: a progress bar, messages, and one line per validation."""

from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

from txcls.checkpoint.schema import HistoryRow
from txcls.training.auto.run import RunProgress
from txcls.training.distributed import rank
from txcls.training.loop import Progress
from txcls.wording import percentage


class TrainingDisplay:
    """A progress bar, used as a context manager; shows nothing unless `shown` is true.

    In a notebook, which has no terminal, the bar is printed once at the end.
    """

    def __init__(self, *, shown: bool) -> None:
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[facts]}"),
            # In a notebook, Rich would draw the bar with ipywidgets, which may not be installed.
            console=Console(stderr=True, quiet=not shown or rank() > 0, force_jupyter=False),
        )
        self._task = self._bar.add_task("", total=None, facts="", visible=False)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    @property
    def callbacks(self) -> dict[str, Any]:
        """Keyword arguments of `train` and `pretrain`."""
        return {"on_stage": self.say, "on_step": self._step, "on_validation": self._validation}

    @property
    def plan_callbacks(self) -> dict[str, Any]:
        """Keyword arguments of `run_plan`."""
        return {"on_progress": self._progress}

    def say(self, sentence: str) -> None:
        """Print a sentence above the bar."""
        self._bar.console.print(sentence, highlight=False, markup=False)

    def _step(self, progress: Progress) -> None:
        description = f"epoch {progress.epoch}/{progress.epochs}"
        self._update(description, progress, completed=progress.step, total=progress.total_steps)

    def _progress(self, progress: RunProgress) -> None:
        epoch = f", epoch {progress.epoch}/{progress.epochs}" if progress.epochs else ""
        self._update(f"{progress.message}{epoch}", progress, completed=progress.share, total=1.0)

    def _update(self, description: str, progress: Progress | RunProgress, *, completed: float, total: float) -> None:
        facts = []
        if progress.loss is not None and progress.accuracy is not None:
            facts = [
                f"loss {progress.loss:.4f}",
                f"accuracy {percentage(progress.accuracy, 2)}",
                f"{progress.tokens_per_second:,.0f} tokens/s",
            ]
        minutes, seconds = divmod(round(progress.seconds_left), 60)
        facts.append(f"{minutes}:{seconds:02d} left")
        self._bar.update(
            self._task, description=description, completed=completed, total=total, facts="  ".join(facts), visible=True
        )

    def _validation(self, row: HistoryRow) -> None:
        self.say(
            f"epoch {row.epoch} step {row.step}: "
            f"train loss {row.train_loss:.4f} accuracy {percentage(row.train_accuracy, 2)}, "
            f"validation loss {row.validation_loss:.4f} accuracy {percentage(row.validation_accuracy, 2)}"
            f"{' (best so far)' if row.best else ''}, {row.tokens_per_second:,.0f} tokens/s, {row.seconds:.0f} s"
        )
