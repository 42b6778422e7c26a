"""Which of two equivalent computations attention uses: torch's fused kernel, or the one written out in txcls/model.py.

The fused kernel never stores the T x T attention pattern and is the faster one, with an exception.
"""

from torch import Tensor, bfloat16

SHORT = 400
"""Tokens up to which training in bfloat16 on a CPU is faster written out: five times as fast at 64 tokens."""


def is_faster_written_out(q: Tensor, *, training: bool, dropout: float) -> bool:
    """Whether attention is faster written out than fused, for queries q (B, H, T, E).

    That is so in training on a CPU in bfloat16, where the gradient of the fused kernel is slow: with dropout, or up to
    `SHORT` tokens. In float32 it never is.
    """
    if not training or q.device.type != "cpu" or q.dtype != bfloat16:
        return False
    return dropout > 0 or q.shape[2] <= SHORT
