"""Training speed: IMDB against the published recipe, and a recipe's model against torch.nn.TransformerEncoder.

    python -m benchmarks.training_speed [--rounds 5] [--steps 6] [--texts 3000]

Only tokens of the texts count, not padding. Both sides of a comparison see the same batches, and their steps (forward,
backward, optimiser) alternate in rounds of `--steps`. IMDB and AG News must be on this machine.
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
from txcls.text.encoder import TextEncoder
from txcls.training import fit

AIM_IMDB, AIM_MODULES = 8.0, 1.2


class TorchBlocks(TextClassifier):
    """The same classifier with torch's own layers between embeddings and pooling."""

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
        last = nn.LayerNorm(config.d_model) if config.norm == "pre" else None
        self.blocks = nn.TransformerEncoder(layer, config.n_layers, norm=last, enable_nested_tensor=False)

    def read(self, ids: Tensor, cache: object = None) -> Tensor:
        real = self.real(ids)
        states: Tensor = self.blocks(self.embeddings(ids), src_key_padding_mask=None if real is None else ~real)
        return states


@dataclass(frozen=True)
class Comparison:
    """Two configurations trained on the same texts: `ours`, and `other` with a model of class `kind`."""

    title: str
    ours: RunConfig
    other: RunConfig
    kind: type[TextClassifier]
    texts: TokenisedTexts
    vocab_size: int
    aim: float


def tokenised(config: RunConfig, n: int) -> tuple[TextEncoder, TokenisedTexts]:
    """Some training texts of a preset's data set, evenly spaced over the whole set, as ids."""
    rows = open_dataset(config.data).load("train")
    step = max(1, len(rows) // n)
    some = LabelledTexts(rows.texts[::step], rows.labels[::step], rows.classes)
    encoder = TextEncoder.fit(some.texts, config.text, max_length=config.model.max_length)
    return encoder, TokenisedTexts.encode(encoder, some)


def speed(compared: Comparison, config: RunConfig, kind: type[TextClassifier], steps: int) -> float:
    """Tokens per second over this many steps of a new model."""
    torch.manual_seed(0)
    model = kind(config.model, vocab_size=compared.vocab_size, n_classes=int(compared.texts.labels.max()) + 1)
    result = fit(model, compared.texts, compared.texts.subset(range(2)), config.train, max_steps=steps)
    return result.history[-1].tokens_per_second


def against_the_recipe(n: int) -> Comparison:
    """The published recipe, and the same model and batches without padding and with autocast."""
    other = load_preset("reference_imdb")
    ours = other.with_settings(["model.fixed_length=false", "model.mask_padding=true", "train.precision=auto"])
    encoder, texts = tokenised(other, n)
    title = "IMDB: same model, reference recipe (512 tokens each, float32)"
    return Comparison(title, ours, other, TextClassifier, texts, encoder.vocab_size, AIM_IMDB)


def against_the_modules(n: int) -> Comparison:
    """The AG News recipe, with our layers and with torch's."""
    config = load_preset("ag_news")
    encoder, texts = tokenised(config, n)
    title = "AG News: same recipe, torch.nn.TransformerEncoder"
    return Comparison(title, config, config, TorchBlocks, texts, encoder.vocab_size, AIM_MODULES)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=6, help="optimiser steps of each side in a round")
    parser.add_argument("--texts", type=int, default=3000, help="training texts to draw batches from")
    options = parser.parse_args()
    print(machine())
    print(f"\n{'training, tokens per second (medians)':<66}{'txcls':>9}{'other':>9}{'ratio':>7}{'aim':>6}")
    for prepare, steps in ((against_the_recipe, options.steps), (against_the_modules, 8 * options.steps)):
        try:
            compared = prepare(options.texts)
        except DataError as error:
            print(error)
            return 2
        times = alternate(
            {
                "ours": partial(speed, compared, compared.ours, TextClassifier, steps),
                "other": partial(speed, compared, compared.other, compared.kind, steps),
            },
            rounds=options.rounds,
        )
        middle = {side: statistics.median(values) for side, values in times.items()}
        ratio = median_ratio(times["ours"], times["other"])
        print(
            f"{compared.title:<66}{middle['ours']:>9,.0f}{middle['other']:>9,.0f}{ratio:>7.2f}{compared.aim:>6g}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
