"""A linear model as an extra teacher: class probabilities of every training text, from models that have not seen it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from txcls.config import TextConfig
from txcls.errors import TrainingError
from txcls.text.cleaning import clean

FOLDS = 10
INVERSE_REGULARISATION = 30.0
"""C of the logistic regression, chosen by its log loss on IMDB's validation texts among 3, 10 and 30."""
WORDS = r"\b\w+\b|[!?]"


def linear_probabilities(texts: Sequence[str], labels: Sequence[int], config: TextConfig) -> NDArray[np.float32]:
    """Class probabilities (N, C) of N texts, each from a model that was fitted to other tenths of them.

    The model is the one that a practitioner would try first: TF-IDF of words and pairs of neighbours, logistic
    regression, one class against the rest. To imitate it as well as the labels (knowledge distillation, Hinton et al.
    2015) tells a network which texts are hard, and that no word decides alone. A model that had seen the text itself
    would only repeat its label.

    Args:
        texts: training texts as typed.
        labels: their classes, 0 … C - 1.
        config: how texts are cleaned first.

    Raises:
        TrainingError: a class has fewer texts than `FOLDS`.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.multiclass import OneVsRestClassifier

    counts = np.bincount(np.asarray(labels))
    if len(counts) < 2 or counts.min() < FOLDS:
        raise TrainingError(
            f"train.teacher=linear needs at least two classes of {FOLDS} training texts each, to fit to some and ask "
            f"about others; got {len(counts)} of at least {counts.min()}. Leave it at none"
        )
    features = TfidfVectorizer(
        preprocessor=lambda text: clean(text, config.cleaning),
        token_pattern=WORDS,
        ngram_range=(1, 2),
        sublinear_tf=True,
        min_df=min(2, len(texts)),
        dtype=np.float32,
    ).fit_transform(texts)
    model = LogisticRegression(C=INVERSE_REGULARISATION, solver="liblinear")
    found: NDArray[np.float32] = cross_val_predict(
        OneVsRestClassifier(model) if len(counts) > 2 else model,
        features,
        np.asarray(labels),
        cv=StratifiedKFold(FOLDS, shuffle=True, random_state=0),
        method="predict_proba",
    ).astype(np.float32)
    return found
