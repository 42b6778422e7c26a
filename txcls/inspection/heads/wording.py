"""What was measured about a head, in sentences."""

from collections.abc import Mapping

from txcls.inspection.heads.records import (
    CONFIRMED,
    IN_PART,
    MAX_LOST,
    MIN_COST,
    NEGLIGIBLE,
    Effect,
    HeadMeasurements,
    HeadRecord,
    Restored,
    Verdict,
    Worth,
    distance_in_words,
    quote_tokens,
)
from txcls.inspection.heads.tables import KINDS, TableKind
from txcls.text.formatting import percentage, points_number

VERDICT_MARKS: Mapping[Verdict, str] = {
    "confirmed": "✓", "in part": "◐", "undecided": "?", "no rule": "–", "hardly matters": "○",
}  # fmt: skip
"""A symbol for each verdict, since colour alone is not accessible."""
VERDICT_NAMES: Mapping[Verdict, str] = {
    "confirmed": "confirmed",
    "in part": "confirmed in part",
    "undecided": "undecided",
    "no rule": "no rule found",
    "hardly matters": "small effect by itself",
}
NONE = "none"
TABLE_NAMES: Mapping[TableKind, str] = {"distance": "distances", "word": "tokens", "both": "distances and tokens"}
CERTAIN = 0.001
"""A loss of accuracy is certain if its 95 % interval starts at this or above; of many, some exceed 0 by chance."""
CORRECTION = 1.6
"""How much wider an interval is if it is corrected for some 32 heads and outputs (Bonferroni; 3.16 instead of 1.96)."""


def sentence(record: HeadRecord) -> str:
    """What the head attends to, as far as it was confirmed, and the test: "Attends to the previous token. …"."""
    other = record.resampled
    is_certain = other.lost - CORRECTION * (other.lost - other.lost_low) >= CERTAIN
    carries = f" With another text’s output in its place, {_cost(other)}." if is_certain else ""
    if record.best is not None:
        table, mostly = record.tables[record.best], "mostly " * (record.verdict == "in part")
        attends = f"Attends {mostly}to {record.rule}"
        if record.best == "both" and not distance_in_words(record.distances):
            examples = f", such as {tokens}," if (tokens := quote_tokens(record.words)) else ""
            attends = f"Attends mostly to certain tokens{examples} at certain distances"
        fixed = f"Replacing its attention by a fixed table of weights for {TABLE_NAMES[record.best]}"
        kept = f"{fixed} keeps {_percent(table.share)} of its effect on the answer"
        hardly = f" Yet the effect of where it looks is small by itself ({nats(record.uniform.kl)}).{carries}"
        return (
            f"{attends}. {kept}; with the weights shuffled, {_percent(table.control)}.{_no_gain(record)}"
            f"{hardly if record.is_negligible else ''}"
        )
    if record.verdict == "hardly matters":
        return (
            "The effect of where it looks is small while the rest is unchanged: with uniform attention, the output "
            f"changes by {nats(record.uniform.kl)}, and {_cost(record.uniform)}.{carries}"
        )
    if record.verdict == "no rule":
        return (
            "No rule found: none of three fixed tables keeps half of the effect of its attention. What it attends to "
            "may depend on the query, which no table sees."
        )
    if max(table.least for table in record.tables.values()) >= IN_PART:
        keeps = (
            "a fixed table keeps at least half of the effect of its attention, but not clearly more than a shuffled one"
        )
    elif (share := max(table.share for table in record.tables.values())) < IN_PART:
        keeps = (
            f"the best fixed table keeps {_percent(share)} of the effect of its attention, but the texts "
            "are too few to rule out half"
        )
    else:
        keeps = "a fixed table may keep half of the effect of its attention or more, but this could not be confirmed"
    return f"Undecided: {keeps}."


