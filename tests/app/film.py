"""A tiny model trained for a few steps, with snapshots."""

from pathlib import Path

from tests.conftest import CLASSES, TEXTS
from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.load import load_checkpoint
from txcls.training.from_python import train_by_preset

FILMED = "filmed"
N_STATES = 6
SETTINGS = (
    "model.d_model=16", "model.n_heads=2", "model.n_layers=2", "model.d_ff=32", "model.max_length=96",
    "text.min_frequency=1", "train.epochs=6", "train.min_steps=0", "train.batch_size=4", "train.learning_rate=0.02",
    "train.precision=float32", "train.monitor=last", f"train.snapshots={N_STATES}",
)  # fmt: skip


def train_with_snapshots(path: Path, *more: str) -> Checkpoint:
    """Train a classifier on `TEXTS` for a dozen steps and save it with its snapshots; `more` are further settings."""
    labels = [CLASSES[place] for place in (1, 2, 3, 0, 1, 2, 3, 0)]
    train_by_preset(
        TEXTS,
        labels,
        init=None,
        preset="sample",
        settings=[*SETTINGS, *more],
        validation=(TEXTS, labels),
        out=path,
        overwrite=False,
        seed=0,
        progress=False,
    )
    return load_checkpoint(path)
