"""Detect texts that are unlike the texts on which the probabilities were calibrated."""

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
"""A text is unlike the validation texts if fewer than this share of them are as short or have as many unknown words."""

Group = Mapping[str, Any]


@dataclass(frozen=True)
class Bound:
    """A length, or a share of unknown words, beyond which there are almost no validation texts.

    Attributes:
        at: the bound; texts with at most this many tokens, or a larger share of unknown words, are beyond it.
        validation, test: the shares of the validation and test texts beyond it; `test` is None if there are no test
            metrics.
    """

    at: float
    validation: float
    test: float | None

    @property
    def rates(self) -> str:
        """The shares in words."""
        and_test = "" if self.test is None else f" (and {percentage(self.test)} of the test texts)"
        return f"{percentage(self.validation)} of the validation texts{and_test}"


def short_bounds(metrics: Mapping[str, Any]) -> list[Bound]:
    """The bounds on the number of tokens, lowest first, from the groups of rows in metrics.json."""
    return _bounds(metrics, "by_length", LENGTH_BOUNDS, lambda group, at: (group["up_to"] or float("inf")) <= at)


def unknown_bounds(metrics: Mapping[str, Any]) -> list[Bound]:
    """The bounds on the share of unknown words, highest first."""
    shares = tuple(reversed(UNKNOWN_SHARES))
    return _bounds(metrics, "by_unknown", shares, lambda group, at: group["over"] is not None and group["over"] >= at)


def sentence_pattern(checkpoint: Checkpoint) -> str | None:
    """A regular expression (ignoring case) that every text of the data set matches; None if there is none."""
    return SENTENCE if checkpoint.config.data.dataset == "who_won" else None


def unlike_validation(checkpoint: Checkpoint, text: str, tokens: Sequence[Token]) -> list[str]:
    """Sentences about how a text differs from the validation texts; empty if there are no validation metrics.

    `tokens` are those that the model reads, at least one.
    """
    n = len(tokens)
    unknown = sum(token.is_unknown for token in tokens) / n or unknown_share(text, tokens)
    sentences = []
    if bound := next((bound for bound in short_bounds(checkpoint.metrics) if n <= bound.at), None):
        sentences.append(f"{bound.rates} have at most {bound.at:g} tokens; this one has {n}")
    if bound := next((bound for bound in unknown_bounds(checkpoint.metrics) if unknown > bound.at), None):
        more = f"more than {percentage(bound.at, 0)}" if bound.at else "any"
        sentences.append(f"{bound.rates} have {more} unknown words; in this one, {percentage(unknown, 0)} is unknown")
    pattern = sentence_pattern(checkpoint)
    if pattern is not None and not re.match(pattern, text.strip(), re.IGNORECASE):
        sentences.append("the grammar that generated all training, validation and test texts cannot generate this one")
    return sentences


def accepted_out_of_scope(metrics: Mapping[str, Any]) -> str:
    """The number of accepted out-of-scope test texts as a sentence; empty if it was not measured."""
    scope = metrics.get("scope", {}).get("test", {})
    if "accepted_out" not in scope:
        return ""
    return (
        f"It accepts {scope['accepted_out']:,} of the {scope['n_out']:,} test texts that belong to none of its "
        f"classes, {scope['confident_out']:,} of them with more than 90 %."
    )


def _bounds(
    metrics: Mapping[str, Any], kind: str, candidates: Sequence[float], is_beyond: Callable[[Group, float], bool]
) -> list[Bound]:
    groups = {split: metrics[split].get(kind, ()) for split in ("validation", "test") if split in metrics}
    totals = {split: sum(group["n"] for group in split_groups) for split, split_groups in groups.items()}
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