def _no_gain(record: HeadRecord) -> str:
    """A sentence if the table is not clearly better than an averaged output in accuracy or on the output; else ""."""
    if not _fails_in_accuracy(record):
        note = " On the output, though, this table is no better than the head’s output averaged over texts."
        return note * _fails_on_output(record)
    lost = points_number(record.tables[record.best or "both"].lost)
    return (
        " In accuracy, though, this table is not clearly better than the head’s output averaged over texts "
        f"({lost} and {points_number(record.mean.lost)} points lost)."
    )


def _fails_in_accuracy(record: HeadRecord) -> bool:
    lost = record.tables[record.best or "both"].lost
    return lost >= MAX_LOST and lost >= record.mean.lost_low >= CERTAIN


def _fails_on_output(record: HeadRecord) -> bool:
    """Whether the table leaves at least as much of the effect as an averaged output does."""
    return (1 - record.tables[record.best or "both"].share) * record.uniform.kl >= record.mean.kl


def restored_sentence(record: HeadRecord) -> str:
    """The test behind `sentence`: "… A fixed table of distances keeps 92 % of the effect (90 to 94 %; …) …"."""
    kind = max(KINDS, key=lambda each: record.tables[each].share) if record.best is None else record.best
    table = record.tables[kind]
    is_denied = record.verdict in ("no rule", "undecided") and table.high < IN_PART
    bound = f"at most {_percent(table.corrected_high)}" if is_denied else f"at least {_percent(table.least)}"
    corrected = "" if bound.endswith(NONE) else f"{bound}, corrected for all tests"
    if record.verdict == "hardly matters":
        best = ", ".join(filter(None, [f"the best keeps {_percent(table.share)}", corrected]))
        return f"No fixed table is confirmed to keep half of this effect ({best})."
    name = f"A fixed table of {TABLE_NAMES[kind]}"
    if record.best is None:
        name = f"The best of three fixed tables on these texts, of {TABLE_NAMES[kind]},"
    corrected = f"; {corrected}" if corrected else ""
    only = ", so it is confirmed only in part" if table.least >= CONFIRMED and record.verdict == "in part" else ""
    lower = f"{_points(table.lost) or 'no'} lower than with its own attention{only}"
    effect = record.uniform
    at_most = f" (at most {effect.kl_high:.4f})" if effect.kl < NEGLIGIBLE <= effect.kl_high else ""
    return (
        f"Compared with uniform attention, the effect of its attention on the output is {nats(effect.kl)}{at_most}, "
        f"and measured accuracy is {_points(record.uniform.lost) or 'no'} higher. {name} keeps {_percent(table.share)} "
        f"of the effect ({_interval(table)}{corrected}), with a measured accuracy {lower}; shuffled, it "
        f"keeps {_percent(table.control)}."
    )


def share_in_words(table: Restored) -> str:
    """The share that a table keeps, with its 95 % interval: "92 % (90 to 94 %)"."""
    return f"{_percent(table.share)} ({_interval(table)})"


def _interval(table: Restored) -> str:
    low, high = _percent(table.low), _percent(min(table.high, 1.0))
    return f"at most {high}" if low == NONE else f"{low.removesuffix(chr(160) + '%')} to {high}"


def _percent(share: float) -> str:
    return percentage(share, 0) if round(share, 2) > 0 else NONE


def _points(lost: float) -> str:
    """Points of accuracy; "" if they round to 0 or less."""
    return f"{points_number(lost)} points" if round(lost, 3) > 0 else ""


def _cost(effect: Effect) -> str:
    """The accuracy lost, with its 95 % interval, or that it is hardly any or not certain."""
    lost, high = (points_number(value) if round(value, 3) > 0 else NONE for value in (effect.lost, effect.lost_high))
    if high == NONE:
        return "no loss of accuracy was measured"
    if round(effect.lost_high, 3) < MIN_COST:
        return f"hardly any accuracy is lost (at most {high} points)"
    if effect.lost_low < CERTAIN:
        measured = "none was measured" if lost == NONE else lost
        return f"a loss of accuracy is not certain ({measured}, at most {high} points)"
    return f"{lost} points of accuracy are lost ({points_range(effect.lost_low, effect.lost_high)})"


