"""What `plan_own` decides: parts of the data, length, epochs, threads, settings."""

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint import Checkpoint, load_checkpoint
from txcls.config import DataConfig, RunConfig, load_preset
from txcls.data.batches import TokenisedTexts
from txcls.data.own_split import copies, hold_out, in_classes, text_key
from txcls.data.types import LabelledTexts
from txcls.errors import ConfigError, DataError, TrainingError, listed, shown
from txcls.folders import checkpoint_root, reason
from txcls.model import TextClassifier
from txcls.record import labels_problem
from txcls.text.encoder import TextEncoder
from txcls.training.from_pretrained import encoder_from, settings_from
from txcls.training.own_types import OwnPlan
from txcls.training.recipe import Recipe, recipe_for
from txcls.training.run_folder import plan_file
from txcls.training.speed import Speed, measure_speed

Indices = NDArray[np.int64]

LEAST_ROWS = 10
"""Fewest rows that are trained on."""
TEST_SHARE, MOST_TEST = 0.2, 5000
"""Share of the rows held out for testing, and most of them: more would hardly narrow the interval."""
VALIDATION_SHARE, FEW_VALIDATION, MOST_VALIDATION = 0.05, 50, 1000
"""Share of the remaining rows held out to fit the calibration, which has two parameters; fewer than FEW_VALIDATION are
too few for it, so that of small sets up to twice the share is taken; and most of them."""
MEASURED_TEXTS = 2000
"""Training texts whose tokens are counted and on which the speed is measured."""


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of the data and which rows they are; `test_rows` is empty if the test rows were given."""

    training: LabelledTexts
    validation: LabelledTexts
    test: LabelledTexts
    training_rows: Indices
    validation_rows: Indices
    test_rows: Indices
    notes: tuple[str, ...]


def plan_own(
    rows: LabelledTexts,
    *,
    test: LabelledTexts | None = None,
    minutes: float = 5.0,
    seed: int = 0,
    init: Checkpoint | Literal["encoder"] | None = "encoder",
    name: str = "mine",
    source: str = "texts of your own",
    columns: tuple[str, str] | None = None,
) -> OwnPlan:
    """Choose parts of the data and all settings from the rows and the time budget; takes a few seconds of measuring.

    Args:
        rows: all labelled rows.
        test: test rows; None holds some of `rows` out. Rows of classes that `rows` lacks are left out, with a note.
        minutes: the budget for everything that `train_own` does.
        seed: of the split, the weights and the order of the rows.
        init: a model made by `pretrain` to start from; "encoder" for the shipped one if it is there; None for random
            weights.
        name: of the checkpoint: letters, digits, `_`, `.` and `-`.
        source: what the rows are, for the title and the card: the file's name.
        columns: names of the file's text and label column, for `evaluate` on other files; None if there is no file.

    Raises:
        DataError: fewer than two classes, too few rows, or labels that do not repeat; the message says what to do.
        TrainingError: `init` is a classifier.
    """
    _check(rows, minutes)
    parts = parted(rows, test, seed=seed)
    start = shipped_encoder() if init == "encoder" else init
    recipe = recipe_for(n=len(parts.training), n_classes=len(rows.classes), minutes=minutes, pretrained=bool(start))
    config = _config(recipe, start, name=name, source=source, seed=seed, columns=columns)
    sample = _sample(parts.training, seed=seed)
    config, encoder, lengths = _with_length(config, start, parts.training, sample)
    speed = _measured(config, encoder, sample)
    steps_per_epoch = math.ceil(len(parts.training) / config.train.batch_size)
    tokens = float(np.minimum(lengths, config.model.max_length).mean()) * len(parts.training)
    fit = recipe.epochs_within(tokens_per_epoch=tokens, tokens_per_second=speed.tokens_per_second)
    config = config.with_settings([f"train.epochs={fit.epochs}"])
    return OwnPlan(
        config=config,
        **{field: getattr(parts, field) for field in ("training", "validation", "test")},
        **{field: getattr(parts, field) for field in ("training_rows", "validation_rows", "test_rows")},
        given_test=test is not None,
        init=start,
        minutes=minutes,
        epochs=fit.epochs,
        steps=fit.epochs * steps_per_epoch,
        max_length=config.model.max_length,
        threads=speed.threads,
        tokens_per_second=speed.tokens_per_second,
        forecast=fit.seconds,
        notes=(*parts.notes, *_notes(config, start, lengths, speed, fit.epochs, fit.seconds, minutes)),
    )


def write_plan(plan: OwnPlan, out: Path) -> None:
    """Keep what was chosen beside the state of the run, so that it can be resumed where measuring would choose anew.

    Raises:
        TrainingError: it cannot be written.
    """
    file = plan_file(out)
    values = {
        "config": plan.config.model_dump(mode="json"),
        "rows": _fingerprint(plan),
        **{name: getattr(plan, name) for name in _RESUMED},
    }
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values), encoding="utf-8")
    except OSError as error:
        raise TrainingError(f"cannot write to {file.parent}: {reason(error)}; choose another --out") from None


def resumed_plan(plan: OwnPlan, out: Path) -> OwnPlan:
    """The plan of the interrupted run beside `out`, for the rows of this one.

    Raises:
        TrainingError: there is none, it is damaged, or it is of other rows.
    """
    file = plan_file(out)
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
        config = RunConfig.from_mapping(values["config"], source=str(file))
        kept = {name: values[name] for name in _RESUMED}
        rows = values["rows"]
    except FileNotFoundError:
        raise TrainingError(f"nothing to resume: there is no {file}; start without --resume") from None
    except (OSError, ValueError, KeyError, TypeError, ConfigError) as error:
        raise TrainingError(f"{file} is damaged ({error!s:.200}); start without --resume, with --overwrite") from None
    if rows != _fingerprint(plan):
        raise TrainingError(f"{file} is of a run with other rows, --test or --seed; repeat these, or use --overwrite")
    return replace(plan, config=config, **kept)


_RESUMED = ("epochs", "steps", "max_length", "threads", "tokens_per_second", "forecast", "minutes")


def _fingerprint(plan: OwnPlan) -> str:
    digest = hashlib.sha256(repr(plan.classes).encode("utf-8", "backslashreplace"))
    for part in (plan.training, plan.validation, plan.test):
        digest.update(repr((list(part.texts), list(part.labels))).encode("utf-8", "backslashreplace"))
    return digest.hexdigest()


def shipped_encoder() -> Checkpoint | None:
    """The pre-trained encoder that comes with the project, if it is there."""
    folder = checkpoint_root() / "encoder"
    return load_checkpoint(folder) if (folder / "config.json").is_file() else None


def _check(rows: LabelledTexts, minutes: float) -> None:
    if not 0.05 <= minutes <= 24 * 60:
        raise DataError(f"got a budget of {minutes:g} minutes; wanted 0.05 to 1440")
    counts = Counter(rows.labels)
    if len(counts) < 2:
        only = shown(rows.classes[next(iter(counts))], limit=40) if counts else ""
        raise DataError(f"all {len(rows):,} rows have the label '{only}'; wanted at least two classes")
    if len(rows) < LEAST_ROWS:
        raise DataError(f"{len(rows)} rows with text and label; wanted {LEAST_ROWS} at least, better some hundred")
    if len(counts) > max(2, len(rows) // 2):
        raise DataError(
            f"{len(counts):,} different labels in {len(rows):,} rows, so hardly any repeats; is it the right label "
            "column, or are the two columns swapped? Name them with --text-column and --label-column"
        )
    if problem := labels_problem(rows.classes):
        raise DataError(f"{problem}; is it the right label column?")


def parted(rows: LabelledTexts, test: LabelledTexts | None, *, seed: int) -> Parts:
    """Training, validation and test rows, with notes on classes and copies."""
    notes = []
    everything = np.arange(len(rows))
    test_rows = np.zeros(0, dtype=np.int64)
    if test is None:
        groups = copies(rows.texts)
        if repeated := len(rows) - len(np.unique(groups)):
            notes.append(f"{repeated:,} rows repeat the text of another; copies are kept in the same part.")
        n = min(round(TEST_SHARE * len(rows)), MOST_TEST)
        kept, test_rows = hold_out(rows.labels, n=n, seed=seed, groups=groups)
        tested = rows.subset(test_rows)
    else:
        kept = everything
        tested, _ = in_classes(test, rows.classes)
        notes += _on_given_test(rows, test, tested)
    if not len(tested):
        raise DataError("no test rows are left; give more rows, or test rows of the same classes")
    known = rows.subset(kept)
    share = VALIDATION_SHARE * len(known)
    n = min(max(round(share), min(FEW_VALIDATION, round(2 * share)), 2), MOST_VALIDATION)
    inner, validated = hold_out(known.labels, n=n, seed=seed + 1, groups=copies(known.texts))
    if not len(validated):  # every class has a single row or copies of one text
        validated, inner = inner[:1], inner[1:]
    notes += _on_small_classes(rows, tested)
    how = "given" if test is not None else "held out by chance, every class in proportion"
    notes.append(
        f"{len(inner):,} rows to learn from, {len(validated):,} to fit the calibration, {len(tested):,} to test on "
        f"({how})."
    )
    training = kept[inner]
    return Parts(
        rows.subset(training), rows.subset(kept[validated]), tested, training, kept[validated], test_rows, tuple(notes)
    )


def _on_given_test(rows: LabelledTexts, test: LabelledTexts, tested: LabelledTexts) -> Iterator[str]:
    if left := len(test) - len(tested):
        unknown = sorted({test.classes[label] for label in test.labels} - set(rows.classes))
        yield f"{left:,} test rows have labels that no training row has ({listed(unknown)}); they are left out."
    seen = {text_key(text) for text in rows.texts}
    if both := sum(text_key(text) in seen for text in tested.texts):
        yield f"{both:,} test rows repeat the text of a training row, which makes the test a little easier."


def _on_small_classes(rows: LabelledTexts, tested: LabelledTexts) -> Iterator[str]:
    counts = Counter(rows.labels)
    if single := [rows.classes[label] for label, n in sorted(counts.items()) if n == 1]:
        one = len(single) == 1
        yield (
            f"{len(single):,} class{'' if one else 'es'} with a single row ({listed(single)}): "
            f"{'it is' if one else 'they are'} learned, but cannot be measured."
        )
    measured = set(tested.labels)
    if rare := [rows.classes[label] for label, n in sorted(counts.items()) if n > 1 and label not in measured]:
        yield f"{len(rare):,} further classes with few rows have no test row ({listed(rare)})."


def _config(
    recipe: Recipe,
    start: Checkpoint | None,
    *,
    name: str,
    source: str,
    seed: int,
    columns: tuple[str, str] | None,
) -> RunConfig:
    text, label = columns or (None, None)
    data = DataConfig(dataset="table", text_column=text, label_column=label)
    base = load_preset("own").model_copy(
        update={"name": checkpoint_name(name), "title": title_of(source), "data": data}
    )
    settings = [*recipe.settings, f"train.seed={seed}"]
    config = base.with_settings(settings)
    return config if start is None else settings_from(start, config)


def checkpoint_name(name: str) -> str:
    """A name that a checkpoint may have, made of any: `my data.csv` gives `my_data`."""
    stem = re.sub(r"(\.gz)?$", "", name)
    stem = re.sub(r"\.(csv|tsv|tab|jsonl|ndjson|json|parquet|xlsx|xlsm)$", "", stem, flags=re.IGNORECASE)
    stem = re.sub(r"[^A-Za-z0-9_.-]+", "_", stem).strip("_.-")
    return stem[:60] or "mine"


def title_of(source: str) -> str:
    """What a classifier of one's own is called: after its file."""
    return shown(source, limit=80)


