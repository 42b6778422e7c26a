"""Accuracy of a model of `agreement` by number of attractors, by construction, and with less of the text.

    python -m txcls measure agreement agreement

A model that does not attend to the distant noun can only use the words near the verb, the words regardless of their
order, or pairs of neighbouring words. Each column shows the accuracy that one of these reaches on the same test rows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from txcls.checkpoint.folders import ENCODER
from txcls.checkpoint.listing import checkpoint_names
from txcls.data.datasets import dataset_folder, dataset_info
from txcls.data.generated.agreement import INFO, minimal_pairs, read_rows
from txcls.data.generated.agreement.rows import CLASSES, VERBS
from txcls.data.types import LabelledTexts
from txcls.errors import DataError
from txcls.evaluation.linear import fit_linear
from txcls.inference.generation import TextModel
from txcls.inference.predictor import Predictor
from txcls.text.vocabulary import MASK

MAX_ATTRACTORS = 3
"""Rows with this many attractors or more form one group."""
LAST_WORDS = 5


@dataclass(frozen=True)
class GroupAccuracy:
    """Accuracies on the n rows of a group, keyed by model or by the part of the text that it reads."""

    name: str
    n: int
    accuracy: Mapping[str, float]


@dataclass(frozen=True)
class AgreementMeasurements:
    """Accuracies on test rows by number of attractors and by source; on the minimal pairs by construction and numbers,
    and, of those with a noun of the other number before the verb, by the number of the subject."""

    attractors: tuple[GroupAccuracy, ...]
    sources: tuple[GroupAccuracy, ...]
    constructions: tuple[GroupAccuracy, ...]
    attracted: tuple[GroupAccuracy, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, for `metrics["agreement"]`."""
        return {key: [asdict(group) for group in groups] for key, groups in vars(self).items()}


def measure_agreement(
    classifier: Predictor, *, data_path: Path | None = None, on_stage: Callable[[str], object] = lambda _: None
) -> AgreementMeasurements:
    """Measure a model of `agreement` and the linear model on its test rows, and the model on the minimal pairs.

    The model also classifies each text's words in random order, its last `LAST_WORDS` words, and its last word. The
    masked language model, which was trained without labels, predicts the verb itself (`plural_share`).

    Raises:
        DataError: the checkpoint was trained on other data, or its rows are not on this machine.
    """
    if classifier.checkpoint.config.data.dataset != INFO.name:
        raise DataError(f"{classifier.name} is not a model of {INFO.name}; only those are measured")
    folder = data_path or dataset_folder(dataset_info(INFO.name))
    rows, test = [*read_rows(folder, "train"), *read_rows(folder, "validation")], read_rows(folder, "test")
    labels = np.array([row.label for row in test])
    on_stage(f"fitting the linear model to {len(rows):,} rows")
    linear = fit_linear(LabelledTexts([row.text for row in rows], [row.label for row in rows], CLASSES))
    on_stage(f"classifying {len(test):,} test rows")
    texts = [row.text for row in test]
    rng = np.random.default_rng(0)
    correct = {
        "transformer": _is_correct(classifier, texts, labels),
        "shuffled": _is_correct(classifier, [" ".join(rng.permutation(text.split())) for text in texts], labels),
        "last words": _is_correct(classifier, [" ".join(text.split()[-LAST_WORDS:]) for text in texts], labels),
        "last word": _is_correct(classifier, [text.split()[-1] for text in texts], labels),
        "linear": linear.predict(texts, CLASSES) == labels,
    }
    pairs = minimal_pairs()
    pair_texts, pair_labels = [pair.text for pair in pairs], np.array([pair.label for pair in pairs])
    correct_pairs = {
        "transformer": _is_correct(classifier, pair_texts, pair_labels),
        "linear": linear.predict(pair_texts, CLASSES) == pair_labels,
    }
    if ENCODER in checkpoint_names(language_models=True):
        model = TextModel.load(ENCODER, objective="masked")
        correct[ENCODER] = np.array([(_next_plural_share(model, row.text) > 0.5) == row.label for row in test])
        correct_pairs[ENCODER] = np.array(
            [(_next_plural_share(model, pair.text) > 0.5) == pair.label for pair in pairs]
        )
    counts = np.minimum([row.attractors for row in test], MAX_ATTRACTORS)
    subjects = [f"{CLASSES[pair.label]} subject" for pair in pairs]
    last_nouns = [CLASSES[pair.label ^ pair.is_attracted] for pair in pairs]
    constructions = [
        f"{pair.construction}, {subject}, {noun} noun before the verb"
        for pair, subject, noun in zip(pairs, subjects, last_nouns, strict=True)
    ]
    attracted = [n for n, pair in enumerate(pairs) if pair.is_attracted]
    return AgreementMeasurements(
        _by_group([str(n) if n < MAX_ATTRACTORS else f"{MAX_ATTRACTORS} or more" for n in counts], correct),
        _by_group([row.source for row in test], correct),
        _by_group(constructions, correct_pairs),
        _by_group([subjects[n] for n in attracted], {kind: rows[attracted] for kind, rows in correct_pairs.items()}),
    )


def plural_share(model: TextModel, ids: Sequence[int], position: int) -> float:
    """The plural verbs' share of the probability that a masked language model gives the six verbs at a position."""
    masked = torch.tensor([[*ids[:position], MASK, *ids[position + 1 :]]])  # 1 T
    is_plural = {model.encode(f"a {verb}")[-1]: number for verb, number in VERBS.items()}
    with torch.inference_mode():
        logits = model.model.unembed(model.model.read(masked)[0, position])  # V
        shares = torch.softmax(logits[list(is_plural)].double(), dim=-1)  # 6
    return float(sum(share for share, number in zip(shares, is_plural.values(), strict=True) if number))


def _next_plural_share(model: TextModel, text: str) -> float:
    """`plural_share` of the token after a text."""
    ids = model.encode(f"{text} is")
    return plural_share(model, ids, len(ids) - 1)


def _is_correct(classifier: Predictor, texts: Sequence[str], labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each prediction is correct; (N,)."""
    is_correct: NDArray[np.bool_] = classifier.probabilities(texts).argmax(axis=1) == labels
    return is_correct


def _by_group(group_names: Sequence[str], correct: Mapping[str, NDArray[np.bool_]]) -> tuple[GroupAccuracy, ...]:
    """Accuracies by group; `group_names` has the group of each of the N rows, `correct` arrays of shape (N,)."""
    groups = []
    for name in sorted(set(group_names)):
        is_member = np.array(group_names) == name  # N
        accuracy = {kind: float(values[is_member].mean()) for kind, values in correct.items()}
        groups.append(GroupAccuracy(name, int(is_member.sum()), accuracy))
    return tuple(groups)
