"""The lesson file format: title, language and steps; each step is a view of the app with a narration and a question."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from txcls.lessons.measures import Measure

Markdown = Annotated[str, Field(min_length=1, max_length=4000)]
"""Markdown with formulas between $ or $$; `[[name]]` is replaced by the measured fact with that name."""
Value = str | int | float


class LessonModel(BaseModel):
    """Part of a lesson file: immutable, and unknown fields are rejected."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Claim(LessonModel):
    """A condition on a measurement that must hold for a sentence about the model to be true."""

    measure: Measure
    equals: Value | None = None
    differs_from: Value | None = None
    at_least: float | None = None
    at_most: float | None = None

    @model_validator(mode="before")
    @classmethod
    def _separate_bounds(cls, fields: Any) -> Any:
        """Separate the measurement from its bounds, which are side by side in a file."""
        if not isinstance(fields, dict) or isinstance(fields.get("measure"), dict):
            return fields
        bounds = {name: fields[name] for name in cls.model_fields if name in fields and name != "measure"}
        return {"measure": {name: value for name, value in fields.items() if name not in bounds}, **bounds}

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if all(bound is None for bound in (self.equals, self.differs_from, self.at_least, self.at_most)):
            raise ValueError("a claim needs one of equals, differs_from, at_least, at_most")
        return self


class Option(LessonModel):
    """One option of a choice: its text, and either its value or a claim that is true or false."""

    text: Markdown
    value: Value | None = None
    """The measured value for which this option is right; the default is its text."""
    claim: tuple[Claim, ...] = ()
    """If the question has no answer: the claim, or the claims, that must hold for this option to be right."""

    @model_validator(mode="before")
    @classmethod
    def _text(cls, option: Any) -> Any:
        if isinstance(option, dict) and isinstance(option.get("claim"), dict):
            return {**option, "claim": [option["claim"]]}
        return {"text": str(option)} if isinstance(option, Value) else option


class AnyQuestion(LessonModel):
    """The fields common to all kinds of questions."""

    ask: Markdown
    why: Markdown | None = None
    """An explanation shown with the answer. `[[answer]]` is replaced by the measured answer."""
    look: bool = False
    """Whether the page is shown while the question is open; otherwise it appears with the answer."""


class Choice(AnyQuestion):
    """One of several options."""

    kind: Literal["choice"]
    options: list[Option] = Field(min_length=2, max_length=8)
    """The options: values of the answer, or claims of which exactly one is true."""
    answer: Measure | None = None
    """The measurement; omitted if the options are claims."""
    expected: Value | None = None
    """The result the author expects; the lesson is rejected if the measurement differs."""

    @model_validator(mode="after")
    def _answered(self) -> Self:
        claims = [option for option in self.options if option.claim]
        if self.answer is None and len(claims) < len(self.options):
            raise ValueError("needs an answer, or a claim in every option")
        if self.answer is not None and claims:
            raise ValueError("has an answer and claims; give one of the two")
        if self.answer is None and self.expected is not None:
            raise ValueError("expected needs an answer to compare with")
        if len({option.text for option in self.options}) < len(self.options):
            raise ValueError("two options have the same text")
        return self


class Number(AnyQuestion):
    """A number, right within a tolerance."""

    kind: Literal["number"]
    answer: Measure
    tolerance: float = Field(0.0, ge=0.0)
    """Maximum error of a right answer."""
    unit: str = ""
    expected: float | None = None
    """The number the author expects; the lesson is rejected if it differs from the measured number by more than the
    tolerance."""


class Drag(AnyQuestion):
    """Words to sort into groups."""

    kind: Literal["drag"]
    answer: Measure
    """The measurement of groups (`grouping`)."""
    groups: list[str] = Field(min_length=2, max_length=2)
    """Names of the groups, in the order of the measurement."""
    expected: list[str] | None = None
    """The words of the first group, then those of the second, that the author expects."""


class Heads(AnyQuestion):
    """Choose the heads that have the measured effect."""

    kind: Literal["heads"]
    answer: Measure
    """The measurement of one head, or of several (`heads_that_flip`).

    With `look`, heads that are switched off on the page count as chosen.
    """
    expected: list[str] | None = None
    """The heads that the author expects, each as "layer.head" from 1."""

    @field_validator("expected", mode="before")
    @classmethod
    def _quoted(cls, heads: Any) -> Any:
        return [str(head) for head in heads] if isinstance(heads, list) else heads


Question = Annotated[Choice | Number | Drag | Heads, Field(discriminator="kind")]


class LessonStep(LessonModel):
    """A step of a lesson."""

    title: str = Field(min_length=1, max_length=120)
    page: str
    """The page of the app, as in its URL: classify, tokens, attention, …"""
    checkpoint: str
    text: str = Field(min_length=1, max_length=2000)
    state: dict[str, Value] = Field(default_factory=dict)
    """Further URL parameters: layer, head, switched, …"""
    narration: Markdown
    """The text before the question."""
    question: Question | None = None
    facts: dict[str, Measure] = Field(default_factory=dict)
    """Measured values that the texts refer to as `[[name]]`."""
    claims: list[Claim] = Field(default_factory=list)
    """Statements in the texts about the model; the lesson is rejected if one is false."""
    minutes: float | None = Field(None, gt=0, le=180)
    room: Markdown | None = None
    """A question to discuss with the audience, whose answer cannot be measured."""

    @property
    def params(self) -> dict[str, str]:
        """The URL parameters of the step."""
        return {"checkpoint": self.checkpoint, "text": self.text} | {
            name: ("on" if value is True else str(value)) for name, value in self.state.items()
        }


class Include(LessonModel):
    """Steps of another lesson in the same language."""

    lesson: str
    steps: list[int] = Field(default_factory=list)
    """The numbers of the steps, from 1, in this order; all steps if omitted."""
    minutes: float | None = Field(None, gt=0, le=180)
    room: Markdown | None = None
    """A question to discuss with the audience after the last of these steps."""


class LessonFile(LessonModel):
    """A lesson as written in a file."""

    title: str = Field(min_length=1, max_length=120)
    language: str = Field(pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$")
    """The language of its texts, as in HTML: en, de, …"""
    minutes: float = Field(gt=0, le=600)
    summary: Markdown
    """What readers learn, in a sentence or two."""
    steps: list[LessonStep | Include] = Field(min_length=1, max_length=100)
    """Its steps, in order; an item with `lesson` includes steps of another lesson."""
