"""How often texts are said to be unusual for a model: usual ones, and sentences in other languages.

    python -m benchmarks.unusual_texts [ag_news clinc150 huffpost imdb agreement who_won] [--rows 2000] [--write]

`beginnings` are the first 8 to 24 tokens of test rows. The sentences, twenty in each of ten languages, are in
other_languages.tsv. With `--write`, the tokens of training texts are counted first, and the checkpoint's
token_counts.json is replaced.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from benchmarks._measure import machine, sample_rows
from txcls.checkpoint.folders import TOKEN_COUNTS
from txcls.checkpoint.json_files import write_json
from txcls.checkpoint.load import find_checkpoint
from txcls.data.batches import TokenisedTexts
from txcls.data.datasets import examples_for, is_available, open_dataset
from txcls.data.splits import training_and_validation
from txcls.evaluation.fit_calibration import COUNTED_TEXTS, beginnings, fit_token_counts
from txcls.inference.predictor import Predictor
from txcls.text.formatting import percentage

CHECKPOINTS = ("ag_news", "huffpost", "imdb", "clinc150", "agreement", "who_won")
SENTENCES = Path(__file__).with_name("other_languages.tsv")


def measure(name: str, *, limit: int, write: bool) -> None:
    """Print a row of the table for a checkpoint."""
    classifier = Predictor.load(name)
    checkpoint, tokenizer = classifier.checkpoint, classifier.tokenizer
    dataset = open_dataset(checkpoint.config.data)
    training, validation = training_and_validation(dataset, checkpoint.config.data)
    if write and classifier.sentence_pattern is None:
        counted = TokenisedTexts.encode(tokenizer, sample_rows(training, limit=COUNTED_TEXTS))
        counts = fit_token_counts(counted, TokenisedTexts.encode(tokenizer, validation), tokenizer)
        write_json(find_checkpoint(name) / TOKEN_COUNTS, asdict(counts), indent=None)
        classifier = Predictor(replace(checkpoint, token_counts=counts))

    def share(texts: Sequence[str], rows: TokenisedTexts | None = None) -> str:
        ids = tokenizer.encode_ids(texts) if rows is None else [rows[n] for n in range(len(rows))]
        return percentage(float(np.mean([classifier.is_unusual(*pair) for pair in zip(texts, ids, strict=True)])))

    test = sample_rows(dataset.load("test"), limit=limit)
    started = (
        "" if classifier.sentence_pattern else share(test.texts, beginnings(TokenisedTexts.encode(tokenizer, test)))
    )
    sentences = [line.split("\t")[1] for line in SENTENCES.read_text(encoding="utf-8").splitlines()]
    own = [example.text for example in examples_for(checkpoint.config.data.dataset)]
    cells = (f"`{name}`", share(validation.texts), share(test.texts), started, share(own), share(sentences))
    print("| " + " | ".join(cells) + " |", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("checkpoints", nargs="*", metavar="CHECKPOINT", help=", ".join(CHECKPOINTS))
    parser.add_argument("--rows", type=int, default=2000, help="maximum number of test rows")
    parser.add_argument("--write", action="store_true", help="replace token_counts.json")
    options = parser.parse_args(arguments)
    print(machine())
    print("| | validation rows | test rows | beginnings | examples of the app | sentences in other languages |")
    print("|---|---:|---:|---:|---:|---:|")
    for name in options.checkpoints or CHECKPOINTS:
        if is_available(name):
            measure(name, limit=options.rows, write=options.write)
        else:
            print(f"| `{name}` | data not on this machine |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
