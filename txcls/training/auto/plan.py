"""Plan training on a user's rows: split them, measure speed, choose a recipe; or restore an interrupted run's plan."""

import hashlib
import itertools
import json
import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.comparison import ENOUGH_STEPS
from txcls.checkpoint.folders import checkpoint_name, encoder_folder
from txcls.checkpoint.load import load_checkpoint
from txcls.config import DataConfig, RunConfig, load_preset
from txcls.data.batches import TokenisedTexts
from txcls.data.text_notes import MIN_NOT_ENGLISH, share_not_english
from txcls.data.types import LabelledTexts
from txcls.errors import DataError, TrainingError
from txcls.model import TextClassifier
from txcls.text.tokenizer import Tokenizer
from txcls.text.vocabulary import SPECIAL_TOKENS
from txcls.text.words import have_spaces
from txcls.training.auto.choose_settings import (
    MAX_LENGTH_CHOICES,
    MINUTES_CHOICES,
    PASSES_PER_TEXT,
    RESERVE,
    Recipe,
    RecipeInputs,
    are_foreign,
    batch_size,
    choose_recipe,
    epochs_for,
    fits,
    max_length_for,
    minutes_for,
    minutes_needed,
    one_layer_settings,
)
from txcls.training.auto.split_rows import Indices, Splits, check_rows, split_rows
from txcls.training.from_pretrained import settings_from, tokenizer_from
from txcls.training.run_folder import plan_file
from txcls.training.speed import MEASURED_TEXTS, Speed, measure_speed
from txcls.wording import percentage, shown

MEASURED_LENGTH = MAX_LENGTH_CHOICES[0]
"""Texts are truncated to this many tokens to measure the speed: the largest choice, since each token of a longer text
takes longer (by a third to a half in newsgroup posts of 512 tokens)."""
COUNTED_LENGTH = 1 << 14
"""Maximum number of tokens counted in a text, to know how many texts are truncated."""
MIN_BYTES = 1.5
"""The pre-trained encoder is used if its tokens of the texts have at least this many bytes on average: over four in
English, 2.4 in German, one in Arabic and Chinese. On Arabic tweets (1,440 training rows, 360 test rows, three seeds) it
reached 72.9 % in 90 seconds; random weights with a vocabulary of the tweets' words reached 84.0 % in 20 seconds.
Instead of such weights, `ONE_LAYER` is trained on byte pairs, however much time there is. On held-out training rows,
it reached 75.0 instead of 68.3 % of 1,520 Korean film ratings (two seeds), 88.9 instead of 85.6 % of 1,822 Chinese
reviews, 80.6 instead of 79.2 % of 1,976 Chinese headlines, 70.0 instead of 63.2 % of 456 Japanese reviews, and 51.0
instead of 52.7 % of 279 Arabic tweets (three seeds). Twice as many epochs with two passes per text, three times as
many with one, and a second layer were not better on average."""
MAX_WORDS = 30_000
"""Maximum number of words in the vocabulary of a one-layer model. With 60,000, it reached 89.9 instead of 89.1 % of
held-out newsgroup posts, but its file is twice as large."""
MAX_PIECES = 16_000
"""Maximum number of byte pairs in a vocabulary. With them, their character n-grams and learned positions, four fifths
of 825 German articles reached 76.4 instead of 74.5 % of the rest (mean of four folds of 165 articles). With 8,000, the
Korean ratings, Chinese reviews and headlines of `MIN_BYTES` reached 74.3, 90.0 and 80.4 % instead of 75.7, 88.9 and
80.6 %; with 4,000, 72.9, 88.9 and 79.8 %."""
MIN_LEFT = 0.2
"""Minimum share of the budget for training if everything before it took longer than planned."""
VOCABULARY_TEXTS = 20_000
"""Number of texts used to build a vocabulary for counting tokens, if there is no pre-trained encoder."""


@dataclass(frozen=True, eq=False)
class TrainingPlan:
    """Everything decided before training.

    Attributes:
        config: all settings; `config.title` names the source of the rows.
        init: the pre-trained model to start from; None for random weights.
        inputs: the inputs of `choose_recipe`, for forecasts with other budgets.
        notes: sentences about the choices and their reasons.
        seconds: the time that planning took; `run_plan` counts it towards the budget.
        measuring: the part of it in which the speed was measured.
    """

    config: RunConfig
    splits: Splits
    init: Checkpoint | None
    minutes: float
    speed: Speed
    inputs: RecipeInputs
    recipe: Recipe
    notes: tuple[str, ...]
    seconds: float = 0.0
    measuring: float = 0.0

    @property
    def steps(self) -> int:
        """Number of optimiser steps."""
        train = self.config.train
        return train.epochs * math.ceil(len(self.splits.training) / train.batch_size)


