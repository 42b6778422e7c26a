"""The linear baseline and a stronger linear model, compared with the shipped checkpoints on the same rows.

    python -m benchmarks.linear_baseline [ag_news huffpost clinc150 imdb who_won] [--rows N]

The baseline is `txcls.evaluation.baseline` without its limits on memory and time, fitted to all training rows,
including those held out for validation. The other model is a logistic regression over n-grams of up to three words,
weighted by their naive Bayes log-count ratio (Wang and Manning 2012, "Baselines and Bigrams"), with C chosen on the
validation rows. Data sets that are not on this machine are skipped. It takes minutes, mostly for HuffPost's 42 classes.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.stats import binomtest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from benchmarks._measure import machine
from txcls.config import RunConfig, load_preset
from txcls.data.datasets import is_available, open_dataset
from txcls.data.splits import training_and_validation
from txcls.data.types import Dataset, LabelledTexts, SplitName
from txcls.evaluation.baseline import fit_linear_baseline
from txcls.evaluation.evaluate import in_classes_of
from txcls.evaluation.report import sample_rows
from txcls.predictor import Predictor
from txcls.text.cleaning import clean

SETS = ("ag_news", "huffpost", "clinc150", "imdb", "who_won")
ASKED: tuple[SplitName, ...] = ("test", "new")
"""The splits that are classified; `new` has texts of a kind that never occurs in training."""
BAYES_STRENGTHS = (3.0, 10.0, 30.0, 100.0)
"""Values of C for the logistic regression."""
BAYES_CLASSES = 5
"""Number of most frequent classes whose log loss determines the C of the logistic regression."""


@dataclass(frozen=True)
class Rows:
    """The rows that the linear models use."""

    training: LabelledTexts
    validation: LabelledTexts
    known: LabelledTexts
    """Rows to fit: all training rows, including those held out for validation."""
    test: LabelledTexts
    """Rows to classify."""

    @classmethod
    def of(cls, dataset: Dataset, config: RunConfig, split: SplitName, *, limit: int) -> Self:
        """The rows of this data set, with those of `split` as `test`; at most `limit` of each kind."""
        training, validation = training_and_validation(dataset, config.data)
        known = training if "validation" in dataset.splits else dataset.load("train")
        return cls(*(sample_rows(rows, limit=limit) for rows in (training, validation, known, dataset.load(split))))


def linear_baseline(rows: Rows) -> tuple[NDArray[np.int_], str]:
    """The classes that the linear baseline predicts for the test rows, (N,), and its settings."""
    baseline = fit_linear_baseline(rows.known.texts, rows.known.labels, bounded=False)
    return baseline.predict(rows.test.texts), baseline.settings


@dataclass(frozen=True, eq=False)
class NaiveBayesLogisticRegression:
    """One-vs-rest logistic regression over n-grams weighted by their naive Bayes log-count ratio."""

    known: csr_array
    """TF-IDF of the K texts to fit to, (K, features)."""
    classes: NDArray[np.int_]
    """(K,): the classes of these texts."""
    asked: csr_array
    """TF-IDF of the A texts to classify, (A, features)."""

    @classmethod
    def over(cls, known: LabelledTexts, asked: LabelledTexts, config: RunConfig) -> Self:
        """Features of words, bigrams and trigrams that occur in at least two of the known texts."""
        turn = TfidfVectorizer(
            preprocessor=lambda text: clean(text, config.text.cleaning),
            token_pattern=r"\b\w+\b|[!?]",
            ngram_range=(1, 3),
            sublinear_tf=True,
            min_df=2,
            dtype=np.float32,
        )
        return cls(turn.fit_transform(known.texts), np.asarray(known.labels), turn.transform(asked.texts))

    def likely(self, c: int, strength: float) -> NDArray[np.float64]:
        """Probability of class c for each text to classify, (A,), from a model with C = `strength`."""
        own = self.classes == c  # K
        width = self.known.shape[1]
        inside, outside = (  # features
            1 + np.bincount(self.known[part].indices, minlength=width).astype(np.float32) for part in (own, ~own)
        )
        ratio = np.log(inside / inside.sum()) - np.log(outside / outside.sum())  # features

        def weighted(features: csr_array) -> csr_array:
            copy = features.copy()
            copy.data *= ratio[copy.indices]
            return normalize(copy, copy=False)

        model = LogisticRegression(C=strength, solver="liblinear").fit(weighted(self.known), own)
        probability: NDArray[np.float64] = model.predict_proba(weighted(self.asked))[:, 1]
        return probability

    def predict(self, n_classes: int, strength: float) -> NDArray[np.int_]:
        """The most probable class of each text to classify, (A,)."""
        if n_classes == 2:  # one model gives the probabilities of both classes
            return (self.likely(1, strength) > 0.5).astype(np.int_)
        best: NDArray[np.int_] = np.stack([self.likely(c, strength) for c in range(n_classes)]).argmax(axis=0)
        return best

    def best_strength(self, right: NDArray[np.int_]) -> float:
        """The C with the lowest log loss over the most frequent classes, given the asked texts' true classes (A,)."""
        counts = np.bincount(self.classes)
        frequent = np.array([1]) if len(counts) == 2 else counts.argsort()[::-1][:BAYES_CLASSES]

        def log_loss(strength: float) -> float:
            likely = np.stack([self.likely(int(c), strength) for c in frequent])  # frequent A
            probability = np.where(right == frequent[:, None], likely, 1 - likely)
            return float(-np.log(np.maximum(probability, 1e-12)).mean())

        return min(BAYES_STRENGTHS, key=log_loss)