def cost_averaged(worth: Worth, measured: HeadMeasurements) -> str:
    """A short text on the accuracy lost on the test texts if a part's output is replaced by its mean."""
    effect, accuracy = worth.mean, measured.accuracy
    if effect.lost_low >= CERTAIN and round(effect.lost_high, 3) >= MIN_COST:
        now = percentage(accuracy - effect.lost)
        return f"Without it, accuracy on {measured.n:,} test texts falls from {percentage(accuracy)} to {now}"
    return f"Points of accuracy lost without it ({measured.n:,} test texts): {_loss_in_words(effect)}"


def worth_in_words(worth: Worth) -> str:
    """Both losses of accuracy in short: "points of accuracy lost: 13 if its output is averaged, 29 if it comes …"."""
    if max(round(worth.mean.lost, 3), round(worth.resampled.lost, 3)) <= 0:
        return "no loss of accuracy measured if its output is averaged or comes from another text"
    mean, other = map(_loss_in_words, (worth.mean, worth.resampled))
    return f"points of accuracy lost: {mean} if its output is averaged, {other} if it comes from another text"


def _loss_in_words(effect: Effect) -> str:
    if round(effect.lost_high, 3) <= 0:
        return "none measured"
    if round(effect.lost_high, 3) < MIN_COST:
        return "hardly any"
    if round(effect.lost, 3) <= 0:
        return f"none measured (at most {points_number(effect.lost_high)})"
    return points_number(effect.lost) + " (not certain)" * (effect.lost_low < CERTAIN)


def interval_in_words(effect: Effect) -> str:
    """The points of accuracy lost with their interval, without a unit: "13 (11 to 15)"."""
    return f"{points_number(effect.lost)} ({points_range(effect.lost_low, effect.lost_high)})"


def points_range(low: float, high: float) -> str:
    """An interval in percentage points, "14 to 16"; with two decimals if a verdict depends on how an end is rounded."""
    digits = 2 if {round(low, 3), round(high, 3)} & {0, MIN_COST} else None
    return " to ".join(points_number(end, digits=digits) for end in (low, high))


def nats(kl: float) -> str:
    """A divergence: "0.011 nats"."""
    if kl < 0.0005:
        return "less than 0.001 nats"
    digits = 3 if kl < 0.1 else 2
    return f"{kl:.{digits}f} nats"


def head_summary(record: HeadRecord) -> str:
    """A head in one line: "previous token (confirmed) · points of accuracy lost: 0.1 if its output is averaged, …"."""
    note = ""
    if record.best is not None:
        notes = [VERDICT_NAMES[record.verdict]]
        if _fails_in_accuracy(record):
            notes.append("in accuracy no clear gain over averaged output")
        elif _fails_on_output(record):
            notes.append("on the output no better than averaged output")
        if record.is_negligible:
            notes.append(VERDICT_NAMES["hardly matters"])
        note = f" ({'; '.join(notes)})"
    return f"{record.caption}{note} · {worth_in_words(record)}"


def head_summaries(measured: HeadMeasurements) -> dict[str, dict[str, str | float]]:
    """For each head, keyed by "layer.head" (from 1): its "story" (a caption), a line of "text", its "verdict", and the
    accuracy "lost" with its output averaged."""
    return {
        name: {
            "story": record.caption,
            "text": head_summary(record),
            "verdict": record.verdict,
            "lost": record.mean.lost,
        }
        for name, record in measured.by_name().items()
    }


def all_heads_sentence(measured: HeadMeasurements) -> str:
    """The accuracy with the attention of all heads replaced by their tables, and by uniform attention."""
    record = measured.all_heads
    table = record.tables["both"]
    own, uniform, tables = (percentage(measured.accuracy - lost) for lost in (0.0, record.uniform.lost, table.lost))
    kept = share_in_words(table) if table.low > 0 else NONE
    return (
        f"Accuracy on {measured.n:,} test texts is {own}. With uniform attention in all heads at once, it is "
        f"{uniform}; with fixed tables of distances and tokens, {tables}. Compared with uniform attention, the tables "
        f"keep {kept} of the effect of attention on the output."
    )
