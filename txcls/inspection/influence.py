"""Which training rows carry an answer most: an estimate from gradients, averaged over several trainings.

After Park et al. 2023, "TRAK: Attributing Model Behavior at Scale": near its final weights a model is taken to be
linear in them, with a text's gradient as its features; the effect of a row is then that of leaving a row out of a
logistic regression. Rows are few here, so that the N x N matrix of the features' dot products is solved exactly,
where the paper projects gradients at random. One training is noisy, so several are averaged.

Whether rows found so carry an answer is checked by leaving them out and training again (`txcls.inspection.retraining`,
`python -m benchmarks.influence`).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from txcls.data.batches import TokenisedTexts, pad_batch
from txcls.model import TextClassifier
from txcls.runtime.pause import may_pause

__all__ = ["InfluenceCheck", "answer_margin", "influential_rows", "row_effects"]

RIDGE = 0.1
"""Added to the diagonal of the matrix of dot products, in units of its mean."""
CHECK = "influence_check.json"


@dataclass(frozen=True, slots=True)
class InfluenceCheck:
    """What `python -m benchmarks.influence` measured: answers before and after rows were left out of the training.

    Changes are of the answer's log odds, means over answers; negative ones make it less likely.

    Attributes:
        n_answers: test texts whose answers were followed.
        n_rows: rows left out.
        n_trainings: trainings per answer and set of rows, of other seeds than those that named the rows.
        named: change without the rows named.
        control: change without as many random rows of the same class.
        difference: `named` minus `control`.
        low, high: its 95 % interval, by a bootstrap of the answers.
        larger: answers that fell further without the named rows than without the control's.
    """

    n_answers: int
    n_rows: int
    n_trainings: int
    named: float
    control: float
    difference: float
    low: float
    high: float
    larger: int

    @property
    def passes(self) -> bool:
        """Whether the named rows carry answers clearly more than random ones do."""
        return self.high < 0

    @classmethod
    def shipped(cls) -> Self | None:
        """The figures that were measured for this version; None where there are none."""
        file = resources.files("txcls.inspection") / CHECK
        return cls(**json.loads(file.read_text("utf-8"))) if file.is_file() else None


def answer_margin(logits: Tensor, c: int) -> Tensor:
    """The log odds of class c, log p / (1 - p), of logits (..., C): (...)."""
    others = torch.cat([logits[..., :c], logits[..., c + 1 :]], dim=-1)
    return logits[..., c] - others.logsumexp(dim=-1)


def row_effects(
    models: Sequence[TextClassifier], rows: TokenisedTexts, asked: TokenisedTexts, c: int
) -> NDArray[np.float64]:
    """How much each training row raises the log odds of class c for a text, (N,); means over models.

    Args:
        models: trained on the same rows with different seeds; they are not changed.
        rows: the N training rows and their labels.
        asked: one text.
        c: a class.

    Raises:
        ValueError: there is no model, or not one text.
    """
    if not models or len(asked) != 1:
        raise ValueError(f"got {len(models)} models and {len(asked)} texts; wanted at least one model and one text")
    effects = np.zeros(len(rows))
    for model in models:
        features, missing = _features(model, rows)  # N P, N
        wanted, _ = _features(model, TokenisedTexts(asked.ids, asked.offsets, np.array([c])))  # 1 P
        products = (features @ features.T).double().numpy()  # N N
        products += RIDGE * float(np.trace(products)) / len(rows) * np.eye(len(rows))
        likeness = (features @ wanted[0]).double().numpy()  # N
        effects += np.linalg.solve(products, likeness) * missing / len(models)
    return effects


def influential_rows(effects: NDArray[np.float64], labels: NDArray[np.int64], c: int, *, n: int) -> NDArray[np.intp]:
    """The n rows of class c with the largest effects, largest first."""
    own = np.flatnonzero(labels == c)
    chosen: NDArray[np.intp] = own[np.argsort(-effects[own], kind="stable")[:n]]
    return chosen


def _features(model: TextClassifier, texts: TokenisedTexts) -> tuple[Tensor, NDArray[np.float64]]:
    """Gradients of each text's own log odds with respect to all weights (N, P), and one minus its probability (N,)."""
    model.eval()
    parameters = [one for one in model.parameters() if one.requires_grad]
    gradients = torch.empty(len(texts), sum(one.numel() for one in parameters))  # N P
    missing = np.empty(len(texts))
    with torch.enable_grad():
        for n in range(len(texts)):
            if not n % 32:
                may_pause()
            ids, labels = pad_batch(texts, [n])
            odds = answer_margin(model(torch.from_numpy(ids))[0].float(), int(labels[0]))
            found = torch.autograd.grad(odds, parameters)
            gradients[n] = torch.cat([one.flatten() for one in found])
            missing[n] = float(torch.sigmoid(-odds.detach()))
    return gradients, missing
