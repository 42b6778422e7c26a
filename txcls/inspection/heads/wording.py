"""What was measured of a head, in sentences."""

from collections.abc import Mapping

from txcls.checkpoint.card import points_number, points_range
from txcls.inspection.heads.records import (
    Effect,
    HeadMeasurements,
    HeadRecord,
    HeadsRecord,
    Restored,
    Verdict,
    Worth,
)
from txcls.inspection.heads.tables import KINDS, TableKind
from txcls.wording import percentage

VERDICT_MARKS: Mapping[Verdict, str] = {
    "confirmed": "✓", "in part": "◐", "undecided": "?", "no rule": "–", "hardly matters": "○",
}  # fmt: skip
"""A symbol for each verdict, since colour alone is not accessible."""
VERDICT_NAMES: Mapping[Verdict, str] = {
    "confirmed": "confirmed",
    "in part": "confirmed in part",
    "undecided": "undecided",
    "no rule": "no simple rule",
    "hardly matters": "hardly matters by itself",
}
TABLE_NAMES: Mapping[TableKind, str] = {
    "distance": "a fixed table of distances",
    "word": "a fixed table of words",
    "both": "a fixed table of distances and words",
}
MIN_COST = 0.005
"""An interval of the accuracy lost that ends below half a point is called hardly anything."""


def sentence(record: HeadRecord) -> str:
    """What the head attends to, as far as it was confirmed: "Attends to the previous token, whatever it is."."""
    if record.best is not None:
        attends = "Attends, in part, to" if record.verdict == "in part" else "Attends to"
        return f"{attends} {record.rule}."
    if record.verdict == "hardly matters":
        return (
            "Which tokens it attends to hardly matters by itself: uniform attention in its place changes the output "
            f"by {nats(record.uniform.kl)}."
        )
    if record.verdict == "undecided":
        return "Undecided: a fixed table may replace it, but so may a shuffled one, or the texts are too few to say."
    return "No simple rule: what it attends to depends on the text."


def restored_sentence(record: HeadsRecord) -> str:
    """The test behind the sentence: "With a fixed table of distances in its place, 92 % (90 to 94 %) of … remains."."""
    kind = record.best if record.best is not None else max(KINDS, key=lambda each: record.tables[each].share)
    table = record.tables[kind]
    name = (
        TABLE_NAMES[kind]
        if record.best
        else f"the best of three fixed tables ({TABLE_NAMES[kind].split(' of ', 1)[1]})"
    )
    return (
        f"With {name} in its place, {share_words(table)} of the effect of its attention remains, and "
        f"{points_number(table.lost)} points of accuracy are lost ({points_number(record.uniform.lost)} with uniform "
        f"attention); with the table shuffled, {_signed_share(table.control)} of the effect remains."
    )


def share_words(table: Restored) -> str:
    """The share that a table keeps, with its 95 % interval: "92 % (90 to 94 %)"."""
    low, high = (_signed_share(end) for end in (table.low, table.high))
    return f"{_signed_share(table.share)} ({low.removesuffix(chr(160) + '%')} to {high})"


def _signed_share(share: float) -> str:
    return percentage(round(share, 2) + 0.0, 0).replace("-", "−")


def worth_sentence(worth: Worth) -> str:
    """Both worths: "With its output averaged over texts, 13 points of accuracy are lost (11 to 15); …"."""
    return (
        f"With its output averaged over texts, {_cost(worth.mean)}; with another text’s output in its place, "
        f"{_cost(worth.resampled)}."
    )


def _cost(effect: Effect) -> str:
    """The accuracy lost with its 95 % interval, or that it is hardly any."""
    interval = points_range(effect.lost_low, effect.lost_high)
    if effect.lost_high < MIN_COST:
        return "hardly any accuracy is lost"
    if effect.lost_low <= 0:
        return f"no loss of accuracy was measured ({interval} points)"
    return f"{points_number(effect.lost)} points of accuracy are lost ({interval})"


def worth_words(worth: Worth) -> str:
    """Both worths in short: "worth 13 points averaged, 29 with another text’s output"."""
    mean, other = (points_number(effect.lost) for effect in (worth.mean, worth.resampled))
    return f"worth {mean} points averaged, {other} with another text’s output"


def interval_words(effect: Effect) -> str:
    """The points of accuracy lost with their interval, without a unit: "13 (11 to 15)"."""
    return f"{points_number(effect.lost)} ({points_range(effect.lost_low, effect.lost_high)})"


def nats(kl: float) -> str:
    """A divergence: "0.011 nats"."""
    if kl < 0.0005:
        return "less than 0.001 nats"
    digits = 3 if kl < 0.1 else 2
    return f"{kl:.{digits}f} nats"


def chip(record: HeadRecord) -> str:
    """A head in one line: "previous token (confirmed) · worth 0.1 points averaged, 0.5 with another text’s output"."""
    return f"{record.caption}{_verdict_note(record)} · {worth_words(record)}"


def _verdict_note(record: HeadRecord) -> str:
    return f" ({VERDICT_NAMES[record.verdict]})" if record.best is not None else ""


def head_chips(measured: HeadMeasurements) -> dict[str, dict[str, str]]:
    """For each head, keyed by "layer.head" (from 1): its "story" (a caption), a line of "text", and its "verdict"."""
    return {
        name: {"story": record.caption, "text": chip(record), "verdict": record.verdict}
        for name, record in measured.named().items()
    }


def all_heads_sentence(measured: HeadMeasurements) -> str:
    """The accuracy with all heads replaced together by their tables, and by uniform attention."""
    record = measured.all_heads
    kind: TableKind = "both"
    kept = (
        f"{share_words(record.tables[kind])} of the effect is kept"
        if record.tables[kind].low > 0
        else "none of the effect is kept"
    )
    own, tables, uniform = (
        percentage(measured.accuracy - lost) for lost in (0.0, record.tables[kind].lost, record.uniform.lost)
    )
    return (
        f"With all heads at once replaced by fixed tables of distances and words, accuracy is {tables} instead of "
        f"{own} ({uniform} with uniform attention; {measured.n:,} test texts), and {kept}."
    )