def plan_training(
    rows: LabelledTexts,
    *,
    test: LabelledTexts | None = None,
    minutes: float = 5.0,
    seed: int = 0,
    init: Checkpoint | Literal["encoder"] | None = "encoder",
    name: str = "mine",
    source: str = "texts of your own",
    data: DataConfig | None = None,
    speed: Speed | None = None,
    planning: float | None = None,
    started: float | None = None,
    resume: Path | None = None,
) -> TrainingPlan:
    """Choose the split and all settings from the rows and the time budget; measuring takes a few seconds.

    Args:
        rows: all labelled rows.
        test: test rows; if None, some of `rows` are held out. Test rows of classes that do not occur in `rows` are
            dropped, with a note.
        minutes: time budget, from `started` to the end of `run_plan`.
        seed: for the split, the weights and the order of the rows.
        init: a model made by `pretrain` to start from; "encoder" for the shipped one if it exists; None for random
            weights.
        name: of the checkpoint; characters not allowed in it are replaced.
        source: description of the rows for the title and the card, such as the file's name.
        data: how the file was read (`Guess.config`), so that `predict` and `evaluate` read other files in the same way.
        speed: the speed measured for an earlier plan; None measures it.
        planning: the seconds of planning to assume, for the same settings as an earlier plan; None takes the real ones.
        started: when the time budget began (`time.monotonic`), such as before reading; None for this call.
        resume: checkpoint folder of an interrupted run; its budget, speed and seconds of planning are used again.

    Raises:
        DataError: fewer than two classes, too few rows, or labels that do not repeat.
        TrainingError: `init` is a classifier, or `resume` has no saved plan, a damaged one, or one for other rows.
    """
    started = time.monotonic() if started is None else started
    saved = None if resume is None else _read_plan(resume)
    if saved is not None:
        minutes, speed, planning = saved.minutes, saved.speed, saved.planning
    if not 0.05 <= minutes <= 24 * 60:
        raise DataError(f"got a budget of {minutes:g} minutes; expected 0.05 to 1440")
    check_rows(rows)
    splits = split_rows(rows, test, seed=seed)
    pretrained = shipped_encoder() if init == "encoder" else init
    n = len(splits.training)
    base = config = _base_config(name, source, data, batch=batch_size(n), seed=seed)
    sample = _sample(splits.training, seed=seed)
    read_as_bytes, not_english, measuring = False, 0.0, 0.0
    if pretrained is None:
        config = config.with_settings(vocabulary_settings(sample))
        tokenizer = _fit_tokenizer(config, splits.training)
    else:
        config = settings_from(pretrained, config)
        tokenizer = tokenizer_from(pretrained, config)
    texts = _encode_untruncated(tokenizer, sample)
    if pretrained is not None and init == "encoder":
        in_all, in_each = _bytes_per_token(tokenizer, texts)
        read_as_bytes, not_english = in_all < MIN_BYTES, share_not_english(sample.texts, in_each)
    is_one_layer = read_as_bytes or are_foreign(texts.lengths, n, not_english)  # however much time there is
    one_layer_config = base.with_settings(
        (
            *vocabulary_settings(sample, are_long=True, in_pieces=is_one_layer),
            *one_layer_settings(n, are_foreign=is_one_layer),
        )
    )
    if read_as_bytes:
        texts = _encode_untruncated(_fit_tokenizer(one_layer_config, splits.training), sample)
    lengths = texts.lengths
    if speed is None:
        measuring -= time.monotonic()
        if is_one_layer:
            speed = _measure_one_layer(one_layer_config, sample, lengths)
        else:
            model = TextClassifier(config.model, vocab_size=tokenizer.vocab_size, n_classes=len(rows.classes))
            speed = measure_speed(model, texts.truncated(min(max_length_for(lengths), MEASURED_LENGTH)), config.train)
        measuring += time.monotonic()
    is_measured = is_one_layer or speed.one_layer is not None
    inputs = RecipeInputs(
        lengths,
        n=n,
        n_classes=len(rows.classes),
        characters=sum(map(len, itertools.chain(rows.texts, (test or splits.test).texts))),
        tokens_per_second=speed.tokens_per_second,
        one_layer=speed.of(one_layer=True).tokens_per_second if is_measured else None,
        n_measured=len(splits.validation) + len(splits.test),
        pretrained=pretrained is not None,
        not_english=not_english,
        read_as_bytes=read_as_bytes,
        start=_start_note(pretrained, not_english=not_english),
        planning=time.monotonic() - started if planning is None else planning,
    )
    recipe = choose_recipe(inputs, minutes=minutes)
    if recipe.one_layer:
        config = one_layer_config
        if not is_measured:
            measuring -= time.monotonic()
            one_layer = _measure_one_layer(config, sample, lengths)
            measuring += time.monotonic()
            speed = replace(speed, one_layer=one_layer)
            seconds = time.monotonic() - started if planning is None else planning
            inputs = replace(inputs, one_layer=one_layer.tokens_per_second, planning=seconds)
            recipe = choose_recipe(inputs, minutes=minutes)
        pretrained = None
    used = speed.of(one_layer=recipe.one_layer)
    forecast_note = f"Planned: {_epochs(recipe)}; {_seconds(recipe, minutes)}."
    choices = choice_notes(inputs, recipe, minutes)
    forecast_notes = (forecast_note, *spare_time(inputs, recipe, minutes), *shortage(inputs, recipe, minutes, speed))
    notes = (*splits.notes, *choices, used.sentence, *forecast_notes)
    splits = splits.limited_to(recipe.rows, seed=seed)
    config = config.with_settings(recipe.settings)
    seconds = time.monotonic() - started
    plan = TrainingPlan(config, splits, pretrained, minutes, speed, inputs, recipe, notes, seconds, measuring)
    if saved is not None and saved.digest != _digest(plan):
        raise TrainingError(
            f"{saved.file} belongs to a run with other rows, --test, --seed or --init; repeat these, or use --overwrite"
        )
    return plan


