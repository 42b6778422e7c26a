"""Is a text unlike those that a classifier's probabilities were calibrated on? Rules with their rates on test texts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from txcls.text.encoder import Token
from txcls.wording import percentage

RARE = 0.01
"""A text is unlike the validation texts if less than this share of them is as short, or has as many unknown words."""

Group = Mapping[str, Any]


def unlike_validation(metrics: Mapping[str, Any], tokens: Sequence[Token]) -> list[str]:
    """Sentences on what sets a text apart from the validation texts, by the groups of rows that metrics.json counts.

    Args:
        metrics: of a checkpoint; without validation figures nothing is said.
        tokens: what the model reads of the text, at least one.
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
    """How many validation and test texts are in the groups that are counted; empty unless the former are rare."""
    shares = {}
    for split in ("validation", "test"):
        groups = metrics.get(split, {}).get(kind, ())
        if total := sum(group["n"] for group in groups):
            shares[split] = sum(group["n"] for group in groups if is_counted(group)) / total
    if shares.get("validation", 1.0) >= RARE:
        return ""
    of_test = f" (and {percentage(shares['test'])} of the test texts)" if "test" in shares else ""
    return f"{percentage(shares['validation'])} of the validation texts{of_test}"
