"""What a person sees of a training run: a progress bar, its stages and a line per validation, on standard error."""

from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, TextColumn
from rich.progress import Progress as Bar

from txcls.checkpoint.schema import HistoryRow
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
        self._task: Any = None

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


class TrainingDisplay(Display):
    """The display of a run of `train` or `pretrain`, which get its `callbacks`."""

    @property
    def callbacks(self) -> dict[str, Any]:
        """The keyword arguments of `train` and `pretrain` that report."""
        return {"on_stage": self.say, "on_step": self._step, "on_validation": self._validation}

    def _step(self, progress: Progress) -> None:
        if self._task is None:
            self._task = self._bar.add_task("", total=progress.total_steps, facts="")
        self._bar.update(
            self._task,
            completed=progress.step,
            description=f"epoch {progress.epoch}/{progress.epochs}",
            facts=f"loss {progress.loss:.4f}  accuracy {percentage(progress.accuracy, 2)}  "
            f"{progress.tokens_per_second:,.0f} tokens/s  {time_left(progress.seconds_left)}",
        )

    def _validation(self, row: HistoryRow) -> None:
        self.say(
            f"epoch {row.epoch} step {row.step}: "
            f"train loss {row.train_loss:.4f} accuracy {percentage(row.train_accuracy, 2)}, "
            f"validation loss {row.validation_loss:.4f} accuracy {percentage(row.validation_accuracy, 2)}"
            f"{' (best so far)' if row.best else ''}, {row.tokens_per_second:,.0f} tokens/s, {row.seconds:.0f} s"
        )


def time_left(seconds: float) -> str:
    """Minutes and seconds, as in "2:05 left"."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d} left"
