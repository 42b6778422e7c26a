"""What a lesson can measure: each kind names a quantity, and is computed by the package's own inspection functions.

A measurement is of the step's checkpoint and text unless it names others. Layers, heads and words count from 1, as on
screen. Probabilities and effects are in per cent and percentage points.
"""

from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import Field
from pydantic.fields import FieldInfo

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
    """Each kind of measurement: its name, its fields with what they may be, and what it is.

    A field in brackets may be left out. All kinds also take `checkpoint` and `text`, which are not listed.
    """
    found = []
    for kind in get_args(get_args(Measure)[0]):
        fields = {name: one for name, one in kind.model_fields.items() if name not in ("measure", "checkpoint", "text")}
        (name,) = get_args(kind.model_fields["measure"].annotation)
        said = ", ".join(_field(field, one) for field, one in fields.items())
        found.append((name, said, " ".join((kind.__doc__ or "").split())))
    return sorted(found)


def _field(name: str, field: FieldInfo) -> str:
    """A field as `[how: zero, mean, uniform or shuffled]`."""
    said = f"{name}: {_kind(field.annotation)}"
    return said if field.is_required() else f"[{said}]"


def _kind(annotation: Any) -> str:
    """What a field may be, in words."""
    if get_origin(annotation) is Literal:
        *others, last = map(str, get_args(annotation))
        return f"{', '.join(others)} or {last}"
    if get_origin(annotation) in (Union, UnionType):
        return _kind(get_args(annotation)[0])
    if get_origin(annotation) is Annotated:
        return _kind(get_args(annotation)[0])
    if get_origin(annotation) is list:
        return "a list of words"
    return {int: "a number", float: "a number", bool: "true or false"}.get(annotation, "a word")
