"""Training speed, compared with a published recipe on IMDB, and with torch.nn.TransformerEncoder on AG News.

    python -m benchmarks.training_speed [--rounds 5] [--steps 6] [--texts 3000]

Padding is not counted. Both sides of a comparison train on the same batches, and are measured in turn in rounds of
`--steps` steps (forward, backward, optimiser). IMDB and AG News must be on this machine.
"""

import argparse
import statistics
import sys
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from benchmarks._measure import alternate, machine, median_ratio
from txcls.config import ModelConfig, RunConfig, load_preset
from txcls.data.batches import TokenisedTexts
from txcls.data.datasets import open_dataset
from txcls.data.types import LabelledTexts
from txcls.errors import DataError
from txcls.model import TextClassifier
from txcls.text.tokenizer import Tokenizer
from txcls.training import fit

GOAL_IMDB, GOAL_MODULES = 8.0, 1.2


class TorchBlocks(TextClassifier):
    """The same classifier with torch's layers between embeddings and pooling."""

    def __init__(self, config: ModelConfig, *, vocab_size: int, n_classes: int) -> None:
        super().__init__(config, vocab_size=vocab_size, n_classes=n_classes)
        layer = nn.TransformerEncoderLayer(
            config.d_model,
            config.n_heads,
            config.d_ff,
            dropout=config.dropout,
            activation="relu" if config.activation == "relu" else "gelu",
            batch_first=True,
            norm_first=config.norm == "pre",
        )
        self.layers = nn.ModuleList()
        self.norm = nn.Identity()
        final_norm = nn.LayerNorm(config.d_model) if config.norm == "pre" else None
        self.blocks = nn.TransformerEncoder(layer, config.n_layers, norm=final_norm, enable_nested_tensor=False)

    def read(self, ids: Tensor, cache: object = None) -> Tensor:
        is_real = self.real(ids)
        states: Tensor = self.blocks(self.embeddings(ids), src_key_padding_mask=None if is_real is None else ~is_real)
        return states


@dataclass(frozen=True)
class Comparison:
    """Two configurations trained on the same texts: `ours`, and `other` with a model of class `other_class`."""

    title: str
    ours: RunConfig
    other: RunConfig
    other_class: type[TextClassifier]
    texts: TokenisedTexts
    vocab_size: int
    goal: float


def tokenised(config: RunConfig, n: int) -> tuple[Tokenizer, TokenisedTexts]:
    """About n training texts of a preset's data set as ids, evenly spaced over the whole set; and their tokenizer."""
    rows = open_dataset(config.data).load("train")
    step = max(1, len(rows) // n)
    sample = LabelledTexts(rows.texts[::step], rows.labels[::step], rows.classes)
    tokenizer = Tokenizer.fit(sample.texts, config.text, max_length=config.model.max_length)
    return tokenizer, TokenisedTexts.encode(tokenizer, sample)


def speed(comparison: Comparison, config: RunConfig, model_class: type[TextClassifier], steps: int) -> float:
    """Tokens per second over this many steps of a new model."""
    torch.manual_seed(0)
    texts = comparison.texts
    model = model_class(config.model, vocab_size=comparison.vocab_size, n_classes=int(texts.labels.max()) + 1)
    result = fit(model, texts, texts.subset(range(2)), config.train, max_steps=steps)
    return result.history[-1].tokens_per_second


def compare_with_recipe(n: int) -> Comparison:
    """The published recipe, and the same model and batches without padding and with autocast."""
    other = load_preset("reference_imdb")
    ours = other.with_settings(["model.fixed_length=false", "model.mask_padding=true", "train.precision=auto"])
    tokenizer, texts = tokenised(other, n)
    title = "IMDB: same model, reference recipe (512 tokens each, float32)"
    return Comparison(title, ours, other, TextClassifier, texts, tokenizer.vocab_size, GOAL_IMDB)


def compare_with_torch_layers(n: int) -> Comparison:
    """The AG News preset, with our layers and with torch's layers."""
    config = load_preset("ag_news")
    tokenizer, texts = tokenised(config, n)
    title = "AG News: same recipe, torch.nn.TransformerEncoder"
    return Comparison(title, config, config, TorchBlocks, texts, tokenizer.vocab_size, GOAL_MODULES)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=6, help="optimiser steps per round and side")
    parser.add_argument("--texts", type=int, default=3000, help="number of training texts for the batches")
    options = parser.parse_args()
    print(machine())
    print(f"\n{'training, tokens per second (medians)':<66}{'txcls':>9}{'other':>9}{'ratio':>7}{'goal':>6}")
    comparisons = ((compare_with_recipe, options.steps), (compare_with_torch_layers, 8 * options.steps))
    for make_comparison, steps in comparisons:
        try:
            comparison = make_comparison(options.texts)
        except DataError as error:
            print(error)
            return 2
        speeds = alternate(
            {
                "ours": partial(speed, comparison, comparison.ours, TextClassifier, steps),
                "other": partial(speed, comparison, comparison.other, comparison.other_class, steps),
            },
            rounds=options.rounds,
        )
        ours, other = (statistics.median(speeds[side]) for side in ("ours", "other"))
        ratio = median_ratio(speeds["ours"], speeds["other"])
        print(f"{comparison.title:<66}{ours:>9,.0f}{other:>9,.0f}{ratio:>7.2f}{comparison.goal:>6g}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
