"""What a person sees while a classifier of their own is trained: one bar for the whole run, on standard error."""

from typing import Any, Self

from rich.progress import TaskProgressColumn

from txcls.checkpoint.schema import HistoryRow
from txcls.training.auto.types import OwnProgress
from txcls.training.display import Display, time_left
from txcls.wording import percentage


class OwnDisplay(Display):
    """The display of `train_own`, which gets its `callbacks`."""

    def __init__(self, *, shown: bool) -> None:
        super().__init__(TaskProgressColumn(), shown=shown)

    def __enter__(self) -> Self:
        super().__enter__()
        self._task = self._bar.add_task("preparing", total=1.0, facts="")
        return self

    @property
    def callbacks(self) -> dict[str, Any]:
        """The keyword arguments of `train_own` that report."""
        return {"on_progress": self._progress, "on_epoch": self._epoch}

    def _progress(self, progress: OwnProgress) -> None:
        facts = []
        if progress.loss is not None:
            facts.append(f"loss {progress.loss:.3f}")
        if progress.accuracy is not None:
            facts.append(f"accuracy {percentage(progress.accuracy)}")
        if progress.tokens_per_second is not None:
            facts.append(f"{progress.tokens_per_second:,.0f} tokens/s")
        facts.append(time_left(progress.seconds_left))
        counted = f", epoch {progress.epoch}/{progress.epochs}" if progress.epochs else ""
        self._bar.update(
            self._task,
            completed=progress.share,
            description=f"{progress.message}{counted}",
            facts="  ".join(facts),
        )

    def _epoch(self, row: HistoryRow) -> None:
        self.say(
            f"epoch {row.epoch}: training accuracy {percentage(row.train_accuracy)}, "
            f"on validation rows {percentage(row.validation_accuracy)}"
        )
