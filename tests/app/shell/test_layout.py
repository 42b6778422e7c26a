"""Parts shared by all pages: heading, checkpoint, text box, notes, and links to other pages."""

from pathlib import Path

import pytest

from tests.app.drawn import go_to, open_page
from tests.app.tiny import LEARNED, PLAIN
from txcls.errors import CheckpointError
from txcls.inference.predictor import Predictor


def test_text_and_checkpoint_are_carried_to_every_page() -> None:
    app = open_page("classify")
    app.text_area[0].set_value("banks signed a deal").run()
    app.selectbox(key="checkpoint_box").set_value(LEARNED).run()
    for page in ("attention", "tokens", "positions", "classify"):
        go_to(app, page)
        assert not app.exception
        assert app.text_area[0].value == "banks signed a deal"
        assert app.selectbox(key="checkpoint_box").value == LEARNED
        assert app.query_params["text"] == "banks signed a deal"
        assert app.query_params["checkpoint"] == LEARNED


@pytest.mark.parametrize("page", ["classify", "tokens"])
def test_a_checkpoint_that_cannot_be_loaded_is_named_without_the_servers_folders(
    tiny_checkpoints: Path, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    def fail(folder: Path) -> None:
        raise CheckpointError(f"{folder / 'model.safetensors'}: not a complete safetensors file")

    monkeypatch.setattr(Predictor, "load", fail)
    app = open_page(page)
    assert f"{PLAIN}/model.safetensors: not a complete" in app.error[0].value.replace("\\", "")
    assert str(tiny_checkpoints) not in app.error[0].value
