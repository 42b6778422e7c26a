import os
import signal
import threading

import pytest

from txcls.inference.interrupts import stop_requests

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_sets_the_flag_and_handlers_are_restored(number: signal.Signals) -> None:
    before = [signal.getsignal(signal_number) for signal_number in SIGNALS]
    with stop_requests() as stop_requested:
        assert not stop_requested()
        os.kill(os.getpid(), number)
        assert stop_requested()
    assert [signal.getsignal(signal_number) for signal_number in SIGNALS] == before


def test_a_second_ctrl_c_takes_effect_at_once() -> None:
    def interrupted_twice() -> None:
        with stop_requests():
            signal.raise_signal(signal.SIGINT)  # handled before the next signal, unlike signals sent by os.kill
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored if started in the background
    try:
        with pytest.raises(KeyboardInterrupt):
            interrupted_twice()
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_never_see_the_flag_set() -> None:
    flags: list[bool] = []

    def work() -> None:
        with stop_requests() as stop_requested:
            flags.append(stop_requested())

    before = [signal.getsignal(signal_number) for signal_number in SIGNALS]
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert flags == [False] and [signal.getsignal(signal_number) for signal_number in SIGNALS] == before
