"""What each process does in test_distributed.py: python -m torch.distributed.run … -m tests.training.worker FOLDER."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

import torch

from tests.training.test_loop import TRAIN, VALIDATION, VOCAB, config
from txcls.config import ModelConfig
from txcls.model import LanguageModel
from txcls.training.distributed import join_processes, rank
from txcls.training.loop import FitResult, fit
from txcls.training.objectives import PredictNext


def train(folder: Path | None) -> tuple[FitResult, LanguageModel]:
    """Train a small language model without dropout; the state is saved in `folder`."""
    torch.manual_seed(5)
    # Keys have no bias: it cancels in softmax, so Adam would turn rounding errors in its gradient into large steps.
    shape = {"d_model": 16, "n_heads": 2, "n_layers": 1, "d_ff": 32, "max_length": 16, "causal": True}
    model = LanguageModel(ModelConfig.model_validate({**shape, "dropout": 0.0, "qkv_bias": False}), vocab_size=VOCAB)
    # 299 of 300 rows leave a last batch of one row, of which the second process has no part.
    settings = config(batch_size=299, epochs=4, validations_per_epoch=2, precision="float32", ema_decay=0.9)
    state = None if folder is None else folder / "state.pt"
    return fit(model, TRAIN, VALIDATION, settings, objective=PredictNext(), state_path=state), model


if __name__ == "__main__":
    with join_processes("cpu"):
        own = Path(sys.argv[1]) / str(rank())
        own.mkdir()
        result, trained = train(own)
        (own / "history.json").write_text(json.dumps([asdict(row) for row in result.history]))
        torch.save(trained.state_dict(), own / "weights.pt")
