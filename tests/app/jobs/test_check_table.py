"""Jobs that read a table: the rows to check."""

from tests.app.jobs.conftest import put
from txcls.app.jobs import check_table
from txcls.app.jobs.sessions import Session
from txcls.app.jobs.worker import Job


def test_long_texts_that_are_almost_the_same_are_shown_where_they_differ(session: Session) -> None:
    words = " ".join(f"word{n}" for n in range(100))
    rows = [f"{words} firms the court said,a", f"{words} firms. the court said,b", "something else,a", "and more,b"]
    folder = session.job("read")
    folder.mkdir(parents=True, exist_ok=True)
    spec = put(session, "table.csv", "\n".join(["text,label", *rows]))
    [near] = check_table.run(Job(folder, "read", spec))["problems"]["near"]
    first, second = near["texts"]
    assert first.startswith("…word") and first.endswith("word99 firms the court said")
    assert second == first.replace("firms", "firms.") and near["row_numbers"] == [2, 3]
