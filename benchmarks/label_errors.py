"""Share of rows with deliberately changed labels among those whose label is most doubtful.

    python -m benchmarks.label_errors [ag_news huffpost clinc150 imdb who_won sample] [--rows 2000] [--share 0.05]

In a random sample of test rows, a share of the labels is replaced by another random class. Rows are then ranked as in
`txcls report` (`txcls.evaluation.label_errors`), from the probabilities of the shipped classifier and of linear models
that are fitted to the other rows in five folds. If n labels were changed, the result is the share of changed labels
among the first n rows. `sample` has no shipped classifier: only the linear models are used. Labels that were already
wrong in the data set lower the result.
"""

import argparse
import sys
from collections.abc import Sequence

import numpy as np

from benchmarks._measure import machine, sample_rows
from txcls.config import load_preset
from txcls.data.datasets import is_available, open_dataset
from txcls.data.types import LabelledTexts
from txcls.evaluation.label_errors import held_out_probabilities, most_doubtful
from txcls.evaluation.predict_logits import in_classes_of
from txcls.evaluation.report import RowPredictions, report_on
from txcls.inference.predictor import Predictor

SETS = ("ag_news", "huffpost", "clinc150", "imdb", "who_won", "sample")


def change_labels(rows: LabelledTexts, share: float, *, seed: int) -> tuple[LabelledTexts, set[int]]:
    """The rows with a share of labels replaced by another random class, and the indices of the changed rows."""
    random = np.random.default_rng(seed)
    labels = np.array(rows.labels)
    chosen = random.choice(len(rows), round(share * len(rows)), replace=False)
    labels[chosen] = (labels[chosen] + random.integers(1, len(rows.classes), len(chosen))) % len(rows.classes)
    return LabelledTexts(rows.texts, labels.tolist(), rows.classes), set(chosen.tolist())


def changed_among_first(rows: LabelledTexts, changed: set[int], probabilities: np.ndarray) -> tuple[float, float]:
    """Share of changed rows among the first n and the first n/2, if n rows were changed."""
    order = most_doubtful(RowPredictions(rows, probabilities)).tolist()
    return tuple(len(changed.intersection(order[:n])) / n for n in (len(changed), len(changed) // 2))  # type: ignore[return-value]


def measure(name: str, *, limit: int, share: float, seeds: int) -> None:
    """Measure one data set, averaged over several random changes of labels."""
    dataset = open_dataset(load_preset(name).data)
    original = dataset.load("test")
    classifier = None if name == "sample" else Predictor.load(name)
    if classifier is not None:
        original = in_classes_of(original, classifier.checkpoint)
    else:
        train = dataset.load("train")
        original = LabelledTexts([*train.texts, *original.texts], [*train.labels, *original.labels], original.classes)
    original = sample_rows(original, limit=limit)
    classifier_probabilities = None
    if classifier is not None:
        predictions = report_on(classifier, original, rows_description="").predictions
        classifier_probabilities = None if predictions is None else predictions.probabilities
    results: dict[str, list[tuple[float, float]]] = {}
    for seed in range(seeds):
        rows, changed = change_labels(original, share, seed=seed)
        sources = {"linear models only": held_out_probabilities(rows)}
        if classifier_probabilities is not None:
            sources = {
                "classifier only": classifier_probabilities,
                **sources,
                "all, as in `report`": held_out_probabilities(rows, classifier_probabilities),
            }
        for source, probabilities in sources.items():
            results.setdefault(source, []).append(changed_among_first(rows, changed, probabilities))
    n_changed = round(share * len(original))
    print(f"\n{name}: {len(original):,} rows, {n_changed} changed labels, {len(original.classes)} classes")
    for source, values in results.items():
        first_n, first_half = np.mean(values, axis=0)
        print(
            f"  {source}: of the first {n_changed} rows, {first_n:.0%} were changed; of the first half {first_half:.0%}"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("sets", nargs="*", metavar="SET", help=", ".join(SETS))
    parser.add_argument("--rows", type=int, default=2000, help="maximum number of test rows")
    parser.add_argument("--share", type=float, default=0.05, help="share of changed labels")
    parser.add_argument("--seeds", type=int, default=3, help="number of repetitions")
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
