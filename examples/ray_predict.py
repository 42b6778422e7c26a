"""Classify a folder of Parquet files with Ray Data, on a Ray cluster or on all cores of one machine.

    pip install "ray[data]>=2.60"
    python examples/ray_predict.py INPUT_FOLDER OUTPUT_FOLDER --checkpoint checkpoints/ag_news --workers 4

Each worker loads the checkpoint once and classifies one batch after another; Ray reads, distributes and writes the
rows. The checkpoint folder must exist on every machine.
"""

import argparse

import numpy as np
import ray

import txcls


class BatchClassifier:
    """Adds label and probability to batches of columns; "" and NaN for texts without words."""

    def __init__(self, checkpoint: str, text_column: str) -> None:
        self.classifier, self.text_column = txcls.load(checkpoint), text_column

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        rows = self.classifier.probabilities(batch[self.text_column], precision="float32")  # N C
        labels = np.array(self.classifier.classes, dtype=object)[rows.argmax(axis=1)]
        labels[np.isnan(rows[:, 0])] = ""
        return {**batch, "predicted_label": labels, "probability": rows.max(axis=1).round(6)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("input", help="folder or URL that ray.data.read_parquet reads")
    parser.add_argument("output", help="folder or URL to write Parquet files to")
    parser.add_argument("--checkpoint", default="checkpoints/ag_news")
    parser.add_argument("--text-column", default="text")
    parser.add_argument("--workers", type=int, default=2, help="number of processes that classify")
    options = parser.parse_args()
    rows = ray.data.read_parquet(options.input)
    classified = rows.map_batches(
        BatchClassifier,
        fn_constructor_kwargs={"checkpoint": options.checkpoint, "text_column": options.text_column},
        compute=ray.data.ActorPoolStrategy(size=options.workers),
        num_cpus=0.5,  # half a CPU per worker, to leave the other half for reading and writing
        batch_size=1024,
    )
    classified.write_parquet(options.output)


if __name__ == "__main__":
    main()
