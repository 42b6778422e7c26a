"""Weights in a file: float16, or tables in eight bits that come back within half a step and stay as they are."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.conftest import make_checkpoint, tiny_config
from txcls.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from txcls.config import RunConfig
from txcls.errors import CheckpointError
from txcls.model import TextClassifier
from txcls.weights import SMALLEST_SCALE, in_eight_bits, packed, round_as_stored, unpacked


def wide(path: Path) -> Checkpoint:
    """A checkpoint whose tables are stored in eight bits."""
    made = make_checkpoint(path, ngram_buckets=24, ngrams="frequent", d_ngram=16, phrases=20)
    config = RunConfig.model_validate({**made.config.model_dump(), "stored_tables": "int8"})
    save_checkpoint(Checkpoint(path, config, made.encoder, made.classes, made.model, made.calibration))
    return load_checkpoint(path)


@pytest.mark.parametrize("loud", [1e-7, 1e-3, 1.0, 300.0])
def test_a_number_in_eight_bits_is_off_by_half_a_step_at_most(loud: float) -> None:
    torch.manual_seed(0)
    table = torch.randn(500, 24) * torch.rand(500, 1) * loud
    integers, scale = in_eight_bits(table)
    assert integers.dtype == torch.int8 and scale.dtype == torch.float16 and scale.shape == (500, 1)
    step = table.abs().amax(dim=1, keepdim=True) / 127
    # A scale is rounded to float16, by a share of 2 ** -11 of it, which 127 steps feel.
    allowed = torch.maximum(step, torch.tensor(SMALLEST_SCALE)) * (0.5 + 127 * 2.0**-11)
    assert ((integers * scale.float() - table).abs() <= allowed).all()


def test_a_row_of_zeros_stays_one() -> None:
    integers, scale = in_eight_bits(torch.tensor([[0.0, 0.0], [1.0, -1.0]]))
    assert integers.tolist() == [[0, 0], [127, -127]] and (scale > 0).all()


def test_what_was_stored_is_stored_the_same_again(tmp_path: Path) -> None:
    made = wide(tmp_path / "wide")
    before = (tmp_path / "wide" / "model.safetensors").read_bytes()
    save_checkpoint(made)
    assert (tmp_path / "wide" / "model.safetensors").read_bytes() == before
    torch.manual_seed(1)
    for loud in (1e-8, 1e-4, 1.0, 1e4):
        once = unpacked(packed({"embeddings.token.weight": torch.randn(2000, 16) * loud}, "int8"))
        again = unpacked(packed(once, "int8"))
        assert torch.equal(once["embeddings.token.weight"], again["embeddings.token.weight"])


def test_tables_of_16_columns_and_more_take_eight_bits_and_all_else_16(tmp_path: Path) -> None:
    made = wide(tmp_path / "wide")
    kept = load_file(tmp_path / "wide" / "model.safetensors")
    eight = {name for name, tensor in kept.items() if tensor.dtype == torch.int8}
    assert eight == {"embeddings.token.weight", "embeddings.ngram.table.weight"}
    assert kept["phrases.table"].shape[1] == 4 and kept["phrases.table"].dtype == torch.float16
    assert all(kept[name + ".scale"].dtype == torch.float16 for name in eight)
    assert kept["phrases.known"].dtype == torch.int64
    assert "wide tables as int8" in (tmp_path / "wide" / "README.md").read_text(encoding="utf-8")
    assert all(parameter.dtype == torch.float32 for parameter in made.model.parameters())


@pytest.mark.parametrize("tables", ["float16", "int8"])
def test_a_model_is_judged_as_it_is_stored(tmp_path: Path, tables: str) -> None:
    config = RunConfig.model_validate({**tiny_config().model_dump(), "stored_tables": tables})
    torch.manual_seed(0)
    network = TextClassifier(config.model, vocab_size=40, n_classes=3).eval()
    before = network.embeddings.token.weight.detach().clone()
    round_as_stored(network, config.stored_tables)
    weights = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    kept = unpacked(packed(weights, config.stored_tables))
    for name, tensor in weights.items():
        assert torch.equal(kept[name].to(tensor.dtype), tensor), name
    off = (before - network.embeddings.token.weight).abs().max()
    assert 0 < off < (1e-3 if tables == "float16" else 2e-2)


@pytest.mark.parametrize(
    "hurt, message",
    [
        (lambda kept: kept.pop("embeddings.token.weight.scale"), "token.weight is torch.int8, wanted floating point"),
        (lambda kept: kept.update({"embeddings.token.weight.scale": torch.ones(3, 1).half()}), "holds unknown embed"),
        (lambda kept: kept["embeddings.token.weight.scale"].fill_(torch.inf), "values that are not finite"),
        (lambda kept: kept.update({"embeddings.token.weight": torch.ones(9).to(torch.int8)}), "holds unknown embed"),
        (lambda kept: kept.update({"head.bias.scale": torch.ones(3, 1)}), r"holds unknown head\.bias\.scale"),
    ],
)
def test_scales_that_do_not_fit_are_refused(tmp_path: Path, hurt, message: str) -> None:  # type: ignore[no-untyped-def]
    wide(tmp_path / "wide")
    file = tmp_path / "wide" / "model.safetensors"
    kept = load_file(file)
    hurt(kept)
    save_file(kept, file)
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(tmp_path / "wide")


def test_a_table_that_is_not_finite_is_not_saved(tmp_path: Path) -> None:
    made = wide(tmp_path / "wide")
    for value in (torch.nan, torch.inf):
        with torch.no_grad():
            made.model.embeddings.token.weight[3, 2] = value
        with pytest.raises(CheckpointError, match=r"token\.weight\.scale are not finite"):
            save_checkpoint(made)
