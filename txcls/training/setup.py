"""What classifying and pre-training runs share around the loop: device, folder, and the facts for the model card."""

import os
import platform
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import torch

from txcls import __version__
from txcls.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from txcls.config import RunConfig
from txcls.data.batches import TokenisedTexts
from txcls.data.cache import cache_folder
from txcls.data.datasets import Dataset, LabelledTexts
from txcls.errors import DataError, TrainingError
from txcls.folders import alone, reason
from txcls.record import labels_problem
from txcls.text.encoder import TextEncoder
from txcls.training.distributed import here, launcher, own_device
from txcls.training.loop import FitResult

Run = ParamSpec("Run")


def state_file(out: Path) -> Path:
    """Where a run that is to end in `out` keeps its state: beside it, in a folder with `.training` added."""
    return out.with_name(out.name + ".training") / "state.pt"


def choose_device(name: str | None) -> torch.device:
    """The device of that name, checked by putting something on it."""
    if name is None:
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        if name == "cuda" and here().size > 1:
            return own_device()
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise TrainingError(f"device {name!r} cannot be used here ({reason}); try --device cpu") from None
    return device


def check_writable(out: Path) -> None:
    """Fail before the training, not after it, where the checkpoint could not be written."""
    if here().rank:
        return  # it will not write
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        probe = out.parent / f".{out.name}-probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise TrainingError(
            f"cannot write to {out.parent}: {error.strerror}; choose another folder with --out"
        ) from None
    if out.exists() and not out.is_dir():
        raise TrainingError(f"{out} is a file; choose another folder with --out")


def one_run_per_folder(run: Callable[Run, Checkpoint]) -> Callable[Run, Checkpoint]:
    """Let `run(out=…, resume=…, overwrite=…)` have its folder to itself, and replace no saved state unasked.

    Raises:
        TrainingError: another run writes that folder, a stopped one left its state there, or it cannot be written.
    """

    @wraps(run)
    def guarded(*args: Run.args, **kwargs: Run.kwargs) -> Checkpoint:
        out = kwargs.get("out")
        if here().rank or not isinstance(out, Path):
            return run(*args, **kwargs)  # the first process of several is asked
        check_writable(out)
        state = state_file(out)
        with _locked(state.with_name("lock")) as free:
            if not free:
                raise TrainingError(
                    f"another training that will write {out} is running; wait for it, or give --out DIR for another "
                    "folder"
                )
            if state.is_file() and not kwargs.get("resume") and not kwargs.get("overwrite"):
                raise TrainingError(
                    f"{state} holds a training that was stopped: go on with it by --resume, or begin anew by "
                    "--overwrite, or by --out DIR in another folder"
                )
            return run(*args, **kwargs)

    return guarded


@contextmanager
def _locked(file: Path) -> Iterator[bool]:
    with ExitStack() as stack:
        try:
            free = stack.enter_context(alone(file))
        except OSError as error:
            raise TrainingError(f"cannot write to {file.parent}: {reason(error)}; choose another --out") from None
        yield free


def encode_unlabelled(encoder: TextEncoder, texts: Sequence[str]) -> TokenisedTexts:
    """The ids of texts without labels."""
    rows = LabelledTexts(texts, [0] * len(texts), ("text",))
    return TokenisedTexts.encode(encoder, rows, cache=cache_folder() / "tokens")


def finished(checkpoint: Checkpoint, state_path: Path) -> Checkpoint:
    """Save what a run made and remove its state; of several processes the first one does, the others have it too."""
    if here().rank:
        return checkpoint
    save_checkpoint(checkpoint)
    made = load_checkpoint(checkpoint.path)
    shutil.rmtree(state_path.parent, ignore_errors=True)
    return made


def check_classes(dataset: Dataset) -> None:
    """Fail before the training where no checkpoint could hold the class names.

    Raises:
        DataError: they are too many or too long.
    """
    if problem := labels_problem(dataset.classes):
        raise DataError(f"{dataset.source}: {problem}; is the label column the right one?")


def data_facts(dataset: Dataset, training_rows: LabelledTexts, validation_rows: LabelledTexts) -> dict[str, Any]:
    """What a card says of the data of a classifier."""
    info = dataset.info
    used = f"{len(training_rows) + len(validation_rows):,} training rows were used, validation rows included"
    note = f"{len(training_rows):,} training rows were used" if dataset.has_validation else used
    return {
        "dataset": info.name,
        "title": info.title,
        "terms": info.terms,
        "note": note + (f": {dataset.description}." if dataset.description else "."),
        "validation": "published with the set" if dataset.has_validation else "held out of the training rows",
        "train_rows": len(training_rows),
        "validation_rows": len(validation_rows),
    }


def training_facts(result: FitResult, config: RunConfig, command: str, device: torch.device) -> dict[str, Any]:
    """What a card says of how a model was trained, and on which machine."""
    size = here().size
    processor = torch.cuda.get_device_name(device) if device.type == "cuda" else processor_name()
    return {
        "command": command or f"{launcher()} txcls train {config.name}",
        "seed": config.train.seed,
        "seconds": round(result.seconds),
        "epochs": result.history[-1].epoch,
        "steps": result.history[-1].step,
        "best_epoch": result.best.epoch,
        "machine": f"{processor}, {torch.get_num_threads()} threads" + (f", {size} processes" if size > 1 else ""),
        "software": f"txcls {__version__}, torch {torch.__version__}, Python {platform.python_version()}",
    }


def processor_name() -> str:
    """The processor's name where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()} ({os.cpu_count()} cores)"
