"""txcls: a from-scratch Transformer text classifier that can be trained, used and taken apart.

    from txcls import Classifier
    Classifier.load("checkpoints/ag_news").predict(["Central bank raises rates"])

Names are loaded on first use, so that `import txcls` stays quick and torch is imported only where it is needed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from txcls.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
    from txcls.classifier import Classifier, Prediction, Score
    from txcls.config import DataConfig, ModelConfig, RunConfig, TextConfig, TrainConfig, load_preset
    from txcls.errors import TxclsError
    from txcls.evaluation import evaluate
    from txcls.model import TextClassifier
    from txcls.tap import trace
    from txcls.training import fit, train

_HOME = {
    "Checkpoint": "checkpoint",
    "load_checkpoint": "checkpoint",
    "save_checkpoint": "checkpoint",
    "DataConfig": "config",
    "ModelConfig": "config",
    "RunConfig": "config",
    "TextConfig": "config",
    "TrainConfig": "config",
    "load_preset": "config",
    "TxclsError": "errors",
    "TextClassifier": "model",
    "Classifier": "classifier",
    "Prediction": "classifier",
    "Score": "classifier",
    "trace": "tap",
    "evaluate": "evaluation",
    "fit": "training",
    "train": "training",
}

__all__ = [
    "Checkpoint",
    "Classifier",
    "DataConfig",
    "ModelConfig",
    "Prediction",
    "RunConfig",
    "Score",
    "TextClassifier",
    "TextConfig",
    "TrainConfig",
    "TxclsError",
    "evaluate",
    "fit",
    "load_checkpoint",
    "load_preset",
    "save_checkpoint",
    "trace",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'txcls' has no attribute {name!r}")
    return getattr(import_module(f"txcls.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
