from pathlib import Path

import pytest

from tests.app.drawn import open_page
from tests.app.tiny import PLAIN
from txcls.errors import CheckpointError
from txcls.inference.predictor import Predictor


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
