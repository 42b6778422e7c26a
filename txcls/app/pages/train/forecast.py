"""The forecast of a training run within a time budget.

One worker measures the rows and this server's speed while another reads the table. From these measurements, the page
computes the forecast for any budget.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import streamlit as st

from txcls.app.jobs import queue
from txcls.app.jobs.train_model import forecast
from txcls.app.shell import own_session, view_state, waiting
from txcls.app.shell.limits import limits
from txcls.app.shell.markdown import bullets
from txcls.errors import TxclsError


def measure_early(read_spec: Mapping[str, Any]) -> None:
    """Start measuring while the table is being read; if that is impossible now, `draw` starts it later."""
    with suppress(TxclsError):
        if limits().training:
            _measure({**read_spec, "only_plan": True})


def _measure(spec: Mapping[str, Any]) -> None:
    """Start measuring, or cancel a measurement of other rows, which `draw` replaces once it has ended."""
    job = own_session.job("plan")
    if job.is_active and job.spec != spec:
        waiting.cancel("plan")
    elif not job.is_active:
        with suppress(queue.RunningError):  # another run of this page, interrupted by a click, has just started one
            queue.start(own_session.open_session(), "plan", spec, address=st.context.ip_address)


def draw(read_spec: Mapping[str, Any], minutes: int) -> tuple[bool, dict[str, Any]]:
    """Draw the forecast for the rows that were read with `read_spec`, or the progress of measuring them.

    Above the result of training on the same table, progress is not drawn, nor the forecast for the same budget, which
    is over. Returns False if the rows cannot be trained on, otherwise True; and what the training job needs to follow
    the forecast, or {} without one.
    """
    spec = {**read_spec, "only_plan": True}
    job, trained = own_session.job("plan"), own_session.job("train")
    source = ("sample", "file")
    has_result = trained.status == "done" and all(trained.spec.get(key) == read_spec.get(key) for key in source)
    if job.spec != spec or job.status in ("none", "cancelled"):
        try:
            _measure(spec)
        except TxclsError as error:
            view_state.add_note(str(error))
        job = own_session.job("plan")
    if job.is_active:
        waiting.watch(
            "plan",
            (lambda job: None) if has_result else None,
            task="Forecast: counting tokens and measuring this server's speed",
        )
    elif job.status == "done":
        plan = forecast(job.result, minutes)
        if has_result and trained.spec["minutes"] == minutes:
            return True, plan["spec"]
        epochs = f"{plan['epochs']} epoch{'s' * (plan['epochs'] != 1)}"
        st.markdown(
            f"Forecast: **{own_session.duration(plan['forecast'])}** for {epochs} over {plan['training']:,} "
            f"rows{', each text read twice per step' * plan['reads_twice']}. "
            f"{plan['spare']}"
        )
        if plan["shortage"]:
            st.warning(plan["shortage"])
        st.caption(bullets(plan["notes"]))
        st.caption(
            "A token is a word or a part of one. The calibration makes the probabilities match how often predictions "
            "are right."
        )
        return True, plan["spec"]
    else:
        waiting.failure(job)
    return job.status != "failed", {}
