"""Verdicts on stories, from the accuracy that a story's weights restore.

The thresholds were set before the measurements, except ATTENDS, which was added after a first look at the results, as
were the conditions on the intervals for "partly confirmed" and "refuted"; stories that meet neither are "undecided".
"""

from typing import Literal

from txcls.checkpoint.card import MIN_COST

Verdict = Literal["confirmed", "partly confirmed", "refuted", "undecided", "idle"]

CONFIRMED = 0.8
"""Minimum fraction of the lost accuracy that a confirmed story restores."""
MAX_BY_CONTROL = 0.3
"""Maximum fraction that the control restores for a confirmed story. The lower end of the story's interval must also be
above it, so a few lucky texts cannot confirm a story."""
PART = 0.3
"""Minimum fraction that a partly true story restores. The lower end of its interval must also be above 0 and above the
fraction that the control restores. A story is refuted if the upper end of its interval is below this."""
ATTENDS = 0.5
"""Minimum weight of the head itself on the keys of every clause, averaged over its queries, for a confirmed story; for
lists, the minimum overlap of the two patterns. Without it, a story that all weight is on the winner would be confirmed
for any head whose output is used, even if the head does not attend to the winner."""
IDLE = MIN_COST
"""A story is idle if uniform weights for its queries cost less accuracy than this."""


def verdict_of(
    lost: float, *, share: float, interval: tuple[float, float], control_share: float, attention: float
) -> Verdict:
    """The verdict on a story, from its measurements.

    Args:
        lost: the accuracy lost with uniform weights.
        share, control_share: the fractions of it that the story and the control restore.
        interval: the 95 % interval of `share`; NaN if there is none.
        attention: the weight of the head itself on the keys of a clause, the minimum over the clauses.
    """
    if lost < IDLE:
        return "idle"
    low, high = interval
    if share >= CONFIRMED and control_share <= MAX_BY_CONTROL < low and attention >= ATTENDS:
        return "confirmed"
    if share >= PART and low > control_share and low > 0:
        return "partly confirmed"
    return "refuted" if high < PART else "undecided"
