"""Optimiser, learning-rate schedule and averaged weights."""

import math
from typing import Any, TypeAlias

import torch
from torch import nn

from txcls.config import TrainConfig
from txcls.model import Encoder

BETAS = (0.9, 0.98)
"""AdamW's betas, as in most Transformer recipes."""


class MuonAndAdamW:
    """Muon for the matrices inside the layers and AdamW for all other parameters, as one optimiser.

    Muon orthogonalises the update of a matrix (Jordan et al. 2024). Its updates are scaled to the size of AdamW's, so
    that both can use the same learning rate (Liu et al. 2025, "Muon is Scalable for LLM Training").
    """

    def __init__(self, matrices: list[dict[str, Any]], others: list[dict[str, Any]], *, lr: float) -> None:
        muon = torch.optim.Muon(matrices, lr=lr, adjust_lr_fn="match_rms_adamw")
        self.parts = (muon, torch.optim.AdamW(others, lr=lr, betas=BETAS, fused=True))

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The parameter groups of both optimisers."""
        return [group for part in self.parts for group in part.param_groups]

    def step(self) -> None:
        """Update all parameters."""
        muon, adamw = self.parts
        muon.step()
        adamw.step()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear all gradients."""
        for part in self.parts:
            part.zero_grad(set_to_none=set_to_none)

    def state_dict(self) -> dict[str, Any]:
        """The state for `load_state_dict`."""
        return {"parts": [part.state_dict() for part in self.parts]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict()`."""
        for part, saved in zip(self.parts, state["parts"], strict=True):
            part.load_state_dict(saved)


Optimizer: TypeAlias = torch.optim.Optimizer | MuonAndAdamW


def make_optimizer(model: Encoder, config: TrainConfig) -> Optimizer:
    """AdamW with weight decay on matrices only, optionally with Muon for the matrices inside layers; or plain Adam.

    Norms, biases and positions get no weight decay. With `layer_decay`, each layer has its own parameter group.
    """
    has_muon = config.optimizer == "muon"
    groups: dict[tuple[bool, bool, float], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        is_decayed = parameter.ndim >= 2 and not name.endswith("positional")
        uses_muon = has_muon and is_decayed and name.startswith("layers.")
        share = config.layer_decay ** _layers_above(name, model.config.n_layers)
        groups.setdefault((uses_muon, is_decayed, share), []).append(parameter)
    muon_groups: list[dict[str, Any]] = []
    other_groups: list[dict[str, Any]] = []
    for (uses_muon, is_decayed, share), parameters in groups.items():
        decay = config.weight_decay * is_decayed
        (muon_groups if uses_muon else other_groups).append(
            {"params": parameters, "weight_decay": decay, "share": share}
        )
    lr = config.learning_rate
    if has_muon:
        return MuonAndAdamW(muon_groups, other_groups, lr=lr)
    if config.optimizer == "adam":
        return torch.optim.Adam([{**group, "weight_decay": 0.0} for group in other_groups], lr=lr, fused=True)
    return torch.optim.AdamW(other_groups, lr=lr, betas=BETAS, fused=True)


def _layers_above(name: str, n_layers: int) -> int:
    """Number of layers from the head down to a parameter: 0 for the head and the final norm."""
    part, _, rest = name.partition(".")
    if part == "layers":
        return n_layers - int(rest.partition(".")[0])
    return n_layers + 1 if part == "embeddings" else 0


def set_learning_rate(optimizer: Optimizer, lr: float) -> None:
    """Set the learning rate of each parameter group: `lr` times the group's `share`."""
    for group in optimizer.param_groups:
        group["lr"] = lr * group["share"]


def learning_rate(step: int, *, total: int, config: TrainConfig) -> float:
    """Learning rate of step `step` (from 0) out of `total`: linear warm-up, then constant or cosine decay to zero."""
    warmup = round(config.warmup_fraction * total)
    if step < warmup:
        return config.learning_rate * (step + 1) / warmup
    if config.schedule == "constant":
        return config.learning_rate
    done = (step - warmup) / max(1, total - warmup)
    return config.learning_rate * 0.5 * (1.0 + math.cos(math.pi * done))


class AveragedWeights:
    """Exponential moving average of a model's weights (Polyak & Juditsky 1992).

    The decay is at most (1 + n) / (10 + n) after n updates, so that the initial weights are forgotten early.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.n_updates = 0
        self.weights = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        """Move the averages towards the model's current weights."""
        self.n_updates += 1
        decay = min(self.decay, (1 + self.n_updates) / (10 + self.n_updates))
        current = model.state_dict()
        torch._foreach_lerp_(list(self.weights.values()), [current[name] for name in self.weights], 1.0 - decay)

    def state_dict(self) -> dict[str, object]:
        """The state for `load_state_dict`."""
        return {"n_updates": self.n_updates, "weights": self.weights}

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Restore `state_dict()`."""
        n_updates, weights = state["n_updates"], state["weights"]
        assert isinstance(n_updates, int) and isinstance(weights, dict)
        self.n_updates = n_updates
        for name, tensor in self.weights.items():
            tensor.copy_(weights[name])
