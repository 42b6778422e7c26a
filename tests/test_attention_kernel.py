"""The two implementations of attention."""

import pytest
import torch

from tests.test_model import small
from txcls.model import SelfAttention


@pytest.mark.parametrize("masked", [False, True])
def test_training_in_bfloat16_has_the_fused_kernels_result_and_gradient(
    masked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(1)
    attention = SelfAttention(small()).train()
    mask = torch.ones(3, 1, 1, 7, dtype=torch.bool)
    mask[1, ..., 4:] = not masked
    x = torch.randn(3, 7, small().d_model)
    made = []
    for short in (7, 6):
        monkeypatch.setattr("txcls.model.MAX_EXPLICIT_LENGTH", short)
        attention.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = attention(x, mask).float()
        out.square().mean().backward()
        assert attention.query.weight.grad is not None and attention.value.weight.grad is not None
        made.append((out.detach(), attention.query.weight.grad.clone(), attention.value.weight.grad.clone()))
    for written_out, fused in zip(*made, strict=True):
        torch.testing.assert_close(written_out, fused, atol=0.02 * float(fused.abs().max()), rtol=0)
