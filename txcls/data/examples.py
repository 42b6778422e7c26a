"""Example texts for each domain, from examples.yaml."""

from dataclasses import dataclass
from functools import cache
from importlib import resources

import yaml


@dataclass(frozen=True, slots=True)
class Example:
    """An example text; `title` is the label of its button.

    `changed` is a version with the same number of tokens and a different prediction; `label` is the class of an
    unambiguous text. Both are "" if there is none.
    """

    title: str
    text: str
    changed: str = ""
    label: str = ""


_GROUPS = {
    name: tuple(Example(**example) for example in examples)
    for name, examples in yaml.safe_load((resources.files(__package__) / "examples.yaml").read_text("utf-8")).items()
}
EXAMPLES, REPORTS = _GROUPS["news"], _GROUPS["reports"]
_BY_DATASET = {
    "imdb": "reviews",
    "clinc150": "queries",
    "who_won": "reports",
    "who_won_small": "four teams",
    "repeated_word": "five words",
    "agreement": "subjects",
    "table": "general",
}


def examples_for(dataset: str) -> tuple[Example, ...]:
    """The example texts for the domain of a data set."""
    return _GROUPS[_BY_DATASET.get(dataset, "news")]


@cache
def sentences() -> tuple[str, ...]:
    """Sixty-four sentences of every kind, for models that are imported without texts."""
    return tuple(yaml.safe_load((resources.files(__package__) / "sentences.yaml").read_text("utf-8")))
