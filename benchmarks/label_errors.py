"""Labels of real test rows are changed at random: how many of the rows flagged first have a changed label?

    python -m benchmarks.label_errors [ag_news huffpost clinc150 imdb who_won sample] [--rows 2000] [--share 0.05]

In a random sample of test rows, a fraction of the labels is changed at random to another class (planted). Rows are then
flagged as on the Report page and in `txcls report` (`txcls.evaluation.label_errors`), from the probabilities of the
shipped classifier and of linear models that are fitted to the other rows in five folds. If n labels were planted, the
result is the fraction of planted ones among the first n flagged rows, or among all flagged rows if they are fewer.
`sample` has no shipped classifier: only the linear models are used. Labels that were already wrong in the data set
lower the result.
"""

import argparse
import sys
from collections.abc import Sequence

import numpy as np

from benchmarks._measure import machine
from txcls.config import load_preset
from txcls.data.datasets import is_available, open_dataset
from txcls.data.types import LabelledTexts
from txcls.evaluation.evaluate import in_classes_of
from txcls.evaluation.label_errors import held_out_probabilities, suspect_rows
from txcls.evaluation.report import predict_rows, sample_rows
from txcls.predictor import Predictor

SETS = ("ag_news", "huffpost", "clinc150", "imdb", "who_won", "sample")


def plant(rows: LabelledTexts, share: float, *, seed: int) -> tuple[LabelledTexts, set[int]]:
    """The rows with a fraction of labels changed at random to another class, and the indices of these rows."""
    random = np.random.default_rng(seed)
    labels = np.array(rows.labels)
    chosen = random.choice(len(rows), round(share * len(rows)), replace=False)
    labels[chosen] = (labels[chosen] + random.integers(1, len(rows.classes), len(chosen))) % len(rows.classes)
    return LabelledTexts(rows.texts, labels.tolist(), rows.classes), set(chosen.tolist())


def found_first(rows: LabelledTexts, planted: set[int], probabilities: np.ndarray) -> tuple[float, float, int]:
    """The planted fraction of the first n and n/2 flagged rows, for n planted rows; and the number of flagged rows."""
    flagged = [suspect.row for suspect in suspect_rows(rows, probabilities)]
    shares = []
    for n in (len(planted), len(planted) // 2):
        first = flagged[:n]
        shares.append(sum(row in planted for row in first) / max(len(first), 1))
    return shares[0], shares[1], len(flagged)


def measure(name: str, *, limit: int, share: float, seeds: int) -> None:
    """Measure one data set, averaged over several random plantings."""
    dataset = open_dataset(load_preset(name).data)
    clean = dataset.load("test")
    classifier = None if name == "sample" else Predictor.load(name)
    if classifier is not None:
        clean = in_classes_of(clean, classifier.checkpoint)
    else:
        train = dataset.load("train")
        clean = LabelledTexts([*train.texts, *clean.texts], [*train.labels, *clean.labels], clean.classes)
    clean = sample_rows(clean, limit=limit)
    own = None if classifier is None else predict_rows(classifier, clean).probabilities
    figures: dict[str, list[tuple[float, float, int]]] = {}
    for seed in range(seeds):
        rows, planted = plant(clean, share, seed=seed)
        ways = {"linear models alone": held_out_probabilities(rows)}
        if own is not None:
            ways = {"classifier alone": own, **ways, "all, as shown": held_out_probabilities(rows, own)}
        for way, probabilities in ways.items():
            figures.setdefault(way, []).append(found_first(rows, planted, probabilities))
    print(f"\n{name}: {len(clean):,} rows, {round(share * len(clean))} planted, {len(clean.classes)} classes")
    for way, values in figures.items():
        all_, half, n = np.mean(values, axis=0)
        print(f"  {way}: {all_:.0%} of those flagged first are planted, {half:.0%} of the first half ({n:.0f} flagged)")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("sets", nargs="*", metavar="SET", help=", ".join(SETS))
    parser.add_argument("--rows", type=int, default=2000, help="test rows at most")
    parser.add_argument("--share", type=float, default=0.05, help="of wrong labels")
    parser.add_argument("--seeds", type=int, default=3, help="plantings")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.sets) - set(SETS)):
        parser.error(f"no set {', '.join(unknown)}; there are {', '.join(SETS)}")
    print(machine())
    for name in options.sets or SETS:
        if is_available(name):
            measure(name, limit=options.rows, share=options.share, seeds=options.seeds)
        else:
            print(f"\n{name} is not on this machine (`txcls data list`)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
