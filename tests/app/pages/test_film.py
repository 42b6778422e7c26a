import base64
import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.app.drawn import each_bad_text, go_to, open_page
from tests.app.film import FILMED, train_with_snapshots
from tests.conftest import make_checkpoint
from txcls.app.shell import checkpoints
from txcls.inference.predictor import Predictor
from txcls.inspection.training_film import class_changes, snapshots_to_ask_about, training_film

TEXT = "voters went to the polls"
PLAIN = "plain"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("filmed")
    train_with_snapshots(root / FILMED)
    make_checkpoint(root / PLAIN)
    return root


@pytest.fixture(autouse=True)
def _one_with_states_and_one_without(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(trained))


def films(app: AppTest) -> list[Any]:
    """The data that the browser draws each film from."""
    components = [element.proto for element in app.get("bidi_component")]
    return [json.loads(proto.json) for proto in components if proto.component_name == "txcls_training_film"]


def sent(app: AppTest) -> Any:
    [film] = films(app)
    return film


def attention(data: Any) -> np.ndarray:
    """The attention weights (N, L, H, T, T) that the browser draws."""
    weights = np.frombuffer(base64.b64decode(data["attention"]), dtype="<u2")
    return weights.reshape(*data["shape"], -1) / (2**16 - 1)


def test_the_browser_gets_the_librarys_numbers_of_every_state_at_once() -> None:
    data = sent(open_page("film", checkpoint=FILMED, text=TEXT))
    classifier = Predictor.load(FILMED)
    film = training_film(classifier, TEXT)
    rows = classifier.checkpoint.snapshots.rows  # type: ignore[union-attr]
    assert data["steps"] == [row.step for row in rows] and data["steps"][0] == 0
    for field in ("train_loss", "validation_accuracy"):
        assert data[field] == [getattr(row, field) for row in rows]
    assert data["classes"] == list(classifier.classes) and not data["has_others"]
    np.testing.assert_allclose(data["probabilities"], film.probabilities, atol=1e-6)
    np.testing.assert_allclose(data["probabilities"][-1], classifier.probabilities([TEXT])[0], atol=1e-5)
    np.testing.assert_allclose(data["lens"], film.lens.max(axis=-1), atol=1e-6)
    assert data["lens_answers"] == film.lens.argmax(axis=-1).tolist()
    assert data["answers"] == film.predicted.tolist()
    assert tuple(data["flips"]) == class_changes(film.predicted) and tuple(data["asked"]) == snapshots_to_ask_about(
        film.predicted
    )
    assert data["tokens"] == TEXT.split()
    np.testing.assert_allclose(attention(data), film.attention, atol=1e-5)


@pytest.mark.parametrize("step, at", [("4", 3), ("7", 4), ("999999999", 5), ("-3", 0)])
def test_a_link_opens_the_nearest_state(step: str, at: int) -> None:
    app = open_page("film", checkpoint=FILMED, text=TEXT, training_step=step)
    data = sent(app)
    assert data["steps"] == [0, 1, 2, 3, 5, 12] and data["at"] == at
    assert app.query_params["text"] == TEXT and app.query_params.get("training_step", "0") == str(max(int(step), 0))


def test_a_long_text_is_shown_through_a_window() -> None:
    app = open_page("film", checkpoint=FILMED, text="the bank raised its rates again " * 12)
    [slider] = [control for control in app.slider if "50 of this text's" in control.label]
    assert sent(app)["shape"][3] == 50 == len(sent(app)["tokens"])
    slider.set_value(3).run()
    assert sent(app)["tokens"][:2] == ["raised", "its"]
    film = training_film(Predictor.load(FILMED), app.text_area[0].value or "", shown=slice(2, 52))
    np.testing.assert_allclose(attention(sent(app)), film.attention, atol=1e-5)


def test_a_checkpoint_without_snapshots_is_replaced_by_one_with_them_and_a_note() -> None:
    app = open_page("film", checkpoint=PLAIN, text=TEXT)
    assert films(app) and app.query_params["checkpoint"] == FILMED
    assert app.query_params["text"] == checkpoints.examples(FILMED)[0].text, "not the text of another model"
    note = app.warning[0].value
    assert "has no snapshots of its training" in note
    assert note.index(checkpoints.title(PLAIN)) < note.index(checkpoints.title(FILMED))
    assert app.run().warning, "the note stays while the page shows the same"
    assert not go_to(app, "report").warning


def test_the_page_changes_the_model_and_the_text_of_no_other_page() -> None:
    app = go_to(open_page("attention", checkpoint=PLAIN, text=TEXT, layer="1"), "film")
    app.text_area[0].set_value("the bank raised its rates").run()
    assert app.query_params["checkpoint"] == FILMED and app.query_params["text"] == "the bank raised its rates"
    links = [parse_qs(link.proto.query_string) for link in app.get("page_link")]
    assert links and all(link["checkpoint"] == [PLAIN] and link["text"] == [TEXT] for link in links)
    app.query_params.clear()  # as the menu does
    go_to(app, "classify")
    assert app.query_params["checkpoint"] == PLAIN and app.text_area[0].value == app.query_params["text"] == TEXT


def test_bad_texts_raise_no_error() -> None:
    app = open_page("film", checkpoint=FILMED)
    for kind in each_bad_text(app):
        asks_for_words = any("Type a few words" in info.value for info in app.info)
        assert asks_for_words == (kind in ("empty", "whitespace")), kind
