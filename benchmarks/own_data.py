"""Compare `python -m txcls train FILE` with the linear baseline on several data sets.

    python -m benchmarks.own_data                                   # the published sets on this machine
    python -m benchmarks.own_data snips mine.csv other.csv,test.csv --minutes 5
    python -m benchmarks.own_data clinc150 --rows 1500              # train on 1500 of the rows

All settings are chosen by the command; nothing is tuned to a data set. Published sets are measured on their own test
rows, FILE,TEST on the rows of TEST, and FILE on a fifth of its rows. The baseline, a linear support vector machine on
TF-IDF features, is fitted to all other rows. Minutes are counted from the time when the rows are in memory to the end
of the comparison.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks._measure import machine
from txcls.config import DataConfig
from txcls.data.datasets import dataset_names, is_available, open_dataset
from txcls.data.labelled import read_labelled
from txcls.data.types import LabelledTexts
from txcls.training.plan import plan_training
from txcls.training.run_plan import TrainingResult, run_plan

SETS = ("snips", "atis", "clinc150", "ag_news", "huffpost", "imdb")
"""Published data sets measured by default."""


def rows_of(name: str) -> tuple[str, LabelledTexts, LabelledTexts | None]:
    """The name of the data, its rows, and its test rows if there are any."""
    if name in dataset_names():
        dataset = open_dataset(DataConfig(dataset=name))
        parts = [dataset.load("train"), *([dataset.load("validation")] if "validation" in dataset.splits else [])]
        rows = LabelledTexts(
            [text for part in parts for text in part.texts],
            [label for part in parts for label in part.labels],
            dataset.classes,
        )
        return name, _without_empty(rows), dataset.load("test") if "test" in dataset.splits else None
    file, _, test = name.partition(",")
    rows = read_labelled(Path(file))[0].labelled
    return Path(file).name, rows, read_labelled(Path(test))[0].labelled if test else None


def _without_empty(rows: LabelledTexts) -> LabelledTexts:
    return rows.subset(row for row, text in enumerate(rows.texts) if text.strip())


def part_of(rows: LabelledTexts, n: int, *, seed: int) -> LabelledTexts:
    """n random rows in their original order, without classes that no longer occur."""
    part = rows.subset(np.sort(np.random.default_rng(seed).permutation(len(rows))[:n]).tolist())
    old_labels = sorted(set(part.labels))
    new_label = {label: number for number, label in enumerate(old_labels)}
    classes = tuple(rows.classes[label] for label in old_labels)
    return LabelledTexts(part.texts, [new_label[label] for label in part.labels], classes)


def table_row(name: str, rows: LabelledTexts, result: TrainingResult) -> str:
    """A row of the table."""
    comparison = result.comparison
    difference = comparison.difference
    cells = (
        name,
        f"{len(rows):,}",
        f"{comparison.n:,}",
        f"{len(rows.classes)}",
        *(f"{100 * model.accuracy.value:.1f}" for model in (comparison.majority, comparison.linear)),
        f"**{100 * comparison.transformer.accuracy.value:.1f}**",
        f"{100 * difference.value:+.1f} ({100 * difference.low:+.1f} to {100 * difference.high:+.1f})",
        f"{100 * comparison.difference_f1.value:+.1f}",
        f"{result.seconds / 60:.1f}",
    )
    return f"| {' | '.join(cells)} |"


HEAD = (
    "| set | rows | test rows | classes | majority | linear SVM | this | difference in accuracy (95 % interval) "
    "| in macro-F1 | minutes |\n|---|---|---|---|---|---|---|---|---|---|"
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("sets", nargs="*", metavar="SET|FILE|FILE,TEST", help=", ".join(SETS))
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--rows", type=int, help="number of rows to use, drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    print(machine())
    print(HEAD, flush=True)
    for name in options.sets or [name for name in SETS if is_available(name)]:
        data_name, rows, test = rows_of(name)
        if options.rows is not None:
            rows = part_of(rows, options.rows, seed=options.seed)
        plan = plan_training(rows, test=test, minutes=options.minutes, seed=options.seed, source=data_name)
        print(f"{data_name}: {' '.join((*plan.splits.notes, *plan.sentences))}", file=sys.stderr, flush=True)
        print(table_row(data_name, rows, run_plan(plan, out=None)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
