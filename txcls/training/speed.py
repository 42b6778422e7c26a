"""Measure how fast this machine trains a model on some texts, with one thread and with one thread per processor.

On a busy machine, a small model can be up to eighteen times slower with several threads, because they wait for one
another.
"""

import itertools
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch

from txcls.config import TrainConfig
from txcls.data.batches import TokenisedTexts
from txcls.model import TextClassifier
from txcls.runtime.device import bound_kernel_cache
from txcls.training.loop import Trainer
from txcls.training.objectives import Classify

MEASURED_TEXTS = 2000
"""Maximum number of training texts on which the speed is measured."""
SECONDS = 1.2
"""Seconds measured for each number of threads, after one warm-up step."""
PROBES = 3
"""Number of parts of these seconds. The mean speed decides about threads. Training is planned for the speed of the
fastest part: other programs may end, and training that falls behind its plan is ended by the clock, whereas with too
few epochs planned, the rest of the time would be unused."""
MIN_CPU_SHARE = 0.5
"""Training is planned for at least this share of the speed in CPU time, since other programs rarely take more for long:
a machine that was very busy while the speed was measured would otherwise get a plan with hardly any training."""
MIN_WORK, MAX_SECONDS = 0.5, 4.0
"""Minimum CPU time (on a busy machine, a second can be a single step) and maximum time per measurement, in
seconds; if the warm-up step takes longer than the maximum, it is the measurement."""
SIMILAR = 1.1
"""If the planned speed differs from the mean speed measured by more than this factor, the reason is said."""
MIN_SPEEDUP = 1.1
"""Minimum speed-up for choosing more threads, since they leave fewer processors for other work."""


@dataclass(frozen=True, slots=True)
class Speed:
    """The number of threads to use, the speed to plan for, and the mean speed for each number of threads.

    `one_layer`, if it was measured, is the speed of the one-layer model for long texts (`choose_settings.ONE_LAYER`),
    counted in the pre-trained model's tokens of the same texts.
    """

    threads: int
    tokens_per_second: float
    by_threads: tuple[tuple[int, float], ...]
    one_layer: "Speed | None" = None

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Speed":
        """The inverse of `dataclasses.asdict`; raises KeyError, TypeError or ValueError for other values."""
        one_layer = values["one_layer"]
        return cls(
            int(values["threads"]),
            float(values["tokens_per_second"]),
            tuple((int(n), float(rate)) for n, rate in values["by_threads"]),
            None if one_layer is None else cls.from_dict(one_layer),
        )

    def of(self, *, one_layer: bool) -> "Speed":
        """The speed of the one-layer model if that is trained and was measured, otherwise this one."""
        return self.one_layer if one_layer and self.one_layer is not None else self

    @property
    def mean(self) -> float:
        """The mean speed measured with the chosen number of threads."""
        return dict(self.by_threads).get(self.threads, self.tokens_per_second)

    def slowed(self, factor: float) -> "Speed":
        """Speeds to plan for that are lower by this factor."""
        one_layer = None if self.one_layer is None else self.one_layer.slowed(factor)
        return replace(self, tokens_per_second=self.tokens_per_second / factor, one_layer=one_layer)

    @property
    def sentence(self) -> str:
        """The choice, the measurements and the speed to plan for, as sentences."""
        rates = ", ".join(f"{rate:,.0f} with {n}" for n, rate in self.by_threads)
        reason = ""
        if self.tokens_per_second > SIMILAR * self.mean:
            reason = ", in case the machine becomes less busy; if it does not, fewer steps are made in the time"
        elif self.mean > SIMILAR * self.tokens_per_second:
            reason = ", since an earlier run was slower than its measurement"
        return (
            f"{self.threads} processor thread{'s' * (self.threads > 1)}, as measured (tokens per second: {rates}). "
            f"Planned for {self.tokens_per_second:,.0f} tokens per second{reason}."
        )


def measure_speed(model: TextClassifier, texts: TokenisedTexts, config: TrainConfig) -> Speed:
    """Train a few steps with one thread and with one thread per processor; this changes the model's weights."""
    bound_kernel_cache()
    means, planned = {}, {}
    for n in sorted({1, processors()}):
        with using_threads(n):
            means[n], planned[n] = _tokens_per_second(model, texts, config)
    threads = max(means)
    if means[threads] <= MIN_SPEEDUP * means[1]:
        threads = 1
    return Speed(threads, planned[threads], tuple(means.items()))


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


def _tokens_per_second(model: TextClassifier, texts: TokenisedTexts, config: TrainConfig) -> tuple[float, float]:
    """The mean speed, and the speed to plan for, which is that of the fastest part or, if CPU time was short, more."""
    objective = Classify.of(texts, n_classes=model.head.out_features, config=config)
    trainer = Trainer(model, texts, texts, config, objective)
    batches = itertools.cycle(trainer.batches(epoch=0))
    work_before = time.process_time()
    trainer.train_step(next(batches))  # a warm-up, which allocates memory
    if trainer.seconds > MAX_SECONDS:
        rate = trainer.tokens / trainer.seconds
        return rate, max(rate, _least_speed(trainer.tokens, time.process_time() - work_before))
    probes: list[tuple[int, float]] = []  # tokens and seconds of each part
    started, work_before = time.perf_counter(), time.process_time()
    while (seconds := time.perf_counter() - started) < MAX_SECONDS:
        if seconds > SECONDS and time.process_time() - work_before > MIN_WORK:
            break
        probe_started, tokens_before = time.perf_counter(), trainer.tokens
        while (probe_seconds := time.perf_counter() - probe_started) < SECONDS / PROBES:
            trainer.train_step(next(batches))
        probes.append((trainer.tokens - tokens_before, probe_seconds))
    n_tokens, seconds = (sum(values) for values in zip(*probes, strict=True))
    least = _least_speed(n_tokens, time.process_time() - work_before)
    return n_tokens / seconds, max(least, *(tokens / seconds for tokens, seconds in probes))


def _least_speed(tokens: int, cpu_seconds: float) -> float:
    """The lowest speed to plan for if all threads together used this CPU time."""
    return MIN_CPU_SHARE * tokens * torch.get_num_threads() / max(cpu_seconds, 1e-9)
