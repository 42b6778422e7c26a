"""How fast this machine trains a model on these texts: a few steps with one processor thread, and with all of them.

Small models are slowed down by threads that wait for each other, up to eighteen times on busy processors, so the number
of threads is chosen by measuring.
"""

import os
import time
from dataclasses import dataclass

import numpy as np
import torch

from txcls.config import TrainConfig
from txcls.data.batches import TokenisedTexts, length_bucketed_batches, pad_batch
from txcls.model import TextClassifier
from txcls.runtime.device import autocast_dtype, bound_kernel_cache
from txcls.training.objectives import Classify
from txcls.training.optim import make_optimizer

SECONDS = 1.0
"""How long each number of threads is measured, after a step that is not counted."""
LEAST_WORK, MOST_SECONDS = 0.5, 4.0
"""Seconds of processor time that a measurement holds, on a busy machine too, where a second can be a single step; and
the longest that it takes for them."""
LEAST_GAIN = 1.1
"""More threads must be faster by this factor to be chosen: they leave less for others."""


@dataclass(frozen=True, slots=True)
class Speed:
    """What was measured: tokens per second for each number of threads, and the number that is to be used."""

    threads: int
    tokens_per_second: float
    by_threads: tuple[tuple[int, float], ...]

    @property
    def sentence(self) -> str:
        """What was chosen and why, for a person."""
        others = ", ".join(f"{rate:,.0f} with {n}" for n, rate in self.by_threads)
        return f"{self.threads} processor thread{'s' * (self.threads > 1)}, as measured (tokens per second: {others})."


def measure_speed(model: TextClassifier, texts: TokenisedTexts, config: TrainConfig) -> Speed:
    """Train a few steps with one thread and with as many as there are processors; the model's weights change.

    Args:
        model: of the run's shape.
        texts: some of the training texts.
        config: of the run.
    """
    bound_kernel_cache()
    before = torch.get_num_threads()
    found = []
    try:
        for threads in sorted({1, processors()}):
            torch.set_num_threads(threads)
            found.append((threads, _tokens_per_second(model, texts, config)))
    finally:
        torch.set_num_threads(before)
    threads, speed = found[0]
    for more, faster in found[1:]:
        if faster > LEAST_GAIN * speed:
            threads, speed = more, faster
    return Speed(threads, speed, tuple(found))


def processors() -> int:
    """Processors this process may use, at most what OMP_NUM_THREADS says."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(allowed, int(asked)) if asked.isdigit() and int(asked) else allowed)


def _tokens_per_second(model: TextClassifier, texts: TokenisedTexts, config: TrainConfig) -> float:
    optimizer = make_optimizer(model, config)
    objective = Classify.of(texts, n_classes=model.head.out_features, config=config)
    dtype = autocast_dtype(config.precision, device=torch.device("cpu"), model=model.config)
    batches = length_bucketed_batches(
        texts.lengths, batch_size=config.batch_size, batch_tokens=config.batch_tokens, seed=0, epoch=0
    )
    model.train()
    tokens, spent, worked = 0, 0.0, 0.0
    for number in range(10_000):
        rows = batches[number % len(batches)]
        started = time.perf_counter()
        ids, labels = (torch.from_numpy(one) for one in pad_batch(texts, rows))  # B T, B
        with torch.autocast("cpu", dtype=dtype, enabled=dtype is not None):
            outcome = objective.batch(model, ids, labels)
        optimizer.zero_grad(set_to_none=True)
        outcome.loss.backward()
        optimizer.step()
        if not number:  # it allocates
            worked = time.process_time()
        else:
            spent += time.perf_counter() - started
            tokens += int(np.asarray(texts.lengths)[rows].sum())
        if spent > MOST_SECONDS or (spent > SECONDS and time.process_time() - worked > LEAST_WORK):
            break
    return tokens / max(spent, 1e-9)
