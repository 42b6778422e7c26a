"""What `plan_own` decides: parts of the data, length, epochs, threads, settings."""

import itertools
import math
import re
from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint.checkpoint import Checkpoint, load_checkpoint
from txcls.checkpoint.files import checkpoint_root
from txcls.config import DataConfig, RunConfig, load_preset
from txcls.data.batches import TokenisedTexts
from txcls.data.splits import hold_out
from txcls.data.types import LabelledTexts
from txcls.errors import DataError, shown
from txcls.model import TextClassifier
from txcls.text.encoder import TextEncoder
from txcls.training.auto.parts import Parts, check_rows, parted
from txcls.training.auto.recipe import LENGTHS, Measured, Recipe, batch_size, longest_of, recipe_for
from txcls.training.auto.types import OwnPlan
from txcls.training.from_pretrained import encoder_from, settings_from
from txcls.training.speed import Speed, measure_speed

Indices = NDArray[np.int64]

MEASURED_TEXTS = 2000
"""Training texts whose tokens are counted and on which the speed is measured."""
MEASURED_LENGTH = LENGTHS[0]
"""Most tokens of them while the speed is measured: as many as may be read, since a token of a longer text takes longer
(of newsgroup posts at 512 tokens by a third to a half, and a training of four minutes took more than seven)."""
VOCABULARY_TEXTS = 20_000
"""Texts from which a vocabulary is made to count tokens, where no pre-trained encoder brings one."""


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
    speed: Speed | None = None,
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
        speed: of this machine on these rows, as an earlier plan measured it; None measures it.

    Raises:
        DataError: fewer than two classes, too few rows, or labels that do not repeat; the message says what to do.
        TrainingError: `init` is a classifier.
    """
    if not 0.05 <= minutes <= 24 * 60:
        raise DataError(f"got a budget of {minutes:g} minutes; wanted 0.05 to 1440")
    check_rows(rows)
    parts = parted(rows, test, seed=seed)
    start = shipped_encoder() if init == "encoder" else init
    config = _base_config(name, source, columns, batch=batch_size(len(parts.training)), seed=seed)
    if start is not None:
        config = settings_from(start, config)
    sample = _sample(parts.training, seed=seed)
    encoder = _encoder(config, start, parts.training)
    lengths = TokenisedTexts.encode(encoder, sample).lengths
    if speed is None:
        speed = _measured(config, encoder, sample, length=min(longest_of(lengths), MEASURED_LENGTH))
    measured = Measured(
        lengths,
        n=len(parts.training),
        n_classes=len(rows.classes),
        characters=sum(map(len, itertools.chain(rows.texts, (test or parts.test).texts))),
        tokens_per_second=speed.tokens_per_second,
        pretrained=start is not None,
    )
    recipe = recipe_for(measured, minutes=minutes)
    config = config.with_settings(recipe.settings)
    learned = _within(parts, recipe, seed=seed)
    return OwnPlan(
        config=config,
        training=parts.training.subset(learned),
        validation=parts.validation,
        test=parts.test,
        unused=parts.training.subset(np.setdiff1d(np.arange(len(parts.training)), learned)),
        training_rows=parts.training_rows[learned],
        validation_rows=parts.validation_rows,
        test_rows=parts.test_rows,
        given_test=test is not None,
        init=start,
        minutes=minutes,
        epochs=recipe.epochs,
        steps=recipe.runs * recipe.epochs * math.ceil(len(learned) / config.train.batch_size),
        max_length=recipe.max_length,
        threads=speed.threads,
        tokens_per_second=speed.tokens_per_second,
        measured=measured,
        forecast=recipe.seconds + recipe.overhead,
        overhead=recipe.overhead,
        notes=(*parts.notes, *_notes(start, lengths, speed, recipe, len(parts.training), minutes)),
    )


def shipped_encoder() -> Checkpoint | None:
    """The pre-trained encoder that comes with the project, if it is there."""
    folder = checkpoint_root() / "encoder"
    return load_checkpoint(folder) if (folder / "config.json").is_file() else None


def _base_config(name: str, source: str, columns: tuple[str, str] | None, *, batch: int, seed: int) -> RunConfig:
    text, label = columns or (None, None)
    data = DataConfig(dataset="table", text_column=text, label_column=label)
    named = {"name": checkpoint_name(name), "title": title_of(source), "data": data}
    settings = [f"train.batch_size={batch}", f"train.seed={seed}", f"model.max_length={LENGTHS[0]}"]
    return load_preset("own").model_copy(update=named).with_settings(settings)


def checkpoint_name(name: str) -> str:
    """A name that a checkpoint may have, made of any: `my data.csv` gives `my_data`."""
    stem = re.sub(r"(\.gz)?$", "", name)
    stem = re.sub(r"\.(csv|tsv|tab|txt|jsonl|ndjson|json|parquet|xlsx|xlsm)$", "", stem, flags=re.IGNORECASE)
    stem = re.sub(r"[^A-Za-z0-9_.-]+", "_", stem).strip("_.-")
    return stem[:60] or "mine"


def title_of(source: str) -> str:
    """What a classifier of one's own is called: after its file."""
    return shown(source, limit=80)


