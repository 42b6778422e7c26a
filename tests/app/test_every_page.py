from pathlib import Path

import pytest

from tests.app.drawn import charts_of, each_bad_text, open_page
from tests.conftest import make_checkpoint, slow_but
from txcls.app.menu import PAGES

CLASSIFIERS_PAGES = [page.name for page in PAGES if page.name not in ("language", "report")]
"""The pages that classify a text."""
ODD = {"one token": "bank", "unknown only": "zyzzyva qwertz", "long": "the bank raised its rates again " * 30}


@pytest.mark.parametrize("page", slow_but(["classify"], CLASSIFIERS_PAGES))
def test_bad_texts_raise_no_error(page: str) -> None:
    app = open_page(page)
    for kind in each_bad_text(app):
        asks_for_words = any("Type a few words" in info.value for info in app.info)
        assert asks_for_words == (kind in ("empty", "whitespace")), kind


@pytest.mark.parametrize("page", CLASSIFIERS_PAGES)
def test_odd_texts_work_in_a_model_of_one_layer_and_one_head(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(tmp_path))
    make_checkpoint(tmp_path / "small", n_layers=1, n_heads=1, norm="post", pooling="first", max_length=100)
    app = open_page(page)
    for kind, text in ODD.items():
        app.text_area[0].set_value(text).run()
        assert not app.exception and not app.error, kind
        assert charts_of(app) or page in ("tokens", "steps", "explanation", "film", "report"), kind
    if page == "attention":
        assert any("50 of this text's 100" in slider.label for slider in app.slider)
