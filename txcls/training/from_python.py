"""Training on rows given from Python, as `python -m txcls train PRESET --data FILE` does on those of a file."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from txcls.checkpoint import Checkpoint, load_checkpoint
from txcls.config import DataConfig, load_preset
from txcls.data.given import given_dataset, given_rows
from txcls.errors import TrainingError
from txcls.training.display import TrainingDisplay
from txcls.training.from_pretrained import settings_from
from txcls.training.supervised import train

Validation = tuple[Iterable[str], Iterable[object]] | float | None


def train_on_rows(
    texts: Iterable[str],
    labels: Iterable[object],
    *,
    init: str | Path | None,
    preset: str | Path,
    settings: Sequence[str],
    validation: Validation,
    out: str | Path | None,
    overwrite: bool,
    seed: int,
    progress: bool,
) -> Checkpoint:
    """The checkpoint; arguments and errors are those of `txcls.train`."""
    if isinstance(settings, str):
        raise TypeError(f"settings: got one string; wanted a list of settings, for example [{settings!r}]")
    rows = given_rows(texts, labels)
    changed = []
    held_out = None
    if isinstance(validation, int | float):
        changed.append(f"data.validation_fraction={validation}")
    elif validation is not None:
        held_out = given_rows(*_pair(validation), classes=rows.classes, kind="validation ")
    dataset = given_dataset(rows, held_out)
    folder = None if out is None else Path(out)
    if folder is not None and folder.exists() and not overwrite:
        raise TrainingError(f"{folder} already exists; choose another folder, or replace it with overwrite=True")
    config = load_preset(preset)
    if config.data.dataset != "table":  # the preset of a published data set, for texts of another one
        data = DataConfig(dataset="table", validation_fraction=config.data.validation_fraction)
        config = config.model_copy(update={"data": data, "title": "own texts"})
    assignments = [*settings, f"train.seed={seed}", *changed]
    config = config.with_settings(assignments)
    start = None if init is None else load_checkpoint(init)
    if start is not None:
        config = settings_from(start, config, assignments=settings)
    with TrainingDisplay(shown=progress) as display:
        return train(
            config,
            out=folder,
            dataset=dataset,
            init=start,
            command=_command(init, preset, settings, validation, seed),
            overwrite=overwrite,
            **display.callbacks,
        )


def _pair(validation: Any) -> tuple[Iterable[str], Iterable[object]]:
    """Texts and labels.

    Raises:
        TypeError: it is not a pair.
    """
    try:
        texts, labels = validation
    except (TypeError, ValueError):
        raise TypeError(
            "validation: wanted a pair (texts, labels), or a fraction of the rows between 0 and 1; "
            f"got a {type(validation).__name__}"
        ) from None
    return texts, labels


def _command(
    init: str | Path | None, preset: str | Path, settings: Sequence[str], validation: Validation, seed: int
) -> str:
    """The call as the model card shows it, without paths of this machine."""
    given = [] if init is None else [f"init={Path(init).name!r}"]
    given += [f"preset={Path(preset).name!r}", f"seed={seed}"]
    given += [f"settings={list(settings)!r}"] if settings else []
    if validation is not None:
        given.append(f"validation={validation if isinstance(validation, int | float) else '(texts, labels)'}")
    return f"txcls.train(texts, labels, {', '.join(given)})"
