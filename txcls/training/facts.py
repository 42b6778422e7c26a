"""The entries of metrics.json and the model card about a run's data, training and machine."""

import os
import platform
from pathlib import Path
from typing import Any

import numpy as np
import torch

from txcls import __version__
from txcls.config import RunConfig
from txcls.data.hashes import sketch
from txcls.data.types import Dataset, LabelledTexts
from txcls.training.distributed import n_processes
from txcls.training.loop import FitResult


def data_facts(dataset: Dataset, training_rows: LabelledTexts, validation_rows: LabelledTexts) -> dict[str, Any]:
    """The "data" entry of a classifier's metrics.json."""
    info = dataset.info
    if "validation" in dataset.splits:
        note = f"{len(training_rows):,} training rows were used"
        validation = "given beside the training rows" if info.name == "table" else "published with the set"
    else:
        note = f"{len(training_rows) + len(validation_rows):,} training rows were used, validation rows included"
        validation = "held out of the training rows"
    return {
        "dataset": info.name,
        "title": info.title,
        "terms": info.terms,
        "note": note + (f": {dataset.description}." if dataset.description else "."),
        "validation": validation,
        "train_rows": len(training_rows),
        "train_rows_by_class": np.bincount(training_rows.labels, minlength=len(training_rows.classes)).tolist(),
        "validation_rows": len(validation_rows),
        **({"sketch": sketch([*training_rows.texts, *validation_rows.texts])} if info.name == "table" else {}),
    }


def training_facts(result: FitResult, config: RunConfig, command: str, device: torch.device) -> dict[str, Any]:
    """The "training" entry of metrics.json."""
    processor = torch.cuda.get_device_name(device) if device.type == "cuda" else processor_name()
    processes = f", {n_processes()} processes" if n_processes() > 1 else ""
    return {
        "command": command or f"python -m txcls train {config.name}",
        "seed": config.train.seed,
        "seconds": round(result.seconds),
        "epochs": result.history[-1].epoch,
        "steps": result.history[-1].step,
        "done": result.done,
        "best_epoch": result.best.epoch,
        "machine": f"{processor}, {torch.get_num_threads()} threads{processes}",
        "software": f"txcls {__version__}, torch {torch.__version__}, Python {platform.python_version()}",
    }


def processor_name() -> str:
    """The processor's name, if the system reports it, and its number of cores."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()} ({os.cpu_count()} cores)"
