"""A linear model as an extra teacher: class probabilities of every training text, from models that have not seen it."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from txcls.config import TextConfig
from txcls.errors import TrainingError
from txcls.text.cleaning import clean

if TYPE_CHECKING:
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import TfidfVectorizer

MANY = 50_000
"""From so many texts on there are 5 folds instead of 10: the models miss little, and each takes its time."""
FEWEST = 10
"""Texts that each class needs."""
STRENGTHS = (3.0, 10.0, 30.0, 100.0)
"""Values of C to choose from, the inverse strength of the logistic regression's regularisation."""
ASKED_FOR_STRENGTH = 5
"""Classes that choose it, the most frequent ones."""
WORDS = r"\b\w+\b|[!?]"
LONGEST = 3
"""Words of the longest n-gram."""
KEPT = 8
"""Answers that a cache folder keeps."""


def linear_probabilities(
    texts: Sequence[str], labels: Sequence[int], config: TextConfig, *, cache: Path | None = None
) -> NDArray[np.float32]:
    """Class probabilities (N, C) of N texts, each from a model that was fitted to other parts of them.

    The model is a strong one of its kind: TF-IDF of words and of two and three neighbours, each weighed by how much
    more often it stands in texts of the class than in others (Wang and Manning 2012, "Baselines and Bigrams", the
    log-count ratio of naive Bayes), then logistic regression, one class against the rest, as regularised as gives the
    lowest log loss on a tenth (of many texts: a fifth). To imitate it as well as the labels (knowledge distillation,
    Hinton et al. 2015) tells a network which texts are hard, and that no word decides alone. A model that had seen
    the text itself would only repeat its label.

    Args:
        texts: training texts as typed.
        labels: their classes, 0 … C - 1.
        config: how texts are cleaned first.
        cache: folder in which answers are kept and found again, by texts, labels, cleaning and this code; None keeps
            nothing. A folder that cannot be written only costs the time to ask again.

    Raises:
        TrainingError: a class has fewer texts than `FEWEST`.
    """
    counts = np.bincount(np.asarray(labels))
    if len(counts) < 2 or counts.min() < FEWEST:
        raise TrainingError(
            f"train.teacher=linear needs at least two classes of {FEWEST} training texts each, to fit to some and ask "
            f"about others; got {len(counts)} of at least {counts.min()}. Leave it at none"
        )
    given = (list(texts), list(labels), tuple(config.cleaning), Path(__file__).read_text(encoding="utf-8"))
    if cache is not None:
        with contextlib.suppress(OSError):
            return _kept(cache, *given)
    return _ask(*given)


def _kept(cache: Path, *given: Any) -> NDArray[np.float32]:
    """What `_ask` answers, from the folder where it was asked the same before.

    Raises:
        OSError: the folder cannot be written.
    """
    from joblib import Memory

    memory = Memory(cache, verbose=0)
    found: NDArray[np.float32] = memory.cache(_ask)(*given)
    memory.reduce_size(items_limit=KEPT)
    return found


def _ask(texts: list[str], labels: list[int], cleaning: tuple[Any, ...], code: str) -> NDArray[np.float32]:
    """See `linear_probabilities`; `code`, this file, lets no answer outlive a change of it."""
    from sklearn.model_selection import StratifiedKFold

    classes = np.asarray(labels)  # N
    counts = np.bincount(classes)  # C
    features = ngrams(cleaning).fit_transform(texts)  # N features
    folds = StratifiedKFold(5 if len(texts) >= MANY else 10, shuffle=True, random_state=0)
    strength = 0.0
    found = np.zeros((len(texts), len(counts)), dtype=np.float32)
    for known, asked in folds.split(features, classes):
        fold = Fold(features[known], classes[known], features[asked])
        strength = strength or fold.best_strength(classes[asked])
        found[asked] = fold.probabilities(len(counts), strength)
    return found


def ngrams(cleaning: tuple[Any, ...]) -> "TfidfVectorizer":
    """Texts to TF-IDF of their words and of two and three neighbours, all that stand in two texts or more."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(
        preprocessor=lambda text: clean(text, cleaning),
        token_pattern=WORDS,
        ngram_range=(1, LONGEST),
        sublinear_tf=True,
        min_df=2,
        dtype=np.float32,
    )


def log_count_ratio(features: "csr_array", own: NDArray[np.bool_]) -> NDArray[np.float32]:
    """How much more often each feature stands in a class's own texts than in others, as naive Bayes counts it.

    Args:
        features: (N, features) of N texts; what is not zero stands in the text.
        own: (N,) which of them are the class's.

    Returns:
        (features,): log of its share among the class's own features, less that of its share among the others'.
    """
    width = features.shape[1]
    inside, outside = (  # features
        1 + np.bincount(features[part].indices, minlength=width).astype(np.float32) for part in (own, ~own)
    )
    ratio: NDArray[np.float32] = np.log(inside / inside.sum()) - np.log(outside / outside.sum())
    return ratio


def weigh(features: "csr_array", weights: NDArray[np.floating]) -> "csr_array":
    """A copy of features (N, features), each multiplied by its weight, (features,)."""
    weighed = features.copy()
    weighed.data *= weights[weighed.indices]
    return weighed


@dataclass(frozen=True, eq=False)
class Fold:
    """Texts to fit models to, and others to ask them about."""

    known: "csr_array"
    """Features of the texts to fit to, (K, features)."""
    classes: NDArray[np.int_]
    """(K,): their classes."""
    asked: "csr_array"
    """Features of the others, (A, features)."""

    def likely(self, c: int, strength: float) -> NDArray[np.float64]:
        """How likely each of the others is of class c, (A,), by a model with that C."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.preprocessing import normalize

        own = self.classes == c  # K
        ratio = log_count_ratio(self.known, own)  # features

        known, asked = (normalize(weigh(texts, ratio), copy=False) for texts in (self.known, self.asked))
        model = LogisticRegression(C=strength, solver="liblinear").fit(known, own)
        found: NDArray[np.float64] = model.predict_proba(asked)[:, 1]
        return found

    def probabilities(self, n_classes: int, strength: float) -> NDArray[np.float64]:
        """Class probabilities of the others, (A, C)."""
        if n_classes == 2:  # one model says how likely both are
            second = self.likely(1, strength)
            return np.stack((1 - second, second), axis=1)
        each = np.stack([self.likely(c, strength) for c in range(n_classes)], axis=1)
        shares: NDArray[np.float64] = each / each.sum(axis=1, keepdims=True)
        return shares

    def best_strength(self, right: NDArray[np.int_]) -> float:
        """The C that says best, by log loss, which of the others are of each frequent class; `right`, (A,), knows."""
        counts = np.bincount(self.classes)
        # Of two classes one model says both.
        frequent = np.array([1]) if len(counts) == 2 else counts.argsort()[::-1][:ASKED_FOR_STRENGTH]

        def log_loss(strength: float) -> float:
            likely = np.stack([self.likely(int(c), strength) for c in frequent])  # frequent A
            said = np.where(right == frequent[:, None], likely, 1 - likely)
            return float(-np.log(np.maximum(said, 1e-12)).mean())

        return min(STRENGTHS, key=log_loss)
