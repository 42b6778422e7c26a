import os
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from tests.conftest import TEXTS
from txcls.config import ModelConfig
from txcls.errors import TrainingError
from txcls.inference.device import autocast_dtype, choose_device, map_in_threads
from txcls.inference.predictor import Predictor

CPU = torch.device("cpu")
N = 3


@pytest.mark.parametrize("supported", [True, False])
def test_wide_models_use_bfloat16_where_the_processor_supports_it(
    supported: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: supported)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    narrow, wide = ModelConfig(d_model=32, n_heads=4), ModelConfig(d_model=128, n_heads=4)
    assert autocast_dtype("auto", device=CPU, model=narrow) is None
    assert autocast_dtype("auto", device=CPU, model=wide) is (torch.bfloat16 if supported else None)
    for model in (narrow, wide):
        assert autocast_dtype("bfloat16", device=CPU, model=model) is torch.bfloat16
        assert autocast_dtype("float32", device=CPU, model=model) is None


def test_a_device_is_chosen_by_name_or_refused() -> None:
    assert choose_device("cpu") == CPU
    assert choose_device(None).type == ("cuda" if torch.cuda.is_available() else "cpu")
    for name in ("tpu9", "cuda:99"):
        with pytest.raises(TrainingError, match=f"device '{name}'"):
            choose_device(name)


@pytest.fixture
def threads() -> Iterator[None]:
    """Give torch three threads; other tests use one."""
    before = torch.get_num_threads()
    torch.set_num_threads(N)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("threads")
def test_many_items_are_shared_and_come_back_in_order() -> None:
    thread_names: set[str] = set()
    barrier = threading.Barrier(N)

    def compute(item: int) -> int:
        if item < N:
            barrier.wait(timeout=30)  # continues only once all of them compute at the same time
        thread_names.add(threading.current_thread().name)
        time.sleep(0.001 * (item % 3))
        return item * item

    assert list(map_in_threads(compute, range(40))) == [item * item for item in range(40)]
    assert len(thread_names) == N and all(name.startswith("txcls") for name in thread_names)


@pytest.mark.usefixtures("threads")
def test_an_error_is_raised_and_later_items_are_cancelled() -> None:
    started: list[int] = []

    def compute(item: int) -> int:
        started.append(item)
        time.sleep(0.01)
        if item == 2:
            raise ValueError("item 2 is bad")
        return item

    with pytest.raises(ValueError, match="item 2 is bad"):
        list(map_in_threads(compute, range(500)))
    assert len(started) < 100
    assert list(map_in_threads(lambda item: item, range(40))) == list(range(40)), "the threads are still there"


@pytest.mark.usefixtures("threads")
def test_probabilities_are_the_same_in_parallel(classifier: Predictor) -> None:
    texts = [f"{text} {TEXTS[n % len(TEXTS)]}" for n, text in enumerate(TEXTS * 9)]
    parallel = classifier.probabilities(texts, batch_size=4, precision="float32")
    torch.set_num_threads(1)
    serial = classifier.probabilities(texts, batch_size=4, precision="float32")
    np.testing.assert_allclose(parallel, serial, atol=1e-6)


@pytest.mark.timeout(60)
@pytest.mark.usefixtures("threads")
def test_a_forked_process_makes_its_own_threads() -> None:
    list(map_in_threads(lambda item: item, range(40)))
    child = os.fork()
    if not child:
        right = list(map_in_threads(lambda item: item + 1, range(40))) == list(range(1, 41))
        os._exit(0 if right else 1)
    assert os.waitpid(child, 0) == (child, 0)
