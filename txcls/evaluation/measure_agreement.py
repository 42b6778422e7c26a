"""Accuracy of a model of `agreement` by number of attractors, by construction, and with less of the text.

    python -m txcls measure agreement agreement

A model that does not attend to the distant noun can only use the words near the verb, the words regardless of their
order, or pairs of neighbouring words. Each column shows the accuracy that one of these reaches on the same test rows.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from txcls.checkpoint.card import card_part
from txcls.checkpoint.folders import ENCODER
from txcls.checkpoint.listing import checkpoint_names
from txcls.data.datasets import dataset_folder, dataset_info
from txcls.data.generated.agreement import CLASSES, INFO, VERBS, minimal_pairs, read_rows
from txcls.data.types import LabelledTexts
from txcls.errors import DataError
from txcls.evaluation.linear import fit_linear
from txcls.inference.generation import TextModel
from txcls.inference.predictor import Predictor
from txcls.text.formatting import percentage
from txcls.text.vocabulary import MASK

MAX_ATTRACTORS = 3
"""Rows with this many attractors or more form one group."""
LAST_WORDS = 5
MODELS = {
    "transformer": "this model",
    "shuffled": "its words in random order",
    "last words": "only the last five words",
    "last word": "only the last word",
    "linear": "linear model",
    ENCODER: "encoder, trained without labels",
}
"""The column titles: which model, or which part of the text, each accuracy is for."""


def measure_agreement(
    classifier: Predictor, *, data_path: Path | None = None, on_stage: Callable[[str], object] = lambda _: None
) -> dict[str, Any]:
    """Measure a model of `agreement` and the linear model on the test rows and on the minimal pairs.

    The model also classifies each text's words in random order, its last `LAST_WORDS` words, and its last word. The
    masked language model, which was trained without labels, predicts the verb itself (`plural_share`).

    Returns plain JSON values for `metrics["agreement"]`: each group's name, number of rows, and accuracies.

    Raises:
        DataError: the checkpoint was trained on other data, or its rows are not on this machine.
    """
    if classifier.checkpoint.config.data.dataset != INFO.name:
        raise DataError(f"{classifier.name} is not a model of {INFO.name}; only those are measured")
    folder = data_path or dataset_folder(dataset_info(INFO.name))
    rows, test = [*read_rows(folder, "train"), *read_rows(folder, "validation")], read_rows(folder, "test")
    on_stage(f"fitting the linear model to {len(rows):,} rows")
    linear = fit_linear(LabelledTexts([row.text for row in rows], [row.label for row in rows], CLASSES))
    encoder = TextModel.load(ENCODER, objective="masked") if ENCODER in checkpoint_names(language_models=True) else None

    def measure(texts: Sequence[str], labels: Sequence[int]) -> dict[str, NDArray[np.bool_]]:
        """Whether each prediction of each model is correct, (N,)."""
        classes = {
            "transformer": classifier.probabilities(texts).argmax(axis=1),
            "linear": linear.predict(texts, CLASSES),
        }
        if encoder is not None:
            ids = [encoder.encode(f"{text} is") for text in texts]  # the last token is the verb
            classes[ENCODER] = np.array([plural_share(encoder, row, len(row) - 1) > 0.5 for row in ids])
        return {name: predicted == np.asarray(labels) for name, predicted in classes.items()}

    on_stage(f"classifying {len(test):,} test rows")
    texts, labels = [row.text for row in test], [row.label for row in test]
    correct, rng = measure(texts, labels), np.random.default_rng(0)
    for name, parts in {
        "shuffled": [" ".join(rng.permutation(text.split())) for text in texts],
        "last words": [" ".join(text.split()[-LAST_WORDS:]) for text in texts],
        "last word": [text.split()[-1] for text in texts],
    }.items():
        correct[name] = classifier.probabilities(parts).argmax(axis=1) == np.asarray(labels)
    pairs = minimal_pairs()
    correct_pairs = measure([pair.text for pair in pairs], [pair.label for pair in pairs])
    subjects = [f"{CLASSES[pair.label]} subject" for pair in pairs]
    constructions = [
        f"{pair.construction}, {subject}, {CLASSES[pair.label ^ pair.is_attracted]} noun before the verb"
        for pair, subject in zip(pairs, subjects, strict=True)
    ]
    attracted = [n for n, pair in enumerate(pairs) if pair.is_attracted]
    more = f"{MAX_ATTRACTORS} or more"
    groups = {
        "attractors": _by_group(
            [more if row.attractors >= MAX_ATTRACTORS else str(row.attractors) for row in test], correct
        ),
        "sources": _by_group([row.source for row in test], correct),
        "constructions": _by_group(constructions, correct_pairs),
        "attracted": _by_group(
            [subjects[n] for n in attracted], {name: right[attracted] for name, right in correct_pairs.items()}
        ),
    }
    return groups | {"card": card_of(groups)}


def card_of(groups: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """The tables of the model card for the groups of `measure_agreement`."""
    text = (
        "Accuracy by number of attractors (nouns between the subject and the verb whose number differs from the "
        "subject's, detected with a word list), and on the minimal pairs that ship with txcls (`measure NAME "
        "agreement`)."
    )
    parts: list[dict[str, Any]] = []
    for title, key in (("attractors", "attractors"), ("source", "sources")):
        kinds = [kind for kind in MODELS if kind in groups[key][0]["accuracy"]]
        rows = [
            (group["name"], f"{group['n']:,}", *(percentage(group["accuracy"][kind]) for kind in kinds))
            for group in groups[key]
        ]
        parts.append(card_part("" if parts else text, (title, "rows", *(MODELS[kind] for kind in kinds)), rows))
    kinds = [kind for kind in MODELS if kind in groups["constructions"][0]["accuracy"]]
    pairs = [(group["name"], *(_n_right(group, kind) for kind in kinds)) for group in groups["constructions"]]
    parts.append(card_part("", ("minimal pairs, right", *(MODELS[kind] for kind in kinds)), pairs))
    right = " and ".join(
        f"{_n_right(group, 'transformer')} texts with a {group['name']}" for group in groups["attracted"]
    )
    return [*parts, card_part(f"With a noun of the other number before the verb, this model is right for {right}.")]


def _n_right(group: Mapping[str, Any], kind: str) -> str:
    return f"{round(group['accuracy'][kind] * group['n'])} of {group['n']}"


def plural_share(model: TextModel, ids: Sequence[int], position: int) -> float:
    """The plural verbs' share of the probability that a masked language model gives the six verbs at a position."""
    masked = torch.tensor([[*ids[:position], MASK, *ids[position + 1 :]]])  # 1 T
    is_plural = {model.encode(f"a {verb}")[-1]: number for verb, number in VERBS.items()}
    with torch.inference_mode():
        logits = model.model.unembed(model.model.read(masked)[0, position])  # V
        shares = torch.softmax(logits[list(is_plural)].double(), dim=-1)  # 6
    return float(sum(share for share, number in zip(shares, is_plural.values(), strict=True) if number))


def _by_group(group_names: Sequence[str], correct: Mapping[str, NDArray[np.bool_]]) -> list[dict[str, Any]]:
    """Accuracies by group; `group_names` has the group of each of the N rows, `correct` arrays of shape (N,)."""
    groups = []
    for name in sorted(set(group_names)):
        is_member = np.array(group_names) == name  # N
        accuracy = {kind: float(right[is_member].mean()) for kind, right in correct.items()}
        groups.append({"name": name, "n": int(is_member.sum()), "accuracy": accuracy})
    return groups
