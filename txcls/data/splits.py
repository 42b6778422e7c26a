"""Training and validation rows: the published ones, or a stratified, seeded split."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from txcls.config import DataConfig
from txcls.data.types import Dataset, LabelledTexts
from txcls.errors import DataError, shown

Indices = npt.NDArray[np.int64]


def training_and_validation(dataset: Dataset, config: DataConfig) -> tuple[LabelledTexts, LabelledTexts]:
    """The published training and validation rows, or a deterministic split of the training rows.

    Raises:
        DataError: there are no training rows, or they cannot be split.
    """
    rows = dataset.load("train")
    if dataset.has_validation:
        return rows, dataset.load("validation")
    kept, held_out = stratified_split(
        rows.labels, fraction=config.validation_fraction, seed=config.split_seed, classes=rows.classes
    )
    return rows.subset(kept), rows.subset(held_out)


def stratified_split(
    labels: Sequence[int], *, fraction: float, seed: int, classes: Sequence[str] | None = None
) -> tuple[Indices, Indices]:
    """Row indices (training, validation), each sorted; the same labels, fraction and seed give the same split.

    Each class gives `fraction` of its rows to validation, rounded, but at least one, and keeps at least one.

    Args:
        labels: class index of each row.
        fraction: share of the rows for validation, between 0 and 1.
        seed: random seed.
        classes: class names, for the message.

    Raises:
        DataError: there is only one class, or a class has only one row.
        ValueError: `fraction` is not between 0 and 1.
    """
    if not 0.0 < fraction < 1.0:
        raise ValueError(f"fraction: wanted more than 0 and less than 1, got {fraction}")
    counts = Counter(labels)
    if len(counts) < 2:
        raise DataError(f"{len(labels)} rows of {len(counts)} class: wanted at least two classes")
    single = [str(classes[label]) if classes else str(label) for label, n in sorted(counts.items()) if n < 2]
    if single:
        names = ", ".join(f"'{shown(name)}'" for name in single[:5]) + (", …" if len(single) > 5 else "")
        raise DataError(
            f"only one row of class {names}: every class needs at least two, one to train on and one to validate on; "
            "add rows or drop the class"
        )
    rng = np.random.default_rng(seed)
    of_row = np.asarray(labels, dtype=np.int64)
    validation = []
    for label in sorted(counts):
        rows = rng.permutation(np.flatnonzero(of_row == label))
        validation.append(rows[: min(max(round(fraction * len(rows)), 1), len(rows) - 1)])
    chosen = np.zeros(len(of_row), dtype=bool)
    chosen[np.concatenate(validation)] = True
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)
