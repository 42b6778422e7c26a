import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from tests.conftest import TEXTS, make_checkpoint
from txcls.inference.predictor import Predictor

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
@pytest.mark.timeout(600)  # Ray starts a cluster of its own
def test_two_workers_score_all_rows_of_several_files_and_keep_their_columns(tmp_path: Path) -> None:
    checkpoint = make_checkpoint(tmp_path / "tiny")
    (tmp_path / "in").mkdir()
    texts = [f"{TEXTS[n % 8]} {n}" for n in range(60)]
    frame = pd.DataFrame({"n": range(60), "body": texts, "probability": 0.25})
    for first in (0, 30):
        frame[first : first + 30].to_parquet(tmp_path / "in" / f"{first}.parquet")
    arguments = ["in", "out", "--checkpoint", str(checkpoint.path), "--text-column", "body", "--workers", "2"]
    ran = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "score_with_ray.py"), *arguments],
        cwd=tmp_path,
        # PYTHONPATH reaches the workers too; usage statistics are off, since there may be no network.
        env={**os.environ, "PYTHONPATH": str(ROOT), "RAY_USAGE_STATS_ENABLED": "0"},
        capture_output=True,
        text=True,
        timeout=580,
    )
    assert ran.returncode == 0, ran.stderr
    written = pd.read_parquet(tmp_path / "out").sort_values("n")
    expected = Predictor(checkpoint).predict(texts)
    assert written["body"].tolist() == texts and set(written["probability"]) == {0.25}
    assert written["txcls_label"].tolist() == [prediction.label for prediction in expected]
    probabilities = [prediction.ranked[0].probability for prediction in expected]
    assert written["txcls_probability"].tolist() == pytest.approx(probabilities, abs=0.01)
