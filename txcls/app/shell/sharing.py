"""What all sessions share: one cache of what was loaded and computed, and a queue of heavy computations.

Keys are the function and its arguments, such as the checkpoint and the text. Heavy computations of different sessions
take turns, and are cancelled when their visitor leaves or types on (`turns`, `txcls.runtime.pause`).
"""

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from txcls.app.jobs.desks import on_removal
from txcls.app.shell.cache import Cache
from txcls.app.shell.limits import limits
from txcls.app.shell.turns import Turns
from txcls.runtime.pause import may_pause, pausing

Asked = ParamSpec("Asked")
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Source:
    """A checkpoint by name, a fingerprint of its files, and its folder: part of every key of the cache.

    The folder tells the checkpoints of different visitors apart, whatever their names are.
    """

    name: str
    state: str
    folder: Path


@cache
def kept() -> Cache:
    """The cache."""
    made = Cache(1_000_000 * limits().cache_megabytes, seconds=limits().cache_seconds)
    on_removal(lambda desk: made.drop(lambda key: _is_on(desk, key)))
    return made


def _is_on(desk: Path, key: Hashable) -> bool:
    """Whether a key is of a checkpoint or another file on a visitor's desk."""
    args = key[1] if isinstance(key, tuple) and len(key) == 3 and isinstance(key[1], tuple) else ()
    paths = (one.folder if isinstance(one, Source) else one for one in args)
    return any(isinstance(path, Path) and desk in path.parents for path in paths)


@cache
def turns() -> Turns:
    """The queue of heavy computations."""
    return Turns(most_waiting=limits().waiting)


_has_turn: ContextVar[bool] = ContextVar("txcls_has_turn", default=False)


def shared(
    *, heavy: bool = False, size: Callable[[Any], int] | None = None
) -> Callable[[Callable[Asked, Found]], Callable[Asked, Found]]:
    """Cache a function's results by its arguments; a heavy function waits for its turn."""

    def decorate(function: Callable[Asked, Found]) -> Callable[Asked, Found]:
        @wraps(function)
        def ask(*args: Asked.args, **named: Asked.kwargs) -> Found:
            def make() -> Found:
                if not heavy:
                    return function(*args, **named)
                with _my_turn():
                    return function(*args, **named)

            found: Found = kept().get(_key(function, args, named), make, size=size, wait=_wait_for_another)
            return found

        return ask

    return decorate


def is_kept(function: Callable[..., Any], *args: Any) -> bool:
    """Whether the result of a shared function for these arguments is in the cache."""
    return _key(function, args, {}) in kept()


@contextmanager
def my_turn() -> Iterator[None]:
    """Run a block that is not cached, such as one on a visitor's own rows, when it is this computation's turn."""
    with _my_turn():
        yield


def _key(function: Callable[..., Any], args: Sequence[Any], named: dict[str, Any]) -> Hashable:
    return function.__name__, tuple(args), tuple(sorted(named.items()))


def _wait_for_another() -> None:
    """Called while another thread computes the value that this one needs."""
    _end_if_left()
    may_pause()  # yields the turn: the other thread may be waiting for it


def _end_if_left() -> None:
    """End this run if its visitor has left or typed on: Streamlit raises when the session state is read."""
    if get_script_run_ctx(suppress_warning=True) is not None:
        st.session_state.get("_anything")


@contextmanager
def _my_turn() -> Iterator[None]:
    """Run the block when it is this computation's turn, and show its place in the queue until then."""
    if _has_turn.get():
        yield
        return
    said = _Queue()
    token = _has_turn.set(True)
    try:
        with turns().turn(said.wait) as between, pausing(between):
            yield
    finally:
        said.clear()
        _has_turn.reset(token)


class _Queue:
    """A line on the page with the number of computations ahead, shown after a second of waiting."""

    def __init__(self) -> None:
        self._place: Any = None
        self._ahead = 0
        self._since = time.monotonic()

    def wait(self, ahead: int) -> None:
        """Update the line; ends the run if its visitor has left."""
        if get_script_run_ctx(suppress_warning=True) is None:
            return
        _end_if_left()
        if ahead and ahead != self._ahead and (self._place or time.monotonic() - self._since > 1):
            self._place = self._place or st.empty()
            others = "1 computation of another visitor" if ahead == 1 else f"{ahead} computations of other visitors"
            self._place.info(f"In the queue: {others} ahead of this one.")
            self._ahead = ahead

    def clear(self) -> None:
        """Remove the line."""
        if self._place is not None:
            self._place.empty()
