import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import get_ident

import numpy as np

from tests.app.shell.test_compute_queue import wait_until
from txcls.app.shell.cache import Cache


def array(n_bytes: int) -> Callable[[], np.ndarray]:
    return lambda: np.zeros(n_bytes, dtype=np.uint8)


def test_entries_stay_below_the_budget_and_the_least_recently_used_goes_first() -> None:
    cache = Cache(3_500_000, seconds=60)
    for key in "abc":
        cache.get(key, array(1_000_000))
    cache.get("a", array(1_000_000))
    cache.get("d", array(1_000_000))
    assert [key in cache for key in "abcd"] == [True, False, True, True]
    assert 3_000_000 <= cache.size <= 3_500_000


def test_unused_entries_expire() -> None:
    now = [0.0]
    cache = Cache(1_000_000, seconds=100, clock=lambda: now[0])
    cache.get("used", array(10))
    cache.get("unused", array(10))
    now[0] = 60
    cache.get("used", array(10))
    now[0] = 120
    assert "used" in cache and "unused" not in cache
    now[0] = 161
    assert cache.size == 0


def test_a_value_that_several_threads_request_is_computed_once() -> None:
    cache, computed, waiting, end = Cache(1_000_000, seconds=60), [], set(), threading.Event()

    def make() -> int:
        end.wait(10)
        computed.append(1)
        return 7

    with ThreadPoolExecutor(8) as threads:
        requests = [threads.submit(cache.get, "key", make, wait=lambda: waiting.add(get_ident())) for _ in range(8)]
        wait_until(lambda: len(waiting) == 7)
        end.set()
        assert [request.result(5) for request in requests] == [7] * 8
    assert len(computed) == 1
