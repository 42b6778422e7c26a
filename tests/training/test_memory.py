import os
import subprocess
import sys
from pathlib import Path

import pytest

from txcls.training.loop import KERNEL_CACHE

FIT = """
import numpy as np
from txcls.config import ModelConfig, load_preset
from txcls.data.batches import TokenisedTexts
from txcls.model import TextClassifier
from txcls.training.loop import fit

def texts(lengths):
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return TokenisedTexts(np.full(offsets[-1], 5, np.int32), offsets, np.arange(len(lengths)) % 2)

def megabytes():
    line = next(line for line in open("/proc/self/status") if line.startswith("VmData"))
    return int(line.split()[1]) // 1024

def look(now):
    if now.step in (120, STEPS):
        print(megabytes(), flush=True)

STEPS = 240
config = load_preset("own").train.model_copy(
    update={"batch_size": 1, "epochs": 1, "precision": "bfloat16", "min_steps": 0}
)
shape = ModelConfig(d_model=128, n_heads=4, d_ff=512, n_layers=2, max_length=300)
model = TextClassifier(shape, vocab_size=50, n_classes=2)
fit(model, texts(np.arange(10, 10 + STEPS)), texts([10, 10]), config, on_step=look)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="memory is read from /proc")
def test_batches_of_many_shapes_do_not_fill_the_memory() -> None:
    free = {name: value for name, value in os.environ.items() if name != KERNEL_CACHE}
    completed = subprocess.run([sys.executable, "-c", FIT], capture_output=True, text=True, env=free, check=True)
    early, late = (int(line) for line in completed.stdout.split())
    assert late - early < 100, f"{early} MB of data after 120 steps, {late} MB after 240 steps of other lengths"
