import threading
import time

import pytest
import torch
from torch import Tensor, nn

from txcls.tap import Tap, name_taps, trace


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Tap(), Tap()
        name_taps(self)

    def forward(self, x: Tensor) -> Tensor:
        doubled = self.first(x * 2)
        time.sleep(0)  # let another thread run in between
        out: Tensor = self.second(doubled + 1)
        return out


def test_a_trace_records_what_passes_and_only_while_open() -> None:
    model, x = Two(), torch.ones(3)
    with trace() as activations:
        assert model.first.is_watched
        result = model(x)
    assert not model.first.is_watched
    model(x * 100)
    torch.testing.assert_close(activations["first"], x * 2)
    torch.testing.assert_close(activations["second"], result)


def test_an_edit_changes_what_follows() -> None:
    with trace(edit={"first": torch.zeros_like}) as activations:
        result = Two()(torch.ones(2))
    torch.testing.assert_close(result, torch.ones(2))
    torch.testing.assert_close(activations["first"], torch.zeros(2))


def test_the_trace_closes_when_the_block_fails() -> None:
    model = Two()
    with pytest.raises(ZeroDivisionError), trace():
        raise ZeroDivisionError
    assert not model.first.is_watched


def test_threads_that_share_a_model_never_mix_their_traces() -> None:
    model, mixed, finished = Two(), [], []

    def work(number: int) -> None:
        for _ in range(200):
            with trace() as activations:
                model(torch.full((1,), float(number)))
            if activations["first"].item() != number * 2 or activations["second"].item() != number * 2 + 1:
                mixed.append(number)
            finished.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(finished) == 800 and not mixed
