"""Tiny untrained checkpoints for tests of the app, created in a moment."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.conftest import make_checkpoint, make_language_model
from txcls.checkpoint.checkpoint import save_checkpoint
from txcls.config import ScopeRule

PLAIN, LEARNED, PAIRS, MANY = "ag_news", "learned", "pairs", "many"
"""Names of classifiers that differ in every way that matters to the pages."""
FILLS, SAYS, SAYS_WORDS = "fills", "says", "says_words"
"""Language models: masked with words, causal with byte pairs, causal with words."""
SUBJECTS = ("cooking", "health", "money", "sport", "technology", "travel")
"""The classes of the sample set. `MANY` has these and others, so its random test texts come from the sample set."""


def fake_metrics(classes: Sequence[str]) -> dict[str, Any]:
    """Test metrics as `evaluate` writes them."""
    per_class = [{"label": name, "precision": 0.9, "recall": 0.8, "f1": 0.85, "support": 10} for name in classes]
    confusion = [[10 * (true == predicted) for predicted in range(len(classes))] for true in range(len(classes))]
    return {
        "accuracy": 0.925, "macro_f1": 0.92, "ece": 0.01, "log_loss": 0.3, "n": 40, "per_class": per_class,
        "confusion": confusion, "reliability": [],
    }  # fmt: skip


def save_tiny_checkpoints(root: Path) -> None:
    """Write these checkpoints below `root`, with made-up metrics and training histories."""
    history = [
        {"step": 10 * n, "train_loss": 1 / n, "validation_loss": 2 / n, "validation_accuracy": n / 5, "best": n == 2}
        for n in (1, 2, 3)
    ]
    learned = {"pooling": "class_token", "positions": "learned", "n_heads": 4}
    pairs = {"tokenizer": "bpe", "max_vocabulary": 320, "cleaning": ()}
    made_of: dict[str, dict[str, Any]] = {
        PLAIN: {},
        LEARNED: learned,
        PAIRS: {"pooling": "class_token", "text": pairs},
        MANY: {
            "classes": (*SUBJECTS, *(f"what_can_i_ask_you_about_subject_{n}" for n in range(144))),
            "scope": ScopeRule(score="max_probability", threshold=2.0),
        },
    }
    kinds = {"who_won": "sinusoidal", "who_won_learned": "learned", "who_won_none": "none"}
    match_reports = {name: {"positions": kind, "max_length": 256} for name, kind in kinds.items()}
    for name, settings in (made_of | match_reports).items():
        checkpoint = make_checkpoint(root / name, **{"max_length": 24, **settings})
        save_checkpoint(replace(checkpoint, metrics={"test": fake_metrics(checkpoint.classes)}, history=history))
    small = {"max_length": 24, "n_heads": 4}
    make_language_model(root / FILLS, objective="masked", **small)
    make_language_model(root / SAYS, text=pairs, n_layers=3, **small)
    make_language_model(root / SAYS_WORDS, **small)
