"""The usual baseline on the same rows: TF-IDF of words and pairs with a linear SVM, and a majority guess.

Nothing of this answers in place of the Transformer: `compare` only sets its answers beside the others', with intervals.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint.comparison import Comparison, Contestant, Measured

Answers = NDArray[np.int64]

Z = 1.959964
"""Half the width of a 95 % interval, in standard errors."""
RESAMPLES = 1000
"""Bootstrap samples for the intervals of macro-F1."""


def word_features(**changes: Any) -> Any:
    """TF-IDF of words and pairs of neighbours, counts logarithmic: scikit-learn's vectoriser, not yet fitted."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(**{"ngram_range": (1, 2), "sublinear_tf": True, "dtype": np.float32, **changes})


def linear_answers(texts: Sequence[str], labels: Sequence[int], asked: Sequence[str]) -> Answers:
    """The classes (M,) that a linear SVM over `word_features` gives M texts, after learning from N texts and labels.

    Texts that hold no word at all are still answered.
    """
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    # A mark counts as a word only where there are no words, so that the vocabulary is never empty.
    pattern = r"(?u)\b\w\w+\b" if any(len(word) > 1 for text in texts for word in text.split()) else r"(?u)\S"
    model = make_pipeline(word_features(token_pattern=pattern), LinearSVC(random_state=0))
    answers: Answers = model.fit(list(texts), np.asarray(labels)).predict(list(asked)).astype(np.int64)
    return answers


def majority_answers(labels: Sequence[int], n: int) -> Answers:
    """The most frequent of the labels, n times."""
    return np.full(n, np.bincount(np.asarray(labels)).argmax(), dtype=np.int64)


def compare(
    *,
    truth: Sequence[int] | Answers,
    majority: Answers,
    linear: Answers,
    transformer: Answers,
    n_training: int,
    seconds: Mapping[str, float] | None = None,
    seed: int = 0,
) -> Comparison:
    """The comparison of three classifiers' answers, each (N,), with the true classes of N test rows.

    Intervals of accuracy are Wilson's (1927), those of macro-F1 from a bootstrap of the rows, the same samples for all.
    That of the difference in accuracy is for paired proportions (Agresti & Min 2005): it follows from the rows that one
    of them alone gets right.

    Args:
        truth: class index of each row.
        majority, linear, transformer: the answers.
        n_training: rows that the linear SVM learned from.
        seconds: time by contestant, under these three names.
        seed: of the bootstrap.

    Raises:
        ValueError: there are no rows, or not as many answers.
    """
    true = np.asarray(truth, dtype=np.int64)  # N
    answers = {"majority": majority, "linear": linear, "transformer": transformer}
    if not len(true) or any(len(one) != len(true) for one in answers.values()):
        raise ValueError(f"got {len(true)} rows and {[len(one) for one in answers.values()]} answers; wanted as many")
    f1 = _macro_f1_samples(true, answers, seed=seed)  # of each: 1 + R, the first over the rows as they are
    players = {
        name: Contestant(
            accuracy=wilson(int((one == true).sum()), len(true)),
            macro_f1=_percentiles(f1[name]),
            seconds=None if seconds is None or name not in seconds else round(seconds[name], 1),
        )
        for name, one in answers.items()
    }
    alone, other = transformer == true, linear == true  # N
    only_transformer, only_linear = int((alone & ~other).sum()), int((other & ~alone).sum())
    return Comparison(
        n=len(true),
        n_training=n_training,
        **players,
        difference=paired_difference(only_transformer, only_linear, len(true)),
        difference_f1=_percentiles(f1["transformer"] - f1["linear"]),
        only_transformer=only_transformer,
        only_linear=only_linear,
    )


def wilson(right: int, n: int) -> Measured:
    """A share of n rows, with its 95 % interval (Wilson 1927)."""
    share = right / n
    middle = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z * np.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2)) / (1 + Z**2 / n)
    return Measured(share, max(0.0, float(middle - half)), min(1.0, float(middle + half)))


def paired_difference(first_alone: int, second_alone: int, n: int) -> Measured:
    """Accuracy of one classifier minus another's on the same n rows, with its 95 % interval (Agresti & Min 2005).

    Args:
        first_alone, second_alone: rows that one of them alone gets right.
        n: all rows.
    """
    first, second, rows = first_alone + 0.5, second_alone + 0.5, n + 2
    middle = (first - second) / rows
    half = Z * np.sqrt(max(first + second - (first - second) ** 2 / rows, 0.0)) / rows
    return Measured((first_alone - second_alone) / n, float(middle - half), float(middle + half))


def _macro_f1_samples(true: Answers, answers: Mapping[str, Answers], *, seed: int) -> dict[str, NDArray[np.float64]]:
    """Macro-F1 (1 + R,) of each classifier: over the rows as they are, then over R bootstrap samples of them.

    Classes that do not occur in a sample are left out of its mean.
    """
    n = len(true)
    n_classes = 1 + int(max(true.max(), *(int(one.max()) for one in answers.values())))
    random = np.random.default_rng(seed)
    found: dict[str, list[float]] = {name: [] for name in answers}
    for sample in range(1 + RESAMPLES):
        rows = np.arange(n) if not sample else random.integers(0, n, n)
        own = true[rows]
        support = np.bincount(own, minlength=n_classes)  # C
        for name, one in answers.items():
            said = one[rows]
            right = np.bincount(own[said == own], minlength=n_classes)  # C
            f1 = 2 * right / np.maximum(support + np.bincount(said, minlength=n_classes), 1)  # C
            found[name].append(float(f1[support > 0].mean()))
    return {name: np.array(values) for name, values in found.items()}


def _percentiles(values: NDArray[np.float64]) -> Measured:
    low, high = np.percentile(values[1:], (2.5, 97.5))
    return Measured(float(values[0]), float(low), float(high))
