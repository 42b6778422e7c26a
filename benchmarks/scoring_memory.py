"""How fast a file is classified row by row, and how much memory that takes from its beginning to its end.

    python -m benchmarks.scoring_memory [--rows 20000] [--checkpoint ag_news] [--suffix .csv] [--precision auto]

The rows are words of the sample messages, put together anew by a fixed seed. The command line runs as a user would run
it; its resident memory is read from /proc once a second (Linux).
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from benchmarks._measure import machine, resident_mb
from txcls.config import DataConfig
from txcls.data.datasets import open_dataset
from txcls.evaluation.scoring import PART_ROWS


def write_rows(path: Path, n: int) -> None:
    """A CSV (or JSON Lines, or Parquet) file of n texts of 5 to 25 words, written a few at a time."""
    words = sorted({word for text in open_dataset(DataConfig()).load("train").texts for word in text.split()})
    chance = random.Random(0)
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    make = pq.ParquetWriter if path.suffix == ".parquet" else pyarrow.csv.CSVWriter
    with make(path, schema) as writer:
        for start in range(0, n, 10_000):
            rows = range(start, min(start + 10_000, n))
            texts = [" ".join(chance.choices(words, k=chance.randint(5, 25))) for _ in rows]
            writer.write_table(pa.table({"id": list(rows), "text": texts}, schema=schema))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--checkpoint", default="ag_news")
    parser.add_argument("--suffix", choices=[".csv", ".parquet"], default=".csv")
    parser.add_argument("--precision", choices=["float32", "bfloat16", "auto"], default="float32")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / f"in{options.suffix}", Path(folder) / f"out{options.suffix}"
        write_rows(source, options.rows)
        command = ["predict", options.checkpoint, "--input", str(source), "--output", str(target)]
        command += ["--precision", options.precision]
        started = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-m", "txcls", *command], stderr=subprocess.DEVNULL)
        parts = target.with_name(f"{target.name}.parts")
        memory: list[tuple[float, int, float]] = []  # seconds, rows done, MB
        while process.poll() is None:
            time.sleep(1.0)
            done = sum(path.suffix == "" for path in parts.glob("0*")) * PART_ROWS
            if (now := resident_mb(process.pid)) is not None:
                memory.append((time.perf_counter() - started, done, now))
        seconds = time.perf_counter() - started
        if process.returncode:
            print(f"predict ended with {process.returncode}")
            return 1
        size = source.stat().st_size / 1e6
    print(machine())
    what = f"{options.checkpoint}, {options.precision}, one process"
    print(f"{options.rows:,} rows, {size:.0f} MB of {options.suffix}, {what}")
    print(f"{seconds:.0f} s in all, {options.rows / seconds:,.0f} rows/s with start, check and joining")
    if memory:
        working = [entry for entry in memory if entry[1]] or memory
        print("\nrows done   seconds   resident MB")
        for share in range(11):
            at, done, now = working[round((len(working) - 1) * share / 10)]
            print(f"{min(done, options.rows):>9,}   {at:>7.0f}   {now:>11.0f}")
        print(f"at most {max(now for _, _, now in memory):.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
