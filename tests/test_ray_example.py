"""examples/ray_predict.py, run as documented."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from tests.conftest import TEXTS, make_checkpoint
from txcls.inference.predictor import Predictor

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
@pytest.mark.timeout(600)  # Ray starts its own cluster
def test_ray_classifies_a_folder_of_parquet_files(tmp_path: Path) -> None:
    checkpoint = make_checkpoint(tmp_path / "tiny")
    (tmp_path / "in").mkdir()
    texts = [f"{TEXTS[n % 8]} {n}" for n in range(60)]
    for first in (0, 30):
        frame = pd.DataFrame({"n": range(first, first + 30), "body": texts[first : first + 30]})
        frame.to_parquet(tmp_path / "in" / f"{first}.parquet")
    arguments = ["in", "out", "--checkpoint", str(checkpoint.path), "--text-column", "body", "--workers", "2"]
    ran = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "ray_predict.py"), *arguments],
        cwd=tmp_path,
        # PYTHONPATH reaches the workers too; usage statistics are off, since there may be no network.
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
            "RAY_USAGE_STATS_ENABLED": "0",
        },
        capture_output=True,
        text=True,
        timeout=580,
    )
    assert ran.returncode == 0, ran.stderr
    written = pd.read_parquet(tmp_path / "out").sort_values("n")
    expected = Predictor(checkpoint).predict(texts)
    assert written["body"].tolist() == texts
    assert written["predicted_label"].tolist() == [prediction.label for prediction in expected]
    probabilities = [prediction.ranked[0].probability for prediction in expected]
    assert written["probability"].tolist() == pytest.approx(probabilities, abs=1e-6)
