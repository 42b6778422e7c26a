"""Validation accuracy with a pre-trained start, compared with random starts and the linear baseline.

    python -m benchmarks.pretrained_start [--init encoder] [--seeds 3] [--set train.learning_rate=1e-3] [SET[:ROWS] ...]

A SET is a data set's name or a table with the columns `text` and `label`. The settings are those of the preset `own`,
changed by `--set`. "same form" has the encoder's sizes and tokenizer, so that only pre-training differs; "own words"
has a vocabulary from the training rows, as in the preset without --init. These columns are the best validation
accuracy during training; the last column is the linear baseline, fitted to the same training rows. Test rows are not
read. Data sets that are not on this machine are skipped.
"""

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from benchmarks._measure import machine
from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.load import load_checkpoint
from txcls.config import RunConfig, load_preset
from txcls.data.datasets import is_available, open_dataset
from txcls.data.splits import training_and_validation
from txcls.data.types import LabelledTexts
from txcls.errors import CheckpointError
from txcls.evaluation.linear import fit_linear
from txcls.training import settings_from
from txcls.training.from_pretrained import check_unread
from txcls.training.loop import fit
from txcls.training.supervised import prepare

SETS = ("snips:500", "clinc150:1500")
"""Data sets measured by default; they take minutes."""
MAX_VALIDATION = 3000
"""Maximum number of validation rows."""
COLUMNS = ("encoder", "same form, random", "own words, random", "linear baseline")


def sample(rows: LabelledTexts, n: int) -> LabelledTexts:
    """The same n random rows on each call, or all rows if there are fewer."""
    return rows if n >= len(rows) else rows.subset(np.random.default_rng(0).permutation(len(rows))[:n].tolist())


def accuracy(config: RunConfig, train: LabelledTexts, held_out: LabelledTexts, init: Checkpoint | None) -> float:
    """Best accuracy on the held-out rows during training, in percent."""
    run = prepare(config, train, held_out, init=init, report=lambda message: None)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    best = fit(run.model, run.training, run.validation, config.train, objective=run.objective, device=device).best
    return 100 * best.validation_accuracy


def linear(train: LabelledTexts, held_out: LabelledTexts) -> float:
    """Accuracy of the linear baseline on the held-out rows, in percent."""
    predicted = fit_linear(train).predict(held_out.texts, held_out.classes)
    return 100 * float((predicted == held_out.labels).mean())


def compare(name: str, n_rows: int, encoder: Checkpoint, settings: Sequence[str], seeds: int) -> tuple[str, ...]:
    """The cells of a row of the table."""
    path = Path(name) if Path(name).suffix else None
    data = [
        f"data.dataset={'table' if path else name}",
        f"data.validation_fraction={encoder.config.data.validation_fraction}",
    ]
    own = load_preset("own").with_settings([*data, *settings])
    dataset = open_dataset(own.data, path=path)
    check_unread(encoder, dataset, own)
    train, held_out = training_and_validation(dataset, own.data)
    train, held_out = sample(train, n_rows), sample(held_out, MAX_VALIDATION)
    same_form = settings_from(encoder, own)
    starts = ((same_form, encoder), (same_form, None), (own, None))
    cells = []
    for column, (config, init) in zip(COLUMNS, starts, strict=False):
        accuracies = [
            accuracy(config.with_settings([f"train.seed={seed}"]), train, held_out, init) for seed in range(seeds)
        ]
        cells.append(f"{statistics.mean(accuracies):.2f} ({min(accuracies):.1f} to {max(accuracies):.1f})")
        print(f"{name} {len(train):,} rows, {column}: {cells[-1]}", file=sys.stderr, flush=True)
    cells.append(f"{linear(train, held_out):.2f}")
    return (path.stem if path else name, f"{len(train):,}", f"{len(held_out):,}", *cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=SETS, metavar="SET[:ROWS]")
    parser.add_argument("--init", default="encoder")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="SECTION.KEY=VALUE")
    asked = parser.parse_args()
    try:
        encoder = load_checkpoint(asked.init)
    except CheckpointError as error:
        print(f"nothing to compare: {error}")
        return
    print(
        f"{machine()}; {encoder.name}: {encoder.model.n_parameters:,} parameters; {asked.seeds} seeds, mean (range)\n"
    )
    print(f"| data | training rows | validation rows | {' | '.join(COLUMNS)} |")
    print("|---|---|---" + "|---" * len(COLUMNS) + "|")
    for text in asked.sets:
        name, _, n_rows = text.partition(":")
        if not (Path(name).is_file() if Path(name).suffix else is_available(name)):
            print(f"{name} is not on this machine", file=sys.stderr)
            continue
        print("| " + " | ".join(compare(name, int(n_rows or sys.maxsize), encoder, asked.settings, asked.seeds)) + " |")


if __name__ == "__main__":
    main()
