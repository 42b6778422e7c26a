"""The linear model that `train FILE` saves beside a Transformer where it is the better one: one scikit-learn pipeline.

model = load_linear(Path("checkpoints/mine/linear.skops"))
model.predict_proba(["where is my parcel"])   # (1, C), in the order of model.classes

The file needs no txcls: `skops.io.load(path).predict(texts)` gives the class names.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZIP_DEFLATED

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.folders import LINEAR
from txcls.errors import CheckpointError
from txcls.evaluation.baseline import BATCH_ROWS, MAX_CHARACTERS, LinearBaseline
from txcls.runtime.files import replacing
from txcls.runtime.pause import may_pause

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

TRUSTED: list[str] = []
"""Types that the file may hold beyond skops' own list, which has scikit-learn's estimators and NumPy's arrays."""


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A fitted scikit-learn pipeline from texts to class names; `classes` are in the order of its probabilities."""

    pipeline: "Pipeline"
    classes: tuple[str, ...]

    def predict_proba(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """The probability of each class for each of N texts, (N, C)."""
        parts = [np.zeros((0, len(self.classes)))]
        for start in range(0, len(texts), BATCH_ROWS):
            may_pause()
            batch = [text[:MAX_CHARACTERS] for text in texts[start : start + BATCH_ROWS]]
            parts.append(self.pipeline.predict_proba(batch))
        return np.concatenate(parts)

    def probabilities_of(self, classes: Sequence[str], texts: Sequence[str]) -> NDArray[np.float64]:
        """The probabilities of N texts for these C classes, (N, C): 0 for a class that it does not know.

        The row of a text without words is nan.
        """
        rows = np.zeros((len(texts), len(classes)))
        rows[:, [list(classes).index(name) for name in self.classes]] = self.predict_proba(texts)
        rows[[not text.strip() for text in texts]] = np.nan
        return rows

    def predict(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """The index of the most probable class of each of N texts, (N,)."""
        best: NDArray[np.int64] = self.predict_proba(texts).argmax(axis=1)
        return best


def save_linear(baseline: LinearBaseline, path: Path, classes: Sequence[str]) -> Path:
    """Save a fitted baseline as a pipeline that predicts these class names; returns the path.

    Raises:
        OSError: the file cannot be written.
    """
    import skops.io

    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        skops.io.dump(baseline.as_pipeline(classes), temporary, compression=ZIP_DEFLATED)
    return path


def linear_of(checkpoint: Checkpoint) -> LinearModel:
    """The linear model beside a checkpoint; for errors see `load_linear`."""
    return load_linear(checkpoint.linear or (checkpoint.path or Path()) / LINEAR)


def load_linear(path: Path) -> LinearModel:
    """Read a model that `save_linear` wrote; nothing is unpickled or executed.

    Raises:
        CheckpointError: there is no such file, it is damaged, or it holds types that skops does not trust.
    """
    import skops.io
    from sklearn.pipeline import Pipeline

    if not path.is_file():
        raise CheckpointError(f"no linear model {path}: `train FILE` saves one where it is better than the Transformer")
    try:
        pipeline = skops.io.load(path, trusted=TRUSTED)
    except Exception as error:  # noqa: BLE001  # skops raises many kinds for a damaged file
        raise CheckpointError(f"{path} is not a linear model of txcls ({error!s:.200}); train it again") from None
    if not (isinstance(pipeline, Pipeline) and hasattr(pipeline, "classes_")):
        raise CheckpointError(f"{path} is not a linear model of txcls, but {type(pipeline).__name__}; train it again")
    return LinearModel(pipeline, tuple(map(str, pipeline.classes_)))
