"""Where the time of a prediction goes: processor time of one headline's parts, and of the operations in many texts.

    python -m benchmarks.where_time_goes [--checkpoint ag_news] [--texts 2000]

The texts are the checkpoint's test texts, which must be on this machine (`txcls data list`).
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks._measure import machine, seconds
from txcls.data.datasets import open_dataset
from txcls.errors import DataError
from txcls.predictor import Predictor

REPEATS = 200
OPERATIONS = 7


processor_seconds = partial(seconds, clock=time.process_time)


def one(classifier: Predictor, text: str) -> None:
    """The parts of one prediction, milliseconds each."""
    ids = torch.tensor([classifier.encoder.encode(text).ids])
    logits = classifier.logits(ids)
    parts: dict[str, Callable[[], object]] = {
        "whole": lambda: classifier.predict([text]),
        "tokenizing, its words seen before": lambda: classifier.encoder.encode(text),
        "forward pass": lambda: classifier.logits(ids),
        "calibration": lambda: classifier.calibrated(logits),
    }
    n_modules = sum(not list(module.children()) for module in classifier.checkpoint.model.modules())
    print(f"\none text of {ids.shape[1]} tokens, ms (medians of {REPEATS}); the model has {n_modules} modules")
    for name, work in parts.items():
        print(f"  {name:<40}{1000 * statistics.median(processor_seconds(work) for _ in range(REPEATS)):>8.2f}")


def many(classifier: Predictor, texts: list[str]) -> None:
    """The operations of `Predictor.probabilities` that take longest, in either precision."""
    fresh = Predictor.load(classifier.name)
    first, again = (processor_seconds(lambda: fresh.encoder.encode_ids(texts)) for _ in range(2))
    print(f"\n{len(texts):,} texts: tokenizing {first:.2f} s, {again:.2f} s once their words were seen")
    for precision in ("float32", "bfloat16"):
        classifier.probabilities(texts[:256], precision=precision)  # the copy in bfloat16 is made once
        whole = processor_seconds(lambda kind=precision: classifier.probabilities(texts, precision=kind))  # type: ignore[misc]
        with profile(activities=[ProfilerActivity.CPU]) as found:
            classifier.probabilities(texts, precision=precision)
        spent = sorted(found.key_averages(), key=lambda event: event.self_cpu_time_total, reverse=True)
        print(f"  {precision}: {whole:.2f} s")
        for event in spent[:OPERATIONS]:
            print(f"    {event.key:<50}{event.self_cpu_time_total / 1e6:>8.2f} s, {event.count:,} calls")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--checkpoint", default="ag_news")
    parser.add_argument("--texts", type=int, default=2000)
    options = parser.parse_args()
    classifier = Predictor.load(options.checkpoint)
    try:
        texts = list(open_dataset(classifier.checkpoint.config.data).load("test").texts)[: options.texts]
    except DataError as error:
        print(error)
        return 2
    print(machine())
    one(classifier, texts[0])
    many(classifier, texts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
