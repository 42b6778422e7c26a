"""Cross-entropy of language models (objectives.py), computed in chunks that fit the processor's cache.

The logits of 2,000 predicted tokens over a vocabulary of 12,000 take 96 MB in float32, and the loss and its gradient
need about ten passes over them. In chunks of a few dozen rows, all passes over a chunk are done while it is still in
cache.
"""

from typing import Any

import torch
from torch import Tensor

LOGITS_PER_CHUNK = 1 << 19
"""Number of logits per chunk on a CPU; they take 2 MB in float32."""
LOGITS_PER_CHUNK_ON_GPU = 1 << 26
"""The same on a GPU, where small chunks would leave it idle; they take 256 MB in float32."""


def token_loss(states: Tensor, matrix: Tensor, bias: Tensor | None, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Mean cross-entropy of the logits `states @ matrix.T + bias`, and how many targets have the highest logit.

    Shapes: states (N, D) with N at least 1, matrix (V, D), bias (V,), targets (N,).
    """
    outcome: tuple[Tensor, Tensor] = _TokenLoss.apply(  # type: ignore[no-untyped-call]
        states, matrix, bias, targets, torch.is_grad_enabled()
    )
    return outcome


class _TokenLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, states: Tensor, matrix: Tensor, bias: Tensor | None, targets: Tensor, needs_gradient: bool
    ) -> tuple[Tensor, Tensor]:
        device = states.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else states.dtype
        x, w = states.to(dtype), matrix.to(dtype)  # N D, V D
        b = None if bias is None else bias.to(dtype)  # V
        n, vocab_size = len(targets), len(matrix)
        logit_gradient = torch.empty(n if needs_gradient else 0, vocab_size, dtype=dtype, device=states.device)  # N V
        total = torch.zeros((), device=states.device)
        right = torch.zeros((), dtype=torch.int64, device=states.device)
        bias_gradient = None if bias is None else torch.zeros(vocab_size, device=states.device)  # V
        rows = max(1, (LOGITS_PER_CHUNK if device == "cpu" else LOGITS_PER_CHUNK_ON_GPU) // vocab_size)
        for start in range(0, n, rows):
            chunk = slice(start, start + rows)
            chunk_targets = targets[chunk, None]  # R 1
            logits = torch.nn.functional.linear(x[chunk], w, b).float()  # R V
            highest = logits.amax(-1, keepdim=True)  # R 1
            target_logits = logits.gather(-1, chunk_targets)  # R 1
            right += (target_logits == highest).sum()
            exponentials = logits.sub_(highest).exp_()  # R V
            sums = exponentials.sum(-1, keepdim=True)  # R 1
            total += (highest + sums.log() - target_logits).sum()
            if not needs_gradient:
                continue
            # In place, to stay in cache: (softmax - one-hot target) / N.
            chunk_gradient = exponentials.mul_(1.0 / (n * sums)).scatter_add_(
                -1, chunk_targets, exponentials.new_full(chunk_targets.shape, -1.0 / n)
            )
            if bias_gradient is not None:
                bias_gradient += chunk_gradient.sum(0)
            logit_gradient[chunk] = chunk_gradient
        ctx.save_for_backward(x, w, logit_gradient, bias_gradient)
        ctx.dtypes = states.dtype, matrix.dtype
        ctx.mark_non_differentiable(right)
        return total / n, right

    @staticmethod
    def backward(ctx: Any, *outputs: Tensor) -> tuple[Tensor, Tensor, Tensor | None, None, None]:
        x, w, logit_gradient, bias_gradient = ctx.saved_tensors
        states_dtype, matrix_dtype = ctx.dtypes
        scale = outputs[0]
        states_gradient = (logit_gradient @ w).to(states_dtype) * scale
        matrix_gradient = (logit_gradient.T @ x).to(matrix_dtype) * scale
        return states_gradient, matrix_gradient, None if bias_gradient is None else bias_gradient * scale, None, None
