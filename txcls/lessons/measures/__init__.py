"""What a lesson can measure: each kind names a quantity, and is computed by the package's own inspection functions.

A measurement is of the step's checkpoint and text unless it names others. Layers, heads and words count from 1, as on
screen. Probabilities and effects are in per cent and percentage points.
"""

from typing import Annotated, get_args

from pydantic import Field

from txcls.lessons.measures.answers import Accuracy, FormedIn, OrderKept, OutOfScope, PredictedClass, Probability
from txcls.lessons.measures.attribution import Attribution, Grouping, LargestAttribution, Ranking
from txcls.lessons.measures.base import Load, Measured, MeasureError, Result
from txcls.lessons.measures.film import FilmAccuracy, FilmClass, FilmStep, Settled
from txcls.lessons.measures.heads import AttentionWeight, HeadEffect, HeadsThatFlip, MostAttended, StrongestHead
from txcls.lessons.measures.tokens import NumberOfTokens, TokenText, UnknownWords

__all__ = ["Load", "Measure", "MeasureError", "Measured", "Result", "measures"]

Measure = Annotated[
    PredictedClass | Probability | NumberOfTokens | TokenText | UnknownWords | MostAttended | AttentionWeight
    | HeadEffect | StrongestHead | HeadsThatFlip | LargestAttribution | Attribution | Ranking | Grouping | OrderKept
    | FilmStep | FilmAccuracy | FilmClass | Settled | FormedIn | Accuracy | OutOfScope,
    Field(discriminator="measure"),
]  # fmt: skip


def measures() -> list[tuple[str, str, str]]:
    """Each kind of measurement: its name, its fields, and what it is."""
    found = []
    for kind in get_args(get_args(Measure)[0]):
        fields = [name for name in kind.model_fields if name not in ("measure", "checkpoint", "text")]
        (name,) = get_args(kind.model_fields["measure"].annotation)
        found.append((name, ", ".join(fields), " ".join((kind.__doc__ or "").split())))
    return sorted(found)
