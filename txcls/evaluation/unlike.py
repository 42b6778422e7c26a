"""Detect texts unlike those that the probabilities were calibrated on, with each rule's rate on test texts."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.data.generated.who_won import SENTENCE
from txcls.evaluation.metrics import LENGTH_BOUNDS, UNKNOWN_SHARES
from txcls.text.tokens import Token, unknown_share
from txcls.wording import percentage

RARE = 0.01
"""A text is unlike the validation texts if less than this share of them is as short or has as many unknown words."""

Group = Mapping[str, Any]


@dataclass(frozen=True)
class Bound:
    """A length or a share of unknown words beyond which there are almost no validation texts.

    Attributes:
        at: the bound; texts with at most so many tokens, or with a larger share of unknown words, are unlike them.
        validation, test: the share of these texts that is beyond it; None if there are no test metrics.
    """

    at: float
    validation: float
    test: float | None

    @property
    def rates(self) -> str:
        """The shares in words."""
        of_test = "" if self.test is None else f" (and {percentage(self.test)} of the test texts)"
        return f"{percentage(self.validation)} of the validation texts{of_test}"


def short_bounds(metrics: Mapping[str, Any]) -> list[Bound]:
    """The bounds on the number of tokens, the lowest first, according to the groups of rows in metrics.json."""
    return _bounds(metrics, "by_length", LENGTH_BOUNDS, lambda group, at: (group["up_to"] or float("inf")) <= at)


def unknown_bounds(metrics: Mapping[str, Any]) -> list[Bound]:
    """The bounds on the share of unknown words, the highest first."""
    shares = tuple(reversed(UNKNOWN_SHARES))
    return _bounds(metrics, "by_unknown", shares, lambda group, at: group["over"] is not None and group["over"] >= at)


def sentence_pattern(checkpoint: Checkpoint) -> str | None:
    """A regular expression, ignoring case, for every text of the data set; None if there is none."""
    return SENTENCE if checkpoint.config.data.dataset == "who_won" else None


def unlike_validation(checkpoint: Checkpoint, text: str, tokens: Sequence[Token]) -> list[str]:
    """Sentences on how a text differs from the validation texts; none without validation metrics.

    Args:
        checkpoint: a classifier.
        text: as typed.
        tokens: the tokens that the model reads of it, at least one.
    """
    n = len(tokens)
    unknown = sum(token.is_unknown for token in tokens) / n or unknown_share(text, tokens)
    sentences = []
    if bound := next((bound for bound in short_bounds(checkpoint.metrics) if n <= bound.at), None):
        sentences.append(f"{bound.rates} have at most {bound.at:g} tokens; this one has {n}")
    if bound := next((bound for bound in unknown_bounds(checkpoint.metrics) if unknown > bound.at), None):
        more = f"more than {percentage(bound.at, 0)}" if bound.at else "any"
        sentences.append(f"{bound.rates} have {more} unknown words; of this one, {percentage(unknown, 0)} is unknown")
    pattern = sentence_pattern(checkpoint)
    if pattern is not None and not re.match(pattern, text.strip(), re.IGNORECASE):
        sentences.append("the grammar that wrote all training, validation and test texts cannot write this one")
    return sentences


def accepted_out_of_scope(metrics: Mapping[str, Any]) -> str:
    """How many out-of-scope test texts are accepted, as a sentence; empty if it was not measured."""
    scope = metrics.get("scope", {}).get("test", {})
    if "accepted_out" not in scope:
        return ""
    return (
        f"Of {scope['n_out']:,} test texts that belong to none of its classes, it accepts {scope['accepted_out']:,}, "
        f"{scope['confident_out']:,} of them with more than 90 %."
    )


def _bounds(
    metrics: Mapping[str, Any], kind: str, candidates: Sequence[float], is_beyond: Callable[[Group, float], bool]
) -> list[Bound]:
    groups = {split: metrics[split].get(kind, ()) for split in ("validation", "test") if split in metrics}
    totals = {split: sum(group["n"] for group in of_split) for split, of_split in groups.items()}
    bounds = []
    for at in candidates if totals.get("validation") else ():
        shares = {
            split: sum(group["n"] for group in groups[split] if is_beyond(group, at)) / total
            for split, total in totals.items()
            if total
        }
        if shares["validation"] < RARE:
            bounds.append(Bound(at, shares["validation"], shares.get("test")))
    return bounds
