"""How a model of `agreement` decides: accuracy by number of attractors, by construction, and with less of the text.

    python -m txcls evaluate agreement --agreement

Without attention to a distant noun, a model can only go by words near the verb, by the words it knows whatever their
order, or by pairs of neighbours; each column shows what one of these is worth on the same test rows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from txcls.checkpoint.listing import checkpoint_names
from txcls.data.datasets import dataset_folder, dataset_info
from txcls.data.generated.agreement import INFO, minimal_pairs, read_rows
from txcls.data.generated.agreement.rows import VERBS
from txcls.errors import DataError
from txcls.evaluation.baseline import fit_linear_baseline
from txcls.language.generation import TextModel
from txcls.predictor import Predictor
from txcls.text.vocabulary import MASK

ENCODER = "encoder"
"""The masked-token model that is asked for the verb, if there is a checkpoint of this name."""
MAX_ATTRACTORS = 3
"""Rows with this many attractors or more are one group."""
LAST_WORDS = 5


@dataclass(frozen=True)
class GroupAccuracy:
    """Accuracies on the n rows of a group, keyed by what the prediction was made from."""

    name: str
    n: int
    accuracy: Mapping[str, float]


@dataclass(frozen=True)
class AgreementMeasurements:
    """Test rows by number of attractors and by source, and the minimal pairs by construction."""

    attractors: tuple[GroupAccuracy, ...]
    sources: tuple[GroupAccuracy, ...]
    constructions: tuple[GroupAccuracy, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, for `metrics["agreement"]`."""
        return {key: [asdict(group) for group in groups] for key, groups in vars(self).items()}


def measure_agreement(
    classifier: Predictor, *, data_path: Path | None = None, on_stage: Callable[[str], object] = lambda _: None
) -> AgreementMeasurements:
    """Measure a model of `agreement` and the linear baseline on its test rows, and the model on the minimal pairs.

    The model also reads each text with its words in random order, its last `LAST_WORDS` words, and its last word. The
    masked-token model, which has seen no label, predicts the verb itself (`plural_share`).

    Raises:
        DataError: the checkpoint was trained on other data, or its rows are not on this machine.
    """
    if classifier.checkpoint.config.data.dataset != INFO.name:
        raise DataError(f"{classifier.name} is not a model of {INFO.name}; --agreement measures those")
    folder = data_path or dataset_folder(dataset_info(INFO.name))
    rows, test = [*read_rows(folder, "train"), *read_rows(folder, "validation")], read_rows(folder, "test")
    labels = np.array([row.label for row in test])
    on_stage(f"fitting the linear baseline to {len(rows):,} rows")
    linear = fit_linear_baseline([row.text for row in rows], [row.label for row in rows])
    on_stage(f"classifying {len(test):,} test rows")
    texts = [row.text for row in test]
    rng = np.random.default_rng(0)
    right = {
        "transformer": _right(classifier, texts, labels),
        "shuffled": _right(classifier, [" ".join(rng.permutation(text.split())) for text in texts], labels),
        "last words": _right(classifier, [" ".join(text.split()[-LAST_WORDS:]) for text in texts], labels),
        "last word": _right(classifier, [text.split()[-1] for text in texts], labels),
        "linear": linear.predict(texts) == labels,
    }
    pairs = minimal_pairs()
    of_pair, numbers = [pair.text for pair in pairs], np.array([pair.label for pair in pairs])
    of_pairs = {
        "transformer": _right(classifier, of_pair, numbers),
        "linear": linear.predict(of_pair) == numbers,
    }
    if ENCODER in checkpoint_names(language_models=True):
        model = TextModel.load(ENCODER, objective="masked")
        right[ENCODER] = np.array([(_before_verb(model, row.text) > 0.5) == row.label for row in test])
        of_pairs[ENCODER] = np.array([(_before_verb(model, pair.text) > 0.5) == pair.label for pair in pairs])
    counts = np.minimum([row.attractors for row in test], MAX_ATTRACTORS)
    attracted = ["attractor of the other number" if pair.is_attracted else "of the same number" for pair in pairs]
    return AgreementMeasurements(
        _by_group([str(n) if n < MAX_ATTRACTORS else f"{MAX_ATTRACTORS} or more" for n in counts], right),
        _by_group([row.source for row in test], right),
        _by_group([f"{pair.construction}, {which}" for pair, which in zip(pairs, attracted, strict=True)], of_pairs),
    )


def plural_share(model: TextModel, ids: Sequence[int], place: int) -> float:
    """The share of plural verbs in the probability that a masked-token model gives the six verbs at a position."""
    masked = torch.tensor([[*ids[:place], MASK, *ids[place + 1 :]]])  # 1 T
    number_of = {model.encode(f"a {verb}")[-1]: number for verb, number in VERBS.items()}
    with torch.inference_mode():
        logits = model.model.unembed(model.model.read(masked)[0, place])  # V
        shares = torch.softmax(logits[list(number_of)].double(), dim=-1)
    return float(sum(share for share, number in zip(shares, number_of.values(), strict=True) if number))


def _before_verb(model: TextModel, text: str) -> float:
    """`plural_share` of the token after a text."""
    ids = model.encode(f"{text} is")
    return plural_share(model, ids, len(ids) - 1)


def _right(classifier: Predictor, texts: Sequence[str], labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each prediction is right; (N,)."""
    right: NDArray[np.bool_] = classifier.probabilities(texts).argmax(axis=1) == labels
    return right


def _by_group(names: Sequence[str], right: Mapping[str, NDArray[np.bool_]]) -> tuple[GroupAccuracy, ...]:
    of_row = np.array(names)
    groups = []
    for name in sorted(set(names)):
        inside = of_row == name
        accuracy = {kind: float(values[inside].mean()) for kind, values in right.items()}
        groups.append(GroupAccuracy(name, int(inside.sum()), accuracy))
    return tuple(groups)
