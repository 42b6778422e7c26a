"""The linear baseline (TF-IDF with a linear support vector machine), and its comparison with a classifier.

    python -m txcls evaluate ag_news --linear

The baseline is tuned on held-out training rows. Its predictions are only compared with the Transformer's, never used
in their place.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.comparison import Comparison, Contestant, Measured, with_interval
from txcls.data.batches import TokenisedTexts
from txcls.data.datasets import open_dataset
from txcls.data.splits import first_copies, hold_out, training_and_validation
from txcls.data.types import LabelledTexts
from txcls.errors import CheckpointError, DataError
from txcls.evaluation.evaluate import in_classes_of, predict_logits
from txcls.evaluation.metrics import paired_difference, wilson
from txcls.evaluation.report import RowPrediction, RowPredictions, sample_rows
from txcls.model import TextClassifier
from txcls.runtime.device import choose_device
from txcls.runtime.pause import may_pause

if TYPE_CHECKING:
    from scipy.sparse import csr_array
    from sklearn.svm import LinearSVC

ClassIndices = NDArray[np.int64]

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Thai, Lao, Myanmar, Khmer, kana and Han: scripts written without spaces between words."""
WORD = rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])\w)+|[^\w\s]"
"""A word, a single character of a script without spaces, or a punctuation mark."""

STRENGTHS = (1.0, 0.3, 0.1, 3.0)
"""Candidates for C, the inverse strength of regularisation; of equally good ones, the first is used."""
TUNING_SHARE, MAX_TUNING_ROWS = 0.2, 4000
"""Share of the training rows used to choose features and C, and their maximum number."""
HASH_SIZE = 1 << 20
"""Number of columns that terms are hashed to, so that no dictionary of all terms is needed."""
ENTRIES = {"words": 0.4, "characters": 3.0}
"""Estimated non-zero features per character of a text (measured: 0.36 to 0.4, and 2.7)."""
MAX_ENTRIES = 12_000_000
"""Maximum number of non-zero features in all training rows; the support vector machine takes 45 bytes for each."""
MAX_WORK, MAX_TUNING_WORK = 1_000_000_000, 200_000_000
"""Maximum number of non-zero features times classes, in the final fit (about 40 seconds on one core) and in each
tuning fit."""
MAX_WEIGHTS = 30_000_000
"""Maximum number of features times classes; each weight takes 8 bytes and is in memory twice."""
MAX_FEATURES = 300_000
EXTRACTION_SECONDS = {"words": 1.5e-6, "characters": 8e-6}
"""Seconds per character of a text, on one core of an AMD EPYC."""
FIT_SECONDS = 4e-8
"""Seconds per non-zero feature and class, on the same core."""
MAX_CHARACTERS = 100_000
"""Maximum number of characters read from a text."""
BATCH_ROWS = 2048
"""Number of rows classified at once: their scores take 8 bytes per row and class."""
REPORT_ROWS = 30_000
"""Default maximum number of training rows that `predict_with_baseline` fits to."""

RESAMPLES = 1000
"""Number of bootstrap samples for the intervals of macro-F1."""


class _TfIdf:
    """Logarithmic TF-IDF of hashed terms, limited to the `limit` terms that occur in the most texts."""

    def __init__(self, kind: str, *, limit: int) -> None:
        from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

        terms = (
            {"token_pattern": WORD, "ngram_range": (1, 2)}
            if kind == "words"
            else {"analyzer": "char_wb", "ngram_range": (2, 5)}
        )
        self.limit = limit
        self.counts: HashingVectorizer = HashingVectorizer(
            n_features=HASH_SIZE, norm=None, alternate_sign=False, dtype=np.float32, **terms
        )
        self.weights: TfidfTransformer = TfidfTransformer(sublinear_tf=True)
        self.columns: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    def fit(self, texts: Sequence[str]) -> "csr_array":
        """Features (N, F) of the training texts."""
        counts = self.counts.transform(text[:MAX_CHARACTERS] for text in texts)
        frequency = np.bincount(counts.indices, minlength=HASH_SIZE)
        n = min(self.limit, max(int((frequency > 0).sum()), 1))
        self.columns = np.sort(np.argsort(-frequency, kind="stable")[:n])
        return self.weights.fit_transform(counts[:, self.columns])

    def transform(self, texts: Sequence[str]) -> "csr_array":
        """Features (M, F) of other texts."""
        return self.weights.transform(self.counts.transform(text[:MAX_CHARACTERS] for text in texts)[:, self.columns])


