import base64
import hashlib
import re
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from tests.conftest import make_checkpoint, make_language_model
from txcls.config import DataConfig, ModelConfig
from txcls.errors import CheckpointError
from txcls.inference.predictor import Predictor
from txcls.web.export import SETTINGS, describe, export_page, single_page

HOSTILE_NAMES = ("</script><script>alert(1)</script>", "b\u2028", "c", "d")


def test_one_file_holds_everything_and_is_little_larger_than_the_weights(tmp_path: Path) -> None:
    make_checkpoint(tmp_path / "tiny", d_model=256, d_ff=512)
    page = export_page([tmp_path / "tiny"], tmp_path / "page", single_file=True)
    assert [file.name for file in page.parent.iterdir()] == ["index.html"]
    assert page.stat().st_size <= 1.45 * (tmp_path / "tiny" / "model.safetensors").stat().st_size + 300_000
    assert page.read_bytes() == single_page(tmp_path / "tiny")


@pytest.mark.parametrize("single", [True, False])
def test_the_playground_is_written_beside_the_page_and_replaced_with_it(tmp_path: Path, single: bool) -> None:
    make_checkpoint(tmp_path / "tiny")
    for content in (b"one", b"two", b""):
        page = export_page([tmp_path / "tiny"], tmp_path / "page", single_file=single, playground=content)
        playground_file = page.parent / "playground.html"
        assert (playground_file.read_bytes() if playground_file.exists() else b"") == content
        assert ('"playground":"playground.html"' in page.read_text("utf-8")) == bool(content)


def test_a_folder_holds_the_weights_as_they_are_and_the_header_of_a_static_space(tmp_path: Path) -> None:
    for name in ("one", "two"):
        make_checkpoint(tmp_path / name)
    page = export_page([tmp_path / "one", tmp_path / "two"], tmp_path / "page")
    names = {file.name for file in page.parent.iterdir()}
    assert names == {"index.html", "README.md", "one.json", "one.safetensors", "two.json", "two.safetensors"}
    assert (page.parent / "one.safetensors").read_bytes() == (tmp_path / "one" / "model.safetensors").read_bytes()
    header = (page.parent / "README.md").read_text("utf-8").split("---\n")[1]
    assert "\nsdk: static\napp_file: index.html\n" in header


def test_the_policy_allows_the_pages_own_script_and_style_alone(tmp_path: Path) -> None:
    make_checkpoint(tmp_path / "tiny", classes=HOSTILE_NAMES)
    for single in (True, False):
        text = export_page([tmp_path / "tiny"], tmp_path / f"page{single}", single_file=single).read_text("utf-8")
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
        assert policy is not None
        rules = dict(rule.split(" ", 1) for rule in policy[1].replace("&#x27;", "'").split("; "))
        script = re.search(r'<script type="module">(.*?)</script>', text, re.DOTALL)
        style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
        assert script and rules["script-src"] == f"{hashed(script[1])} 'wasm-unsafe-eval'"
        assert style and rules["style-src"] == hashed(style[1])
        assert rules["default-src"] == "'none'" and rules["connect-src"] == ("'none'" if single else "'self'")
        assert len(re.findall("</script>", text)) == (3 if single else 2)  # class names do not close a script


def hashed(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_a_model_of_the_users_own_texts_is_offered_no_english_examples(tmp_path: Path) -> None:
    checkpoint = make_checkpoint(tmp_path / "tiny")
    own = checkpoint.config.model_copy(update={"data": DataConfig(dataset="table")})
    described = describe(Predictor(replace(checkpoint, config=own)))
    assert [title for title, _ in described["examples"]] == ["Start here"]


def test_a_page_with_an_address_has_a_preview_and_a_link_to_the_project(tmp_path: Path) -> None:
    make_checkpoint(tmp_path / "tiny")
    page = export_page(
        [tmp_path / "tiny"], tmp_path / "page", address="https://a.example/x", project='https://b.example/"><script>'
    )
    text = page.read_text("utf-8")
    assert '<meta property="og:image" content="https://a.example/x/preview.png">' in text
    assert '<a href="https://b.example/&quot;&gt;&lt;script&gt;" rel="noopener">' in text
    with Image.open(page.parent / "preview.png") as image:
        assert image.size == (1200, 630) and len(image.getcolors(2**24) or ()) > 10
    replaced = export_page([tmp_path / "tiny"], tmp_path / "page").read_text("utf-8")
    assert "og:image" not in replaced and "og:description" in replaced and not (page.parent / "preview.png").exists()
    with pytest.raises(CheckpointError, match="expected one that begins with https"):
        export_page([tmp_path / "tiny"], tmp_path / "page", address="javascript:alert(1)")


def test_a_page_replaces_a_page_but_no_other_files(tmp_path: Path) -> None:
    make_checkpoint(tmp_path / "tiny")
    page = export_page([tmp_path / "tiny"], tmp_path / "page")
    export_page([tmp_path / "tiny"], tmp_path / "page", single_file=True)
    assert [file.name for file in page.parent.iterdir()] == ["index.html"]
    for name in ("notes.txt", ".git"):
        (page.parent / name).write_text("mine")
        with pytest.raises(CheckpointError, match=rf"holds other files \({re.escape(name)}\)"):
            export_page([tmp_path / "tiny"], tmp_path / "page")
        (page.parent / name).unlink()
    page.write_text("<title>somebody's home page</title>")
    with pytest.raises(CheckpointError, match=r"holds other files \(index.html\)"):
        export_page([tmp_path / "tiny"], tmp_path / "page")
    assert page.read_text() == "<title>somebody's home page</title>"


def test_a_failed_export_leaves_the_older_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_checkpoint(tmp_path / "tiny")
    page = export_page([tmp_path / "tiny"], tmp_path / "page")
    before = page.read_bytes()

    def fails(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fails)
    with pytest.raises(CheckpointError, match="No space left on device"):
        export_page([tmp_path / "tiny"], tmp_path / "page", single_file=True)
    assert page.read_bytes() == before and (page.parent / "README.md").is_file()


def test_checkpoints_that_cannot_be_exported_are_refused_with_a_message(tmp_path: Path) -> None:
    make_language_model(tmp_path / "lm")
    with pytest.raises(CheckpointError, match="language model"):
        export_page([tmp_path / "lm"], tmp_path / "page")
    make_checkpoint(tmp_path / "fixed", fixed_length=True)  # tests/browser/test_web_settings.py has all settings
    with pytest.raises(CheckpointError, match="fixed_length"):
        export_page([tmp_path / "fixed"], tmp_path / "page")
    make_checkpoint(tmp_path / "one" / "twin")
    make_checkpoint(tmp_path / "two" / "twin")
    with pytest.raises(CheckpointError, match="'twin'"):
        export_page([tmp_path / "one" / "twin", tmp_path / "two" / "twin"], tmp_path / "page")
    with pytest.raises(CheckpointError, match="no checkpoint"):
        export_page([], tmp_path / "page")
    assert not (tmp_path / "page").exists()


def test_a_page_reads_or_refuses_every_setting_of_the_model() -> None:
    """Otherwise the browser's forward pass would ignore a setting added to the model."""
    training = {"dropout", "attention_dropout", "init"}
    language_models = {"token_bias", "tie_output"}
    in_the_weights = {"qkv_bias", "output_bias"}  # model.js adds a bias if the checkpoint has one
    known = [*SETTINGS, *training, *language_models, *in_the_weights]
    assert sorted(known) == sorted(ModelConfig.model_fields)
