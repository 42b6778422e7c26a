import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from txcls.app.shell.compute_queue import MAX_RUNNING, ComputeQueue
from txcls.app.shell.limits import BusyError


class LeftError(BaseException):
    """The visitor has left."""


def wait_until(condition: Callable[[], bool], *, seconds: float = 30) -> None:
    """Wait until the condition holds; AssertionError if it does not within `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@contextmanager
def held(queue: ComputeQueue, n: int) -> Iterator[tuple[set[int], set[int]]]:
    """Keep n computations of other visitors in the queue; yields those that run, and those that wait or waited."""
    running, waiting, end = set[int](), set[int](), threading.Event()

    def hold(number: int) -> None:
        with queue.turn(lambda: waiting.add(number)):
            running.add(number)
            end.wait(60)

    with ThreadPoolExecutor(n) as threads:
        futures = [threads.submit(hold, number) for number in range(n)]
        try:
            wait_until(lambda: len(running | waiting) == n)
            yield running, waiting
        finally:
            end.set()
    for future in futures:
        future.result()


def test_four_computations_run_at_once_and_the_others_after_them() -> None:
    with held(ComputeQueue(max_waiting=20), 9) as (running, waiting):
        time.sleep(0.3)
        assert len(running) == MAX_RUNNING == 4 and len(waiting) == 5
    assert len(running) == 9


def test_a_short_computation_ends_while_long_ones_run() -> None:
    queue = ComputeQueue(max_waiting=20)
    with held(queue, MAX_RUNNING - 1), queue.turn(lambda: pytest.fail("it waits for the long ones")):
        pass


def test_a_turn_within_a_turn_is_refused() -> None:
    queue = ComputeQueue(max_waiting=20)
    with queue.turn(lambda: None), pytest.raises(AssertionError, match="wait forever"), queue.turn(lambda: None):
        pass
    with queue.turn(lambda: None):
        pass


def test_a_visitor_who_leaves_frees_the_place_in_the_queue_and_the_turn() -> None:
    queue = ComputeQueue(max_waiting=1)

    def leave() -> None:
        raise LeftError

    with held(queue, MAX_RUNNING):
        for _ in range(3):
            with pytest.raises(LeftError), queue.turn(leave):
                pass
    for _ in range(MAX_RUNNING + 1):
        with pytest.raises(LeftError), queue.turn(lambda: None):
            leave()


def test_a_full_queue_refuses_computations() -> None:
    queue = ComputeQueue(max_waiting=2)
    with (
        held(queue, MAX_RUNNING + 2),
        pytest.raises(BusyError, match="2 computations are already waiting"),
        queue.turn(lambda: None),
    ):
        pass
