import pytest
import torch
import torch.nn.functional as F

from txcls.training import objectives as module
from txcls.training.objectives import token_loss

N, D, V = 37, 8, 50


def given(*, bias: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None, torch.Tensor]:
    torch.manual_seed(0)
    states, matrix = torch.randn(N, D, requires_grad=True), torch.randn(V, D, requires_grad=True)
    return states, matrix, torch.randn(V, requires_grad=True) if bias else None, torch.randint(0, V, (N,))


@pytest.mark.parametrize("at_once", [1, 5 * V, 1_000_000])
@pytest.mark.parametrize("bias", [True, False])
def test_loss_and_gradients_equal_cross_entropys(monkeypatch: pytest.MonkeyPatch, at_once: int, bias: bool) -> None:
    monkeypatch.setattr(module, "LOGITS_PER_CHUNK", at_once)
    states, matrix, offset, targets = given(bias=bias)
    inputs = [tensor for tensor in (states, matrix, offset) if tensor is not None]
    logits = F.linear(states, matrix, offset)
    expected = F.cross_entropy(logits, targets)
    loss, right = token_loss(states, matrix, offset, targets)
    torch.testing.assert_close(loss, expected)
    assert int(right) == int((logits.argmax(-1) == targets).sum())
    for gradient, expected_gradient in zip(
        torch.autograd.grad(3 * loss, inputs), torch.autograd.grad(3 * expected, inputs), strict=True
    ):
        torch.testing.assert_close(gradient, expected_gradient)


def test_under_autocast_it_multiplies_in_bfloat16_and_gradients_keep_their_types() -> None:
    states, matrix, bias, targets = given(bias=True)
    exact = F.cross_entropy(F.linear(states, matrix, bias), targets)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss, _ = token_loss(states, matrix, bias, targets)
    assert loss.dtype == torch.float32 and 0 < abs(loss.item() - exact.item()) < 0.05
    loss.backward()
    assert states.grad is not None and states.grad.dtype == torch.float32
    torch.testing.assert_close(states.grad, torch.autograd.grad(exact, states)[0], atol=2e-3, rtol=0.1)


def test_very_large_logits_give_a_finite_loss() -> None:
    states, matrix, _, targets = given(bias=False)
    loss, _ = token_loss(states * 1e4, matrix, None, targets)
    loss.backward()
    assert torch.isfinite(loss) and states.grad is not None and torch.isfinite(states.grad).all()