@dataclass(frozen=True, eq=False)
class LinearBaseline:
    """A linear support vector machine fitted to `n_training` rows.

    `kinds` are the kinds of features: "words", or "words" and "characters"; `strength` is C.
    """

    kinds: tuple[str, ...]
    strength: float
    n_training: int
    _features: Sequence[_TfIdf] = field(repr=False)
    _model: "LinearSVC" = field(repr=False)

    @property
    def settings(self) -> str:
        """Features and C, in words."""
        characters = " and of 2 to 5 characters" if "characters" in self.kinds else ""
        return f"TF-IDF of words and pairs of words{characters}, C = {self.strength:g}"

    @property
    def pipeline(self) -> str:
        """The same kind of model as a scikit-learn expression, for use without txcls."""
        words = "TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2))"
        characters = 'TfidfVectorizer(sublinear_tf=True, analyzer="char_wb", ngram_range=(2, 5))'
        features = f"make_union({words}, {characters})" if "characters" in self.kinds else words
        return f"make_pipeline({features}, LinearSVC(C={self.strength:g}))"

    def predict(self, texts: Sequence[str]) -> ClassIndices:
        """The class index of each of M texts, (M,)."""
        predicted = []
        for start in range(0, len(texts), BATCH_ROWS):
            may_pause()
            batch = texts[start : start + BATCH_ROWS]
            parts = [features.transform(batch) for features in self._features]
            predicted.append(self._model.predict(_side_by_side(parts)))
        return np.concatenate(predicted).astype(np.int64) if predicted else np.zeros(0, dtype=np.int64)


