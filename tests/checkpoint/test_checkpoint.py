import errno
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.conftest import FITTED, make_checkpoint, tiny_config
from txcls.checkpoint.checkpoint import Checkpoint, save_checkpoint
from txcls.checkpoint.folders import FILES
from txcls.checkpoint.listing import checkpoint_names
from txcls.checkpoint.load import find_checkpoint, load_checkpoint
from txcls.checkpoint.weights import as_stored, round_as_stored
from txcls.errors import CheckpointError
from txcls.model import TextClassifier


def snapshot(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    "model",
    [
        {},
        {"positions": "learned", "pooling": "class_token", "norm": "post"},
        {"positions": "none", "pooling": "mean", "d_embedding": 8},
    ],
)
def test_saving_and_loading_keeps_everything(tmp_path: Path, model: dict[str, object]) -> None:
    first = make_checkpoint(tmp_path / "one", **model)
    loaded = load_checkpoint(first.path)
    assert (loaded.config, loaded.classes, loaded.calibration) == (first.config, first.classes, FITTED)
    assert loaded.tokenizer.to_dict() == first.tokenizer.to_dict()
    assert (loaded.metrics, loaded.history) == ({"training": {"seed": 0}}, [{"epoch": 1}])
    ids = torch.tensor([loaded.tokenizer.encode("the striker scored").ids])
    torch.testing.assert_close(loaded.model(ids), first.model(ids))
    assert not loaded.model.training and all(p.dtype == torch.float32 for p in loaded.model.parameters())


def test_names_are_looked_up_under_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_checkpoint(tmp_path / "mine")
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(tmp_path))
    assert checkpoint_names() == ("mine",)
    assert find_checkpoint("mine") == tmp_path / "mine"
    for wrong in ("yours", "a" * 5000, "nul\0byte"):
        with pytest.raises(CheckpointError, match="known names: mine"):
            find_checkpoint(wrong)


def edit_json(name: str, change: Callable[[dict], object]) -> Callable[[Path], None]:  # type: ignore[type-arg]
    def damage(folder: Path) -> None:
        value = json.loads((folder / name).read_text(encoding="utf-8"))
        changed = change(value)
        (folder / name).write_text(json.dumps(value if changed is None else changed), encoding="utf-8")

    return damage


def cut(name: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 2])

    return damage


def put(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(content) and None


def edit_weights(change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        weights = load_file(folder / "model.safetensors")
        change(weights)
        save_file(weights, folder / "model.safetensors")

    return damage


DAMAGES = {
    **{f"missing {name}": (lambda folder, name=name: (folder / name).unlink(), name) for name in FILES},
    **{
        f"cut {name}": (cut(name), name)
        for name in ("model.safetensors", "config.json", "tokenizer.json", "labels.json")
    },
    "pickle for weights": (put("model.safetensors", b"\x80\x04\x95cos\nsystem\n"), "not a complete safetensors file"),
    "config of something else": (put("config.json", b'{"architectures": ["BertModel"]}'), "format_version is None"),
    "deeply nested config": (put("config.json", b"[" * 1_900), "not readable as JSON"),
    "config of many values": (put("config.json", b"[" * 100_000), "about 100,000 values; expected at most 2,000"),
    "unknown key": (edit_json("config.json", lambda c: c["model"].update(wings=2)), "model.wings: unknown setting"),
    "fewer layers": (edit_json("config.json", lambda c: c["model"].update(n_layers=1)), "holds unknown layers.1."),
    "other length": (edit_json("config.json", lambda c: c["model"].update(max_length=13)), "max_length 12"),
    "no tokens": (edit_json("tokenizer.json", lambda t: t.update(tokens=[])), "tokens: expected the list of all"),
    "classes twice": (put("labels.json", b'["a", "b", "a", "c"]'), "occurs twice"),
    "history rows": (put("history.jsonl", b"[1]\n"), "one JSON object per line"),
    "not a number": (edit_weights(lambda w: w["head.bias"].fill_(torch.nan)), "not finite: head.bias"),
    "beyond float32": (
        edit_weights(lambda w: w.update({"head.bias": w["head.bias"].double().fill_(1e300)})),
        "not finite: head.bias",
    ),
    "integers": (edit_weights(lambda w: w.update({"head.bias": w["head.bias"].int()})), "head.bias is torch.int32"),
}


@pytest.mark.parametrize("damage, message", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_broken_checkpoint_is_refused_by_name(
    checkpoint: Checkpoint, damage: Callable[[Path], None], message: str
) -> None:
    damage(checkpoint.path)
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(checkpoint.path)
    assert message in str(caught.value) and str(checkpoint.path) in str(caught.value)


@pytest.mark.parametrize("failing", ["save_file", "fsync", "rename"])
def test_a_full_disk_leaves_the_old_checkpoint(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    before = snapshot(checkpoint.path)

    def full(*args: object, **kwargs: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    target = {
        "save_file": "txcls.checkpoint.checkpoint.save_file",
        "fsync": "os.fsync",
        "rename": "pathlib.Path.rename",
    }
    with monkeypatch.context() as patch:
        patch.setattr(target[failing], full)
        with pytest.raises(CheckpointError, match="No space left on device; free some space"):
            save_checkpoint(checkpoint)
    assert snapshot(checkpoint.path) == before
    assert [path.name for path in checkpoint.path.parent.iterdir()] == ["tiny"], "no leftovers"
    load_checkpoint(checkpoint.path)


def test_weights_too_large_for_the_file_are_not_saved(checkpoint: Checkpoint) -> None:
    before = snapshot(checkpoint.path)
    with torch.no_grad():
        checkpoint.model.head.bias[0] = 1e9
    with pytest.raises(CheckpointError, match=r"weights in float16: not finite: head\.bias"):
        save_checkpoint(checkpoint)
    assert snapshot(checkpoint.path) == before


def test_a_checkpoint_is_saved_where_asked_and_named_after_its_folder(checkpoint: Checkpoint, tmp_path: Path) -> None:
    unsaved = replace(checkpoint, path=None)
    assert unsaved.name == checkpoint.config.name
    with pytest.raises(CheckpointError, match="tiny has not been saved before; give the folder"):
        save_checkpoint(unsaved)
    folder = save_checkpoint(unsaved, str(tmp_path / "other"))
    assert folder == tmp_path / "other" and load_checkpoint(folder).name == "other"
    assert "# other" in (folder / "README.md").read_text("utf-8") and unsaved.path is None


def test_a_model_is_evaluated_as_it_is_stored() -> None:
    torch.manual_seed(0)
    network = TextClassifier(tiny_config().model, vocab_size=40, n_classes=3).eval()
    before = network.embeddings.token.weight.detach().clone()
    round_as_stored(network)
    weights = network.state_dict()
    for name, tensor in as_stored(weights).items():
        assert torch.equal(tensor.float(), weights[name]), name
    assert 0 < (before - network.embeddings.token.weight).abs().max() < 1e-3
