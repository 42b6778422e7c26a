"""What a person sees while a classifier of their own is trained: one bar for the whole run, on standard error."""

from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn
from rich.progress import Progress as Bar

from txcls.training.loop import HistoryRow
from txcls.training.own_types import OwnProgress


class OwnDisplay:
    """Open it as a context and give `callbacks` to `train_own`; silent unless `shown`."""

    def __init__(self, *, shown: bool) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[facts]}"),
        )
        self._bar = Bar(*columns, console=Console(stderr=True, quiet=not shown, force_jupyter=False))
        self._task: Any = None

    def __enter__(self) -> Self:
        self._bar.start()
        self._task = self._bar.add_task("preparing", total=1.0, facts="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    @property
    def callbacks(self) -> dict[str, Any]:
        """The keyword arguments of `train_own` that report."""
        return {"on_progress": self._progress, "on_epoch": self._epoch}

    def say(self, sentence: str) -> None:
        """Print a sentence above the bar."""
        self._bar.console.print(sentence, highlight=False, markup=False)

    def _progress(self, progress: OwnProgress) -> None:
        minutes, seconds = divmod(round(progress.seconds_left), 60)
        facts = []
        if progress.loss is not None:
            facts.append(f"loss {progress.loss:.3f}")
        if progress.accuracy is not None:
            facts.append(f"accuracy {progress.accuracy:.1%}")
        if progress.tokens_per_second is not None:
            facts.append(f"{progress.tokens_per_second:,.0f} tokens/s")
        facts.append(f"{minutes}:{seconds:02d} left")
        counted = f", epoch {progress.epoch}/{progress.epochs}" if progress.epochs else ""
        self._bar.update(
            self._task,
            completed=progress.share,
            description=f"{progress.message}{counted}",
            facts="  ".join(facts),
        )

    def _epoch(self, row: HistoryRow) -> None:
        self._bar.console.print(
            f"epoch {row.epoch}: training accuracy {row.train_accuracy:.1%}, "
            f"on validation rows {row.validation_accuracy:.1%}",
            highlight=False,
        )
