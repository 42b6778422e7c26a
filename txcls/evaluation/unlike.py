"""Detect texts unlike those that the probabilities were calibrated on, with each rule's rate on test texts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from txcls.text.tokens import Token
from txcls.wording import percentage

RARE = 0.01
"""A text is unlike the validation texts if less than this share of them is as short or has as many unknown words."""

Group = Mapping[str, Any]


def unlike_validation(metrics: Mapping[str, Any], tokens: Sequence[Token]) -> list[str]:
    """Sentences on how a text differs from the validation texts, according to the groups of rows in metrics.json.

    Args:
        metrics: of a checkpoint; without validation metrics there are no sentences.
        tokens: the tokens that the model reads of the text, at least one.
    """
    n, unknown = len(tokens), sum(token.is_unknown for token in tokens) / len(tokens)
    sentences = []
    groups = metrics.get("validation", {}).get("by_length", ())
    longest = min((end for group in groups for end in (group["over"], group["up_to"]) if (end or 0) >= n), default=None)
    if longest is not None:
        rates = _rates(metrics, "by_length", lambda group: (group["up_to"] or float("inf")) <= longest)
        if rates:
            sentences.append(f"{rates} have at most {longest:g} tokens; this one has {n}")
    if unknown:
        rates = _rates(metrics, "by_unknown", lambda group: group["up_to"] is None or group["up_to"] >= unknown)
        if rates:
            sentences.append(f"{rates} have as many unknown words; of this text’s tokens {percentage(unknown, 0)} are")
    return sentences


def _rates(metrics: Mapping[str, Any], kind: str, is_counted: Callable[[Group], bool]) -> str:
    """The shares of validation and test texts in the counted groups, in words; empty unless the former is small."""
    shares = {}
    for split in ("validation", "test"):
        groups = metrics.get(split, {}).get(kind, ())
        if total := sum(group["n"] for group in groups):
            shares[split] = sum(group["n"] for group in groups if is_counted(group)) / total
    if shares.get("validation", 1.0) >= RARE:
        return ""
    of_test = f" (and {percentage(shares['test'])} of the test texts)" if "test" in shares else ""
    return f"{percentage(shares['validation'])} of the validation texts{of_test}"
