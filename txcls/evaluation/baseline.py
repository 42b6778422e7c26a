"""The linear baseline: TF-IDF with a linear support vector machine, tuned on held-out training rows.

    python -m txcls measure ag_news linear

Its predictions are only compared with the Transformer's (`compare_with_baseline.py`), never mixed with them; where it
is better, `train FILE` saves it as a model of its own (`linear.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from txcls.data.splits import first_copies, hold_out
from txcls.runtime.pause import may_pause

if TYPE_CHECKING:
    from scipy.sparse import csr_array
    from sklearn.pipeline import Pipeline
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

    def as_pipeline(self) -> "Pipeline":
        """The same features as a pipeline of scikit-learn's classes."""
        from sklearn.feature_selection import SelectKBest
        from sklearn.pipeline import make_pipeline

        selection = SelectKBest(None, k=len(self.columns))
        selection.scores_, selection.n_features_in_ = np.zeros(HASH_SIZE), HASH_SIZE
        selection.scores_[self.columns] = 1.0
        return make_pipeline(self.counts, selection, self.weights)


@dataclass(frozen=True, eq=False)
class LinearBaseline:
    """A linear support vector machine fitted to `n_training` rows.

    `kinds` are the kinds of features: "words", or "words" and "characters"; `strength` is C; `scale` is the factor
    with which the softmax of its scores fits the held-out rows best (temperature scaling, Guo et al. 2017).
    """

    kinds: tuple[str, ...]
    strength: float
    n_training: int
    scale: float
    _features: Sequence[_TfIdf] = field(repr=False)
    _model: "LinearSVC" = field(repr=False)

    @property
    def settings(self) -> str:
        """Features and C, in words."""
        characters = " and of 2 to 5 characters" if "characters" in self.kinds else ""
        return f"TF-IDF of words and pairs of words{characters}, C = {self.strength:g}"

    def as_pipeline(self, classes: Sequence[str]) -> "Pipeline":
        """A scikit-learn pipeline that predicts these class names, with calibrated probabilities."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline, make_union

        model = LogisticRegression(C=self.strength)  # not fitted: it turns the machine's scores into probabilities
        model.classes_ = np.array(classes)[self._model.classes_]
        model.coef_, model.intercept_ = self.scale * self._model.coef_, self.scale * self._model.intercept_
        model.n_features_in_ = model.coef_.shape[1]
        return make_pipeline(make_union(*(features.as_pipeline() for features in self._features)), model)

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
    have more than about 30 million characters (or 2.5 billion divided by the number of classes). With 100,000 news
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
    n_kinds, strength, scale = 1, STRENGTHS[0], 1.0
    if len(held_out) and len(np.unique(truth[fitted])) > 1:

        @cache
        def scores(n_kinds: int, strength: float) -> tuple[NDArray[np.float64], ClassIndices]:
            model, features = fit(n_kinds, strength, fitted), _side_by_side(parts[:n_kinds])[held_out]
            return model.decision_function(features), model.classes_

        def accuracy(n_kinds: int, strength: float) -> float:
            decision, classes = scores(n_kinds, strength)
            best = decision.argmax(axis=1) if decision.ndim > 1 else (decision > 0).astype(np.int64)
            return float((classes[best] == truth[held_out]).mean())

        n_kinds = max(range(1, len(kinds) + 1), key=lambda n: accuracy(n, STRENGTHS[0]))
        strength = max(STRENGTHS, key=lambda strength: accuracy(n_kinds, strength))
        scale = _scale(*scores(n_kinds, strength), truth[held_out])
    model = fit(n_kinds, strength)
    return LinearBaseline(kinds[:n_kinds], strength, len(texts), scale, extractors[:n_kinds], model)


def _scale(decision: NDArray[np.float64], classes: ClassIndices, truth: ClassIndices) -> float:
    """The factor of scores, (N,) or (N, C), for which N labels are the likeliest.

    As in Platt scaling (1999), one row in N + 2 counts as labelled at random: otherwise few rows without an error would
    give certain probabilities.
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import log_softmax

    scores = decision if decision.ndim > 1 else np.stack([np.zeros(len(decision)), decision], axis=1)
    known = np.isin(truth, classes)
    if not known.any():
        return 1.0
    scores, own = scores[known], np.searchsorted(classes, truth[known])
    random = 1 / (len(own) + 2)

    def loss(logarithm: float) -> float:
        logs = log_softmax(np.exp(logarithm) * scores, axis=1)  # N C
        return -float((1 - random) * logs[np.arange(len(own)), own].mean() + random * logs.mean())

    return float(np.exp(minimize_scalar(loss, bounds=(-1.0, 4.0), method="bounded").x))


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
