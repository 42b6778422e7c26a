"""A classifier of one's own: `plan_own` chooses everything from the rows and a time budget, `train_own` does it.

    python -m txcls train mine.csv
    python -m txcls train mine.csv --test more.csv --minutes 10

    plan = plan_own(rows, minutes=5)
    print(*plan.notes, sep="\\n")
    result = train_own(plan, out=Path("checkpoints/mine"))
    print(result.comparison.verdict)

Test rows are held out first and read only once, after training; the linear SVM that the Transformer is compared with
learns from all other rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from txcls.baseline import Comparison
from txcls.checkpoint import Checkpoint
from txcls.config import RunConfig
from txcls.data.types import LabelledTexts
from txcls.evaluation import Evaluation
from txcls.training.loop import HistoryRow

Indices = NDArray[np.int64]

Stage = Literal["prepare", "read", "learn", "calibrate", "compare", "save"]
"""What a run is at: tokenising, learning the texts' words without labels, learning the labels, fitting the calibration,
the linear SVM and the test rows, and saving."""


@dataclass(frozen=True, eq=False)
class OwnPlan:
    """Everything that is decided before training.

    Attributes:
        config: all settings; `config.name` is the checkpoint's default name, `config.title` says what it classifies.
        training, validation, test: the parts of the data; they share no text.
        training_rows, validation_rows, test_rows: which of the rows given these are, counted from 0; `test_rows` is
            empty where test rows were given separately.
        given_test: whether test rows were given separately.
        init: the pre-trained model to start from; None for random weights.
        minutes: the budget.
        epochs, steps: of training with labels.
        max_length: tokens that are read of a text.
        threads: processor threads, the fastest number that was measured.
        tokens_per_second: measured while training for a few steps on this machine.
        forecast: seconds from start to end, linear SVM included.
        notes: plain sentences on what was chosen and why.
    """

    config: RunConfig
    training: LabelledTexts
    validation: LabelledTexts
    test: LabelledTexts
    training_rows: Indices
    validation_rows: Indices
    test_rows: Indices
    given_test: bool
    init: Checkpoint | None
    minutes: float
    epochs: int
    steps: int
    max_length: int
    threads: int
    tokens_per_second: float
    forecast: float
    notes: tuple[str, ...]

    @property
    def classes(self) -> tuple[str, ...]:
        """The class names, in the order of the logits."""
        return self.training.classes

    @property
    def n_training(self) -> int:
        """Rows to learn from."""
        return len(self.training)

    @property
    def n_validation(self) -> int:
        """Rows that fit the calibration."""
        return len(self.validation)

    @property
    def n_test(self) -> int:
        """Rows that measure the result."""
        return len(self.test)


@dataclass(frozen=True, slots=True)
class OwnProgress:
    """How far a run is, after a step; `share` and `seconds_left` are of the whole run.

    Attributes:
        stage: what it is at.
        share: done, from 0 to 1.
        seconds_left: forecast by the speed so far.
        epoch, epochs, step, steps: of this stage; 0 in stages without steps.
        loss, accuracy: over the last steps on training rows; None in stages without steps.
        tokens_per_second: of these steps; None likewise.
        message: the stage in words.
    """

    stage: Stage
    share: float
    seconds_left: float
    epoch: int = 0
    epochs: int = 0
    step: int = 0
    steps: int = 0
    loss: float | None = None
    accuracy: float | None = None
    tokens_per_second: float | None = None
    message: str = ""


@dataclass(frozen=True, eq=False)
class OwnResult:
    """What came out.

    Attributes:
        checkpoint: the classifier; its metrics hold "test" and "comparison", its `path` the folder or None.
        comparison: beside the majority guess and the linear SVM on the test rows.
        evaluation: the Transformer's figures on the test rows, by class, length and confidence.
        linear_answers: the linear SVM's class of each test row (M,), in the order of `plan.test`.
        answers: the Transformer's (M,).
        seconds: from start to end.
        stopped_early: whether `should_stop` ended it.
    """

    checkpoint: Checkpoint
    comparison: Comparison
    evaluation: Evaluation
    linear_answers: NDArray[np.int64]
    answers: NDArray[np.int64]
    seconds: float
    stopped_early: bool


def plan_own(
    rows: LabelledTexts,
    *,
    test: LabelledTexts | None = None,
    minutes: float = 5.0,
    seed: int = 0,
    init: Checkpoint | Literal["encoder"] | None = "encoder",
    name: str = "mine",
    source: str = "texts of your own",
) -> OwnPlan:
    """Choose parts of the data and all settings from the rows and the time budget; takes a few seconds of measuring.

    Args:
        rows: all labelled rows.
        test: test rows; None holds some of `rows` out. Rows of classes that `rows` lacks are left out, with a note.
        minutes: the budget for everything that `train_own` does.
        seed: of the split, the weights and the order of the rows.
        init: a model made by `pretrain` to start from; "encoder" for the shipped one if it is there; None for random
            weights.
        name: of the checkpoint: letters, digits, `_`, `.` and `-`.
        source: what the rows are, for the title and the card: the file's name.

    Raises:
        DataError: fewer than two classes, too few rows, or labels that do not repeat; the message says what to do.
        TrainingError: `init` is a classifier.
    """
    from txcls.training.own_plan import planned

    return planned(rows, test=test, minutes=minutes, seed=seed, init=init, name=name, source=source)


def train_own(
    plan: OwnPlan,
    *,
    out: Path | None,
    on_progress: Callable[[OwnProgress], None] | None = None,
    on_epoch: Callable[[HistoryRow], None] | None = None,
    on_stage: Callable[[str], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    command: str = "",
) -> OwnResult:
    """Train as planned, compare with the linear SVM on the test rows, and save.

    Ctrl-C and SIGTERM save the state beside `out`, from which `resume` continues with the same plan; `should_stop` ends
    training early instead, and what has been learned so far is measured and saved.

    Args:
        plan: from `plan_own`.
        out: the checkpoint folder to write; None for none.
        on_progress: called after each step and at each stage.
        on_epoch: called after each validation.
        on_stage: called with a message at each stage.
        should_stop: asked after each step; once it is true, training ends with what there is.
        resume: continue an interrupted run of the same plan.
        overwrite: discard the saved state of an interrupted run.
        command: the command line for the model card.

    Raises:
        TrainingError, TrainingInterruptedError, CheckpointError: as `txcls.training.train`.
    """
    from txcls.training.own_run import run_own

    return run_own(
        plan,
        out=out,
        on_progress=on_progress,
        on_epoch=on_epoch,
        on_stage=on_stage,
        should_stop=should_stop,
        resume=resume,
        overwrite=overwrite,
        command=command,
    )
