"""One training run in several processes, as `torchrun` starts them: each computes its share of every batch.

torchrun --nproc-per-node 2 -m txcls train ag_news
torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint HOST:29400 -m txcls train ag_news

All processes read the same rows, cut the same batches and hold the same weights. Of each batch a process computes every
`size`-th row; the gradients are averaged so that the step is that of the whole batch, and the first process alone
writes files. `here()` says which process this is; where torchrun was not used it is the only one, and nothing is added.
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
from txcls.device import choose_device
from txcls.errors import LostProcessError, TrainingError, TxclsError
from txcls.training.objectives import Objective, Outcome, Validated

T = TypeVar("T")

LONGEST_WAIT = timedelta(hours=2)
"""How long processes wait for each other, for example while one tokenises; one that died is noticed at once."""


@dataclass(frozen=True, slots=True)
class WholeBatch:
    """The outcome of a batch over all processes, and the factor for this process's loss."""

    loss: float
    right: int
    n: int
    factor: float
    """Gradients of (own loss × factor), averaged over the processes, are the gradient of the whole batch's loss."""


class Processes:
    """The only process of a run: it has all rows, and nobody to agree with. `_Several` overrides every method."""

    rank = 0
    """0 for the first process, which writes files and reports."""
    size = 1
    """How many processes share the run."""

    def check_same(self, *texts: TokenisedTexts, settings: str) -> None:
        """Refuse to train where processes (on several machines) read different rows or settings."""

    def learner(self, model: nn.Module, objective: Objective) -> Callable[[Tensor, Tensor], Outcome]:
        """A function of ids (B, T) and labels (B,) whose `backward` averages gradients over the processes."""
        return _Learner(model, objective)

    def share(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """This process's rows of a batch; one that counts for nothing where there is none for it."""
        return rows

    def whole(self, outcome: Outcome, *, n_rows: int) -> WholeBatch:
        """The outcome of a batch of `n_rows` rows, of which this process's share had `outcome`."""
        return WholeBatch(float(outcome.loss.detach()), int(outcome.right), outcome.n, 1.0)

    def validated(self, texts: TokenisedTexts, measure: Callable[[TokenisedTexts], Validated]) -> Validated:
        """Mean loss and accuracy over all texts, of which each process measures its share."""
        return measure(texts)

    def any(self, *asked: bool) -> Sequence[bool]:
        """Which of these things at least one process asks for."""
        return asked

    def gather(self, value: T) -> list[T]:
        """The value of every process, in their order."""
        return [value]

    def from_first(self, make: Callable[[], T]) -> T:
        """What `make` returns, or raises, in the first process."""
        return make()

    @contextmanager
    def one_before_others(self) -> Iterator[None]:
        """On each machine one process goes first, so that the others find in the cache what it left there."""
        yield

    @contextmanager
    def talking(self) -> Iterator[None]:
        """Say it as a LostProcessError where another process cannot be reached inside."""
        yield


class _Learner(nn.Module):
    """Model and objective as one module, since DistributedDataParallel watches what goes through `forward`."""

    def __init__(self, model: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.model, self.objective = model, objective

    def forward(self, ids: Tensor, labels: Tensor) -> Outcome:
        return self.objective.batch(self.model, ids, labels)  # type: ignore[arg-type]


class _Several(Processes):
    """One of several processes in torch's process group; what they tell each other goes over the CPU."""

    def __init__(self) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.local_rank = int(os.environ.get("LOCAL_RANK", self.rank))

    def check_same(self, *texts: TokenisedTexts, settings: str) -> None:
        own = [
            settings,
            *(f"{len(one)} rows {zlib.crc32(one.ids.data)} {zlib.crc32(one.labels.data)}" for one in texts),
        ]
        for number, other in enumerate(self.gather(own)):
            if other != own:
                raise TrainingError(
                    f"processes {self.rank} and {number} of this run read different rows or settings; wanted the "
                    "same data, vocabulary and command line on every machine"
                )

    def learner(self, model: nn.Module, objective: Objective) -> Callable[[Tensor, Tensor], Outcome]:
        with self.talking():
            # Weights are those of the first process from here on; buffers follow from the settings.
            wrapped: Callable[[Tensor, Tensor], Outcome] = DistributedDataParallel(
                _Learner(model, objective), broadcast_buffers=False
            )
            return wrapped

    def share(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        # Every size-th, since neighbours in a batch are of similar length: all processes get as many tokens.
        return rows[self.rank :: self.size] if self.rank < len(rows) else rows[:1]

    def whole(self, outcome: Outcome, *, n_rows: int) -> WholeBatch:
        counts = self.rank < n_rows
        own_weight = float(outcome.weight) if counts else 0.0
        # A loss of no weight is a mean over nothing, and may be anything.
        own_loss = float(outcome.loss.detach()) * own_weight if own_weight else 0.0
        own = (own_loss, own_weight, float(outcome.right) * counts, float(outcome.n) * counts)
        loss, weight, right, n = self._sums(own)
        factor = own_weight * self.size / weight if weight else 0.0
        return WholeBatch(loss / weight if weight else 0.0, round(right), round(n), factor)

    def validated(self, texts: TokenisedTexts, measure: Callable[[TokenisedTexts], Validated]) -> Validated:
        own = texts.subset(np.arange(self.rank, len(texts), self.size))
        found = measure(own) if len(own) else Validated(0.0, 0.0, 0)
        loss, right, n = self._sums((found.loss * found.n, found.accuracy * found.n, float(found.n)))
        return Validated(loss / max(n, 1), right / max(n, 1), round(n))

    def any(self, *asked: bool) -> Sequence[bool]:
        return [total > 0 for total in self._sums([float(one) for one in asked])]

    def gather(self, value: T) -> list[T]:
        values: list[Any] = [None] * self.size
        with self.talking():
            dist.all_gather_object(values, value)
        return values

    def from_first(self, make: Callable[[], T]) -> T:
        made: list[Any] = [None, None]
        if self.rank == 0:
            try:
                made[0] = make()
            except TxclsError as error:
                made[1] = error
        with self.talking():
            dist.broadcast_object_list(made, device=torch.device("cpu"))
        if made[1] is not None:
            raise made[1]
        value: T = made[0]
        return value

    @contextmanager
    def one_before_others(self) -> Iterator[None]:
        if self.local_rank:
            self.any()
        yield
        if not self.local_rank:
            self.any()

    @contextmanager
    def talking(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
            if re.search(r"gloo|nccl|connection|timed? ?out|\bstore\b", str(error), re.IGNORECASE):
                raise LostProcessError(f"another process of this run was lost ({reason})") from error
            raise

    def _sums(self, values: Sequence[float]) -> list[float]:
        """Each value summed over the processes, by every one in the same order: the same to the last bit for all."""
        own = torch.tensor([*values, 0.0], dtype=torch.float64)
        gathered = [torch.empty_like(own) for _ in range(self.size)]
        with self.talking():
            dist.all_gather(gathered, own)
        return [sum(column) for column in zip(*(one.tolist() for one in gathered), strict=True)][: len(values)]


ALONE = Processes()


def here() -> Processes:
    """This process's place in the run."""
    return _Several() if dist.is_available() and dist.is_initialized() else ALONE


@contextmanager
def joined(device: str | None = None) -> Iterator[Processes]:
    """Join the other processes where torchrun started this one, until the end of the block.

    Tensors on CUDA devices are exchanged by NCCL where every process of the machine has a device of its own; all else,
    and so every message that keeps the processes in step, by gloo.

    Args:
        device: what the command line asks for; None takes CUDA where there is one.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ or not dist.is_available() or dist.is_initialized():
        yield here()
        return
    backend = "gloo"
    if torch.cuda.is_available() and not (device or "cuda").startswith("cpu"):
        own_each = int(os.environ["LOCAL_WORLD_SIZE"]) <= torch.cuda.device_count()
        backend = f"cpu:gloo,cuda:{'nccl' if own_each and dist.is_nccl_available() else 'gloo'}"
        torch.cuda.set_device(own_device())
    dist.init_process_group(backend, timeout=LONGEST_WAIT)
    yield here()
    dist.destroy_process_group()  # not after an error: it would wait for processes that are gone


def own_device() -> torch.device:
    """The CUDA device of this process, by its rank on the machine."""
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())


def training_device(name: str | None) -> torch.device:
    """The device with that name (None prefers CUDA); under torchrun each process gets its own CUDA device.

    Raises:
        TrainingError: it cannot be used here.
    """
    device = choose_device(name)
    return own_device() if str(device) == "cuda" and here().size > 1 else device


def launcher() -> str:
    """What started this process, as typed: `torchrun --nproc-per-node 2 -m`, or `python -m`."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return "python -m"
    local, size = int(os.environ["LOCAL_WORLD_SIZE"]), int(os.environ["WORLD_SIZE"])
    nodes = f"--nnodes {size // local} " if size > local else ""
    return f"torchrun {nodes}--nproc-per-node {local} -m"
