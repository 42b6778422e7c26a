"""Measure how fast this machine trains a model on some texts, with one thread and with one thread per processor.

On a busy machine, waiting for each other's threads can make a small model up to eighteen times slower.
"""

import itertools
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from txcls.config import TrainConfig
from txcls.data.batches import TokenisedTexts
from txcls.model import TextClassifier
from txcls.runtime.device import bound_kernel_cache
from txcls.training.loop import Trainer
from txcls.training.objectives import Classify

MEASURED_TEXTS = 2000
"""Maximum number of training texts to measure the speed with."""
SECONDS = 1.0
"""Seconds measured for each number of threads, after one warm-up step."""
MIN_WORK, MAX_SECONDS = 0.5, 4.0
"""Minimum CPU time (on a busy machine, a second can be a single step) and maximum time per measurement, in
seconds; if the warm-up step takes longer than the maximum, it is the measurement."""
MIN_GAIN = 1.1
"""Minimum speed-up for choosing more threads, since they leave fewer processors for other work."""


@dataclass(frozen=True, slots=True)
class Speed:
    """Tokens per second for each number of threads, and the number to use."""

    threads: int
    tokens_per_second: float
    by_threads: tuple[tuple[int, float], ...]

    @property
    def sentence(self) -> str:
        """The choice and the measurements as a sentence."""
        rates = ", ".join(f"{rate:,.0f} with {n}" for n, rate in self.by_threads)
        return f"{self.threads} processor thread{'s' * (self.threads > 1)}, as measured (tokens per second: {rates})."


def measure_speed(model: TextClassifier, texts: TokenisedTexts, config: TrainConfig) -> Speed:
    """Train a few steps with one thread and with one thread per processor; this changes the model's weights."""
    bound_kernel_cache()
    rates = []
    for n in sorted({1, processors()}):
        with using_threads(n):
            rates.append((n, _tokens_per_second(model, texts, config)))
    threads, rate = rates[0]
    if rates[-1][1] > MIN_GAIN * rate:
        threads, rate = rates[-1]
    return Speed(threads, rate, tuple(rates))


@contextmanager
def using_threads(n: int) -> Iterator[None]:
    """Inside the block, torch uses n processor threads."""
    previous_threads = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(previous_threads)


def processors() -> int:
    """Number of processors that this process may use, limited by OMP_NUM_THREADS."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(allowed, int(limit)) if limit.isdigit() and int(limit) else allowed)


def _tokens_per_second(model: TextClassifier, texts: TokenisedTexts, config: TrainConfig) -> float:
    objective = Classify.of(texts, n_classes=model.head.out_features, config=config)
    trainer = Trainer(model, texts, texts, config, objective)
    batches = trainer.batches(epoch=0)
    trainer.train_step(batches[0])  # a warm-up, which allocates memory
    if trainer.seconds > MAX_SECONDS:
        return trainer.tokens / trainer.seconds
    warmup_tokens, started, work_before = trainer.tokens, time.perf_counter(), time.process_time()
    for batch in itertools.cycle(batches):
        trainer.train_step(batch)
        seconds = time.perf_counter() - started
        if seconds > MAX_SECONDS or (seconds > SECONDS and time.process_time() - work_before > MIN_WORK):
            break
    return (trainer.tokens - warmup_tokens) / seconds
