"""Pre-training in several processes that `torchrun` starts: each computes its share of every batch.

    torchrun --nproc-per-node 2 -m txcls pretrain encoder
    torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint HOST:29400 -m txcls pretrain encoder

All processes form the same batches and hold the same weights; DistributedDataParallel averages their gradients. Only
the first writes, so machines need a common folder. Without torchrun, there is one process, and nothing is exchanged.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from txcls.inference.device import choose_device
from txcls.model import Encoder
from txcls.training.objectives import Objective, Outcome

TIMEOUT = timedelta(hours=2)
"""How long processes wait for the first one, which turns the texts into tokens."""


def rank() -> int:
    """The number of this process; 0 is the one that writes and prints."""
    return int(os.environ["RANK"]) if "TORCHELASTIC_RUN_ID" in os.environ else 0


def n_processes() -> int:
    """The number of processes of this run."""
    return dist.get_world_size() if dist.is_initialized() else 1


@contextmanager
def join_processes(device: str | None) -> Iterator[torch.device]:
    """Yield the device to train on; inside the block, this process is joined to the others, if torchrun started it.

    Raises:
        TrainingError: the device cannot be used.
    """
    chosen = choose_device(device)
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        yield chosen
        return
    if chosen.type == "cuda":
        chosen = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(chosen)
    dist.init_process_group("cpu:gloo,cuda:nccl" if chosen.type == "cuda" else "gloo", timeout=TIMEOUT)
    yield chosen
    dist.destroy_process_group()  # not after an error: it would wait for the others


def wait_for_others() -> None:
    """Wait until all processes have called this."""
    sum_over_processes(0.0)


def own_share(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """This process's rows of a batch; neighbours are of similar length, so shares have about equally many tokens."""
    return rows[rank() :: n_processes()] if dist.is_initialized() else rows


def sum_over_processes(*values: float) -> list[float]:
    """Each value added up over all processes, the same in all of them."""
    if not dist.is_initialized():
        return list(values)
    total = torch.tensor(values, dtype=torch.float64)
    dist.all_reduce(total)
    return total.tolist()


class Learner(nn.Module):
    """A model and its objective as one module, since DistributedDataParallel wraps `forward`."""

    def __init__(self, model: Encoder, objective: Objective) -> None:
        super().__init__()
        self.model, self.objective = model, objective

    def forward(self, ids: Tensor, labels: Tensor) -> Outcome:
        """The outcome of ids (B, T) and labels (B,)."""
        return self.objective.batch_loss(self.model, ids, labels)


def learner_of(model: Encoder, objective: Objective) -> nn.Module:
    """A module whose gradients are averaged over all processes."""
    learner = Learner(model, objective)
    # Buffers follow from the settings, so they are the same everywhere.
    return DistributedDataParallel(learner, broadcast_buffers=False) if dist.is_initialized() else learner
