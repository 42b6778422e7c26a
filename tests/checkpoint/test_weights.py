"""Weights in a file: stored as float16, and unchanged when read and written again."""

from pathlib import Path

import torch

from tests.conftest import make_checkpoint, tiny_config
from txcls.checkpoint.checkpoint import save_checkpoint
from txcls.checkpoint.weights import as_stored, round_as_stored
from txcls.model import TextClassifier


def test_what_was_stored_is_stored_the_same_again(tmp_path: Path) -> None:
    made = make_checkpoint(tmp_path / "tiny")
    before = (tmp_path / "tiny" / "model.safetensors").read_bytes()
    save_checkpoint(made)
    assert (tmp_path / "tiny" / "model.safetensors").read_bytes() == before


def test_a_model_is_evaluated_as_it_is_stored() -> None:
    torch.manual_seed(0)
    network = TextClassifier(tiny_config().model, vocab_size=40, n_classes=3).eval()
    before = network.embeddings.token.weight.detach().clone()
    round_as_stored(network)
    weights = network.state_dict()
    for name, tensor in as_stored(weights).items():
        assert torch.equal(tensor.float(), weights[name]), name
    assert 0 < (before - network.embeddings.token.weight).abs().max() < 1e-3
