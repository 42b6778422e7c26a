"""Show a training run on standard error: a progress bar, messages, and one line per validation."""

from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

from txcls.checkpoint.schema import HistoryRow
from txcls.text.formatting import percentage
from txcls.training.distributed import rank
from txcls.training.loop import Progress


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
        return {"on_stage": self.say, "on_step": self._show_step, "on_validation": self._show_validation}

    def say(self, sentence: str) -> None:
        """Print a sentence above the bar."""
        self._bar.console.print(sentence, highlight=False, markup=False)

    def _show_step(self, progress: Progress) -> None:
        minutes, seconds = divmod(round(progress.seconds_left), 60)
        facts = (
            f"loss {progress.loss:.4f}  accuracy {percentage(progress.accuracy, 2)}  "
            f"{progress.tokens_per_second:,.0f} tokens/s  {minutes}:{seconds:02d} left"
        )
        description = f"epoch {progress.epoch}/{progress.epochs}"
        self._bar.update(
            self._task,
            description=description,
            completed=progress.step,
            total=progress.total_steps,
            facts=facts,
            visible=True,
        )

    def _show_validation(self, row: HistoryRow) -> None:
        self.say(
            f"epoch {row.epoch} step {row.step}: "
            f"train loss {row.train_loss:.4f} accuracy {percentage(row.train_accuracy, 2)}, "
            f"validation loss {row.validation_loss:.4f} accuracy {percentage(row.validation_accuracy, 2)}"
            f"{' (best so far)' if row.best else ''}, {row.tokens_per_second:,.0f} tokens/s, {row.seconds:.0f} s"
        )
