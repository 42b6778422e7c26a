import pytest

from tests.app.drawn import body_text, html_of, open_page
from tests.app.shell.test_compute_queue import held
from txcls.app.shell import compute_queue
from txcls.app.shell.compute_queue import MAX_RUNNING, ComputeQueue

LONG = "the striker scored twice " * 1_000


@pytest.mark.parametrize("page, box", [("classify", 0), ("language", 0), ("whatif", 0), ("whatif", 1)])
def test_a_longer_text_is_cut_with_a_message_before_any_computation(page: str, box: int) -> None:
    app = open_page(page, text="banks signed a deal")
    app.text_area[box].set_value(LONG).run()
    assert app.text_area[box].value == LONG[:20_000]
    assert "This text is longer than 20,000 characters: the first 20,000 are read." in body_text(app).replace("\\", "")
    assert not app.exception and not app.error


def test_a_full_queue_is_explained_with_a_button_to_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = ComputeQueue(max_waiting=2)
    monkeypatch.setattr(compute_queue, "shared_queue", lambda: queue)
    with held(queue, MAX_RUNNING + 2):
        app = open_page("explanation", text="banks signed a deal")
        assert "2 computations are already waiting" in body_text(app)
        assert "txcls-words" not in html_of(app)
    app.button(key="try_again").click().run()
    assert "txcls-words" in html_of(app) and not app.exception
