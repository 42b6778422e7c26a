"""The training loop: `fit` a model to tokenised texts, validate it, and save its state (`run_folder.py`).

python -m txcls train ag_news            # a preset, from its data set to a checkpoint folder
python -m txcls train ag_news --resume   # continue an interrupted run
"""

import math
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from txcls import __version__
from txcls.checkpoint.schema import HistoryRow
from txcls.checkpoint.snapshots import SnapshotRow, Snapshots, snapshot_steps
from txcls.checkpoint.weights import as_stored
from txcls.config import RunConfig, TrainConfig
from txcls.data.batches import TokenisedTexts, length_bucketed_batches, pad_batch
from txcls.errors import StoppedError, TrainingError
from txcls.inference.device import autocast_dtype
from txcls.inference.interrupts import stop_requests
from txcls.model import Encoder, TextClassifier
from txcls.training.distributed import learner_of, n_processes, own_share, rank, sum_over_processes
from txcls.training.objectives import Classify, Objective, Validated
from txcls.training.optimizer import AveragedWeights, learning_rate, make_optimizer, set_learning_rate
from txcls.training.run_folder import read_state, write_state

MAX_PART_TOKENS = 8192
"""Maximum number of tokens, with padding, whose gradients are computed at once on a CPU. More of them take more memory,
but not less time."""
FEW_WIDTHS = 64
"""On a CPU, the padded length of longer texts is a multiple of this: memory blocks of a new size in every step would
fragment the heap, which then grows to twice the size."""
MAX_SAVING_SHARE = 0.02
"""Maximum share of time spent saving the state; large models are therefore saved less often than configured."""
KERNEL_CACHE = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
"""The environment variable that limits the number of compiled kernels in oneDNN's cache."""
MAX_KERNELS = 128
"""Maximum number of cached kernels. oneDNN compiles a kernel for each operation and shape; batches of texts have many
shapes, and with oneDNN's default of 1024, a process grows by 2 GB in a few hundred training steps in bfloat16."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress after a step; loss, accuracy and speed are means over the steps since the last validation."""

    epoch: int
    epochs: int
    step: int
    total_steps: int
    loss: float
    accuracy: float
    tokens_per_second: float
    seconds_left: float


@dataclass(frozen=True, slots=True)
class FitResult:
    """The result of training, apart from the weights, which are in the model."""

    history: tuple[HistoryRow, ...]
    best: HistoryRow
    seconds: float
    done: str
    """How much of the training was done, in words."""
    snapshots: Snapshots | None = None


class TrainingInterruptedError(TrainingError, StoppedError):
    """Training was interrupted (Ctrl-C, SIGTERM); its state is saved if there is a `state_path`."""


@dataclass
class _RunningSums:
    """Sums over the steps since the last validation or the last snapshot."""

    loss: float = 0.0
    right: int = 0
    n: int = 0
    tokens: int = 0
    seconds: float = 0.0

    def add(self, *, loss: float, right: int, n: int, tokens: int, seconds: float) -> None:
        """Add a step; `loss` is the mean over its n predictions."""
        self.loss += loss * n
        self.right += right
        self.n += n
        self.tokens += tokens
        self.seconds += seconds

    @property
    def mean_loss(self) -> float:
        """Mean loss per prediction."""
        return self.loss / max(self.n, 1)

    @property
    def accuracy(self) -> float:
        """Share of correct predictions."""
        return self.right / max(self.n, 1)

    @property
    def tokens_per_second(self) -> float:
        """Tokens per second over the steps."""
        return self.tokens / max(self.seconds, 1e-9)


