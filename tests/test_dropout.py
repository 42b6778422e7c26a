"""Dropout that generates its own random bits."""

import pytest
import torch

from txcls.model import Dropout


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_zeroes_its_share_and_scales_the_rest_and_the_gradient(p: float) -> None:
    torch.manual_seed(0)
    dropout = Dropout(p)
    x = torch.full((401, 999), 2.0, requires_grad=True)  # an odd number of values
    out = dropout(x)
    passed = (out != 0).double()
    torch.testing.assert_close(out, passed.float() * 2 / (1 - p))
    spread = (p * (1 - p)) ** 0.5
    assert abs(passed.mean() - (1 - p)) < 5 * spread / x.numel() ** 0.5
    for apart in (1, 2, 3, 4):  # four values share one random number; neighbours must still be independent
        both = (passed.flatten()[apart:] * passed.flatten()[:-apart]).mean()
        assert abs(both - (1 - p) ** 2) < 5 / x.numel() ** 0.5
    out.sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad, out.detach() / 2)
    assert not torch.equal(dropout(x) != 0, out != 0), "drawn anew each time"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.75])
def test_dropout_in_16_bits_is_dropout_in_32_bits_rounded(dtype: torch.dtype, p: float) -> None:
    x = torch.randn(77, 33)
    torch.manual_seed(0)
    wide = Dropout(p)(torch.ones_like(x))
    torch.manual_seed(0)
    small = x.to(dtype).requires_grad_()
    narrow = Dropout(p)(small)
    assert narrow.dtype == dtype and torch.equal(narrow, small * wide.to(dtype))
    narrow.sum().backward()
    assert small.grad is not None and torch.equal(small.grad, wide.to(dtype))
