"""The implementation of `txcls.train`: train on texts and labels given in Python."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.load import load_checkpoint
from txcls.config import DataConfig, load_preset
from txcls.data.labelled import dataset_from_rows, notes_before_training, rows_from_python
from txcls.training.display import TrainingDisplay
from txcls.training.from_pretrained import settings_from
from txcls.training.plan import plan_training
from txcls.training.run_folder import refuse_existing
from txcls.training.run_plan import run_plan
from txcls.training.supervised import train

Validation = tuple[Iterable[str], Iterable[object]] | float | None


def train_by_preset(
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
    """Train with a preset's settings; for arguments and errors see `txcls.train`."""
    if isinstance(settings, str):
        raise TypeError(f"settings: got one string; expected a list of settings, for example [{settings!r}]")
    rows = rows_from_python(texts, labels)
    assignments = [*settings, f"train.seed={seed}"]
    validation_rows = None
    if isinstance(validation, int | float):
        assignments.append(f"data.validation_fraction={validation}")
    elif validation is not None:
        validation_rows = rows_from_python(*_pair(validation), classes=rows.classes, kind="validation ")
    dataset = dataset_from_rows(rows, validation_rows)
    folder = _new_folder(out, overwrite=overwrite)
    config = load_preset(preset)
    if config.data.dataset != "table":  # the preset of a published data set
        data = DataConfig(dataset="table", validation_fraction=config.data.validation_fraction)
        config = config.model_copy(update={"name": "own", "data": data, "title": "own texts"})
    config = config.with_settings(assignments)
    pretrained = None if init is None else load_checkpoint(init)
    if pretrained is not None:
        config = settings_from(pretrained, config, assignments=settings)
    with TrainingDisplay(shown=progress) as display:
        for sentence in notes_before_training(rows):
            display.say(sentence)
        return train(
            config,
            out=folder,
            dataset=dataset,
            init=pretrained,
            command=_command(init, preset, settings, validation, seed),
            overwrite=overwrite,
            **display.callbacks,
        )


def train_by_recipe(
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
    """Train with settings chosen from the rows; for arguments and errors see `txcls.train`."""
    rows = rows_from_python(texts, labels)
    test_rows = None if test is None else rows_from_python(*_pair(test, "test"), kind="test ")
    folder = _new_folder(out, overwrite=overwrite)
    plan = plan_training(
        rows,
        test=test_rows,
        minutes=5.0 if minutes is None else minutes,
        seed=seed,
        name="own" if folder is None else folder.name,
        source="own texts",
    )
    arguments = [] if minutes is None else [f"minutes={minutes:g}"]
    arguments += [] if test is None else ["test=(texts, labels)"]
    with TrainingDisplay(shown=progress) as display:
        for sentence in (*notes_before_training(rows), *plan.splits.notes, *plan.sentences):
            display.say(sentence)
        command = f"txcls.train(texts, labels, {', '.join([*arguments, f'seed={seed}'])})"
        result = run_plan(plan, out=folder, command=command, **display.callbacks)
        display.say(result.comparison.verdict)
    return result.checkpoint


def _new_folder(out: str | Path | None, *, overwrite: bool) -> Path | None:
    """The folder to write to; raises TrainingError if it exists, unless `overwrite` is set."""
    if out is None:
        return None
    refuse_existing(Path(out), overwrite=overwrite, advice="choose another folder, or replace it with overwrite=True")
    return Path(out)


def _pair(given: Any, name: str = "validation") -> tuple[Iterable[str], Iterable[object]]:
    """`given` as texts and labels; raises TypeError if it is not a pair."""
    try:
        texts, labels = given
    except (TypeError, ValueError):
        or_share = ", or a fraction of the rows between 0 and 1" if name == "validation" else ""
        raise TypeError(f"{name}: expected a pair (texts, labels){or_share}; got a {type(given).__name__}") from None
    return texts, labels


def _command(
    init: str | Path | None, preset: str | Path, settings: Sequence[str], validation: Validation, seed: int
) -> str:
    """The call for the model card, without paths on this machine."""
    arguments = [] if init is None else [f"init={Path(init).name!r}"]
    arguments += [f"preset={Path(preset).name!r}", f"seed={seed}"]
    arguments += [f"settings={list(settings)!r}"] if settings else []
    if validation is not None:
        arguments.append(f"validation={validation if isinstance(validation, int | float) else '(texts, labels)'}")
    return f"txcls.train(texts, labels, {', '.join(arguments)})"
