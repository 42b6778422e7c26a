"""Training on rows given from Python, as `python -m txcls train PRESET --data FILE` does on those of a file."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from txcls.checkpoint.checkpoint import Checkpoint, load_checkpoint
from txcls.config import DataConfig, load_preset
from txcls.data.given import given_dataset, given_rows
from txcls.training.auto.plan import plan_training
from txcls.training.auto.run import run_plan
from txcls.training.display import PlanDisplay, TrainingDisplay
from txcls.training.from_pretrained import settings_from
from txcls.training.run_folder import refuse_existing
from txcls.training.supervised import train

Validation = tuple[Iterable[str], Iterable[object]] | float | None


EXISTING = "choose another folder, or replace it with overwrite=True"


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
    if folder is not None:
        refuse_existing(folder, overwrite=overwrite, advice=EXISTING)
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


def train_on_own_rows(
    texts: Iterable[str],
    labels: Iterable[object],
    *,
    minutes: float | None,
    test: tuple[Iterable[str], Iterable[object]] | None,
    out: str | Path | None,
    overwrite: bool,
    seed: int,
    progress: bool,
) -> Checkpoint:
    """The checkpoint by the recipe for texts of one's own; arguments and errors are those of `txcls.train`."""
    rows = given_rows(texts, labels)
    tests = None if test is None else given_rows(*_pair(test, "test"), kind="test ")
    folder = None if out is None else Path(out)
    if folder is not None:
        refuse_existing(folder, overwrite=overwrite, advice=EXISTING)
    plan = plan_training(
        rows,
        test=tests,
        minutes=5.0 if minutes is None else minutes,
        seed=seed,
        name="own" if folder is None else folder.name,
        source="own texts",
    )
    given = [
        *([] if minutes is None else [f"minutes={minutes:g}"]),
        *([] if test is None else ["test=(texts, labels)"]),
    ]
    with PlanDisplay(shown=progress) as display:
        for sentence in plan.notes:
            display.say(sentence)
        result = run_plan(
            plan,
            out=folder,
            overwrite=overwrite,
            command=f"txcls.train(texts, labels, {', '.join([*given, f'seed={seed}'])})",
            **display.callbacks,
        )
        display.say(result.comparison.verdict)
    return result.checkpoint


def _pair(given: Any, name: str = "validation") -> tuple[Iterable[str], Iterable[object]]:
    """Texts and labels.

    Raises:
        TypeError: it is not a pair.
    """
    try:
        texts, labels = given
    except (TypeError, ValueError):
        share = ", or a fraction of the rows between 0 and 1" if name == "validation" else ""
        raise TypeError(f"{name}: wanted a pair (texts, labels){share}; got a {type(given).__name__}") from None
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