def bayes_regression(rows: Rows, config: RunConfig, *, n_classes: int) -> tuple[NDArray[np.int_], str]:
    """The test rows' classes (N,), predicted by logistic regression with naive Bayes weights, and the chosen C."""
    validated = NaiveBayesLogisticRegression.over(rows.training, rows.validation, config)
    best = validated.best_strength(np.asarray(rows.validation.labels))
    return NaiveBayesLogisticRegression.over(rows.known, rows.test, config).predict(n_classes, best), f"C {best:g}"


def compare(name: str, dataset: Dataset, split: SplitName, *, limit: int) -> None:
    """Print the accuracy of the checkpoint and of each linear model on a split, and how often only one is right."""
    config = load_preset(name)
    classifier = Predictor.load(name)
    rows = Rows.of(dataset, config, split, limit=limit)
    test = in_classes_of(rows.test, classifier.checkpoint)
    own = classifier.probabilities(test.texts, precision="float32").argmax(axis=1) == np.asarray(test.labels)  # N
    print(f"\n{name}, {len(test):,} {split} rows: checkpoint {own.mean():.2%}")
    models = {
        "linear baseline": partial(linear_baseline, rows),
        "logistic regression, naive Bayes weights": partial(
            bayes_regression, rows, config, n_classes=len(dataset.classes)
        ),
    }
    for model, classify in models.items():
        started = time.perf_counter()
        predictions, chosen = classify()
        right = predictions == np.asarray(rows.test.labels)  # N: in the data set's own class order
        alone, other = int((own & ~right).sum()), int((right & ~own).sum())
        # Two models on the same rows differ only in the rows that just one of them gets right; if the models were
        # equally good, each of these rows would be equally likely to favour either (McNemar 1947, exact).
        chance = binomtest(alone, alone + other).pvalue if alone + other else 1.0
        print(
            f"  {model}: {right.mean():.2%} ({chosen}; {time.perf_counter() - started:.0f} s). Checkpoint "
            f"{100 * (own.mean() - right.mean()):+.2f} points: alone right on {alone:,} rows, linear on {other:,}, "
            f"p = {chance:.2g}",
            flush=True,
        )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("sets", nargs="*", choices=SETS, metavar="SET", help=", ".join(SETS))
    parser.add_argument("--rows", type=int, default=sys.maxsize, help="at most that many rows of each split")
    options = parser.parse_args(arguments)
    print(machine())
    for name in options.sets or SETS:
        if is_available(name):
            dataset = open_dataset(load_preset(name).data)
            for split in ASKED:
                if split in dataset.splits:
                    compare(name, dataset, split, limit=options.rows)
        else:
            print(f"\n{name} is not on this machine (`txcls data list`)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
