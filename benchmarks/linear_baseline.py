"""Compare the shipped checkpoints with the linear baseline and with a stronger linear model, on the same rows.

    python -m benchmarks.linear_baseline [ag_news huffpost clinc150 imdb who_won] [--rows N]

The baseline is `txcls.evaluation.linear` without its limits on memory and time, fitted to all training rows,
including validation rows that were held out of them. The other model is a logistic regression on n-grams of up to three
words, weighted by their naive Bayes log-count ratio (Wang and Manning 2012, "Baselines and Bigrams"), with C chosen on
the validation rows. Data sets that are not on this machine are skipped. It takes minutes, mostly for HuffPost's 42
classes.
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

from benchmarks._measure import machine, sample_rows
from txcls.config import RunConfig, load_preset
from txcls.data.datasets import is_available, open_dataset
from txcls.data.splits import training_and_validation
from txcls.data.types import Dataset, LabelledTexts, SplitName
from txcls.evaluation.linear import fit_linear
from txcls.evaluation.predict_logits import in_classes_of
from txcls.inference.predictor import Predictor
from txcls.text.cleaning import clean

SETS = ("ag_news", "huffpost", "clinc150", "imdb", "who_won")
TESTED_SPLITS: tuple[SplitName, ...] = ("test", "new")
"""The splits that are classified; `new` has texts of a kind that does not occur in training."""
BAYES_STRENGTHS = (3.0, 10.0, 30.0, 100.0)
"""Values of C for the logistic regression."""
BAYES_CLASSES = 5
"""Number of classes (the most frequent ones) on which C is chosen, by log loss."""


@dataclass(frozen=True)
class Rows:
    """The rows that the linear models use."""

    training: LabelledTexts
    validation: LabelledTexts
    all_training: LabelledTexts
    """All training rows, including validation rows that were held out of them."""
    test: LabelledTexts
    """Rows to classify."""

    @classmethod
    def of(cls, dataset: Dataset, config: RunConfig, split: SplitName, *, limit: int) -> Self:
        """The rows of a data set, with those of `split` as `test`; at most `limit` of each kind."""
        training, validation = training_and_validation(dataset, config.data)
        all_training = training if "validation" in dataset.splits else dataset.load("train")
        parts = (training, validation, all_training, dataset.load(split))
        return cls(*(sample_rows(rows, limit=limit) for rows in parts))


def linear_baseline(rows: Rows) -> tuple[NDArray[np.int_], str]:
    """The classes that the linear baseline predicts for the test rows, (N,), and its settings."""
    model = fit_linear(rows.all_training, bounded=False)
    return model.predict(rows.test.texts, rows.test.classes), model.settings


@dataclass(frozen=True, eq=False)
class NaiveBayesLogisticRegression:
    """One-vs-rest logistic regression on n-grams weighted by their naive Bayes log-count ratio."""

    training: csr_array
    """TF-IDF of the K training texts, (K, features)."""
    classes: NDArray[np.int_]
    """Classes of the training texts, (K,)."""
    test: csr_array
    """TF-IDF of the A texts to classify, (A, features)."""

    @classmethod
    def of(cls, training: LabelledTexts, test: LabelledTexts, config: RunConfig) -> Self:
        """Features of the words, bigrams and trigrams that occur in at least two of the training texts."""
        vectorizer = TfidfVectorizer(
            preprocessor=lambda text: clean(text, config.text.cleaning),
            token_pattern=r"\b\w+\b|[!?]",
            ngram_range=(1, 3),
            sublinear_tf=True,
            min_df=2,
            dtype=np.float32,
        )
        return cls(
            vectorizer.fit_transform(training.texts), np.asarray(training.labels), vectorizer.transform(test.texts)
        )

    def probability(self, c: int, strength: float) -> NDArray[np.float64]:
        """Probability of class c for each text to classify, (A,), from a model with C = `strength`."""
        is_class = self.classes == c  # K
        n_features = self.training.shape[1]
        in_class, in_others = (  # features
            1 + np.bincount(self.training[rows].indices, minlength=n_features).astype(np.float32)
            for rows in (is_class, ~is_class)
        )
        ratio = np.log(in_class / in_class.sum()) - np.log(in_others / in_others.sum())  # features

        def weighted(features: csr_array) -> csr_array:
            copy = features.copy()
            copy.data *= ratio[copy.indices]
            return normalize(copy, copy=False)

        model = LogisticRegression(C=strength, solver="liblinear").fit(weighted(self.training), is_class)
        probability: NDArray[np.float64] = model.predict_proba(weighted(self.test))[:, 1]
        return probability

    def predict(self, n_classes: int, strength: float) -> NDArray[np.int_]:
        """The most probable class of each text to classify, (A,)."""
        if n_classes == 2:  # one model gives the probabilities of both classes
            return (self.probability(1, strength) > 0.5).astype(np.int_)
        best: NDArray[np.int_] = np.stack([self.probability(c, strength) for c in range(n_classes)]).argmax(axis=0)
        return best

    def best_strength(self, labels: NDArray[np.int_]) -> float:
        """The C with the lowest log loss over the most frequent classes; `labels` (A,) are the true classes."""
        counts = np.bincount(self.classes)
        frequent = np.array([1]) if len(counts) == 2 else counts.argsort()[::-1][:BAYES_CLASSES]

        def log_loss(strength: float) -> float:
            of_class = np.stack([self.probability(int(c), strength) for c in frequent])  # frequent A
            of_label = np.where(labels == frequent[:, None], of_class, 1 - of_class)
            return float(-np.log(np.maximum(of_label, 1e-12)).mean())

        return min(BAYES_STRENGTHS, key=log_loss)


def bayes_regression(rows: Rows, config: RunConfig, *, n_classes: int) -> tuple[NDArray[np.int_], str]:
    """The test rows' classes (N,), predicted by logistic regression with naive Bayes weights, and the chosen C."""
    on_validation = NaiveBayesLogisticRegression.of(rows.training, rows.validation, config)
    strength = on_validation.best_strength(np.asarray(rows.validation.labels))
    on_test = NaiveBayesLogisticRegression.of(rows.all_training, rows.test, config)
    return on_test.predict(n_classes, strength), f"C {strength:g}"


