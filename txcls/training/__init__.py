"""Training: `train` a classifier from a configuration, `pretrain` on texts without labels, `fit` any model."""

from txcls.checkpoint.schema import HistoryRow
from txcls.training.from_pretrained import settings_from
from txcls.training.loop import FitResult, Progress, TrainingInterruptedError, fit
from txcls.training.pretrain import pretrain
from txcls.training.supervised import train

__all__ = [
    "FitResult",
    "HistoryRow",
    "Progress",
    "TrainingInterruptedError",
    "fit",
    "pretrain",
    "settings_from",
    "train",
]