@dataclass(frozen=True, slots=True)
class _SavedPlan:
    """The values that restore a plan for the same rows; measuring the speed again would change the settings."""

    file: Path
    minutes: float
    speed: Speed
    planning: float
    digest: str


def write_plan(plan: TrainingPlan, out: Path) -> None:
    """Save the values that `plan_training(…, resume=out)` needs, in the folder of the run's state."""
    file = plan_file(out)
    times = {"minutes": plan.minutes, "speed": asdict(plan.speed), "planning": plan.inputs.planning}
    values = {**times, "digest": _digest(plan)}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(values), encoding="utf-8")


def _read_plan(out: Path) -> _SavedPlan:
    file = plan_file(out)
    try:
        values: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        speed = Speed.from_dict(values["speed"])
        planning = float(values.get("planning", 0.0))
        return _SavedPlan(file, float(values["minutes"]), speed, planning, str(values["digest"]))
    except FileNotFoundError:
        raise TrainingError(f"nothing to resume: there is no {file}; start without --resume") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TrainingError(f"{file} is damaged ({error!s:.200}); start without --resume, with --overwrite") from None


def _digest(plan: TrainingPlan) -> str:
    """A hash of the rows, their splits and the settings."""
    splits, config = plan.splits, plan.config
    settings = (splits.training.classes, config.text, config.model, config.train)
    digest = hashlib.sha256(repr(settings).encode("utf-8", "backslashreplace"))
    for rows in (splits.training, splits.validation, splits.test):
        digest.update(repr((list(rows.texts), list(rows.labels))).encode("utf-8", "backslashreplace"))
    return digest.hexdigest()


def shipped_encoder() -> Checkpoint | None:
    """The pre-trained encoder shipped with the project; None if it is missing."""
    folder = encoder_folder()
    return None if folder is None else load_checkpoint(folder)


def _base_config(name: str, source: str, data: DataConfig | None, *, batch: int, seed: int) -> RunConfig:
    data = data or DataConfig(dataset="table")
    named = {"name": checkpoint_name(name), "title": shown(source, limit=80), "data": data}
    settings = [f"train.batch_size={batch}", f"train.seed={seed}", f"model.max_length={MAX_LENGTH_CHOICES[0]}"]
    return load_preset("own").model_copy(update=named).with_settings(settings)