def compare(name: str, dataset: Dataset, split: SplitName, *, limit: int) -> None:
    """Print the accuracy of the checkpoint and of each linear model on a split, and how often only one is right."""
    config = load_preset(name)
    classifier = Predictor.load(name)
    rows = Rows.of(dataset, config, split, limit=limit)
    test = in_classes_of(rows.test, classifier.checkpoint)
    predicted = classifier.probabilities(test.texts, precision="float32").argmax(axis=1)
    checkpoint_right = predicted == np.asarray(test.labels)  # N
    print(f"\n{name}, {len(test):,} {split} rows: checkpoint {checkpoint_right.mean():.2%}")
    models = {
        "linear baseline": partial(linear_baseline, rows),
        "logistic regression, naive Bayes weights": partial(
            bayes_regression, rows, config, n_classes=len(dataset.classes)
        ),
    }
    for model, classify in models.items():
        started = time.perf_counter()
        predictions, settings = classify()
        linear_right = predictions == np.asarray(rows.test.labels)  # N: in the data set's own class order
        only_checkpoint = int((checkpoint_right & ~linear_right).sum())
        only_linear = int((linear_right & ~checkpoint_right).sum())
        # McNemar's exact test (1947): of the rows that only one of two equally good models gets right, each is equally
        # likely to favour either model.
        n_discordant = only_checkpoint + only_linear
        p_value = binomtest(only_checkpoint, n_discordant).pvalue if n_discordant else 1.0
        print(
            f"  {model}: {linear_right.mean():.2%} ({settings}; {time.perf_counter() - started:.0f} s). Checkpoint "
            f"{100 * (checkpoint_right.mean() - linear_right.mean()):+.2f} points: only the checkpoint is right on "
            f"{only_checkpoint:,} rows, only the linear model on {only_linear:,}, p = {p_value:.2g}",
            flush=True,
        )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("sets", nargs="*", choices=SETS, metavar="SET", help=", ".join(SETS))
    parser.add_argument("--rows", type=int, default=sys.maxsize, help="maximum number of rows of each split")
    options = parser.parse_args(arguments)
    print(machine())
    for name in options.sets or SETS:
        if is_available(name):
            dataset = open_dataset(load_preset(name).data)
            for split in TESTED_SPLITS:
                if split in dataset.splits:
                    compare(name, dataset, split, limit=options.rows)
        else:
            print(f"\n{name} is not on this machine (`txcls data list`)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
