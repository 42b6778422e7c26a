"""What each of several processes does in tests/training/test_distributed.py, which starts them with torchrun.

python -m torch.distributed.run --standalone --nproc-per-node 2 -m tests.training.worker FOLDER CASE...
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

import torch

from tests.training.test_loop import TRAIN, VALIDATION, VOCAB, config, model
from txcls.config import ModelConfig, TrainConfig
from txcls.model import Encoder, LanguageModel
from txcls.training import fit, joined
from txcls.training.objectives import FillMasked, Objective, PredictNext

STILL: dict[str, object] = {"token_dropout": 0.0, "precision": "float32", "epochs": 2}
CASES: dict[str, dict[str, object]] = {
    "averaged": {**STILL, "validations_per_epoch": 3},
    "weighted": {**STILL, "class_weights": "inverse", "ema_decay": 0.0, "gradient_clip": 0.1},
    "one row left": {**STILL, "batch_size": 299, "epochs": 4, "gradient_clip": 0.0, "optimizer": "adam"},
    "stopped early": {
        **STILL,
        "epochs": 30,
        "patience": 2,
        "validations_per_epoch": 2,
        "monitor": "loss",
    },
    "causal": STILL,
    "masked": {**STILL, "batch_size": 1, "epochs": 1},
    "noisy": {"precision": "float32", "epochs": 8},
}
"""Settings without randomness, except in "masked" and "noisy"."""


def make(case: str) -> tuple[Encoder, TrainConfig, Objective | None]:
    """A model, settings and objective; dropout only in "noisy"."""
    settings = config(**CASES[case])
    if case not in ("causal", "masked"):
        # Keys have no bias: it cancels in softmax, so Adam would turn rounding errors in its gradient into large steps.
        network = model(dropout=0.1 if case == "noisy" else 0.0, qkv_bias=False)
        return network, settings, None
    torch.manual_seed(5)
    shape = {"d_model": 16, "n_heads": 2, "n_layers": 1, "d_ff": 32, "max_length": 16, "d_embedding": 8}
    shape = {**shape, "dropout": 0.0, "qkv_bias": False}
    network = LanguageModel(ModelConfig.model_validate({**shape, "causal": case == "causal"}), vocab_size=VOCAB)
    return network, settings, PredictNext() if case == "causal" else FillMasked(VOCAB, share=0.15)


def run(case: str, folder: Path) -> None:
    """Fit the model of a case, and write its history and weights."""
    network, settings, objective = make(case)
    state = folder / f"{case}.state"
    result = fit(network, TRAIN, VALIDATION, settings, objective=objective, state_path=state)
    (folder / f"{case}.json").write_text(json.dumps([asdict(row) for row in result.history]))
    torch.save(network.state_dict(), folder / f"{case}.pt")


if __name__ == "__main__":
    with joined("cpu") as processes:
        home = Path(sys.argv[1]) / str(processes.rank)
        home.mkdir(exist_ok=True)
        for name in sys.argv[2:]:
            run(name, home)