def _sample(rows: LabelledTexts, *, seed: int) -> LabelledTexts:
    n = min(MEASURED_TEXTS, len(rows))
    return rows.subset(np.sort(np.random.default_rng(seed).permutation(len(rows))[:n]))


def _with_length(
    config: RunConfig, start: Checkpoint | None, rows: LabelledTexts, sample: LabelledTexts
) -> tuple[RunConfig, TextEncoder, NDArray[np.int64]]:
    """The settings with a max_length for these texts, the encoder, and the tokens of each text of the sample, uncut."""
    from txcls.training.recipe import LONGEST, length_for

    whole = config.with_settings([f"model.max_length={LONGEST}"])
    if start is None:
        fitted = rows if len(rows) <= 20_000 else rows.subset(range(0, len(rows), len(rows) // 20_000))
        encoder = TextEncoder.fit(fitted.texts, config.text, max_length=LONGEST, class_token=config.reads_class_token)
    else:
        encoder = encoder_from(start, whole)
    lengths = TokenisedTexts.encode(encoder, sample).lengths
    chosen = length_for(lengths)
    config = config.with_settings([f"model.max_length={chosen}"])
    cut = TextEncoder.from_dict({**encoder.to_dict(), "max_length": chosen})
    return config, cut, lengths


def _measured(config: RunConfig, encoder: TextEncoder, sample: LabelledTexts) -> Speed:
    model = TextClassifier(config.model, vocab_size=encoder.vocab_size, n_classes=len(sample.classes))
    return measure_speed(model, TokenisedTexts.encode(encoder, sample), config.train)


def _notes(
    config: RunConfig,
    start: Checkpoint | None,
    lengths: NDArray[np.int64],
    speed: Speed,
    epochs: int,
    seconds: float,
    minutes: float,
) -> Sequence[str]:
    cut = float((lengths > config.model.max_length).mean())
    read = f"The first {config.model.max_length} tokens of a text are read" + (
        f"; {cut:.0%} of the texts are longer." if cut else ", so all texts are read whole."
    )
    begun = (
        f"Training starts from the pre-trained '{start.name}'."
        if start is not None
        else "Training starts from random weights, since no pre-trained encoder is there."
    )
    return (
        begun,
        read,
        speed.sentence,
        f"{epochs} epochs of batches of {config.train.batch_size}, in about {seconds / 60:.1f} of {minutes:g} minutes.",
    )
