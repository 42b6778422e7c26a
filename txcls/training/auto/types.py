"""What `txcls.training.auto` takes and gives: a plan, progress, and the result."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.comparison import Comparison
from txcls.config import RunConfig
from txcls.data.types import LabelledTexts
from txcls.evaluation.evaluate import Evaluation
from txcls.training.auto.recipe import Measured

Indices = NDArray[np.int64]

Stage = Literal["prepare", "read", "learn", "calibrate", "compare", "save"]
"""What a run is at: tokenising, learning the texts' words without labels, learning the labels, fitting the calibration,
the linear baseline and the test rows, and saving."""


@dataclass(frozen=True, eq=False)
class OwnPlan:
    """Everything that is decided before training.

    Attributes:
        config: all settings; `config.name` is the checkpoint's default name, `config.title` says what it classifies.
        training, validation, test: the parts of the data; they share no text.
        unused: training rows that do not fit into the budget, from which only the linear baseline learns; mostly none.
        training_rows, validation_rows, test_rows: which of the rows given these are, counted from 0; `test_rows` is
            empty where test rows were given separately.
        given_test: whether test rows were given separately.
        init: the pre-trained model to start from; None for random weights.
        minutes: the budget.
        epochs: of training, in each of `config.train.runs` runs.
        steps: of all runs.
        max_length: tokens that are read of a text.
        threads: processor threads, the fastest number that was measured.
        tokens_per_second: measured while training for a few steps on this machine.
        measured: what the recipe was chosen by, from which `recipe_for` forecasts other budgets.
        forecast: seconds from start to end, linear baseline included.
        overhead: of these, the seconds after training: the linear baseline, measuring and saving.
        notes: plain sentences on what was chosen and why.
    """

    config: RunConfig
    training: LabelledTexts
    validation: LabelledTexts
    test: LabelledTexts
    unused: LabelledTexts
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
    measured: Measured
    forecast: float
    overhead: float
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
        comparison: beside the majority guess and the linear baseline on the test rows.
        evaluation: the Transformer's figures on the test rows, by class, length and confidence.
        linear_answers: the linear baseline's class of each test row (M,), in the order of `plan.test`.
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
