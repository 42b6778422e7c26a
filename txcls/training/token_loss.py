"""Cross-entropy over a large vocabulary, computed in pieces that fit the processor's cache.

The logits of 2,000 predicted tokens over a vocabulary of 12,000 take 96 MB in float32, and computing the loss and its
gradient passes over them about ten times. Processed a few rows at a time, each piece is finished, gradient included,
while it is still in cache.
"""

from typing import Any

import torch
from torch import Tensor

LOGITS_PER_PIECE = 1 << 19
"""Number of logits per piece on a processor; they take 2 MB in float32."""
LOGITS_PER_PIECE_ON_GPU = 1 << 26
"""The same on a GPU, where small pieces would leave it idle; they take 256 MB in float32."""


def token_loss(states: Tensor, matrix: Tensor, bias: Tensor | None, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Mean cross-entropy of the logits `states @ matrix.T + bias`, and how many targets have the highest logit.

    Args:
        states: (N, D), N at least 1.
        matrix: (V, D), the output matrix.
        bias: (V,), or None.
        targets: (N,) token ids.
    """
    outcome: tuple[Tensor, Tensor] = _TokenLoss.apply(  # type: ignore[no-untyped-call]
        states, matrix, bias, targets, torch.is_grad_enabled()
    )
    return outcome


class _TokenLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, states: Tensor, matrix: Tensor, bias: Tensor | None, targets: Tensor, has_gradient: bool
    ) -> tuple[Tensor, Tensor]:
        device = states.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else states.dtype
        x, w = states.to(dtype), matrix.to(dtype)  # N D, V D
        b = None if bias is None else bias.to(dtype)  # V
        n, vocab_size = len(targets), len(matrix)
        gradient = torch.empty(
            n if has_gradient else 0, vocab_size, dtype=dtype, device=states.device
        )  # N V, of the logits
        total = torch.zeros((), device=states.device)
        right = torch.zeros((), dtype=torch.int64, device=states.device)
        for_bias = None if bias is None else torch.zeros(vocab_size, device=states.device)  # V
        rows = max(1, (LOGITS_PER_PIECE if device == "cpu" else LOGITS_PER_PIECE_ON_GPU) // vocab_size)
        for start in range(0, n, rows):
            piece = slice(start, start + rows)
            target_logits = targets[piece, None]
            logits = torch.nn.functional.linear(x[piece], w, b).float()  # R V
            highest = logits.amax(-1, keepdim=True)
            of_target = logits.gather(-1, target_logits)
            right += (of_target == highest).sum()
            powers = logits.sub_(highest).exp_()
            sums = powers.sum(-1, keepdim=True)
            total += (highest + sums.log() - of_target).sum()
            if not has_gradient:
                continue
            powers.mul_(1.0 / (n * sums)).scatter_add_(
                -1, target_logits, powers.new_full(target_logits.shape, -1.0 / n)
            )
            if for_bias is not None:
                for_bias += powers.sum(0)
            gradient[piece] = powers
        ctx.save_for_backward(x, w, gradient, for_bias)
        ctx.dtypes = states.dtype, matrix.dtype
        ctx.mark_non_differentiable(right)
        return total / n, right

    @staticmethod
    def backward(ctx: Any, *outputs: Tensor) -> tuple[Tensor, Tensor, Tensor | None, None, None]:
        x, w, gradient, for_bias = ctx.saved_tensors
        of_states, of_matrix = ctx.dtypes
        scale = outputs[0]
        of_x, of_w = (gradient @ w).to(of_states) * scale, (gradient.T @ x).to(of_matrix) * scale
        return of_x, of_w, None if for_bias is None else for_bias * scale, None, None
