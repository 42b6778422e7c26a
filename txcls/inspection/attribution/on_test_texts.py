"""The evaluation of explanations averaged over many test texts, measured once and kept with the checkpoint."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.data.datasets import open_dataset
from txcls.inspection.attribution.evaluation import ExplanationEvaluation, evaluate_explanation
from txcls.inspection.attribution.methods import methods_of
from txcls.inspection.random_texts import random_texts
from txcls.predictor import Predictor

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ExplanationAverages:
    """The methods on `n` texts of a split.

    Attributes:
        areas: each of M methods to the mean area under its deletion curve.
        random_area: the mean area of random orders.
        overlaps: (M, M) of `top_overlaps`, each averaged over the texts where it is defined; NaN if there is none.
        chance: the mean overlap of two random choices of words.
        completeness_error: mean error of integrated gradients, in logits.
    """

    split: str
    n: int
    areas: Mapping[str, float]
    random_area: float
    overlaps: Floats
    chance: float
    completeness_error: float

    @classmethod
    def of(cls, classifier: Predictor) -> "ExplanationAverages | None":
        """Those that the checkpoint keeps; None if it keeps none, or none of its methods."""
        try:
            kept = classifier.checkpoint.metrics["explanations"]
            areas = {name: float(kept["areas"][name]) for name in methods_of(classifier)}
            rows = [[np.nan if one is None else float(one) for one in row] for row in kept["overlaps"]]
            overlaps = np.array(rows)
            found = cls(
                str(kept["split"]),
                int(kept["n"]),
                areas,
                float(kept["random_area"]),
                overlaps,
                float(kept["chance"]),
                float(kept["completeness_error"]),
            )
        except (KeyError, TypeError, ValueError):
            return None
        return found if overlaps.shape == (len(areas), len(areas)) else None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, rounded to six places, for `metrics["explanations"]`."""
        return {
            "split": self.split,
            "n": self.n,
            "areas": {name: round(area, 6) for name, area in self.areas.items()},
            "random_area": round(self.random_area, 6),
            "overlaps": [[None if np.isnan(one) else round(float(one), 6) for one in row] for row in self.overlaps],
            "chance": round(self.chance, 6),
            "completeness_error": round(self.completeness_error, 8),
        }


def average_explanations(evaluations: Sequence[ExplanationEvaluation], *, split: str) -> ExplanationAverages:
    """The mean over texts.

    Raises:
        ValueError: there is none.
    """
    if not evaluations:
        raise ValueError("got no text; an average needs at least one")
    names = evaluations[0].curves.areas
    stack = np.stack([one.overlaps for one in evaluations])  # n M M
    counted = np.isfinite(stack).sum(axis=0)  # M M
    return ExplanationAverages(
        split=split,
        n=len(evaluations),
        areas={name: float(np.mean([one.curves.areas[name] for one in evaluations])) for name in names},
        random_area=float(np.mean([one.curves.random_area for one in evaluations])),
        overlaps=np.where(counted > 0, np.nansum(stack, axis=0) / np.maximum(counted, 1), np.nan),
        chance=float(np.mean([one.chance for one in evaluations])),
        completeness_error=float(np.mean([one.completeness_error for one in evaluations])),
    )


def measure_explanations(
    classifier: Predictor,
    *,
    n: int = 200,
    data_path: Path | None = None,
    on_text: Callable[[int, int], None] | None = None,
) -> ExplanationAverages:
    """The methods evaluated on `n` random test texts, always the same ones.

    Args:
        classifier: nothing in it is changed.
        n: how many texts; those without a token are left out.
        data_path: folder or file in the data set's published format; None for where `open_dataset` looks.
        on_text: called after each text with how many are done, and of how many.

    Raises:
        DataError: the data are missing, or have no test split.
        ValueError: no text holds a token, or `n` is below 1.
    """
    texts = random_texts(open_dataset(classifier.checkpoint.config.data, path=data_path).load("test").texts, n=n)
    evaluations = []
    for place, text in enumerate(texts, start=1):
        if classifier.encoder.encode(text).has_words:
            evaluations.append(evaluate_explanation(classifier, text))
        if on_text is not None:
            on_text(place, len(texts))
    return average_explanations(evaluations, split="test")


def with_explanations(checkpoint: Checkpoint, averages: ExplanationAverages) -> Checkpoint:
    """A copy of the checkpoint with the results of `measure_explanations` in its record."""
    return replace(checkpoint, metrics={**checkpoint.metrics, "explanations": averages.to_dict()})
