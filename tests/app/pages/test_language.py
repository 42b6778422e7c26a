import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.app.drawn import body_text, each_bad_text, figures_of, numbers, open_page
from tests.app.tiny import FILLS, SAYS, SAYS_WORDS
from txcls.app.shell import checkpoints
from txcls.inference.generation import Sampling, generate
from txcls.inspection.language_model import fill_blank, measure_surprisal, next_tokens

PARTS = ("fill", "continue")


def open_language(**params: str) -> AppTest:
    return open_page("language", **params)


def strips_of(app: AppTest) -> list[list[dict[str, object]]]:
    strips = [e.proto for e in app.get("bidi_component") if e.proto.component_name == "txcls_token_strip"]
    return [json.loads(proto.json)["tokens"] for proto in strips]


def model(name: str):  # type: ignore[no-untyped-def]
    objective = "masked" if name == FILLS else "causal"
    return checkpoints.language_model(checkpoints.source(name), objective).model  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_bad_texts_raise_no_error_in_every_part(part: str) -> None:
    app = open_language(part=part)
    for kind in each_bad_text(app):
        try:
            json.dumps(strips_of(app), ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError as error:
            raise AssertionError(f"{kind}: {error}") from error
        if kind == "megabyte":
            assert "cut after 24 tokens" in body_text(app)


def test_the_blank_of_a_link_is_filled_as_the_library_does() -> None:
    app = open_language(text="the bank raised its rates", blank="3")
    [strip] = strips_of(app)
    assert [token["text"] for token in strip] == ["<cls>", "the", "bank", "▁▁▁▁", "its", "rates"]
    assert [token["pressed"] for token in strip].index(True) == 3 and strip[0]["number"] is None
    ids = model(FILLS).encode("the bank raised its rates")
    ranked = fill_blank(model(FILLS), ids, 3)
    assert f"**raised** was in the text: rank **{ranked.true_rank}** of" in body_text(app)
    names = [name.strip() for name in figures_of(app)[0]["layout"]["yaxis"]["ticktext"]]  # type: ignore[index]
    assert names == [model(FILLS).tokens[index] for index in ranked.ids]


def test_next_tokens_and_surprise_are_the_librarys() -> None:
    app = open_language(part="continue", text="the bank raised")
    ids = model(SAYS).encode("the bank raised")
    expected = measure_surprisal(model(SAYS), ids)
    assert f"**{np.nanmax(expected.bits):.1f} bits**. The mean is {expected.mean:.2f} bits" in body_text(app)
    [typed] = strips_of(app)
    assert [token["title"] for token in typed][1] == f"token 2: {expected.bits[1]:.1f} bits"
    ranked = next_tokens(model(SAYS), ids).ranked
    np.testing.assert_allclose(numbers(figures_of(app)[0]["data"][0]["x"]), ranked.probabilities, atol=1e-6)


def test_sampling_by_the_buttons_is_sampling_by_the_command_line() -> None:
    app = open_language(part="continue", text="the bank raised", seed="7", temperature="1.2")
    ids = model(SAYS).encode("the bank raised")
    expected = [s.id for s in generate(model(SAYS).model, ids, n=4, sampling=Sampling(temperature=1.2, seed=7))]
    for n in range(1, 5):
        app.button(key="sample_1").click().run()
        assert app.query_params["added"] == ".".join(map(str, expected[:n]))
    app.button(key="undo").click().run()
    assert app.query_params["added"] == ".".join(map(str, expected[:3]))
    app.button(key="start_again").click().run()
    assert "added" not in app.query_params
    app.button(key="sample_10").click().run()
    assert app.query_params["added"].split(".")[:4] == list(map(str, expected))


def test_added_tokens_are_dropped_with_another_text_or_model() -> None:
    for change in ("text", "model"):
        app = open_language(part="continue", text="the bank", added="20.21")
        assert len([token for token in strips_of(app)[0] if token["kind"] == "added"]) == 2
        if change == "text":
            app.text_area[0].set_value("the bank raised").run()
        else:
            app.selectbox(key="causal_box").set_value(SAYS_WORDS).run()
        assert "added" not in app.query_params
        assert not [token for token in strips_of(app)[0] if token["kind"] == "added"]


def test_a_text_of_maximum_length_cannot_be_continued() -> None:
    app = open_language(part="continue", text="the bank raised its rates again " * 4, causal=SAYS_WORDS, added="5")
    assert any("reads 24 tokens at most" in info.value for info in app.info)
    assert app.button(key="sample_1").disabled and not app.button(key="undo").disabled


def test_a_damaged_language_model_is_named_not_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_checkpoints: Path
) -> None:
    shutil.copytree(tiny_checkpoints / FILLS, tmp_path / "hurt")
    (tmp_path / "hurt" / "model.safetensors").write_bytes(b"x")
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(tmp_path))
    assert "not a complete safetensors file" in open_language().error[0].value
