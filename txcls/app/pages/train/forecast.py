"""What a training would do within a time budget, as the page Train says it before one starts it.

A worker measures the rows and this server's speed once, beside the one that looks through the table; the forecast for a
budget is computed from that while the page is drawn.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import streamlit as st

from txcls.app.jobs import queue
from txcls.app.jobs.queue import JobState
from txcls.app.jobs.train_model import forecast
from txcls.app.shell import own, waiting
from txcls.app.shell.limits import limits
from txcls.errors import TxclsError


def measure_early(read_spec: Mapping[str, Any]) -> None:
    """Start measuring for a table that is being read; where that cannot be done now, `draw` starts it later."""
    with suppress(TxclsError):
        if limits().training and not _replaced(read_spec):
            queue.start(own.open_session(), "plan", _spec(read_spec), address=st.context.ip_address)


def _spec(read_spec: Mapping[str, Any]) -> dict[str, Any]:
    return {**read_spec, "only_plan": True}


def _replaced(read_spec: Mapping[str, Any]) -> bool:
    """Whether a worker measures other rows still; it is cancelled."""
    now = own.job("plan")
    if now.is_active and now.spec != _spec(read_spec):
        waiting.cancel("plan")
    return now.is_active


def draw(read_spec: Mapping[str, Any], minutes: int) -> tuple[bool, dict[str, Any]]:
    """Write the forecast for the rows that were read with `read_spec`, or that they are being measured.

    Returns whether these rows can be trained on, as far as is known, and {"speed": …} for the job that trains, or {}.
    """
    now = own.job("plan")
    if now.spec != _spec(read_spec) or now.status in ("none", "cancelled"):
        if not _replaced(read_spec):
            waiting.start("plan", _spec(read_spec))
        now = own.job("plan")
    if now.is_active:
        waiting.watch("plan", _measuring, key="watch_plan")
    elif now.status == "done":
        found = forecast(now.result, minutes)
        st.markdown(_in_words(found))
        return True, {"speed": found["speed"]}
    else:
        waiting.failure(now)
    return now.status != "failed", {}


def _in_words(found: Mapping[str, Any]) -> str:
    epochs = f"{found['epochs']} epoch{'s' * (found['epochs'] != 1)}"
    if found["runs"] > 1:
        epochs = f"{found['runs']} runs of {epochs}"
    left_out = f" {found['unused']:,} rows do not fit into this time and are left out." if found["unused"] else ""
    return (
        f"Forecast: **{own.clock(found['forecast'])}** for {epochs} over {found['training']:,} rows; "
        f"{found['validation']:,} others fit the calibration, {found['test']:,} test the result.{left_out} This server "
        f"reads {found['speed']['tokens_per_second']:,.0f} tokens per second in training."
    )


def _measuring(now: JobState) -> None:
    if now.status == "waiting" and now.ahead:
        st.caption(waiting.in_queue(now.ahead))
    else:
        st.caption("Forecast: counting tokens and measuring this server's speed …")
