"""Three untrained checkpoints, small enough to make in a moment, for tests of the app."""

from dataclasses import replace
from pathlib import Path

from tests.conftest import CLASSES, make_checkpoint
from txcls.checkpoint import save_checkpoint

PLAIN, LEARNED, PAIRS = "ag_news", "learned", "pairs"
"""Their names; they differ in everything that the pages treat differently."""


def save_tiny_checkpoints(root: Path) -> None:
    """Write them below `root`, with the figures and the history of a training that never was."""
    per_class = [{"label": name, "precision": 0.9, "recall": 0.8, "f1": 0.85, "support": 10} for name in CLASSES]
    figures = {"accuracy": 0.925, "macro_f1": 0.92, "ece": 0.01, "log_loss": 0.3, "n": 40, "per_class": per_class}
    history = [
        {"step": 10 * n, "train_loss": 1 / n, "validation_loss": 2 / n, "validation_accuracy": n / 5, "best": n == 2}
        for n in (1, 2, 3)
    ]
    learned = {"pooling": "class_token", "positions": "learned", "n_heads": 4}
    pairs = {"tokenizer": "bpe", "max_vocabulary": 320, "cleaning": ()}
    for name, model, text in ((PLAIN, {}, {}), (LEARNED, learned, {}), (PAIRS, {"pooling": "class_token"}, pairs)):
        made = make_checkpoint(root / name, text=text, max_length=24, **model)
        save_checkpoint(replace(made, metrics={"test": figures}, history=history))
