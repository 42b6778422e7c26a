"""The recipe for texts of one's own: learning rate, epochs, batch size and so on, by number of rows and budget."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LONGEST = 1024
"""Most tokens that are ever read of a text."""
SHORTEST = 16
FIT_SHARE = 0.8
"""Share of the budget for training; the rest is for reading, tokenising, the linear SVM, measuring and saving."""


@dataclass(frozen=True, slots=True)
class Epochs:
    """How many epochs, and the forecast of the whole run in seconds."""

    epochs: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Recipe:
    """Settings as `section.key=value`, the epochs that are wanted, and the seconds there are for them."""

    settings: tuple[str, ...]
    epochs: int
    seconds: float
    overhead: float

    def epochs_within(self, *, tokens_per_epoch: float, tokens_per_second: float) -> Epochs:
        """As many epochs as wanted, or as fit into the budget; at least one."""
        per_epoch = tokens_per_epoch / max(tokens_per_second, 1e-9)
        epochs = max(1, min(self.epochs, int(self.seconds / max(per_epoch, 1e-9))))
        return Epochs(epochs, epochs * per_epoch + self.overhead)


def recipe_for(*, n: int, n_classes: int, minutes: float, pretrained: bool) -> Recipe:
    """The recipe for n training rows of so many classes."""
    batch = 16 if n < 1000 else 32 if n < 20_000 else 64
    wanted = int(np.clip(round(60_000 / n), 4, 60))
    settings = (
        f"train.batch_size={batch}",
        "train.min_steps=0",
        "train.learning_rate=1e-3",
        "train.label_smoothing=0.1",
        "train.token_dropout=0.1",
        "train.ema_decay=0.99",
        "train.weight_decay=0.05",
        "train.monitor=last",
    )
    seconds = 60 * minutes * FIT_SHARE
    return Recipe(settings, wanted, seconds, min(10.0, 60 * minutes * (1 - FIT_SHARE)))


def length_for(lengths: NDArray[np.int64]) -> int:
    """Tokens to read of texts with so many: nearly all of short texts, the first part of long ones."""
    most = float(np.percentile(lengths, 99))
    return int(np.clip(int(np.ceil(most / 8)) * 8, SHORTEST, 256))
