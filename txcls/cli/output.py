"""What commands print: JSON and tables on standard output, notes and progress on standard error."""

import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any

from txcls.errors import one_line, shown

if TYPE_CHECKING:
    from rich.console import Console

    from txcls.predictor import Prediction

_UNPRINTABLE_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def print_json(value: dict[str, Any]) -> None:
    """One JSON object as one line; characters that a terminal would obey are written as JSON escapes."""
    text = json.dumps(value, ensure_ascii=False)
    print(_UNPRINTABLE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def console(*, error: bool = False, quiet: bool = False) -> "Console":
    """Where tables (and, with `error`, progress bars) are drawn."""
    from rich.console import Console

    return Console(stderr=error, quiet=quiet)


def print_table(table: Any, value: dict[str, Any], *, as_json: bool) -> None:
    """Either the table or the JSON object with the same contents."""
    if as_json:
        print_json(value)
    else:
        console().print(table)


def note(message: str) -> None:
    """One line for a person, on standard error."""
    print(one_line(message), file=sys.stderr)


def note_once(message: str) -> None:
    """The same, by the first process of a torchrun run only."""
    if not process_number():
        note(message)


def process_number() -> int:
    """This process's rank in a torchrun run; 0 without torchrun."""
    return int(os.environ["RANK"]) if "TORCHELASTIC_RUN_ID" in os.environ else 0


def prediction_object(prediction: "Prediction") -> dict[str, Any]:
    """A prediction as `--json` prints it."""
    return {
        "text": prediction.text,
        "label": prediction.label,
        "ranked": [{"label": one.label, "probability": one.probability} for one in prediction.ranked],
        "tokens": [token.text for token in prediction.tokens],
        "unknown": [token.text for token in prediction.unknown],
        "truncated": prediction.truncated_at is not None,
        **({} if prediction.out_of_scope is None else {"out_of_scope": prediction.out_of_scope}),
    }


def print_prediction(prediction: "Prediction") -> None:
    """A prediction as ranked bars."""
    from rich.text import Text

    out = console()
    out.print(Text(shown(prediction.text), style="bold"))
    if prediction.label is None:
        out.print("  no word to classify")
        return
    labels = [shown(one.label) for one in prediction.ranked]
    width = max(map(len, labels))
    for label, one in zip(labels, prediction.ranked, strict=True):
        bar = "█" * round(one.probability * 40)
        out.print(Text(f"  {label:<{width}}  {one.probability:>6.1%}  {bar}"))
    if prediction.other > 0:
        out.print(Text(f"  {'other':<{width}}  {prediction.other:>6.1%}"))
    if prediction.out_of_scope:
        out.print("  probably out of scope: unlike the training texts of every class")
    if prediction.unknown:
        words = ", ".join(dict.fromkeys(shown(token.text) for token in prediction.unknown))
        out.print(Text("  unknown words: " + words))
    if prediction.truncated_at is not None:
        out.print(f"  truncated at character {prediction.truncated_at:,}; the rest was not read")
