"""Many visitors at once: each sees the answer to its own text, and nobody else's."""

import pytest

from tests.browser.conftest import Server
from tests.browser.visitors import visit_together

N = 30


@pytest.mark.parametrize("page", ["", "attention", "switchboard", "explanation", "whatif"])
def test_thirty_visitors_at_once_see_their_own_texts_alone(server: Server, page: str) -> None:
    before = len(server.complaints())
    names = [f"visitor{n:02}of{page or 'classify'}" for n in range(N)]
    visits = visit_together(server.address, page, [f"the bank raised {name} again" for name in names])
    for name, visit in zip(names, visits, strict=True):
        assert visit.finished
        assert name.encode() in visit.sent
        assert b"Traceback" not in visit.sent
        for other in names:
            assert other == name or other.encode() not in visit.sent, f"{name} was sent the text of {other}"
    assert server.complaints()[before:] == []
