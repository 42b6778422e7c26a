"""txcls: a from-scratch Transformer text classifier to train, use and inspect.

    import txcls

    classifier = txcls.load("ag_news")
    classifier("Central bank raises rates").label

Names are loaded on first use, so that `import txcls` is fast and torch is imported only if it is needed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.4.0"

if TYPE_CHECKING:
    from txcls import figures, inspection
    from txcls.classifier import Classifier, checkpoints, load, train
    from txcls.config import DataConfig, ModelConfig, RunConfig, TextConfig, TrainConfig, load_preset
    from txcls.data.datasets import dataset
    from txcls.errors import TxclsError
    from txcls.inference.predictor import ClassProbability, Prediction

_MODULE_OF = {
    "Classifier": "classifier",
    "checkpoints": "classifier",
    "load": "classifier",
    "train": "classifier",
    "DataConfig": "config",
    "ModelConfig": "config",
    "RunConfig": "config",
    "TextConfig": "config",
    "TrainConfig": "config",
    "load_preset": "config",
    "dataset": "data.datasets",
    "TxclsError": "errors",
    "ClassProbability": "inference.predictor",
    "Prediction": "inference.predictor",
}
_MODULES = ("figures", "inspection")

__all__ = [
    "ClassProbability",
    "Classifier",
    "DataConfig",
    "ModelConfig",
    "Prediction",
    "RunConfig",
    "TextConfig",
    "TrainConfig",
    "TxclsError",
    "checkpoints",
    "dataset",
    "figures",
    "inspection",
    "load",
    "load_preset",
    "train",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"txcls.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'txcls' has no attribute {name!r}")
    return getattr(import_module(f"txcls.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
