"""The linear model: TF-IDF with a linear support vector machine, tuned on held-out training rows.

It is only compared with the Transformer (`compare.py`), never mixed with it. `train FILE` saves it as a scikit-learn
pipeline that needs no txcls: `skops.io.load(path).predict(texts)` gives the class names.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZIP_DEFLATED

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.comparison import Comparison
from txcls.checkpoint.folders import LINEAR
from txcls.data.files import replacing
from txcls.data.splits import first_copies, hold_out
from txcls.data.types import LabelledTexts
from txcls.errors import CheckpointError

if TYPE_CHECKING:
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.pipeline import Pipeline
    from sklearn.svm import LinearSVC

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Thai, Lao, Myanmar, Khmer, kana and Han: scripts written without spaces between words."""
WORD = rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])\w)+|[^\w\s]"
"""A word, a single character of a script without spaces, or a punctuation mark."""
_TERMS: dict[str, dict[str, Any]] = {
    "words": {"token_pattern": WORD, "ngram_range": (1, 2)},
    "characters": {"analyzer": "char_wb", "ngram_range": (2, 5)},
}
STRENGTHS = (1.0, 0.3, 0.1, 3.0, 10.0)
"""Candidates for C, the inverse strength of regularisation; of equally good ones, the first is used."""
TUNING_SHARE, MAX_TUNING_ROWS = 0.2, 4000
"""Share of the training rows used to choose features and C, and their maximum number."""
HASH_SIZE = 1 << 20
"""Number of columns that terms are hashed to, so that no dictionary of all terms is needed."""
WORD_ENTRIES, COUNTED_TEXTS = 0.4, 100
"""Maximum number of word features per character of a text, and of texts in which features are counted."""
MAX_ENTRIES = 12_000_000
"""Maximum number of non-zero features in all training rows; the support vector machine takes 45 bytes for each."""
MAX_WORK, MAX_TUNING_WORK = 1_000_000_000, 200_000_000
"""Maximum number of non-zero features times classes, in the final fit (about 40 seconds on one core) and in each
tuning fit."""
MAX_WEIGHTS, MAX_FEATURES = 30_000_000, 300_000
"""Maximum number of features times classes (each weight takes 8 bytes and is in memory twice), and of features."""
FIT_SECONDS = 4e-8
"""Seconds of a fit per non-zero feature and class, on one core of an AMD EPYC."""
MAX_CHARACTERS = 100_000
"""Maximum number of characters read from a text."""
BATCH_ROWS = 2048
"""Number of rows classified at once: their scores take 8 bytes per row and class."""


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A fitted scikit-learn pipeline from texts to class names; `classes` are in the order of its probabilities.

    `settings` (features and C, in words), `n_training` (rows fitted to) and `is_limited` (whether characters were left
    out to save time and memory) are not saved.
    """

    pipeline: "Pipeline"
    classes: tuple[str, ...]
    settings: str = ""
    n_training: int = 0
    is_limited: bool = False

    def predict_proba(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """The probability of each class for each of N texts, (N, C)."""
        parts = [np.zeros((0, len(self.classes)))]
        for start in range(0, len(texts), BATCH_ROWS):
            batch = [text[:MAX_CHARACTERS] for text in texts[start : start + BATCH_ROWS]]
            parts.append(self.pipeline.predict_proba(batch))
        return np.concatenate(parts)

    def probabilities_of(self, classes: Sequence[str], texts: Sequence[str]) -> NDArray[np.float64]:
        """The probabilities of N texts for these C classes, (N, C): 0 for a class that the model does not know.

        The row of a text without words is nan.
        """
        rows = np.zeros((len(texts), len(classes)))
        rows[:, self._ids_in(classes)] = self.predict_proba(texts)
        rows[[not text.strip() for text in texts]] = np.nan
        return rows

    def predict(self, texts: Sequence[str], classes: Sequence[str] | None = None) -> NDArray[np.int64]:
        """The most probable class of each of N texts, (N,), as an index into `classes` or else its own classes."""
        best: NDArray[np.int64] = self._ids_in(classes or self.classes)[self.predict_proba(texts).argmax(axis=1)]
        return best

    def _ids_in(self, classes: Sequence[str]) -> NDArray[np.int64]:
        """The index in `classes` of each of the model's classes."""
        ids = {name: number for number, name in enumerate(classes)}
        return np.array([ids[name] for name in self.classes])


