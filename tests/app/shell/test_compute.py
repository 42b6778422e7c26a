"""Data that the pages load and compute is shared by all sessions and never modified."""

from tests.app.drawn import chart, go_to, open_page
from tests.app.tiny import PLAIN
from txcls.app.shell import checkpoints


def test_repeated_questions_never_change_the_shared_classifier() -> None:
    app = open_page("classify", text="banks signed a deal")
    first = chart(app, "chart_bars").figure["data"]
    for page in ("attention", "positions", "classify"):
        go_to(app, page)
    assert chart(app, "chart_bars").figure["data"] == first
    assert checkpoints.is_loaded(checkpoints.source(PLAIN))
