"""Detect texts that are unlike the texts on which the probabilities were calibrated."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.data.batches import TokenisedTexts
from txcls.data.generated.who_won import SENTENCE
from txcls.evaluation.evaluate import unknown_shares
from txcls.evaluation.metrics import LENGTH_BOUNDS, UNKNOWN_SHARES, accuracy_by
from txcls.inference.predictor import Prediction
from txcls.text.tokenizer import Tokenizer
from txcls.text.tokens import Token, unknown_share
from txcls.wording import percentage

RARE = 0.01
"""A text is unlike the validation texts if fewer than this share of them are as short or have as many unknown words."""
MANY = 0.1
"""A file is unlike them if at least this share of its rows is: over ten times as many as of the validation texts."""
MOSTLY_UNKNOWN = 0.5
"""Minimum share of letters in unknown words at which a prediction means nothing."""

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
    return _bounds(metrics, "by_length", LENGTH_BOUNDS, _is_short)


def unknown_bounds(metrics: Mapping[str, Any]) -> list[Bound]:
    """The bounds on the share of unknown words, highest first."""
    shares = tuple(reversed(UNKNOWN_SHARES))
    return _bounds(metrics, "by_unknown", shares, _is_unknown)


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
        sentences.append(f"{bound.rates} have {_more_than(bound)}; in this one, {percentage(unknown, 0)} is unknown")
    pattern = sentence_pattern(checkpoint)
    if pattern is not None and not re.match(pattern, text.strip(), re.IGNORECASE):
        sentences.append("the grammar that generated all training, validation and test texts cannot generate this one")
    return sentences


def rows_unlike_validation(checkpoint: Checkpoint, groups: Mapping[str, Sequence[Group]]) -> str:
    """Sentences on the rows of a file if many are beyond the bounds of `unlike_validation`; "" if few are.

    `groups` has the rows by length and by share of unknown words, as in metrics.json.
    """
    short, unknown = short_bounds(checkpoint.metrics)[-1:], unknown_bounds(checkpoint.metrics)[-1:]
    kinds = [("by_length", bound, _is_short, f"at most {bound.at:g} tokens") for bound in short]
    kinds += [("by_unknown", bound, _is_unknown, _more_than(bound)) for bound in unknown]
    parts = []
    for kind, bound, is_beyond, what in kinds:
        total = sum(group["n"] for group in groups[kind])
        n = sum(group["n"] for group in groups[kind] if is_beyond(group, bound.at))
        if total and n >= MANY * total:
            parts.append(f"{n:,} of {total:,} rows have {what}, as do {bound.rates}")
    return f"Unlike the validation texts: {'; '.join(parts)}. Their predictions may mean little." if parts else ""


class RowGroups:
    """Counts the rows of a file in the groups that `rows_unlike_validation` needs; keeps no rows."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._counts: dict[str, Counter[tuple[float | None, float | None]]] = {
            "by_length": Counter(),
            "by_unknown": Counter(),
        }

    def add(self, rows: Sequence[NDArray[np.int32]]) -> None:
        """Count the ids of texts, (T,) each; all of them have words."""
        if not rows:
            return
        texts = TokenisedTexts.of(rows, np.zeros(len(rows), dtype=np.int64))
        lengths, unknown, right = texts.lengths, unknown_shares(texts, self._tokenizer), np.ones(len(rows), dtype=bool)
        for group in accuracy_by(lengths, right, upper=LENGTH_BOUNDS):
            self._counts["by_length"][group.over, group.up_to] += group.n
        for group in accuracy_by(unknown, right, upper=UNKNOWN_SHARES):
            self._counts["by_unknown"][group.over, group.up_to] += group.n

    @property
    def groups(self) -> dict[str, list[Group]]:
        """The groups with rows, as in metrics.json but without accuracy."""
        return {
            kind: [{"over": over, "up_to": up_to, "n": n} for (over, up_to), n in counts.items()]
            for kind, counts in self._counts.items()
        }


def why_meaningless(checkpoint: Checkpoint, prediction: Prediction) -> str:
    """Why a prediction means nothing: most of the text consists of words that the model does not know; "" if not.

    If the validation or test texts contain such texts, the accuracy is measured on them too: then they mean something.
    """
    share = prediction.unknown_share
    measured = [
        group for split in ("validation", "test") for group in checkpoint.metrics.get(split, {}).get("by_unknown", ())
    ]
    n_unknown = sum(group["n"] for group in measured if _is_unknown(group, MOSTLY_UNKNOWN))
    if share < MOSTLY_UNKNOWN or n_unknown > RARE * sum(group["n"] for group in measured):
        return ""
    reading = "" if prediction.unknown else " (it reads them letter by letter or byte by byte)"
    return (
        f"{percentage(share, 0)} of this text's letters are in words that are not in the model's vocabulary{reading}. "
        "The model always answers, even if it knows none of the words."
    )


def accepted_out_of_scope(metrics: Mapping[str, Any]) -> str:
    """The number of accepted out-of-scope test texts as a sentence; empty if it was not measured."""
    scope = metrics.get("scope", {}).get("test", {})
    if not {"accepted_out", "confident_out"} <= set(scope):
        return ""
    return (
        f"It accepts {scope['accepted_out']:,} of the {scope['n_out']:,} test texts that belong to none of its "
        f"classes, {scope['confident_out']:,} of them with more than 90 %."
    )


def _is_short(group: Group, at: float) -> bool:
    return bool((group["up_to"] or float("inf")) <= at)


def _is_unknown(group: Group, at: float) -> bool:
    return group["over"] is not None and bool(group["over"] >= at)


def _more_than(bound: Bound) -> str:
    return f"{f'more than {percentage(bound.at, 0)}' if bound.at else 'any'} unknown words"


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
