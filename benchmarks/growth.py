"""How the cost of training grows with rows, length and width, over a decade each.

    python -m benchmarks.growth [--seconds 1.5]

An epoch of `txcls.training.fit` on made-up ids: two layers, float32, 16 texts a batch; 32 tokens, 64 wide and 16 rows
where nothing else is said. Cost is processor time of one thread, which other work on the machine hardly changes, and a
point is the best of at least three tries. The exponent k of cost ~ size^k is the slope of a straight line through the
logarithms: 1 where cost grows in proportion.
"""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from benchmarks._measure import machine
from txcls.config import ModelConfig, TrainConfig
from txcls.data.batches import TokenisedTexts
from txcls.model import TextClassifier
from txcls.training import fit

VOCAB, CLASSES = 5_000, 4
"""Sizes that stay the same."""
DECADE = (1.0, 10**0.25, 10**0.5, 10**0.75, 10.0)
"""Five points of a decade, evenly spaced on a logarithmic axis."""


@dataclass(frozen=True)
class Growth:
    """Processor seconds at each size, along one of rows, length and width."""

    what: str
    unit: str
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]

    @property
    def exponents(self) -> tuple[float, float]:
        """k of cost ~ size^k over the whole decade, and over its upper half alone."""
        x, y = np.log(self.sizes), np.log(self.seconds)
        half = len(x) // 2
        return float(np.polyfit(x, y, 1)[0]), float(np.polyfit(x[half:], y[half:], 1)[0])


def texts(n: int, length: int) -> TokenisedTexts:
    """n texts of `length` random ids."""
    random = np.random.default_rng(0)
    ids = random.integers(4, VOCAB, size=n * length, dtype=np.int32)
    return TokenisedTexts(ids, np.arange(n + 1, dtype=np.int64) * length, random.integers(0, CLASSES, size=n))


def epoch(*, rows: int = 16, length: int = 32, width: int = 64) -> Callable[[], float]:
    """What trains an epoch, with one validation on 16 texts, and returns the processor seconds it took."""
    shape = ModelConfig(d_model=width, n_heads=4, d_ff=4 * width, max_length=length)
    settings = TrainConfig(epochs=1, batch_size=16, precision="float32")
    train, validation = texts(rows, length), texts(16, length)

    def run() -> float:
        torch.manual_seed(0)
        model = TextClassifier(shape, vocab_size=VOCAB, n_classes=CLASSES)
        started = time.process_time()
        fit(model, train, validation, settings)
        return time.process_time() - started

    return run


def best(run: Callable[[], float], *, seconds: float) -> float:
    """The least of several tries, after one that is not counted."""
    run()
    tries: list[float] = []
    started = time.perf_counter()
    while len(tries) < 3 or time.perf_counter() - started < seconds:
        tries.append(run())
    return min(tries)


def measure(seconds: float) -> list[Growth]:
    """All three, each with the other two held."""
    along: tuple[tuple[str, str, int, int, Callable[[int], Callable[[], float]]], ...] = (
        ("rows", "rows", 64, 16, lambda n: epoch(rows=n)),
        ("length", "tokens per text", 24, 1, lambda n: epoch(length=n)),
        ("width", "d_model", 32, 4, lambda n: epoch(width=n)),
    )
    growths = []
    for what, unit, first, multiple, make in along:
        sizes = tuple(round(first * factor / multiple) * multiple for factor in DECADE)
        growths.append(Growth(what, unit, sizes, tuple(best(make(size), seconds=seconds) for size in sizes)))
    return growths


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=1.5, help="least time to spend on a point")
    options = parser.parse_args()
    torch.set_num_threads(1)  # one thread: how work grows, not how it is shared
    growths = measure(options.seconds)
    print(machine())
    for growth in growths:
        whole, upper = growth.exponents
        cost, size = growth.seconds[-1] / growth.seconds[0], growth.sizes[-1] / growth.sizes[0]
        print(f"\n{growth.what}: {cost:.1f} x the cost for {size:.1f} x the size; ", end="")
        print(f"exponent {whole:.2f}, {upper:.2f} in the upper half")
        print(f"{growth.unit:>16}" + "".join(f"{size:>9}" for size in growth.sizes))
        print(f"{'ms':>16}" + "".join(f"{1000 * value:>9.1f}" for value in growth.seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