def _sample(rows: LabelledTexts, *, seed: int) -> LabelledTexts:
    n = min(MEASURED_TEXTS, len(rows))
    return rows.subset(np.sort(np.random.default_rng(seed).permutation(len(rows))[:n]))


def _encode_untruncated(tokenizer: Tokenizer, sample: LabelledTexts) -> TokenisedTexts:
    return TokenisedTexts.encode(Tokenizer.from_dict({**tokenizer.to_dict(), "max_length": COUNTED_LENGTH}), sample)


def _bytes_per_token(tokenizer: Tokenizer, texts: TokenisedTexts) -> tuple[float, NDArray[np.float64]]:
    """Mean number of bytes in a token, of all texts and of each, (N,); infinite if tokens are words, of any script."""
    if tokenizer.byte_pairs is None:
        return math.inf, np.full(len(texts), np.inf)
    sizes = np.array([len(token) for token in tokenizer.vocabulary.tokens])  # one character for each byte
    is_piece = texts.ids >= len(SPECIAL_TOKENS)
    text, n = np.repeat(np.arange(len(texts)), texts.lengths)[is_piece], len(texts)
    pieces = np.bincount(text, minlength=n)
    n_bytes = np.bincount(text, weights=sizes[texts.ids[is_piece]], minlength=n)
    return float(n_bytes.sum() / max(pieces.sum(), 1)), n_bytes / np.maximum(pieces, 1)


def vocabulary_settings(sample: LabelledTexts, *, are_long: bool = False, in_pieces: bool = False) -> Iterator[str]:
    """Settings for a vocabulary from the rows: words, or byte pairs if words are not separated by spaces.

    All words are used, or, if the texts are long, up to `MAX_WORDS` that occur twice, by simpler rules: NLTK would take
    a third of the time that there is for training. With byte pairs, as with `in_pieces`, rare words are split into
    pieces, and positions are learned, from zero: sinusoids would blur the vectors that come from the texts.
    """
    if in_pieces or not have_spaces(sample.texts):
        yield from ("text.min_frequency=2", "text.tokenizer=bpe", f"text.max_vocabulary={MAX_PIECES}")
        yield "model.positions=learned"
    elif are_long:
        yield from ("text.min_frequency=2", "text.tokenizer=basic_english", f"text.max_vocabulary={MAX_WORDS}")
    else:
        yield "text.min_frequency=1"


