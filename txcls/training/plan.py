"""Plan training on a user's rows: split them, choose a recipe by one rule, and fit its epochs to the time.

The figures behind the constants are in docs/own-texts.md.
"""

import itertools
import math
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.folders import checkpoint_name, encoder_folder
from txcls.checkpoint.load import load_checkpoint
from txcls.checkpoint.schema import labels_problem
from txcls.config import DataConfig, RunConfig, load_preset
from txcls.data.batches import TokenisedTexts
from txcls.data.splits import Splits, split_rows
from txcls.data.types import LabelledTexts
from txcls.errors import DataError, Note, sanitize
from txcls.evaluation.linear import estimate_seconds
from txcls.model import TextClassifier
from txcls.text.formatting import percentage
from txcls.text.tokenizer import Tokenizer
from txcls.text.vocabulary import SPECIAL_TOKENS
from txcls.text.words import have_spaces
from txcls.training.from_pretrained import settings_from, tokenizer_from
from txcls.training.speed import MEASURED_TEXTS, Speed, measure_speed

MAX_LENGTH_CHOICES = (512, 384, 256, 192, 128, 96, 64, 48, 32, 16)
"""Choices for the maximum number of tokens read per text."""
MEASURED_CHARACTERS, MIN_SAMPLED = 2_000_000, 200
"""The texts are judged by a sample of at most MEASURED_CHARACTERS, but of at least MIN_SAMPLED texts."""
MAX_MEASURED_LENGTH = 128
"""The speed is measured on texts cut to this length: a step takes seconds with long ones."""
MIN_LENGTH, ENOUGH_EPOCHS = 96, 3.0
"""Long texts are cut, to no fewer than MIN_LENGTH tokens, until there is time for ENOUGH_EPOCHS epochs."""
MANY_CUT = 0.05
"""How many tokens are read is only stated unasked if at least this share of the texts is longer."""
MIN_READ = 0.75
"""Minimum share of the tokens that the encoder must have time to read."""
MIN_BYTES = 1.5
"""Minimum mean number of bytes in a token of the encoder: over four in English, 2.4 in German, one in Chinese."""
MOSTLY, MANY_ROWS, LONG = 0.5, 1000, 128
"""The encoder is not used if the share MOSTLY of the texts is not English, and there are either MANY_ROWS training rows
or LONG tokens in half of the texts."""
MIN_ENGLISH, MIN_WORDS, MIN_JUDGED, MIN_SHORT_WORDS = 0.15, 8, 20, 200
"""Minimum fraction of function words in an English text, and minimum number of words of a text to judge it. If fewer
than MIN_JUDGED texts are so long, all words are judged together, if there are at least MIN_SHORT_WORDS."""
MAX_FOREIGN_BYTES = 3.0
"""Maximum mean number of bytes per token of the English encoder in a text that is not English; English notes without
sentences have few function words too, but longer tokens."""
EPOCHS, EPOCHS_PER_CLASS, REFERENCE_ROWS, ROWS_EXPONENT = 6.0, 0.15, 1500, 0.3
MIN_EPOCHS, MAX_EPOCHS = 3, 40
FEW_ROWS = 500
"""With fewer training rows, training starts from a probe of the encoder (`probe.py`)."""
FEW_FOR_WORDS = 5000
"""With fewer training rows, the one-layer model is wider and stays closer to the vectors computed from the texts."""
MAX_PIECES = 16_000
MAX_LINEAR_SHARE = 0.5
"""The linear model reads no characters if it would take more than this share of the time."""
RESERVE = 0.1
"""Share of the time left unplanned, since the machine may get busier."""
MIN_LEFT = 0.1
"""Minimum share of the time that training gets, however long everything before it took."""
OVERHEAD_SECONDS, INFERENCE_SPEEDUP = 3.0, 3.0
"""Seconds for the calibration, the intervals and saving; tokens classified in the time of training on one."""


MIN_ROWS = 4
"""Minimum number of labelled rows."""