def fit_linear_baseline(
    texts: Sequence[str], labels: Sequence[int], *, seed: int = 0, bounded: bool = True
) -> LinearBaseline:
    """Fit the linear baseline to N labelled texts of at least two classes.

    The features are words and pairs of words and, for short or few texts (up to 4 million characters in total), also
    sequences of 2 to 5 characters. Features and C are chosen on a held-out fifth of the rows; the model is then fitted
    to all rows.

    To limit time and memory, only the most frequent features are used, and only a random sample of the rows if they
    have more than about 30 million characters (or 2,500 million divided by the number of classes). With 100,000 news
    texts of 630 classes, 23,370 texts are used, which takes 79 seconds on one core and 620 MB. `bounded=False` removes
    these limits.
    """
    from sklearn.svm import LinearSVC

    n_classes = len(np.unique(labels))
    limit = min(MAX_ENTRIES, MAX_WORK / n_classes) if bounded else np.inf  # non-zero features
    max_features = min(MAX_FEATURES, MAX_WEIGHTS // n_classes) if bounded else HASH_SIZE
    rows = _sample(texts, labels, limit / ENTRIES["words"], seed=seed)
    texts, truth = [texts[row] for row in rows], np.asarray(labels, dtype=np.int64)[rows]
    kinds: tuple[str, ...] = ("words",)
    if _n_characters(texts) * ENTRIES["characters"] <= min(limit, MAX_ENTRIES):
        kinds = ("words", "characters")
    extractors = [_TfIdf(kind, limit=max_features // len(kinds)) for kind in kinds]
    parts = [extractor.fit(texts) for extractor in extractors]

    def fit(n_kinds: int, strength: float, rows: NDArray[np.int64] | slice = slice(None)) -> LinearSVC:
        may_pause()
        # scikit-learn's default tolerance, 1e-4, takes twice as long for the same accuracy.
        model = LinearSVC(C=strength, tol=1e-2, random_state=seed)
        return model.fit(_side_by_side(parts[:n_kinds])[rows], truth[rows])

    n_held_out = min(round(TUNING_SHARE * len(texts)), MAX_TUNING_ROWS)
    fitted, held_out = hold_out(truth.tolist(), n=n_held_out, seed=seed, groups=first_copies(texts))
    limit = MAX_TUNING_WORK / n_classes / sum(ENTRIES[kind] for kind in kinds) if bounded else np.inf
    fitted = fitted[_sample([texts[row] for row in fitted], truth[fitted], limit, seed=seed)]
    n_kinds, strength = 1, STRENGTHS[0]
    if len(held_out) and len(np.unique(truth[fitted])) > 1:

        def accuracy(n_kinds: int, strength: float) -> float:
            predicted = fit(n_kinds, strength, fitted).predict(_side_by_side(parts[:n_kinds])[held_out])
            return float((predicted == truth[held_out]).mean())

        n_kinds = max(range(1, len(kinds) + 1), key=lambda n: accuracy(n, STRENGTHS[0]))
        strength = max(STRENGTHS, key=lambda strength: accuracy(n_kinds, strength))
    model = fit(n_kinds, strength)
    return LinearBaseline(kinds[:n_kinds], strength, len(texts), extractors[:n_kinds], model)


def baseline_seconds(characters: int, n_classes: int) -> float:
    """Estimated seconds to fit the baseline to texts with this number of characters in total, and to classify them."""
    limit = min(MAX_ENTRIES, MAX_WORK / n_classes)
    kinds = ["words", "characters"] if characters * ENTRIES["characters"] <= limit else ["words"]
    work = n_classes * min(characters * sum(ENTRIES[kind] for kind in kinds), limit)
    fits = work + (len(STRENGTHS) + len(kinds) - 1) * min(work, MAX_TUNING_WORK)
    return characters * sum(EXTRACTION_SECONDS[kind] for kind in kinds) + FIT_SECONDS * fits


def _n_characters(texts: Sequence[str]) -> int:
    return sum(min(len(text), MAX_CHARACTERS) for text in texts)


def _sample(
    texts: Sequence[str], labels: Sequence[int] | ClassIndices, limit: float, *, seed: int
) -> NDArray[np.int64]:
    """Sorted indices of random rows with at most `limit` characters in all, and of the first row of each class."""
    if _n_characters(texts) <= limit:
        return np.arange(len(texts))
    order = np.random.default_rng(seed).permutation(len(texts))
    n = np.cumsum([min(len(texts[row]), MAX_CHARACTERS) for row in order]).searchsorted(limit, side="right")
    return np.union1d(order[:n], np.unique(labels, return_index=True)[1])


def _side_by_side(parts: "Sequence[csr_array]") -> "csr_array":
    from scipy.sparse import hstack

    return parts[0] if len(parts) == 1 else hstack(parts, format="csr")


def majority_predictions(labels: Sequence[int], n: int) -> ClassIndices:
    """The most frequent label, repeated n times."""
    return np.full(n, np.bincount(np.asarray(labels)).argmax(), dtype=np.int64)


def compare(
    *,
    truth: Sequence[int] | ClassIndices,
    majority: ClassIndices,
    linear: ClassIndices,
    transformer: ClassIndices,
    baseline: LinearBaseline,
    seconds: Mapping[str, float] | None = None,
    is_repeated: NDArray[np.bool_] | None = None,
    n_unseen: int = 0,
) -> Comparison:
    """Compare three classifiers' predictions, each (N,), for N test rows.

    Intervals of accuracy are Wilson's (1927); intervals of macro-F1 are bias-corrected and accelerated bootstrap
    intervals (Efron 1987), with the same samples of rows for all classifiers. The interval of the difference in
    accuracy is for paired proportions (Agresti & Min 2005).

    Args:
        truth, majority, linear, transformer: the labels and the predictions.
        baseline: the fitted linear baseline.
        seconds: the training and prediction time of some of the three classifiers, keyed by name.
        is_repeated: whether each row's text was trained on, (N,).
        n_unseen: number of further rows, left out because their classes have no training row.

    Raises:
        ValueError: there are no rows, or the numbers of rows and predictions differ.
    """
    true = np.asarray(truth, dtype=np.int64)  # N
    predictions = {"majority": majority, "linear": linear, "transformer": transformer}
    counts = [len(classes) for classes in predictions.values()]
    if not len(true) or set(counts) != {len(true)}:
        raise ValueError(f"got {len(true)} rows and {counts} predictions; expected equal numbers of at least one")
    f1, without_row = _macro_f1_samples(true, predictions)
    contestants = {
        name: Contestant(
            accuracy=wilson(int((classes == true).sum()), len(true)),
            macro_f1=_accelerated(f1[name], without_row[name]),
            seconds=None if seconds is None or name not in seconds else round(seconds[name], 1),
        )
        for name, classes in predictions.items()
    }
    transformer_right, linear_right = transformer == true, linear == true  # N
    only_transformer = int((transformer_right & ~linear_right).sum())
    only_linear = int((linear_right & ~transformer_right).sum())
    return Comparison(
        n=len(true),
        n_training=baseline.n_training,
        baseline=baseline.settings,
        pipeline=baseline.pipeline,
        majority=contestants["majority"],
        linear=contestants["linear"],
        transformer=contestants["transformer"],
        difference=paired_difference(only_transformer, only_linear, len(true)),
        difference_f1=_accelerated(
            f1["transformer"] - f1["linear"], without_row["transformer"] - without_row["linear"]
        ),
        only_transformer=only_transformer,
        only_linear=only_linear,
        n_unseen=n_unseen,
        **_without_repeats(transformer_right, is_repeated),
    )


def _without_repeats(right: NDArray[np.bool_], is_repeated: NDArray[np.bool_] | None) -> dict[str, Any]:
    """The number of rows with repeated texts, and the accuracy on all other rows."""
    if is_repeated is None or not is_repeated.any():
        return {}
    right_on_others = right[~is_repeated]
    unrepeated = wilson(int(right_on_others.sum()), len(right_on_others)) if len(right_on_others) else None
    return {"n_repeated": int(is_repeated.sum()), "unrepeated": unrepeated}


def macro_f1_intervals(
    truth: Sequence[int], predictions: Mapping[str, ClassIndices], *, difference: tuple[str, str]
) -> tuple[dict[str, Measured], Measured]:
    """Macro-F1 of each classifier on N rows, and the difference between the two classifiers named in `difference`.

    `predictions` are the predictions of each, (N,). For the intervals see `compare`.
    """
    f1, without_row = _macro_f1_samples(np.asarray(truth, dtype=np.int64), predictions)
    first, second = difference
    difference_f1 = _accelerated(f1[first] - f1[second], without_row[first] - without_row[second])
    return {name: _accelerated(f1[name], without_row[name]) for name in predictions}, difference_f1


def _macro_f1_samples(
    true: ClassIndices, predictions: Mapping[str, ClassIndices]
) -> tuple[dict[str, NDArray[np.float64]], dict[str, NDArray[np.float64]]]:
    """Macro-F1 of each classifier on the rows and on R bootstrap samples, (1 + R,), and without each row, (N,).

    For each sample, the mean is over the classes that occur in it.
    """
    n = len(true)
    n_classes = 1 + int(max(true.max(), *(int(classes.max()) for classes in predictions.values())))
    random = np.random.default_rng(0)
    patterns, pattern_of_row, counts = np.unique(
        np.stack([true, *predictions.values()]), axis=1, return_inverse=True, return_counts=True
    )  # combinations of a label and predictions: (1 + classifiers) U, N, U
    samples = [
        counts,
        *(np.bincount(pattern_of_row[random.integers(0, n, n)], minlength=len(counts)) for _ in range(RESAMPLES)),
    ]
    leaving_out = [counts - (np.arange(len(counts)) == pattern) for pattern in range(len(counts))]

    def macro_f1(predicted: ClassIndices, weights: NDArray[np.int64]) -> float:
        labels = patterns[0]
        support, assigned = (np.bincount(ids, weights, minlength=n_classes) for ids in (labels, predicted))  # C
        right = np.bincount(labels, weights * (predicted == labels), minlength=n_classes)  # C
        f1 = 2 * right / np.maximum(support + assigned, 1)  # C
        return float(f1[support > 0].mean()) if (support > 0).any() else 0.0

    by_sample, by_row = {}, {}
    for name, predicted in zip(predictions, patterns[1:], strict=True):
        by_sample[name] = np.array([macro_f1(predicted, weights) for weights in samples])
        by_row[name] = np.array([macro_f1(predicted, weights) for weights in leaving_out])[pattern_of_row]
    return by_sample, by_row


def _accelerated(values: NDArray[np.float64], without_row: NDArray[np.float64]) -> Measured:
    """A value with its bias-corrected and accelerated bootstrap interval (Efron 1987).

    `values` (1 + R,) are the value of the original rows and of R bootstrap samples, `without_row` (N,) the values
    without each row.
    """
    from scipy.special import ndtr, ndtri

    value, samples = values[0], values[1:]
    below = (samples < value).mean() + (samples == value).mean() / 2
    levels = np.array([0.025, 0.975])
    if 0 < below < 1:
        bias, influence = ndtri(below), without_row.mean() - without_row
        spread = float((influence**2).sum()) ** 1.5
        acceleration = float((influence**3).sum()) / (6 * spread) if spread else 0.0
        shifted = bias + ndtri(levels)
        levels = ndtr(bias + shifted / (1 - acceleration * shifted))
    low, high = np.quantile(samples, levels)
    return Measured(float(value), float(min(low, value)), float(max(high, value)))


def compare_on_test_rows(
    checkpoint: Checkpoint,
    *,
    data_path: Path | None = None,
    device: str | None = None,
    on_stage: Callable[[str], object] = lambda _: None,
) -> Comparison:
    """Compare a checkpoint with the linear and the majority-class baseline on the test rows of its data set.

    The linear baseline is fitted to all other rows, including the validation rows. For the arguments see `evaluate`;
    `on_stage` is called with a message.

    Raises:
        DataError: the data are missing, have classes unknown to the checkpoint, or were the user's own table.
        CheckpointError: the checkpoint is a language model.
        TrainingError: the device cannot be used.
    """
    if not isinstance(checkpoint.model, TextClassifier):
        raise CheckpointError(f"{checkpoint.name} is a language model; expected a classifier to compare")
    if checkpoint.config.data.dataset == "table":
        raise DataError(
            f"{checkpoint.name} was trained on your own table, and its rows are not stored in the checkpoint; `python "
            "-m txcls train FILE` makes this comparison when it trains"
        )
    dataset = open_dataset(checkpoint.config.data, path=data_path)
    test = in_classes_of(dataset.load("test"), checkpoint)
    splits = [in_classes_of(rows, checkpoint) for rows in training_and_validation(dataset, checkpoint.config.data)]
    texts = [text for rows in splits for text in rows.texts]
    labels = [label for rows in splits for label in rows.labels]
    on_stage(f"fitting the linear baseline to {len(texts):,} rows")
    baseline = fit_linear_baseline(texts, labels)
    linear = baseline.predict(test.texts)
    on_stage(f"classifying {len(test):,} test rows")
    torch_device = choose_device(device)
    tokenised = TokenisedTexts.encode(checkpoint.tokenizer, test)
    logits = predict_logits(checkpoint.model.to(torch_device), tokenised, device=torch_device)
    checkpoint.model.cpu()
    return compare(
        truth=test.labels,
        majority=majority_predictions(labels, len(test)),
        linear=linear,
        transformer=logits.numpy().argmax(axis=1),
        baseline=baseline,
    )


@dataclass(frozen=True, eq=False)
class BaselinePredictions:
    """Predictions of the Transformer (`predictions`) and of the linear baseline (`predicted`, (N,)) for N rows.

    The baseline was fitted to `n_training` of `n_available` rows.
    """

    predictions: RowPredictions
    predicted: ClassIndices
    n_training: int
    n_available: int

    @property
    def right(self) -> NDArray[np.bool_]:
        """Whether the baseline's prediction is correct, (N,)."""
        right: NDArray[np.bool_] = self.predicted == self.predictions.labels
        return right

    @property
    def accuracy(self) -> float:
        """The baseline's accuracy."""
        return float(self.right.mean())

    def only_baseline_right(self) -> list[RowPrediction]:
        """The rows that only the baseline classifies correctly, most confident first."""
        return self._most_confident_first(self.right & ~self.predictions.right)

    def only_transformer_right(self) -> list[RowPrediction]:
        """The rows that only the Transformer classifies correctly, most confident first."""
        return self._most_confident_first(self.predictions.right & ~self.right)

    def _most_confident_first(self, rows: NDArray[np.bool_]) -> list[RowPrediction]:
        indices = np.flatnonzero(rows)
        confidence = self.predictions.probabilities[indices].max(axis=1)
        return [self.predictions.row(int(n)) for n in indices[np.argsort(-confidence, kind="stable")]]

    def baseline_class(self, row: int) -> str:
        """The class that the baseline predicts for a row."""
        return self.predictions.rows.classes[int(self.predicted[row])]

    def verdict(self) -> str:
        """Both accuracies and the 95 % interval of their difference, in words."""
        n, right = len(self.predictions), self.predictions.right
        transformer, baseline = (with_interval(wilson(int(rows.sum()), n)) for rows in (right, self.right))
        difference = paired_difference(int((right & ~self.right).sum()), int((self.right & ~right).sum()), n)
        return (
            f"On these {n:,} rows the Transformer reaches {transformer}, the linear baseline {baseline}; difference "
            f"{_points(difference.value)} points, 95 % interval {_points(difference.low)} to {_points(difference.high)}"
        )


def _points(share: float) -> str:
    return f"{100 * share:+.1f}".replace("-", "\N{MINUS SIGN}")


def predict_with_baseline(
    predictions: RowPredictions, training: LabelledTexts, *, limit: int = REPORT_ROWS
) -> BaselinePredictions:
    """Fit the linear baseline to at most `limit` training rows, and classify the rows of `predictions` with it.

    Raises:
        DataError: the training rows have fewer than two classes, or classes unknown to the classifier.
    """
    class_index = {name: number for number, name in enumerate(predictions.rows.classes)}
    if not set(training.classes) <= set(class_index):
        raise DataError(
            "the training rows have classes that the classifier does not know; pass the rows that it was trained on"
        )
    used = sample_rows(training, limit=limit)
    labels = [class_index[training.classes[label]] for label in used.labels]
    if len(set(labels)) < 2:
        raise DataError(f"{len(used):,} training rows of one class; expected at least two classes")
    baseline = fit_linear_baseline(used.texts, labels)
    return BaselinePredictions(
        predictions, baseline.predict(predictions.rows.texts), baseline.n_training, len(training)
    )