def _fit_tokenizer(config: RunConfig, rows: LabelledTexts) -> Tokenizer:
    texts = rows.texts[:: max(1, len(rows) // VOCABULARY_TEXTS)]
    return Tokenizer.fit(texts, config.text, max_length=config.model.max_length, class_token=config.reads_class_token)


def _minutes(minutes: float) -> str:
    return f"{minutes:g} minute{'s' * (minutes != 1)}"


def _measure_one_layer(config: RunConfig, sample: LabelledTexts, lengths: Indices) -> Speed:
    """The speed of the one-layer model, counted in the tokens that `lengths` (N,) count, such as the encoder's."""
    tokenizer = _fit_tokenizer(config, sample)
    texts = _encode_untruncated(tokenizer, sample).truncated(MEASURED_LENGTH)
    model = TextClassifier(config.model, vocab_size=tokenizer.vocab_size, n_classes=len(sample.classes))
    measured = measure_speed(model, texts, config.train)
    tokens_per_word = np.minimum(lengths, MEASURED_LENGTH).mean() / texts.lengths.mean()
    by_threads = tuple((n, rate * tokens_per_word) for n, rate in measured.by_threads)
    return Speed(measured.threads, measured.tokens_per_second * tokens_per_word, by_threads)


def _start_note(pretrained: Checkpoint | None, *, not_english: float) -> str:
    if pretrained is None:
        return "Training starts from random weights, without a pre-trained encoder."
    sentence = f"Training starts from the pre-trained '{pretrained.name}'."
    if not_english >= MIN_NOT_ENGLISH:
        sentence += (
            f" It has read only English, and about {percentage(not_english, 0)} of the texts do not look like English: "
            "compare the result with the linear baseline, which reads words and characters of any language."
        )
    return sentence


def choice_notes(inputs: RecipeInputs, recipe: Recipe, minutes: float) -> Iterator[str]:
    """Yield sentences about the weights, the tokens and the rows of a recipe for this budget, with their reasons."""
    budget = _minutes(minutes)
    if recipe.one_layer:
        instead = ", instead of the pre-trained encoder" if inputs.pretrained else ""
        reason = f"The texts are long for {budget}; this model reads more in this time"
        if inputs.read_as_bytes:
            reason = "The encoder would read such texts byte by byte"
        elif inputs.are_foreign:
            share = percentage(inputs.not_english, 0)
            reason = f"The encoder has read only English, and about {share} of the texts do not look like English"
        yield (
            f"A one-layer model with a vocabulary learned from these texts is trained{instead}: its embeddings "
            f"start from token counts, its other weights are random. {reason}. On such texts, the linear baseline is "
            "often better."
        )
    else:
        yield inputs.start
    truncated = float((inputs.lengths > recipe.max_length).mean())
    share = "less than 1 %" if truncated <= 0.005 else f"{100 * truncated:.0f} %"
    yield f"The first {recipe.max_length} tokens of a text are read" + (
        f"; {share} of the texts are longer." if truncated else ", so all texts are read whole."
    )
    if recipe.rows < inputs.n:
        yield (
            f"At the measured speed, there is time to train on only {recipe.rows:,} of {inputs.n:,} rows, drawn at "
            f"random; for all rows, about {_minutes(minutes_needed(inputs, all_rows=True))} should be enough."
        )


def spare_time(inputs: RecipeInputs, recipe: Recipe, minutes: float) -> Iterator[str]:
    """Yield why a good part of the budget is not planned for, if it is not for lack of time."""
    useful = epochs_for(inputs.n, inputs.n_classes, pretrained=inputs.pretrained)
    is_enough = recipe.epochs == useful * (PASSES_PER_TEXT if recipe.consistency else 1)
    if not is_enough or recipe.forecast >= (1 - 2 * RESERVE) * 60 * minutes:
        return
    reason = f"more epochs do not help with {inputs.n:,} rows"
    if inputs.pretrained and not (recipe.one_layer or recipe.consistency):
        longer = next((n for n in MINUTES_CHOICES if choose_recipe(inputs, minutes=n).consistency), MINUTES_CHOICES[-1])
        reason = f"it is too short for reading each text twice per step, for which {_minutes(longer)} should be enough"
    yield f"At the planned speed, the other time is not used: {reason}."


def shortage(inputs: RecipeInputs, recipe: Recipe, minutes: float, speed: Speed) -> Iterator[str]:
    """Yield a sentence with the time that is needed, if the recipe exceeds its budget or the machine is too busy for
    half of its steps."""
    if not fits(recipe, minutes):
        yield (
            f"Training and comparison may take {recipe.forecast:,.0f} s, more than {_minutes(minutes)}; "
            f"{_minutes(minutes_needed(inputs))} should be enough."
        )
    used, other = speed.of(one_layer=recipe.one_layer), recipe.forecast - recipe.seconds
    slow = recipe.seconds * used.tokens_per_second / used.mean
    share = max(60 * minutes - other, MIN_LEFT * 60 * minutes) / slow
    if share < ENOUGH_STEPS:
        yield (
            f"This machine is busy: at its mean speed now, training makes only about {percentage(share, 0)} of the "
            f"planned steps in {_minutes(minutes)}; all take about {_minutes(minutes_for(other + slow))}."
        )


def overrun(recipe: Recipe, minutes: float, *, seconds: float) -> str:
    """A sentence if a run took a fifth longer than its budget, otherwise ""."""
    if seconds <= 1.2 * 60 * minutes:
        return ""
    why = "as planned" if seconds <= 1.2 * recipe.forecast else "as happens on a busy machine"
    return f" The budget of {_minutes(minutes)} was exceeded, {why}."


def _seconds(recipe: Recipe, minutes: float) -> str:
    if fits(recipe, minutes):
        return f"{recipe.forecast:.0f} of {60 * minutes:.0f} seconds for everything"
    return f"{recipe.forecast:.0f} seconds for everything, more than the {60 * minutes:.0f} asked for"


def _epochs(recipe: Recipe) -> str:
    epochs = f"{recipe.epochs} epoch{'s' * (recipe.epochs > 1)}"
    return f"{epochs}, each text read twice per step with different dropout" if recipe.consistency else epochs
