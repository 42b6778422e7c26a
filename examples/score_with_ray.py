"""Score files of any size with Ray Data: on all cores of one machine, or on a cluster.

    pip install -r examples/requirements.txt
    python examples/score_with_ray.py "mails/*.parquet" scored --checkpoint checkpoints/ag_news --workers 4

Each worker loads the checkpoint once and then classifies one batch after another; Ray reads, distributes and writes the
rows, as Parquet files in the folder OUTPUT. On a cluster, the checkpoint folder must be on every machine.
"""

import argparse

import numpy as np
import ray

import txcls


class Scorer:
    """A worker's state: the classifier, and the column that it reads."""

    def __init__(self, checkpoint: str, text_column: str) -> None:
        self.classifier, self.text_column = txcls.load(checkpoint), text_column

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Add the most probable class of each row and its probability; the input's own columns are kept."""
        probabilities = self.classifier.probabilities(batch[self.text_column].tolist())  # N C
        labels = np.array(self.classifier.classes)[probabilities.argmax(axis=1)]
        return {**batch, "txcls_label": labels, "txcls_probability": probabilities.max(axis=1).round(6)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("input", help="files, folder or address that ray.data.read_parquet reads")
    parser.add_argument("output", help="folder or address for the Parquet files to write")
    parser.add_argument("--checkpoint", default="checkpoints/ag_news", help="folder of the classifier")
    parser.add_argument("--text-column", default="text")
    parser.add_argument("--workers", type=int, default=2, help="number of processes that classify")
    options = parser.parse_args()
    rows = ray.data.read_parquet(options.input)
    scored = rows.map_batches(
        Scorer,
        fn_constructor_args=(options.checkpoint, options.text_column),
        compute=ray.data.ActorPoolStrategy(size=options.workers),
        num_cpus=0.5,  # the other half of each core is left to reading and writing
        batch_size=1024,
    )
    scored.write_parquet(options.output)


if __name__ == "__main__":
    main()
