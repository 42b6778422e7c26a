"""Computation time of the pages that inspect a model: the shipped AG News checkpoint, 40 tokens.

python -m benchmarks.inspection_speed [--repeats 20]
"""

import argparse
import statistics
import sys
from collections.abc import Callable

from benchmarks._measure import machine, seconds
from txcls.data.datasets import EXAMPLES
from txcls.inference.predictor import Predictor
from txcls.inspection.ablation import ablate_each
from txcls.inspection.attention import query_key
from txcls.inspection.attribution import explain
from txcls.inspection.counterfactuals import search_flips
from txcls.inspection.tracing import trace_text

N_TOKENS = 40


def attention_page(classifier: Predictor, text: str) -> None:
    traced = trace_text(classifier, text)
    query_key(traced, layer=0, head=0, query=0, key=0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repeats", type=int, default=20, help="number of repetitions")
    options = parser.parse_args()
    classifier = Predictor.load("ag_news")
    text = " ".join(example.text for example in EXAMPLES)
    text = text[: classifier.tokenizer.encode(text).tokens[N_TOKENS - 1].end]
    computations: dict[str, tuple[Callable[[], object], int | None]] = {
        "prediction": (lambda: classifier.predict([text]), None),
        "Attention": (lambda: attention_page(classifier, text), 300),
        "all heads ablated": (lambda: ablate_each(classifier, text), 300),
        "integrated gradients, 32 steps": (lambda: explain(classifier, text, methods=["integrated"]), 300),
        "first flip": (lambda: next(search_flips(classifier, text)), 1000),
        "all flips": (lambda: list(search_flips(classifier, text)), None),
    }
    print(machine())
    print(f"\n{f'{N_TOKENS} tokens, ms':<45}{'median':>8}{'worst':>8}{'goal':>8}")
    for name, (compute, goal) in computations.items():
        compute()
        times = [1000 * seconds(compute) for _ in range(options.repeats)]
        print(f"{name:<45}{statistics.median(times):>8.1f}{max(times):>8.1f}{goal or '':>8}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
