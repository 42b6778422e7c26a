"""A lesson as its file says it: title, language and steps, each a view of the app with a narration and a question."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from txcls.lessons.measures import Measure

Markdown = Annotated[str, Field(min_length=1, max_length=4000)]
"""Markdown with formulas between $ or $$; `[[name]]` stands for a measured fact of that name."""
Value = str | int | float


class LessonModel(BaseModel):
    """A part of a lesson's file: immutable, strict about names, and documented by the string under each field."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


class Claim(LessonModel):
    """A sentence about the model that is true or false, by a measurement."""

    measure: Measure
    """What is measured."""
    equals: Value | None = None
    """The claim holds if the measured value is this."""
    differs_from: Value | None = None
    """The claim holds if the measured value is not this."""
    at_least: float | None = None
    """The claim holds if the measured number is this or more."""
    at_most: float | None = None
    """The claim holds if the measured number is this or less."""

    @model_validator(mode="before")
    @classmethod
    def _split(cls, fields: Any) -> Any:
        """A measurement and its bounds stand beside one another in a file."""
        if not isinstance(fields, dict) or isinstance(fields.get("measure"), dict):
            return fields
        bounds = ("equals", "differs_from", "at_least", "at_most")
        measured = {name: value for name, value in fields.items() if name not in bounds}
        return {"measure": measured, **{name: fields[name] for name in bounds if name in fields}}

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if all(bound is None for bound in (self.equals, self.differs_from, self.at_least, self.at_most)):
            raise ValueError("a claim needs one of equals, differs_from, at_least, at_most")
        return self


class Option(LessonModel):
    """One option of a choice: its text, and either the value it stands for or a claim that is true or false."""

    text: Markdown
    """What is offered."""
    value: Value | None = None
    """What the measured answer is if this option is right; its text if left out."""
    claim: tuple[Claim, ...] = ()
    """What makes this option right, in place of an answer of the whole question: a claim, or several that all hold."""

    @model_validator(mode="before")
    @classmethod
    def _text(cls, option: Any) -> Any:
        if isinstance(option, dict) and isinstance(option.get("claim"), dict):
            return {**option, "claim": [option["claim"]]}
        return {"text": str(option)} if isinstance(option, Value) else option


class AnyQuestion(LessonModel):
    """What all kinds of questions have."""

    ask: Markdown
    """The question."""
    why: Markdown | None = None
    """Shown with the answer: why it is so. `[[answer]]` stands for the measured answer."""
    look: bool = False
    """Whether the page is shown while the question is open; otherwise it appears with the answer."""


class Choice(AnyQuestion):
    """One of several options."""

    kind: Literal["choice"]
    options: list[Option] = Field(min_length=2, max_length=8)
    """What can be chosen: values of the answer, or claims of which exactly one is true."""
    answer: Measure | None = None
    """What is measured; left out if the options are claims."""
    expected: Value | None = None
    """What the author expects the measurement to give; the lesson is refused if it gives something else."""

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
    """What is measured."""
    tolerance: float = Field(0.0, ge=0.0)
    """How far off an answer may be."""
    unit: str = ""
    """Written after the number."""
    expected: float | None = None
    """What the author expects; the lesson is refused if the measured number is further off than the tolerance."""


class Drag(AnyQuestion):
    """Words to bring into the order of a measurement, or into groups."""

    kind: Literal["drag"]
    answer: Measure
    """What is measured: an order (`ranking`) or groups (`grouping`)."""
    groups: list[str] = Field(default_factory=list, max_length=4)
    """Names of the groups, in the order of the measurement; none for an order."""
    expected: list[str] | None = None
    """The words in the order that the author expects."""


class Heads(AnyQuestion):
    """Heads to choose: those that have the measured effect."""

    kind: Literal["heads"]
    answer: Measure
    """What is measured: a head, or several (`heads_that_flip`, `strongest_head`).

    With `look`, heads that are switched on the Switchboard count as chosen.
    """
    expected: list[str] | None = None
    """The heads that the author expects, each "layer.head" from 1."""

    @field_validator("expected", mode="before")
    @classmethod
    def _quoted(cls, heads: Any) -> Any:
        return [str(head) for head in heads] if isinstance(heads, list) else heads


Question = Annotated[Choice | Number | Drag | Heads, Field(discriminator="kind")]


class LessonStep(LessonModel):
    """A step of a lesson."""

    title: str = Field(min_length=1, max_length=120)
    """Heading of the step."""
    page: str
    """The page of the app, as in its address: classify, tokens, attention, …"""
    checkpoint: str
    """The checkpoint that the page shows."""
    text: str = Field(min_length=1, max_length=2000)
    """The text that the page shows."""
    state: dict[str, Value] = Field(default_factory=dict)
    """Further parameters of the address: layer, head, switched, …"""
    narration: Markdown
    """What is told before the question."""
    question: Question | None = None
    """The question of the step."""
    facts: dict[str, Measure] = Field(default_factory=dict)
    """Measured values that the texts name as `[[name]]`."""
    claims: list[Claim] = Field(default_factory=list)
    """What the texts say of the model in words; the lesson is refused if it is not so."""
    minutes: float | None = Field(None, gt=0, le=180)
    """How long the step takes."""
    room: Markdown | None = None
    """A question for the room, with no right answer that could be measured."""

    @property
    def params(self) -> dict[str, str]:
        """The parameters of the step's address."""
        return {"checkpoint": self.checkpoint, "text": self.text} | {
            name: ("on" if value is True else str(value)) for name, value in self.state.items()
        }


class Include(LessonModel):
    """Steps of another lesson in the same language."""

    lesson: str
    """Its name."""
    steps: list[int] = Field(default_factory=list)
    """Which steps, from 1, in this order; all of them if left out."""
    minutes: float | None = Field(None, gt=0, le=180)
    """How long they take together."""
    room: Markdown | None = None
    """A question for the room after the last of them."""


class LessonFile(LessonModel):
    """A lesson as it stands in a file."""

    title: str = Field(min_length=1, max_length=120)
    """Its title."""
    language: str = Field(pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$")
    """The language it is written in, as in HTML: en, de, …"""
    minutes: float = Field(gt=0, le=600)
    """How long it takes."""
    summary: Markdown
    """What a reader knows afterwards, in a sentence or two."""
    steps: list[LessonStep | Include] = Field(min_length=1, max_length=100)
    """Its steps, in order; an item with `lesson` takes them from another lesson."""