def fit_linear(
    rows: LabelledTexts, *, seed: int = 0, bounded: bool = True, reads_characters: bool = True
) -> LinearModel:
    """Fit the linear model to N labelled texts of at least two classes.

    The features are words and pairs of words and, if `reads_characters`, sequences of 2 to 5 characters, unless these
    have more than MAX_ENTRIES non-zero values (about 4 million characters of short texts, 12 million of long ones).
    C is chosen on a held-out fifth of the rows; the model is then fitted to all rows.

    If `bounded`, time and memory are limited: only the most frequent features are used, and only a random sample of the
    rows if they have more than about 30 million characters (or 2.5 billion divided by the number of classes).
    """
    from scipy.sparse import hstack
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline, make_union
    from sklearn.svm import LinearSVC

    n_classes = len(set(rows.labels))
    limit = min(MAX_ENTRIES, MAX_WORK / n_classes) if bounded else np.inf  # non-zero features
    max_features = min(MAX_FEATURES, MAX_WEIGHTS // n_classes) if bounded else HASH_SIZE
    rows = rows.subset(_sample(rows, limit / WORD_ENTRIES, seed=seed).tolist())
    texts, truth = [text[:MAX_CHARACTERS] for text in rows.texts], np.asarray(rows.labels, dtype=np.int64)
    fit_in = reads_characters and estimate_features("characters", texts)[0] <= min(limit, MAX_ENTRIES)
    kinds = ("words", "characters") if fit_in else ("words",)
    extractors, parts = zip(
        *(_fit_features(kind, texts, limit=max_features // len(kinds)) for kind in kinds), strict=True
    )

    features = hstack(parts, format="csr") if fit_in else parts[0]

    def fit(strength: float, features: "csr_array", labels: NDArray[np.int64]) -> "LinearSVC":
        # scikit-learn's default tolerance, 1e-4, takes twice as long for the same accuracy.
        return LinearSVC(C=strength, tol=1e-2, random_state=seed).fit(features, labels)

    n_held_out = min(round(TUNING_SHARE * len(texts)), MAX_TUNING_ROWS)
    fitted, held_out = hold_out(rows.labels, n=n_held_out, seed=seed, groups=first_copies(texts))
    entries = sum(part.nnz for part in parts) / max(sum(map(len, texts)), 1)  # per character
    limit = MAX_TUNING_WORK / n_classes / max(entries, WORD_ENTRIES) if bounded else np.inf
    fitted = fitted[_sample(rows.subset(fitted), limit, seed=seed)]
    strength, scale = STRENGTHS[0], 1.0
    if len(held_out) and len(np.unique(truth[fitted])) > 1:

        @cache
        def scores(strength: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
            model = fit(strength, features[fitted], truth[fitted])
            decision = model.decision_function(features[held_out])
            return decision if decision.ndim > 1 else np.stack([0 * decision, decision], axis=1), model.classes_

        def accuracy(strength: float) -> float:
            decision, classes = scores(strength)  # M C, C
            return float((classes[decision.argmax(axis=1)] == truth[held_out]).mean())

        strength = max(STRENGTHS, key=accuracy)
        scale = _scale(*scores(strength), truth[held_out])
    machine = fit(strength, features, truth)
    model = LogisticRegression(C=strength)  # not fitted: it turns the machine's scores into probabilities
    model.classes_ = np.array(rows.classes)[machine.classes_]
    model.coef_, model.intercept_ = scale * machine.coef_, scale * machine.intercept_
    model.n_features_in_ = model.coef_.shape[1]
    pipeline = make_pipeline(make_union(*extractors), model)
    limited = "words and pairs of words (characters would take too much time and memory)"
    terms = "words, pairs of words and 2 to 5 characters" if fit_in else limited
    settings = f"TF-IDF of {terms}, C = {strength:g}"
    return LinearModel(pipeline, tuple(map(str, model.classes_)), settings, len(texts), not fit_in)


def _hashing(kind: str) -> "HashingVectorizer":
    from sklearn.feature_extraction.text import HashingVectorizer

    return HashingVectorizer(n_features=HASH_SIZE, norm=None, alternate_sign=False, dtype=np.float32, **_TERMS[kind])


def _fit_features(kind: str, texts: Sequence[str], *, limit: int) -> tuple["Pipeline", "csr_array"]:
    """A pipeline that computes TF-IDF of the hashed terms that occur in the most texts, and its features (N, F)."""
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.feature_selection import SelectKBest
    from sklearn.pipeline import make_pipeline

    hashing = _hashing(kind)
    counts = hashing.transform(texts)
    frequency = np.bincount(counts.indices, minlength=HASH_SIZE)
    selection = SelectKBest(None, k=min(limit, max(np.count_nonzero(frequency), 1)))
    selection.scores_, selection.n_features_in_ = frequency.astype(np.float64), HASH_SIZE
    weights = TfidfTransformer(sublinear_tf=True)
    features = weights.fit_transform(selection.transform(counts))
    return make_pipeline(hashing, selection, weights), features


def estimate_features(kind: str, texts: Sequence[str]) -> tuple[float, float]:
    """The number of non-zero features of a kind in the texts, and the seconds to compute them, both estimated."""
    sample = [text[:MAX_CHARACTERS] for text in texts[:: -(-len(texts) // COUNTED_TEXTS) or 1]]
    times = sum(min(len(text), MAX_CHARACTERS) for text in texts) / max(sum(map(len, sample)), 1)
    hashing = _hashing(kind)  # not timed: scikit-learn is imported
    started = time.perf_counter()
    n_entries: int = hashing.transform(sample).nnz
    return times * n_entries, times * (time.perf_counter() - started)


def _scale(scores: NDArray[np.float64], classes: NDArray[np.int64], truth: NDArray[np.int64]) -> float:
    """The factor for scores (N, C) that makes the labels (N,) most likely (temperature scaling, Guo et al. 2017).

    As in Platt scaling (1999), one row in N + 2 counts as labelled at random: otherwise, a few rows without an error
    would be enough to make the model certain.
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import log_softmax

    known = np.isin(truth, classes)
    if not known.any():
        return 1.0
    scores, own = scores[known], np.searchsorted(classes, truth[known])
    random = 1 / (len(own) + 2)

    def loss(logarithm: float) -> float:
        logs = log_softmax(np.exp(logarithm) * scores, axis=1)  # N C
        return -float((1 - random) * logs[np.arange(len(own)), own].mean() + random * logs.mean())

    return float(np.exp(minimize_scalar(loss, bounds=(-1.0, 4.0), method="bounded").x))


def estimate_seconds(texts: Sequence[str], n_classes: int) -> tuple[float, float]:
    """Estimated seconds to fit the model to the texts and classify them: as `fit_linear` would, and with words only."""
    limit = min(MAX_ENTRIES, MAX_WORK / n_classes)
    (n_words, of_words), (n_characters, of_characters) = (estimate_features(kind, texts) for kind in _TERMS)

    def total(n_entries: float, seconds: float) -> float:
        work = n_classes * min(n_entries, limit)
        return seconds + FIT_SECONDS * (work + len(STRENGTHS) * min(work, MAX_TUNING_WORK))

    words = total(n_words, of_words)
    return (total(n_words + n_characters, of_words + of_characters) if n_characters <= limit else words), words


def _sample(rows: LabelledTexts, limit: float, *, seed: int) -> NDArray[np.int64]:
    """Sorted indices of random rows with at most `limit` characters in all, and of the first row of each class."""
    lengths = np.array([min(len(text), MAX_CHARACTERS) for text in rows.texts])
    if lengths.sum() <= limit:
        return np.arange(len(rows))
    order = np.random.default_rng(seed).permutation(len(rows))
    n = np.cumsum(lengths[order]).searchsorted(limit, side="right")
    return np.union1d(order[:n], np.unique(rows.labels, return_index=True)[1])


def save_linear(model: LinearModel, path: Path) -> Path:
    """Save a model as a compressed file, and return its path.

    Raises:
        OSError: the file cannot be written.
    """
    import skops.io

    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        skops.io.dump(model.pipeline, temporary, compression=ZIP_DEFLATED)
    return path


def recommended_linear(checkpoint: Checkpoint) -> str:
    """A phrase that names a checkpoint's linear model, if the verdict recommends it; otherwise ""."""
    comparison = checkpoint.metrics.get("comparison") if checkpoint.linear is not None else None
    if not comparison or (measured := Comparison.from_dict(comparison)).to_use == "transformer":
        return ""
    return f"the linear model of {checkpoint.name}, as the verdict recommends ({measured.scores_in_words})"


def model_to_use(checkpoint: Checkpoint, model: str | None) -> tuple[LinearModel | None, str]:
    """The linear model beside a checkpoint, if `model` asks for it ("linear") or is None and the verdict recommends it.

    Otherwise None, for the Transformer. The second value is a sentence that explains a choice made by the verdict, or
    "". For errors see `load_linear`.
    """
    recommended = recommended_linear(checkpoint) if model is None else ""
    reason = f"This is {recommended}; for the Transformer: --model transformer." if recommended else ""
    if not recommended and model != "linear":
        return None, ""
    return load_linear(checkpoint.linear or (checkpoint.path or Path()) / LINEAR), reason


def sketch_of_training(checkpoint: Checkpoint, *, is_linear: bool) -> Sequence[str]:
    """The sketch of the texts that the Transformer, or the linear model, was trained on; empty if none is stored."""
    facts = checkpoint.metrics.get("refit" if is_refitted(checkpoint, is_linear=is_linear) else "data", {})
    hashes: Sequence[str] = facts.get("sketch", ())
    return hashes


def is_refitted(checkpoint: Checkpoint, *, is_linear: bool) -> bool:
    """Whether the model was trained again on all rows after measuring."""
    refitted = checkpoint.metrics.get("refit", {}).get("model")
    return bool(refitted == ("linear" if is_linear else "transformer"))


def load_linear(path: Path) -> LinearModel:
    """Read a model that `save_linear` wrote; nothing is unpickled or executed.

    Raises:
        CheckpointError: there is no such file, it is damaged, or it holds types that skops does not trust.
    """
    import skops.io
    from sklearn.pipeline import Pipeline

    if not path.is_file():
        raise CheckpointError(
            f"no linear model {path}: `train FILE` saves one where the Transformer is not clearly better"
        )
    try:
        pipeline = skops.io.load(path, trusted=[])  # only skops' own list: scikit-learn's estimators, NumPy's arrays
    except Exception as error:  # noqa: BLE001  # skops raises many kinds for a damaged file
        raise CheckpointError(f"{path} is not a linear model of txcls ({error!s:.200}); train it again") from None
    if not (isinstance(pipeline, Pipeline) and hasattr(pipeline, "classes_")):
        raise CheckpointError(f"{path} is not a linear model of txcls, but {type(pipeline).__name__}; train it again")
    return LinearModel(pipeline, tuple(map(str, pipeline.classes_)))
