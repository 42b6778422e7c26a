"""Heavy computations run in turns and time slices, the queue is bounded, and abandoned computations end."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from txcls.app.shell.compute_queue import ComputeQueue


class LeftError(BaseException):
    """The visitor has left."""


def wait_until(condition: Callable[[], bool], *, seconds: float = 30) -> None:
    """Wait until the condition holds; AssertionError if it does not within `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@contextmanager
def held(queue: ComputeQueue, n: int) -> Iterator[None]:
    """Keep n computations of other visitors in the queue."""
    end = threading.Event()

    def hold() -> None:
        with queue.turn(lambda _: None):
            end.wait(60)

    with ThreadPoolExecutor(n) as threads:
        for number in range(n):
            threads.submit(hold)
            wait_until(lambda number=number: len(queue._queue) == number + 1)
        try:
            yield
        finally:
            end.set()


def test_one_computation_runs_at_a_time_and_each_gets_a_slice_before_any_gets_a_second() -> None:
    queue, order, gate = ComputeQueue(max_waiting=20, slice_seconds=0.0), [], threading.Event()
    running, most_running = [0], [0]

    def compute(name: int) -> None:
        with queue.turn(lambda _: None) as between:
            gate.wait(5)
            for _ in range(3):
                running[0] += 1
                most_running[0] = max(most_running[0], running[0])
                order.append(name)
                running[0] -= 1
                between()

    with ThreadPoolExecutor(4) as threads:
        futures = []
        for name in range(4):
            futures.append(threads.submit(compute, name))
            wait_until(lambda name=name: len(queue._queue) == name + 1)
        gate.set()
        for future in futures:
            future.result(5)
    assert order == [0, 1, 2, 3] * 3 and most_running == [1]


def test_a_visitor_who_leaves_frees_the_place_in_the_queue_and_the_turn() -> None:
    queue, has_left = ComputeQueue(max_waiting=20, slice_seconds=0.0), [False, False]

    def compute(number: int) -> None:
        def wait(_: int) -> None:
            if has_left[number]:
                raise LeftError

        with queue.turn(wait) as between:
            while True:
                time.sleep(0.005)
                between()

    with ThreadPoolExecutor(2) as threads:
        futures = [threads.submit(compute, number) for number in (0, 1)]
        wait_until(lambda: queue.waiting == 1)
        for number in (1, 0):  # either may be running or waiting at that moment
            has_left[number] = True
            with pytest.raises(LeftError):
                futures[number].result(5)
    with queue.turn(lambda _: None):
        assert queue.waiting == 0


@pytest.mark.attack
def test_only_four_computations_have_begun_however_many_wait() -> None:
    queue, begun, end = ComputeQueue(max_waiting=20, slice_seconds=0.0), set(), threading.Event()

    def compute(name: int) -> None:
        with queue.turn(lambda _: None) as between:
            begun.add(name)
            while not end.is_set():
                time.sleep(0.001)
                between()

    with ThreadPoolExecutor(8) as threads:
        running = [threads.submit(compute, name) for name in range(8)]
        wait_until(lambda: queue.waiting == 7 and len(begun) == 4)
        time.sleep(0.1)
        assert len(begun) == 4
        end.set()
        for future in running:
            future.result(10)


def test_a_computation_that_waits_for_another_ones_result_lets_all_go_first() -> None:
    queue, has_result = ComputeQueue(max_waiting=20), threading.Event()

    def needs() -> None:
        with queue.turn(lambda _: None) as between:
            wait_until(lambda: queue.waiting == 5)
            while not has_result.is_set():
                between(for_all=True)

    def has() -> None:
        with queue.turn(lambda _: None):
            has_result.set()

    with ThreadPoolExecutor(6) as threads:
        for future in [threads.submit(work) for work in (*[needs] * 5, has)]:
            future.result(10)
