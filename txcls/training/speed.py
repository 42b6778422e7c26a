"""Measure how fast this machine trains a model on some texts, with one thread and with one thread per processor.

On a busy machine, a small model can be up to eighteen times slower with several threads, which wait for one another.
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
from txcls.training.loop import Trainer, bound_kernel_cache
from txcls.training.objectives import Classify

MEASURED_TEXTS = 2000
"""Maximum number of training texts on which the speed is measured."""
SECONDS = 1.2
"""Seconds measured for each number of threads, after one warm-up step."""
MIN_CPU_SHARE = 0.5
"""Training is planned for at least this share of an idle machine's speed: other programs rarely take more for long."""
MIN_SPEEDUP = 1.1
"""Minimum speed-up for choosing more threads, since they leave fewer processors for other work."""


@dataclass(frozen=True, slots=True)
class Speed:
    """The number of threads to use, and the tokens per second to plan for."""

    threads: int
    tokens_per_second: float


def measure_speed(model: TextClassifier, texts: TokenisedTexts, config: TrainConfig) -> Speed:
    """The number of threads to use, and its speed, from a few training steps, which change the model's weights."""
    bound_kernel_cache()
    rates, planned = {}, {}
    for n in sorted({1, processors()}):
        with using_threads(n):
            rates[n], planned[n] = _tokens_per_second(model, texts, config)
    threads = max(rates)
    if rates[threads] <= MIN_SPEEDUP * rates[1]:
        threads = 1
    return Speed(threads, planned[threads])


@contextmanager
def using_threads(n: int | None) -> Iterator[None]:
    """Inside the block, torch uses n processor threads, or as many as before if n is None."""
    previous_threads = torch.get_num_threads()
    torch.set_num_threads(n or previous_threads)
    try:
        yield
    finally:
        torch.set_num_threads(previous_threads)


def processors() -> int:
    """Number of processors that this process may use, limited by OMP_NUM_THREADS."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(allowed, int(limit)) if limit.isdigit() and int(limit) else allowed)


def _tokens_per_second(model: TextClassifier, texts: TokenisedTexts, config: TrainConfig) -> tuple[float, float]:
    """The speed, and the speed to plan for, which is higher if this process got little of the processor's time."""
    trainer = Trainer(model, texts, texts, config, Classify.of(texts, n_classes=model.head.out_features, config=config))
    batches = itertools.cycle(trainer.batches(epoch=0))
    trainer.train_step(next(batches))  # a warm-up, which allocates memory
    trainer.tokens, started, work = 0, time.perf_counter(), time.process_time()
    while (seconds := time.perf_counter() - started) < SECONDS or not trainer.tokens:
        trainer.train_step(next(batches))
    cpu_seconds = time.process_time() - work
    least = MIN_CPU_SHARE * trainer.tokens * torch.get_num_threads() / max(cpu_seconds, 1e-9)
    return trainer.tokens / seconds, max(trainer.tokens / seconds, least)
