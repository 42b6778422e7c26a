"""`txcls compare`."""

from dataclasses import asdict
from typing import Annotated

import typer

from txcls.cli.options import CheckpointArgument, DataOption, JsonOption
from txcls.cli.output import print_json, print_rows
from txcls.data.examples import examples_for
from txcls.evaluation.compare_checkpoints import compare_checkpoints
from txcls.inference.predictor import Predictor
from txcls.inspection.attention import strongest_weights
from txcls.inspection.tracing import trace_text
from txcls.wording import percentage, shown

LISTED = 20
"""Maximum number of classes."""


def compare(
    checkpoint: CheckpointArgument,
    other: Annotated[str, typer.Argument(metavar="OTHER", help="A second checkpoint for the same data set.")],
    text: Annotated[str | None, typer.Option("--text", metavar="TEXT", help="A text  [default: an example]")] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two checkpoints on one text (predictions, attention) and on the same test rows (accuracy)."""
    both = [Predictor.load(name) for name in (checkpoint, other)]
    rows = compare_checkpoints(both[0].checkpoint, both[1].checkpoint, data_path=data)
    text = text or examples_for(both[0].checkpoint.config.data.dataset)[0].text
    probabilities = [classifier.predict([text])[0].probabilities for classifier in both]
    heads = [strongest_weights(trace_text(classifier, text)) for classifier in both]
    if as_json:
        print_json({"text": text, "probabilities": probabilities, "heads": heads, **asdict(rows)})
        return
    names = [shown(classifier.name, limit=40) for classifier in both]
    cells = [(label, *(percentage(one.get(label, 0.0)) for one in probabilities)) for label in probabilities[0]]
    print_rows(("class", *names), cells[:LISTED], title=f"“{shown(text, limit=100)}”")
    both_heads = sorted(heads[0] | heads[1], key=lambda head: [*map(int, head.split("."))])  # 1.10 after 1.2
    cells = [(head, *(one.get(head, "") for one in heads)) for head in both_heads]
    print_rows(("head", *names), cells, title="largest attention weight")
    print_rows(("", *names), rows.table)