def check_rows(rows: LabelledTexts) -> None:
    """Raise DataError if there are fewer than two classes, too few rows, or almost no repeated label."""
    counts = Counter(rows.labels)
    if len(counts) < 2:
        only_class = sanitize(rows.classes[next(iter(counts))], limit=40) if counts else ""
        raise DataError(f"all {len(rows):,} rows have the label '{only_class}'; expected at least two classes")
    if len(rows) < MIN_ROWS:
        raise DataError(f"{len(rows)} rows with text and label; expected at least {MIN_ROWS}, preferably a few hundred")
    if len(counts) > max(2, len(rows) // 2):
        raise DataError(
            f"{len(counts):,} different labels in {len(rows):,} rows: almost no label occurs twice; is it the right "
            "label column, or are the two columns swapped?",
            text_column="COLUMN",
            label_column="COLUMN",
        )
    if problem := labels_problem(rows.classes):
        raise DataError(f"{problem}; is it the right label column?")


@dataclass(frozen=True, eq=False)
class TrainingPlan:
    """Everything decided before training.

    Attributes:
        config: all settings; `config.title` names the source of the rows.
        init: the pre-trained model to start from; None for the one-layer model.
        from_probe: whether training starts from a probe.
        minutes: the time for everything; None for as long as it takes.
        started: when that time began (`time.monotonic`).
        reads_characters: whether the linear model reads characters, because there is time for it.
        linear_seconds, measuring_seconds: estimates for the linear model, and for measuring and saving at the end.
        sentences: the recipe, the time planned for it, and the reasons.
    """

    config: RunConfig
    splits: Splits
    init: Checkpoint | None
    from_probe: bool
    minutes: float | None
    started: float
    threads: int | None
    reads_characters: bool
    linear_seconds: float
    measuring_seconds: float
    sentences: tuple[str, ...]

    @property
    def steps(self) -> int:
        """Number of optimiser steps."""
        train = self.config.train
        return train.epochs * math.ceil(len(self.splits.training) / train.batch_size)


@dataclass(frozen=True, slots=True)
class Schedule:
    """How many tokens of each text are read, how many epochs, how often a step reads a text, and seconds per epoch."""

    max_length: int
    epochs: int
    passes: int
    epoch_seconds: float
    is_short: bool
    """Whether there is time for fewer epochs than are useful."""


def plan_training(
    rows: LabelledTexts,
    *,
    test: LabelledTexts | None = None,
    minutes: float | None = 5.0,
    seed: int = 0,
    init: Checkpoint | Literal["encoder"] | None = "encoder",
    name: str = "mine",
    source: str = "texts of your own",
    data: DataConfig | None = None,
    started: float | None = None,
) -> TrainingPlan:
    """Choose the split and all settings from the rows and the time; measuring the speed takes a few seconds.

    Args:
        test: test rows; if None, some of `rows` are held out. Rows of classes not in `rows` are dropped, with a note.
        minutes: the time from `started` to the end of `run_plan`; None for a number of epochs that depends on the rows
            alone, so that the same rows and seed give the same model.
        seed: for the split, the weights and the order of the rows.
        init: a model made by `pretrain` to start from; "encoder" for the shipped one, if it reads such texts well;
            None for the one-layer model.
        name, source: the checkpoint's name, and a description of the rows for its card, such as the file's name.
        data: how the file was read, so that `predict` and `evaluate` read other files in the same way.
        started: when the time began (`time.monotonic`), such as before reading; None for this call.

    Raises:
        DataError: fewer than two classes, too few rows, or labels that do not repeat.
        TrainingError: `init` is a classifier.
    """
    started = time.monotonic() if started is None else started
    if minutes is not None and not 0.05 <= minutes <= 24 * 60:
        raise DataError(f"got a budget of {minutes:g} minutes; expected 0.05 to 1440")
    check_rows(rows)
    splits = split_rows(rows, test, seed=seed)
    n, n_classes = len(splits.training), len(rows.classes)
    named = {
        "name": checkpoint_name(name),
        "title": sanitize(source, limit=80),
        "data": data or DataConfig(dataset="table"),
    }
    batch_size = 16 if n < 1000 else 32 if n < 20_000 else 64  # small sets need many steps
    common = [f"train.batch_size={batch_size}", f"train.seed={seed}", "train.min_steps=0", "train.monitor=last"]
    order = np.random.default_rng(seed).permutation(n)
    characters = np.cumsum([len(splits.training.texts[row]) for row in order[:MEASURED_TEXTS]])
    n_sampled = max(int(characters.searchsorted(MEASURED_CHARACTERS)), MIN_SAMPLED)
    sample = splits.training.subset(np.sort(order[: min(n_sampled, MEASURED_TEXTS)]))
    linear_seconds, words_seconds = estimate_seconds([*rows.texts, *splits.test.texts], n_classes)
    reads_characters = minutes is None or linear_seconds <= MAX_LINEAR_SHARE * 60 * minutes
    linear_seconds = linear_seconds if reads_characters else words_seconds
    n_measured = len(splits.validation) + len(splits.test)
    inference = n_measured / n / INFERENCE_SPEEDUP  # in epochs
    pretrained = shipped_encoder() if init == "encoder" else init
    reason, pieces = "", False
    if pretrained is not None:
        config = settings_from(pretrained, load_preset("own").model_copy(update=named).with_settings(common))
        tokenizer = tokenizer_from(pretrained, config)
        texts, encoding = _encode_untruncated(tokenizer, sample)
        if init == "encoder":
            reason = _why_not_read(tokenizer, texts, sample, n)
            pieces = bool(reason)

    def seconds_left(parts: int) -> float | None:
        if minutes is None:
            return None
        needed = linear_seconds + encoding * (n + n_measured) + OVERHEAD_SECONDS
        left = (1 - RESERVE) * 60 * minutes - (time.monotonic() - started) - needed
        return max(left, MIN_LEFT * 60 * minutes) / parts

    def scheduled(parts: int = 1) -> tuple[Schedule, Speed | None]:
        """The schedule for the model of `config`, and its speed on `texts` (None if the time is not limited)."""
        speed = None
        if minutes is not None:
            length = min(_length_for(texts.lengths), MAX_MEASURED_LENGTH)
            settings = config.model.model_copy(update={"max_length": length})
            model = TextClassifier(settings, vocab_size=tokenizer.vocab_size, n_classes=n_classes)
            speed = measure_speed(model, texts.truncate(length), config.train)
        useful, tokens_per_second = epochs_for(n, n_classes), math.inf if speed is None else speed.tokens_per_second
        return choose_schedule(
            texts.lengths,
            n=n,
            inference=inference,
            useful=useful,
            max_passes=2 if config.train.layer_decay < 1 and pretrained is not None else 1,
            tokens_per_second=tokens_per_second,
            seconds=seconds_left(parts),
        ), speed

    from_probe = False
    if pretrained is not None and not reason:
        from_probe = n < FEW_ROWS and len(set(splits.training.labels)) > 1
        schedule, speed = scheduled(parts=3 if from_probe else 1)
        lengths = np.minimum(texts.lengths, MAX_LENGTH_CHOICES[0])
        if init == "encoder" and np.minimum(lengths, schedule.max_length).sum() < MIN_READ * lengths.sum():
            reason, from_probe = "there is no time for it to read such long texts", False
    if pretrained is None or reason:
        pretrained = None
        config = load_preset("own_words").model_copy(update=named)
        config = config.with_settings([*common, *_words_settings(sample, n, pieces=pieces)])
        limits: dict[str, Any] = {"max_length": config.model.max_length, "class_token": config.reads_class_token}
        tokenizer = Tokenizer.fit(splits.training.texts[:: max(1, n // 20_000)], config.text, **limits)
        texts, encoding = _encode_untruncated(tokenizer, sample)
        schedule, speed = scheduled()
    config = config.with_settings(
        [
            f"train.epochs={schedule.epochs}",
            f"train.consistency={int(schedule.passes > 1)}",
            f"model.max_length={schedule.max_length}",
            *(["train.layer_decay=1.0"] if pretrained is not None and schedule.is_short else []),
            *(
                [f"train.learning_rate={config.train.learning_rate / 3:.3g}", "model.pooling=mean"]
                if from_probe
                else []
            ),
        ]
    )
    measuring = OVERHEAD_SECONDS + encoding * n_measured + inference * schedule.epoch_seconds
    sentences: list[str] = [*_recipe(pretrained, reason, schedule, texts.lengths, from_probe=from_probe)]
    if minutes is not None:
        training = max(encoding * n, MIN_LEFT * 60 * minutes)
        needed = time.monotonic() - started + linear_seconds + training + measuring
        parts = f"{linear_seconds:.0f} s for the linear model, {measuring:.0f} s for the {n_measured:,} held-out rows"
        if needed > 60 * minutes:
            long = f"This takes about {needed / 60:.1f} minutes"
            sentences.append(Note(f"{long}: {parts}.", brief=f"{long}."))
    threads = None if speed is None else speed.threads
    timing = (minutes, started, threads, reads_characters, linear_seconds, measuring)
    return TrainingPlan(config, splits, pretrained, from_probe, *timing, tuple(sentences))


def choose_schedule(
    lengths: NDArray[np.int64],
    *,
    n: int,
    inference: float,
    useful: int,
    max_passes: int,
    tokens_per_second: float,
    seconds: float | None,
) -> Schedule:
    """The schedule for n rows with texts of these lengths within `seconds`; if None, it has all useful epochs.

    Classifying the held-out rows takes as long as `inference` epochs. Where time allows, each step reads its texts
    twice with different dropout (R-Drop, Liang et al. 2021).
    """

    def epoch_seconds(length: int) -> float:
        return n * float(np.minimum(lengths, length).mean()) / tokens_per_second

    max_length = _length_for(lengths)
    if seconds is None:
        return Schedule(max_length, useful, 1, 0.0, is_short=False)
    for length in (length for length in MAX_LENGTH_CHOICES if length <= max_length):
        if epoch_seconds(length) * (ENOUGH_EPOCHS + inference) <= seconds or length <= MIN_LENGTH:
            break
    affordable = seconds / epoch_seconds(length) - inference
    passes = max_passes if affordable >= max_passes * useful else 1
    epochs = max(1, min(int(affordable / passes), passes * useful))
    return Schedule(length, epochs, passes, epoch_seconds(length), is_short=epochs < useful)


def epochs_for(n: int, n_classes: int) -> int:
    """The best number of epochs over n training rows, if there is time."""
    epochs = (EPOCHS + EPOCHS_PER_CLASS * n_classes) * (REFERENCE_ROWS / n) ** ROWS_EXPONENT
    return int(np.clip(round(epochs), MIN_EPOCHS, MAX_EPOCHS))


def shipped_encoder() -> Checkpoint | None:
    """The pre-trained encoder shipped with the project; None if it is missing."""
    folder = encoder_folder()
    return None if folder is None else load_checkpoint(folder)


def _length_for(lengths: NDArray[np.int64]) -> int:
    """The smallest of MAX_LENGTH_CHOICES that covers 99 % of the texts."""
    enough = (length for length in MAX_LENGTH_CHOICES if length >= np.percentile(lengths, 99))
    return min(enough, default=MAX_LENGTH_CHOICES[0])


def _encode_untruncated(tokenizer: Tokenizer, sample: LabelledTexts) -> tuple[TokenisedTexts, float]:
    """The sample as token ids, and the seconds that encoding took per text."""
    longer = Tokenizer.from_dict({**tokenizer.to_dict(), "max_length": 1 << 14})
    started = time.monotonic()
    return TokenisedTexts.encode(longer, sample), (time.monotonic() - started) / len(sample)


def _why_not_read(tokenizer: Tokenizer, texts: TokenisedTexts, sample: LabelledTexts, n: int) -> str:
    """Why the English encoder would read texts badly, however much time there is; "" if it would not."""
    in_all, in_each = _bytes_per_token(tokenizer, texts)
    if in_all < MIN_BYTES:
        return "it would read their script byte by byte"
    share = share_not_english(sample.texts, in_each)
    if share >= MOSTLY and (n >= MANY_ROWS or np.median(texts.lengths) >= LONG):
        return f"it has read only English, and {percentage(share, 0)} of the texts do not look like it"
    return ""


def share_not_english(texts: Sequence[str], token_bytes: NDArray[np.float64]) -> float:
    """The fraction of the first 1,000 texts with few English function words and with short tokens.

    `token_bytes` is the mean number of bytes of the English encoder's tokens in each text, (N,). The result is 0 if
    there are too few words to judge.
    """
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    words = [re.findall(r"\w+", text[:1000].lower()) for text in texts[:1000]]
    judged = [(text, size) for text, size in zip(words, token_bytes, strict=False) if len(text) >= MIN_WORDS]
    if len(judged) < MIN_JUDGED:
        together = list(itertools.chain.from_iterable(words))
        judged = [(together, float(np.mean(token_bytes)))] if len(together) >= MIN_SHORT_WORDS else []
    n_foreign = sum(
        size <= MAX_FOREIGN_BYTES and sum(word in ENGLISH_STOP_WORDS for word in text) < MIN_ENGLISH * len(text)
        for text, size in judged
    )
    return int(n_foreign) / max(len(judged), 1)


def _bytes_per_token(tokenizer: Tokenizer, texts: TokenisedTexts) -> tuple[float, NDArray[np.float64]]:
    """Mean number of bytes per token: over all texts, and in each text (N,); infinite if tokens are words."""
    if tokenizer.byte_pairs is None:
        return math.inf, np.full(len(texts), np.inf)
    sizes = np.array([len(token) for token in tokenizer.vocabulary.tokens])  # one character for each byte
    is_piece = texts.ids >= len(SPECIAL_TOKENS)
    text, n = np.repeat(np.arange(len(texts)), texts.lengths)[is_piece], len(texts)
    pieces = np.bincount(text, minlength=n)
    n_bytes = np.bincount(text, weights=sizes[texts.ids[is_piece]], minlength=n)
    return float(n_bytes.sum() / max(pieces.sum(), 1)), n_bytes / np.maximum(pieces, 1)


def _words_settings(sample: LabelledTexts, n: int, *, pieces: bool) -> Iterator[str]:
    """Settings of the one-layer model beyond its preset: byte pairs in other languages, a wider model with few rows.

    With byte pairs, positions are learned, from zero: sinusoids would blur the vectors computed from the texts.
    """
    if pieces or not have_spaces(sample.texts):
        yield from ("text.tokenizer=bpe", f"text.max_vocabulary={MAX_PIECES}", "model.positions=learned")
    if pieces or n < FEW_FOR_WORDS:
        yield from ("model.d_model=256", "train.layer_decay=0.3")


def _recipe(
    init: Checkpoint | None, reason: str, schedule: Schedule, lengths: NDArray[np.int64], *, from_probe: bool
) -> Iterator[str]:
    """Yield sentences: the recipe and the time planned for it, then the reasons."""
    start = "A one-layer model"
    if init is not None:
        start = (
            f"From the pre-trained '{init.name}'" + ", starting with logistic regression on its features" * from_probe
        )
    cut = float((lengths > schedule.max_length).mean())
    read = f"the first {schedule.max_length} tokens" if cut > 0.005 else "whole texts"
    epochs = f"{schedule.epochs} epoch{'s' * (schedule.epochs > 1)} of {read}"
    twice = ", read twice per step" * (schedule.passes > 1)
    seconds = schedule.passes * schedule.epochs * schedule.epoch_seconds * (3 if from_probe else 1)
    planned = f", about {max(seconds, 1):.0f} s" if seconds else ""
    yield Note(f"{start}: {epochs}{twice}{planned}.", "detail")
    if reason:
        yield Note(f"The pre-trained encoder is not used: {reason}.", "detail")
    if cut > 0.005:
        longer = f"{read} ({percentage(cut, 0)} of the texts are longer)"
        yield Note(f"The Transformer reads {longer}, the linear model all.", "detail" if cut < MANY_CUT else "")
