"""Training and evaluating: `train` a configuration into a checkpoint, `fit` a model, `evaluate` a checkpoint."""

from txcls.training.distributed import joined
from txcls.training.from_pretrained import settings_from
from txcls.training.loop import FitResult, HistoryRow, Progress, TrainingInterruptedError, fit
from txcls.training.measure import Evaluation
from txcls.training.pretrain import pretrain
from txcls.training.refit import refit
from txcls.training.run import calibrate, evaluate, train, with_evaluation

__all__ = [
    "Evaluation",
    "FitResult",
    "HistoryRow",
    "Progress",
    "TrainingInterruptedError",
    "calibrate",
    "evaluate",
    "fit",
    "joined",
    "pretrain",
    "refit",
    "settings_from",
    "train",
    "with_evaluation",
]