def _sample(rows: LabelledTexts, *, seed: int) -> LabelledTexts:
    n = min(MEASURED_TEXTS, len(rows))
    return rows.subset(np.sort(np.random.default_rng(seed).permutation(len(rows))[:n]))


def _encoder(config: RunConfig, start: Checkpoint | None, rows: LabelledTexts) -> TextEncoder:
    """An encoder that reads as much of a text as is ever read."""
    if start is not None:
        return encoder_from(start, config)
    some = rows.subset(range(0, len(rows), max(1, len(rows) // VOCABULARY_TEXTS)))
    return TextEncoder.fit(
        some.texts, config.text, max_length=config.model.max_length, class_token=config.reads_class_token
    )


def _measured(config: RunConfig, encoder: TextEncoder, sample: LabelledTexts, *, length: int) -> Speed:
    cut = TextEncoder.from_dict({**encoder.to_dict(), "max_length": length})
    model = TextClassifier(config.model, vocab_size=encoder.vocab_size, n_classes=len(sample.classes))
    return measure_speed(model, TokenisedTexts.encode(cut, sample), config.train)


def _within(parts: Parts, recipe: Recipe, *, seed: int) -> Indices:
    """Which training rows are learned, from 0: all, or as many by chance as fit into the budget."""
    n = len(parts.training)
    if recipe.rows >= n:
        return np.arange(n)
    return hold_out(parts.training.labels, n=n - recipe.rows, seed=seed)[0]


def _notes(
    start: Checkpoint | None, lengths: Indices, speed: Speed, recipe: Recipe, n: int, minutes: float
) -> Iterator[str]:
    yield (
        f"Training starts from the pre-trained '{start.name}'."
        if start is not None
        else "Training starts from random weights, since no pre-trained encoder is there."
    )
    cut = float((lengths > recipe.max_length).mean())
    share = "less than 1 %" if cut < 0.005 else f"{100 * cut:.0f} %"
    yield f"The first {recipe.max_length} tokens of a text are read" + (
        f"; {share} of the texts are longer." if cut else ", so all texts are read whole."
    )
    yield speed.sentence
    if recipe.rows < n:
        within = f"{minutes:g} minute{'s' * (minutes != 1)}"
        yield (
            f"Only {recipe.rows:,} of {n:,} rows, drawn by chance, can be learned in {within}; give it more "
            "time to learn all."
        )
    epochs = f"{recipe.epochs} epoch{'s' * (recipe.epochs > 1)}"
    if recipe.runs > 1:
        epochs = f"{recipe.runs} runs of {epochs}, of whose weights the mean is kept"
    seconds = recipe.seconds + recipe.overhead
    yield f"{epochs}; forecast for everything: {seconds / 60:.1f} of {minutes:g} minute{'s' * (minutes != 1)}."