def fit(
    model: Encoder,
    train: TokenisedTexts,
    validation: TokenisedTexts,
    config: TrainConfig,
    *,
    objective: Objective | None = None,
    device: torch.device | str = "cpu",
    state_path: Path | None = None,
    resume: bool = False,
    on_step: Callable[[Progress], None] | None = None,
    on_validation: Callable[[HistoryRow], None] | None = None,
    max_steps: int | None = None,
    max_seconds: float | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> FitResult:
    """Train `model` in place and leave it with the weights that did best on validation rows.

    Args:
        model: freshly initialised; with `resume`, with the same configuration as before.
        train, validation: token ids and labels.
        objective: what to predict; None for class labels.
        device: where to compute; the model stays there.
        state_path: file for the state, saved every `save_every_seconds`, after each epoch and on interruption.
        resume: continue from `state_path`; the result is the same as without the interruption.
        on_step, on_validation: called after each optimiser step and each validation.
        max_steps: stop after this many optimiser steps in total, with the learning-rate schedule of the whole run; with
            0, the model is only validated.
        max_seconds: stop after this time. If it is too short for all steps, the learning-rate schedule follows
            the time used instead of the steps done, so that it reaches its end.
        should_stop: called after each step; once it returns true, training ends after one more validation.

    Raises:
        TrainingError: the loss is not finite, or there is no matching state to resume from.
        TrainingInterruptedError: Ctrl-C or SIGTERM; the state was saved.
    """
    bound_kernel_cache()
    if objective is None:
        assert isinstance(model, TextClassifier)
        objective = Classify.of(train, n_classes=model.head.out_features, config=config)
    trainer = Trainer(model, train, validation, config, objective, device=device, state_path=state_path)
    trainer.max_seconds = max_seconds
    torch.manual_seed(config.seed + rank())  # otherwise all processes would drop or mask the same positions
    if resume:
        trainer.load_state_dict(read_state(state_path, trainer.identity()))
    return trainer.run(on_step=on_step, on_validation=on_validation, max_steps=max_steps, should_stop=should_stop)


class Trainer:
    """A training run; its complete state can be saved and restored."""

    def __init__(
        self,
        model: Encoder,
        train: TokenisedTexts,
        validation: TokenisedTexts,
        config: TrainConfig,
        objective: Objective,
        *,
        device: torch.device | str = "cpu",
        state_path: Path | None = None,
    ) -> None:
        self.rows = len(train), len(validation)
        if not all(self.rows):
            raise TrainingError(
                f"got {self.rows[0]} training and {self.rows[1]} validation rows; expected some of each"
            )
        self.device = torch.device(device)
        self.model, self.train, self.validation = model.to(self.device), train, validation
        self.config, self.objective, self.state_path = config, objective, state_path
        self.lengths = train.lengths
        reads_padding = model.config.pool_padding or not model.config.mask_padding
        self.multiple = 1 if reads_padding or self.device.type != "cpu" else FEW_WIDTHS
        self.learner = learner_of(self.model, objective)
        self.optimizer = make_optimizer(model, config)
        self.average = AveragedWeights(model, config.ema_decay) if config.ema_decay else None
        self.dtype = autocast_dtype(config.precision, device=self.device, model=model.config)
        self.epochs, self.total_steps = self._length_of_run()
        self.last_step = self.total_steps
        self.max_seconds: float | None = None
        self.epoch, self.batch, self.step = 0, 0, 0
        self.running, self.since_snapshot = _RunningSums(), _RunningSums()
        self.history: list[HistoryRow] = []
        self.snapshot_steps = frozenset(snapshot_steps(config.snapshots, self.total_steps))
        self.snapshots: list[tuple[SnapshotRow, dict[str, Tensor]]] = []
        self.best_weights: dict[str, Tensor] = {}
        self.seconds, self.tokens = 0.0, 0
        self.saved_at, self.last_save_took = time.monotonic(), 0.0
        self.started = time.monotonic()
        self.last_validation_took = 0.0

    def _length_of_run(self) -> tuple[int, int]:
        """Number of epochs and steps of the whole run."""
        config = self.config
        if config.batch_tokens:  # the number of batches differs slightly between epochs
            n_batches = [len(self.batches(epoch)) for epoch in range(config.epochs)]
            while sum(n_batches) < config.min_steps:
                n_batches.append(len(self.batches(len(n_batches))))
            return len(n_batches), sum(n_batches)
        batches_per_epoch = math.ceil(len(self.train) / config.batch_size)
        epochs = max(config.epochs, math.ceil(config.min_steps / batches_per_epoch))
        return epochs, batches_per_epoch * epochs

    def batches(self, epoch: int) -> list[NDArray[np.int64]]:
        """The rows of each batch of an epoch."""
        size, tokens, seed = self.config.batch_size, self.config.batch_tokens, self.config.seed
        return length_bucketed_batches(self.lengths, batch_size=size, batch_tokens=tokens, seed=seed, epoch=epoch)

    def run(
        self,
        *,
        on_step: Callable[[Progress], None] | None,
        on_validation: Callable[[HistoryRow], None] | None,
        max_steps: int | None,
        should_stop: Callable[[], bool] | None,
    ) -> FitResult:
        """Train to the end; for arguments and errors see `fit`."""
        self.last_step = self.total_steps if max_steps is None else min(max_steps, self.total_steps)
        self.started = time.monotonic() - self.seconds
        if self.last_step:
            self._train(on_step, on_validation, should_stop)
        else:
            self._validate()
        if self.snapshots and self.snapshots[-1][0].step != self.step:
            self._take_snapshot()  # if the run ended early
        self.model.load_state_dict(self.best_weights)
        self.model.eval()
        best = [row for row in self.history if row.best][-1]
        snapshots = Snapshots.of(self.snapshots) if self.snapshots else None
        return FitResult(tuple(self.history), best, self.seconds, self._done(), snapshots)

    def _done(self) -> str:
        batches = self.batches(self.epoch) if self.batch else []
        epochs = self.epoch + self.batch / max(len(batches), 1)
        planned = f"{self.epochs} epoch{'s' * (self.epochs != 1)}"
        read = f"{self.total_steps:,} steps), {self.tokens:,} tokens read"
        if self.step == self.total_steps:
            return f"{planned} ({read}"
        n_read = sum(map(len, batches[: self.batch]))
        rows_read = f"; {n_read:,} of the {self.rows[0]:,} rows were read" if epochs < 1 else ""
        return f"{epochs:.1f} of {planned} ({self.step:,} of {read}{rows_read}"

    def _train(
        self,
        on_step: Callable[[Progress], None] | None,
        on_validation: Callable[[HistoryRow], None] | None,
        should_stop: Callable[[], bool] | None,
    ) -> None:
        if self.snapshot_steps and not self.snapshots:
            self._take_snapshot()
        stopped_early = self._is_out_of_patience()
        with stop_requests() as stop_requested:
            while self.epoch < self.epochs and not stopped_early:
                batches = self.batches(self.epoch)
                validate_after = _validation_points(len(batches), self.config.validations_per_epoch)
                while self.batch < len(batches) and not stopped_early:
                    self.train_step(batches[self.batch])
                    self.batch += 1
                    if on_step is not None:
                        on_step(self._progress())
                    is_last = self.step >= self.last_step < self.total_steps
                    is_last |= self._is_time_up() or (should_stop is not None and should_stop())
                    is_last, is_stopped = (n > 0 for n in sum_over_processes(is_last, stop_requested()))
                    if self.batch in validate_after or is_last:
                        row = self._validate()
                        if on_validation is not None:
                            on_validation(row)
                        stopped_early = self._is_out_of_patience() or is_last
                    if self.step in self.snapshot_steps:
                        self._take_snapshot()
                    if is_stopped:
                        self._save()
                        place = f"stopped in epoch {self.epoch + 1} after step {self.step}"
                        state = f"; its state is in {self.state_path}, continue with --resume" * bool(self.state_path)
                        raise TrainingInterruptedError(place + state, resume=self.state_path is not None)
                    if self._is_save_due():
                        self._save()
                if self.batch == len(batches):
                    self.epoch, self.batch = self.epoch + 1, 0
                    self._save()

    def _is_time_up(self) -> bool:
        """Whether there is time left for only one more validation."""
        return self.max_seconds is not None and self._elapsed() + self.last_validation_took >= self.max_seconds

    def _elapsed(self) -> float:
        """Seconds since the start of the run, including the time between steps, but not interruptions."""
        return max(self.seconds, time.monotonic() - self.started)

    def _place_in_schedule(self) -> int:
        """The step of the learning-rate schedule: the steps done or, if larger, those due by the time used."""
        if not self.max_seconds:  # no limit, or preparing took all of the time: a single step is made
            return self.step
        return max(self.step, min(int(self.total_steps * self._elapsed() / self.max_seconds), self.total_steps))

    def train_step(self, indices: NDArray[np.int64]) -> None:
        """Make one optimiser step on the rows with these indices."""
        started = time.perf_counter()
        self.model.train()
        own = own_share(indices)
        ids_array, labels_array = pad_batch(self.train, own if len(own) else indices[:1], multiple=self.multiple)
        ids = torch.from_numpy(ids_array).to(self.device, non_blocking=True)  # B T
        labels = torch.from_numpy(labels_array).to(self.device, non_blocking=True)  # B
        self.seconds = sum_over_processes(self.seconds)[0] / n_processes()  # the schedule may follow the time
        lr = learning_rate(self._place_in_schedule(), total=self.total_steps, config=self.config)
        set_learning_rate(self.optimizer, lr)
        self.optimizer.zero_grad(set_to_none=True)
        total, n_right, n_own = 0.0, 0, 0
        parts = list(self._parts(ids, labels))
        for number, (part, labels_of_part) in enumerate(parts, start=1):
            with torch.autocast(self.device.type, dtype=self.dtype, enabled=self.dtype is not None):
                outcome = self.learner(part, labels_of_part)
            weight = outcome.n if len(own) else 0
            loss = float(outcome.loss.detach())
            total, n_right, n_own = total + weight * loss, n_right + int(outcome.right) * bool(weight), n_own + weight
            if not math.isfinite(loss):
                raise TrainingError(
                    f"the loss became {loss} in epoch {self.epoch + 1}, step {self.step + 1} "
                    f"(learning rate {lr:.2g}); try a lower train.learning_rate, a longer train.warmup_fraction "
                    "or train.precision=float32"
                )
            learner, is_last = self.learner, number == len(parts)
            with learner.no_sync() if isinstance(learner, DistributedDataParallel) and not is_last else nullcontext():
                (weight * outcome.loss).backward()
        total, right, n = sum_over_processes(total, n_right, n_own)
        gradients = [parameter.grad for parameter in self.model.parameters() if parameter.grad is not None]
        torch._foreach_mul_(gradients, n_processes() / max(n, 1))  # sums over predictions, averaged over processes
        if self.config.gradient_clip:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.gradient_clip)
        self.optimizer.step()
        if self.average is not None:
            self.average.update(self.model)
        seconds = time.perf_counter() - started
        self.seconds += seconds
        tokens = int(self.lengths[indices].sum())
        self.tokens += tokens
        for running in (self.running, self.since_snapshot):
            running.add(loss=total / max(n, 1), right=int(right), n=int(n), tokens=tokens, seconds=seconds)
        self.step += 1

    def _parts(self, ids: Tensor, labels: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the rows of a batch in parts whose gradients are computed one after the other, to save memory on a CPU.

        The gradients of the parts' mean losses, weighted by their predictions, add up to that of the batch's mean loss,
        except that class weights are normalised within each part.
        """
        n_tokens = ids.numel() * (2 if self.config.consistency else 1)
        n_parts = math.ceil(n_tokens / MAX_PART_TOKENS) if self.device.type == "cpu" else 1
        yield from zip(ids.chunk(n_parts), labels.chunk(n_parts), strict=True)

    def _averaged_weights(self) -> dict[str, Tensor]:
        """The weights to validate and save: the moving average, or the current weights if none is computed."""
        return self.model.state_dict() if self.average is None else self.average.weights

    def _measure(self) -> Validated:
        """Loss and accuracy of the averaged weights on validation rows; leaves the model unchanged."""
        started = time.perf_counter()
        current = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        self.model.load_state_dict(self._averaged_weights())
        measured = self.objective.validate(self.model, self.validation, self.device)
        self.model.load_state_dict(current)
        # All processes validate, and take the same decisions on the means.
        values = sum_over_processes(measured.loss, measured.accuracy, time.perf_counter() - started)
        loss, accuracy, self.last_validation_took = (value / n_processes() for value in values)
        self.seconds += self.last_validation_took
        return Validated(loss, accuracy, measured.n)

    def _take_snapshot(self) -> None:
        """Record the current weights and metrics, without affecting training."""
        if self.history and self.history[-1].step == self.step:
            loss, accuracy = self.history[-1].validation_loss, self.history[-1].validation_accuracy
        else:
            measured = self._measure()
            loss, accuracy = measured.loss, measured.accuracy
        sums = self.since_snapshot
        training = (sums.mean_loss, sums.accuracy) if sums.n else ()
        self.snapshots.append((SnapshotRow(self.step, loss, accuracy, *training), as_stored(self._averaged_weights())))
        self.since_snapshot = _RunningSums()

    def _validate(self) -> HistoryRow:
        measured = self._measure()
        is_best = self._is_best(measured)
        if is_best:
            weights = self._averaged_weights()
            self.best_weights = {name: tensor.detach().cpu().clone() for name, tensor in weights.items()}
        running = self.running
        row = HistoryRow(
            epoch=self.epoch + 1,
            step=self.step,
            train_loss=running.mean_loss,
            train_accuracy=running.accuracy,
            validation_loss=measured.loss,
            validation_accuracy=measured.accuracy,
            learning_rate=learning_rate(
                max(self._place_in_schedule() - 1, 0), total=self.total_steps, config=self.config
            ),
            seconds=self.seconds,
            tokens_per_second=running.tokens_per_second,
            best=is_best,
            tokens=self.tokens,
        )
        self.history.append(row)
        self.running = _RunningSums()
        return row

    def _is_best(self, measured: Validated) -> bool:
        """Whether this validation is the best so far; ties in accuracy are broken by loss."""
        best = next((row for row in reversed(self.history) if row.best), None)
        if best is None or self.config.monitor == "last":
            return True
        if self.config.monitor == "loss":
            return measured.loss < best.validation_loss
        return (measured.accuracy, -measured.loss) > (best.validation_accuracy, -best.validation_loss)

    def _is_out_of_patience(self) -> bool:
        if not self.config.patience or not self.history:
            return False
        since_best = next(n for n, row in enumerate(reversed(self.history)) if row.best)
        return since_best >= self.config.patience

    def _progress(self) -> Progress:
        seconds_left = self.seconds / self.step * max(self.last_step - self.step, 0)
        if self.max_seconds is not None:
            seconds_left = min(seconds_left, max(self.max_seconds - self.seconds, 0.0))
        return Progress(
            epoch=self.epoch + 1,
            epochs=self.epochs,
            step=self.step,
            total_steps=self.last_step,
            loss=self.running.mean_loss,
            accuracy=self.running.accuracy,
            tokens_per_second=self.running.tokens_per_second,
            seconds_left=seconds_left,
        )

    def _is_save_due(self) -> bool:
        """Whether to save the state now; with an interval of 0 seconds, after every step."""
        if self.state_path is None:
            return False
        interval = self.config.save_every_seconds
        pause = max(interval, self.last_save_took / MAX_SAVING_SHARE) if interval else 0.0
        return time.monotonic() - self.saved_at > pause

    def _save(self) -> None:
        if self.state_path is None or rank():
            return
        started = time.monotonic()
        write_state(self.state_path, self.state_dict())
        self.saved_at = time.monotonic()
        self.last_save_took = self.saved_at - started
        self.seconds += self.last_save_took

    def state_dict(self) -> dict[str, Any]:
        """Everything that `load_state_dict` needs to continue as if the run had not been interrupted."""
        return {
            **self.identity(),
            "position": (self.epoch, self.batch, self.step),
            "seconds": self.seconds,
            "tokens": self.tokens,
            "running": asdict(self.running),
            "since_snapshot": asdict(self.since_snapshot),
            "snapshots": [(asdict(row), weights) for row, weights in self.snapshots],
            "history": [asdict(row) for row in self.history],
            "model": self.model.state_dict(),
            "best": self.best_weights,
            "average": None if self.average is None else self.average.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "random": (torch.get_rng_state(), torch.cuda.get_rng_state_all() if self.device.type == "cuda" else []),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state that `state_dict` returned in a run with the same settings, model and rows."""
        self.epoch, self.batch, self.step = state["position"]
        self.seconds, self.tokens = state["seconds"], state["tokens"]
        self.running = _RunningSums(**state["running"])
        self.since_snapshot = _RunningSums(**state["since_snapshot"])
        self.snapshots = [(SnapshotRow(**row), weights) for row, weights in state["snapshots"]]
        self.history = [HistoryRow(**row) for row in state["history"]]
        self.model.load_state_dict(state["model"])
        self.best_weights = state["best"]
        if self.average is not None:
            self.average.load_state_dict(state["average"])
        self.optimizer.load_state_dict(state["optimizer"])
        cpu, cuda = state["random"]
        torch.set_rng_state(cpu)
        if self.device.type == "cuda":
            torch.cuda.set_rng_state_all(cuda)

    def identity(self) -> dict[str, Any]:
        """What must be equal in the run that saved a state and in the run that continues from it."""
        shapes = sorted((name, tuple(tensor.shape)) for name, tensor in self.model.state_dict().items())
        return {"config": self.config.model_dump_json(), "shapes": str(shapes), "rows": self.rows}


def _validation_points(n_batches: int, n_validations: int) -> set[int]:
    """The batches of an epoch (from 1) after which to validate: evenly spaced, including the last."""
    return {max(1, round(n_batches * (n + 1) / n_validations)) for n in range(n_validations)}


def bound_kernel_cache() -> None:
    """Limit oneDNN's cache to `MAX_KERNELS` in this process, unless the environment sets a limit.

    It must be called before the first computation, when oneDNN reads the variable.
    """
    os.environ.setdefault(KERNEL_CACHE, str(MAX_KERNELS))


def training_facts(result: FitResult, config: RunConfig, command: str, device: torch.device) -> dict[str, Any]:
    """The "training" entry of metrics.json."""
    processor = torch.cuda.get_device_name(device) if device.type == "cuda" else processor_name()
    processes = f", {n_processes()} processes" if n_processes() > 1 else ""
    n_threads = torch.get_num_threads()
    return {
        "command": command or f"python -m txcls train {config.name}",
        "seed": config.train.seed,
        "seconds": round(result.seconds),
        "epochs": result.history[-1].epoch,
        "steps": result.history[-1].step,
        "done": result.done,
        "best_epoch": result.best.epoch,
        "machine": f"{processor}, {n_threads} thread{'s' * (n_threads != 1)}{processes}",
        "software": f"txcls {__version__}, torch {torch.__version__}, Python {platform.python_version()}",
    }


def processor_name() -> str:
    """The processor's name, if the system reports it, and its number of cores."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()} ({os.cpu_count()} cores)"
