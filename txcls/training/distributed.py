"""Data-parallel training under `torchrun`: each process computes its share of every batch.

torchrun --nproc-per-node 2 -m txcls train ag_news
torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint HOST:29400 -m txcls train ag_news

All processes read the same rows, form the same batches and hold the same weights. Each process computes every `size`-th
row of a batch; the averaged gradients equal the gradients of the whole batch. Only the first process writes files.
"""

import os
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from txcls.data.batches import TokenisedTexts
from txcls.errors import LostProcessError, TrainingError, TxclsError
from txcls.runtime.device import choose_device
from txcls.training.objectives import Objective, Outcome, Validated

T = TypeVar("T")

TIMEOUT = timedelta(hours=2)
"""How long processes wait for each other, for example during tokenisation; a dead process is noticed immediately."""


@dataclass(frozen=True, slots=True)
class WholeBatch:
    """A batch's mean loss and number of correct predictions over all processes, and a factor for this process's loss.

    The average over all processes of the gradient of (own loss × factor) is the gradient of the whole batch's loss.
    """

    loss: float
    right: int
    n: int
    factor: float


class Processes:
    """The only process of an ordinary run; `_ProcessGroup` overrides every method."""

    rank = 0
    """0 for the first process, which writes files and prints."""
    size = 1
    """Number of processes."""

    def check_same(self, *texts: TokenisedTexts, settings: str) -> None:
        """Raise TrainingError if processes (on different machines) read different rows or settings."""

    def learner(self, model: nn.Module, objective: Objective) -> Callable[[Tensor, Tensor], Outcome]:
        """A function of ids (B, T) and labels (B,); `backward` of its loss averages gradients over the processes."""
        return _Learner(model, objective)

    def share(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """This process's rows of a batch; if there are none, a single row, which `whole` ignores."""
        return rows

    def whole(self, outcome: Outcome, *, n_rows: int) -> WholeBatch:
        """The outcome of the whole batch of `n_rows` rows, computed from this process's outcome."""
        return WholeBatch(float(outcome.loss.detach()), int(outcome.right), outcome.n, 1.0)

    def validated(self, texts: TokenisedTexts, measure: Callable[[TokenisedTexts], Validated]) -> Validated:
        """Mean loss and accuracy over all texts; each process measures its share."""
        return measure(texts)

    def any(self, *flags: bool) -> Sequence[bool]:
        """Whether each flag is set in at least one process."""
        return flags

    def gather(self, value: T) -> list[T]:
        """The values of all processes, ordered by rank."""
        return [value]

    def broadcast_from_rank_zero(self, make: Callable[[], T]) -> T:
        """The result (or exception) of `make`, which only the first process calls."""
        return make()

    @contextmanager
    def one_before_others(self) -> Iterator[None]:
        """On each machine, one process runs the block first and fills the cache for the others."""
        yield

    @contextmanager
    def communicating(self) -> Iterator[None]:
        """Turn communication failures inside the block into LostProcessError."""
        yield


class _Learner(nn.Module):
    """Model and objective as one module, because DistributedDataParallel wraps `forward`."""

    def __init__(self, model: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.model, self.objective = model, objective

    def forward(self, ids: Tensor, labels: Tensor) -> Outcome:
        return self.objective.batch(self.model, ids, labels)  # type: ignore[arg-type]


class _ProcessGroup(Processes):
    """One process of torch's process group; control messages are CPU tensors."""

    def __init__(self) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.local_rank = int(os.environ.get("LOCAL_RANK", self.rank))

    def check_same(self, *texts: TokenisedTexts, settings: str) -> None:
        fingerprint = [
            settings,
            *(f"{len(rows)} rows {zlib.crc32(rows.ids.data)} {zlib.crc32(rows.labels.data)}" for rows in texts),
        ]
        for rank, other in enumerate(self.gather(fingerprint)):
            if other != fingerprint:
                raise TrainingError(
                    f"processes {self.rank} and {rank} of this run read different rows or settings; expected the "
                    "same data, vocabulary and command line on every machine"
                )

    def learner(self, model: nn.Module, objective: Objective) -> Callable[[Tensor, Tensor], Outcome]:
        with self.communicating():
            # DistributedDataParallel copies the first process's weights to the others. Buffers need no copy: they
            # follow from the settings.
            wrapped: Callable[[Tensor, Tensor], Outcome] = DistributedDataParallel(
                _Learner(model, objective), broadcast_buffers=False
            )
            return wrapped

    def share(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        # Neighbouring rows have similar lengths, so this gives each process about the same number of tokens.
        return rows[self.rank :: self.size] if self.rank < len(rows) else rows[:1]

    def whole(self, outcome: Outcome, *, n_rows: int) -> WholeBatch:
        has_rows = self.rank < n_rows
        own_weight = float(outcome.weight) if has_rows else 0.0
        # With weight 0, the loss is a mean over no items and may be nan.
        own_loss = float(outcome.loss.detach()) * own_weight if own_weight else 0.0
        own_values = (own_loss, own_weight, float(outcome.right) * has_rows, float(outcome.n) * has_rows)
        loss, weight, right, n = self._sums(own_values)
        factor = own_weight * self.size / weight if weight else 0.0
        return WholeBatch(loss / weight if weight else 0.0, round(right), round(n), factor)

    def validated(self, texts: TokenisedTexts, measure: Callable[[TokenisedTexts], Validated]) -> Validated:
        share = texts.subset(np.arange(self.rank, len(texts), self.size))
        own = measure(share) if len(share) else Validated(0.0, 0.0, 0)
        loss, right, n = self._sums((own.loss * own.n, own.accuracy * own.n, float(own.n)))
        return Validated(loss / max(n, 1), right / max(n, 1), round(n))

    def any(self, *flags: bool) -> Sequence[bool]:
        return [total > 0 for total in self._sums([float(flag) for flag in flags])]

    def gather(self, value: T) -> list[T]:
        values: list[Any] = [None] * self.size
        with self.communicating():
            dist.all_gather_object(values, value)
        return values

    def broadcast_from_rank_zero(self, make: Callable[[], T]) -> T:
        outcome: list[Any] = [None, None]  # result, error
        if self.rank == 0:
            try:
                outcome[0] = make()
            except TxclsError as error:
                outcome[1] = error
        with self.communicating():
            dist.broadcast_object_list(outcome, device=torch.device("cpu"))
        if outcome[1] is not None:
            raise outcome[1]
        result: T = outcome[0]
        return result

    @contextmanager
    def one_before_others(self) -> Iterator[None]:
        if self.local_rank:
            self.any()
        yield
        if not self.local_rank:
            self.any()

    @contextmanager
    def communicating(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
            if re.search(r"gloo|nccl|connection|timed? ?out|\bstore\b", str(error), re.IGNORECASE):
                raise LostProcessError(f"another process of this run was lost ({reason})") from error
            raise

    def _sums(self, values: Sequence[float]) -> list[float]:
        """Sum each value over the processes, in the same order everywhere, so that all get bit-identical results."""
        own_values = torch.tensor([*values, 0.0], dtype=torch.float64)
        gathered = [torch.empty_like(own_values) for _ in range(self.size)]
        with self.communicating():
            dist.all_gather(gathered, own_values)
        return [sum(column) for column in zip(*(row.tolist() for row in gathered), strict=True)][: len(values)]


SINGLE_PROCESS = Processes()


def current_processes() -> Processes:
    """This process's view of the run's processes."""
    return _ProcessGroup() if dist.is_available() and dist.is_initialized() else SINGLE_PROCESS


@contextmanager
def joined(device: str | None = None) -> Iterator[Processes]:
    """Inside the block, this process is part of torch's process group if torchrun started it.

    NCCL exchanges CUDA tensors if every process has its own device; gloo exchanges everything else.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ or not dist.is_available() or dist.is_initialized():
        yield current_processes()
        return
    backend = "gloo"
    if torch.cuda.is_available() and not (device or "cuda").startswith("cpu"):
        has_device_each = int(os.environ["LOCAL_WORLD_SIZE"]) <= torch.cuda.device_count()
        backend = f"cpu:gloo,cuda:{'nccl' if has_device_each and dist.is_nccl_available() else 'gloo'}"
        torch.cuda.set_device(own_device())
    dist.init_process_group(backend, timeout=TIMEOUT)
    yield current_processes()
    dist.destroy_process_group()  # not after an error: it would wait for dead processes


def own_device() -> torch.device:
    """The CUDA device of this process, chosen by its local rank."""
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())


def training_device(name: str | None) -> torch.device:
    """The device with this name (None prefers CUDA); under torchrun each process gets its own CUDA device.

    Raises:
        TrainingError: the device cannot be used here.
    """
    device = choose_device(name)
    return own_device() if str(device) == "cuda" and current_processes().size > 1 else device


def launcher() -> str:
    """The command that started this process: `torchrun --nproc-per-node 2 -m`, or `python -m`."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return "python -m"
    local_size, size = int(os.environ["LOCAL_WORLD_SIZE"]), int(os.environ["WORLD_SIZE"])
    nodes = f"--nnodes {size // local_size} " if size > local_size else ""
    return f"torchrun {nodes}--nproc-per-node {local_size} -m"
