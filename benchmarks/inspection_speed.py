"""How long the pages that take a model apart compute, for the shipped AG News checkpoint and a text of 40 tokens.

    python -m benchmarks.inspection_speed [--repeats 20]

Without a browser and without Streamlit: what the library takes. Each line is what one page computes for a new text.
Processor time is what counts where other work goes on beside.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable

from benchmarks._measure import machine
from txcls.app.components.training_film import film_data
from txcls.checkpoint.listing import list_checkpoints
from txcls.data.examples import EXAMPLES, REPORTS
from txcls.inspection.ablation import ablate_each
from txcls.inspection.attention import attention_rollout, head_statistics, query_key
from txcls.inspection.attribution import deletion_curves, explain
from txcls.inspection.counterfactuals import search_flips
from txcls.inspection.lens import class_lens
from txcls.inspection.tracing import trace_text
from txcls.inspection.training_film import training_film
from txcls.predictor import Predictor

AIM_MS = 300
AIM_FLIP_MS = 1000
N_TOKENS = 40


def text_of(classifier: Predictor, n_tokens: int) -> str:
    """So much of the app's examples as the checkpoint reads as `n_tokens` tokens."""
    text = " ".join(example.text for example in EXAMPLES)
    tokens = classifier.encoder.encode(text).tokens
    return text[: tokens[n_tokens - 1].end]


def attention_page(classifier: Predictor, text: str) -> None:
    traced = trace_text(classifier, text)
    attention_rollout(traced.attention)
    head_statistics(traced.attention)
    query_key(traced, layer=0, head=0, query=0, key=0)


def film_page(classifier: Predictor) -> str:
    """What the browser is sent for the film of a match report."""
    film = training_film(classifier, REPORTS[0].text)
    tokens = [token.text for token in film.tokens]
    return json.dumps(film_data(film, classifier.classes, name=classifier.name, opened="", tokens=tokens, at=0))


def milliseconds(work: Callable[[], object], repeats: int) -> tuple[list[float], list[float]]:
    """Wall-clock times, and processor times, of so many calls, after one that does not count."""
    work()
    waited, computed = [], []
    for _ in range(repeats):
        start, used = time.perf_counter(), time.process_time()
        work()
        waited.append(1000 * (time.perf_counter() - start))
        computed.append(1000 * (time.process_time() - used))
    return waited, computed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repeats", type=int, default=20, help="how often each is computed")
    options = parser.parse_args()
    classifier = Predictor.load("ag_news")
    text = text_of(classifier, N_TOKENS)
    scores = explain(classifier, text).scores
    work: dict[str, tuple[Callable[[], object], int | None]] = {
        "prediction": (lambda: classifier.predict([text]), None),
        "attention page": (lambda: attention_page(classifier, text), AIM_MS),
        "all-heads ablation": (lambda: ablate_each(classifier, text), AIM_MS),
        "integrated gradients, 32 steps": (lambda: explain(classifier, text, methods=["integrated"]), AIM_MS),
        "all attributions": (lambda: explain(classifier, text), None),
        "deletion curves, 5 orders and 10 random": (lambda: deletion_curves(classifier, text, scores), None),
        "class lens": (lambda: class_lens(classifier, text), None),
        "flip search, its first result": (lambda: next(search_flips(classifier, text)), AIM_FLIP_MS),
        "flip search, to its end": (lambda: list(search_flips(classifier, text)), None),
    }
    if any(one.name == "who_won" and one.has_snapshots for one in list_checkpoints().classifiers):
        filmed = Predictor.load("who_won")
        size = len(film_page(filmed)) / 1000
        work[f"training film of who_won, {size:.0f} kB"] = lambda: film_page(filmed), AIM_MS
    print(machine())
    what = f"{len(classifier.encoder.encode(text).tokens)} tokens, ms"
    print(f"\n{what:<45}{'median':>8}{'worst':>8}{'of processor':>14}{'aim':>6}")
    for name, (one, aim) in work.items():
        waited, computed = milliseconds(one, options.repeats)
        row = f"{name:<45}{statistics.median(waited):>8.1f}{max(waited):>8.1f}{statistics.median(computed):>14.1f}"
        print(f"{row}{aim or '':>6}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
