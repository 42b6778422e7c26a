"""Choose epochs, text length, learning rate and so on from the rows, the time budget and the measured speed."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from txcls.evaluation.baseline import baseline_seconds

MAX_LENGTH_CHOICES = (512, 384, 256, 192, 128, 96, 64, 48, 32, 16)
"""Choices for the maximum number of tokens read per text."""
MIN_LENGTH = 96
"""Texts are not truncated to fewer tokens than this to gain time for more epochs."""
ENOUGH_EPOCHS, ENOUGH_ONE_LAYER_EPOCHS = 3.0, 1.5
"""Long texts are truncated until there is time for this many epochs."""
MIN_READ = 0.75
"""If there is no time for the usual model to read at least this share of the tokens, `ONE_LAYER` is trained instead.
Both were compared after as many tokens as two cores train on in 200 seconds, the encoder on the first 96 of a text.
With the last 15 % of each newsgroup's posts held out: 89.4 instead of 79.8 % (the encoder's first layer alone: 84.3 %).
With 2,500 of IMDB's training reviews held out: 86.4 instead of 79.9 % after training on 8,000 reviews, and 88.6 instead
of 83.1 % on 22,500."""
ONE_LAYER = (
    "model.n_layers=1",
    "model.dropout=0.3",
    "train.learning_rate=3e-3",
    "train.token_dropout=0.3",
    "train.weight_decay=0.2",
    "train.embeddings_from_texts=true",
)
"""Settings of the model for texts that are long for the budget: one layer with random weights, except the weights
that come from the texts. Its vocabulary is learned from the rows (`plan.vocabulary_settings`). Weights from the texts
reached 90.5 instead of 89.2 % of 1,617 held-out newsgroup posts after three epochs on the other 9,697."""
FEW_ROWS, ONE_LAYER_OF_FEW_ROWS = 5000, ("model.d_model=256", "train.layer_decay=0.3")
"""With fewer rows, time suffices for a wider model, and it is better if the embeddings stay close to those from the
texts: on 620 German articles, 75.1 % of 466 held-out ones instead of 71.9 %, the best of nine settings. On 9,697
newsgroup posts, this layer decay costs 1.5 points. Texts for which the encoder is not used because of their language
also get these settings with more rows: on 6,080 Korean ratings, 7,288 Chinese reviews and 7,903 headlines
(`plan.MIN_BYTES`), 75.7, 88.9 and 80.6 % of the held-out rows instead of 73.2, 89.1 and 79.2 %."""
MOSTLY, MANY_ROWS, LONG = 0.5, 1000, 128
"""If at least this share of the texts is not English, and there are this many training rows, or half of the texts have
this many of the English encoder's tokens, `ONE_LAYER` is trained instead, however much time there is. On held-out
training rows, with 8,000 byte pairs, it reached 84.0 instead of 79.2 % (4,000 Portuguese comments), 86.1 instead of
81.8 (4,000 Indonesian reviews), 68.0 instead of 63.1 (2,850 Malay tweets), and after 1,000 rows of each 77.6 instead of
71.0, 82.0 instead of 74.4 and 61.4 instead of 57.2; on 1,118 tweets each, 54.8 instead of 48.8 (Italian), 55.2 instead
of 52.3 (Portuguese), 54.8 instead of 52.0 (Spanish), 58.6 instead of 54.3 (French), but 60.2 instead of 65.6 (German).
With twice the epochs, the encoder reached 83.9 on the comments, in seven times as long. On 620 long German articles,
75.1 instead of 58.4 %; on the first 20 words of each, 38.0 instead of 44.2 %."""
ONE_LAYER_SPEEDUP = 3.0
"""Estimated speed of that model relative to the encoder, until it is measured."""
EPOCHS, EPOCHS_PER_CLASS = 6.0, 0.15
"""Epochs for REFERENCE_ROWS training rows, and additional epochs per class. On 1,500 questions, phrases and reviews,
twice as many epochs cost 0.6 to 1 points, because the pre-trained weights are forgotten; many classes with few rows
each need more."""
REFERENCE_ROWS, ROWS_EXPONENT = 1500, 0.3
"""Larger sets need fewer epochs: their number is divided by (rows / REFERENCE_ROWS) ** ROWS_EXPONENT."""
RANDOM_START_FACTOR = 3.0
"""Factor for the number of epochs from random weights, which need more: on 1,440 Arabic tweets, 83 to 86 % of the test
rows with 20 epochs and with words that occur once, 83 % with 6 epochs and without such words (two seeds)."""
MIN_EPOCHS, MAX_EPOCHS = 3, 40
CONSISTENCY_WEIGHT, PASSES_PER_TEXT = 1.0, 2
"""If there is time: the weight of the difference between two passes over each text with different dropout
(`TrainConfig.consistency`), and the number of passes, which is also the factor for the useful number of epochs. Trained
on 650 questions, reviews and sentences, it reached 82.3, 77.7 and 89.8 % on 3,071 to 4,000 other training rows; the
mean weights of four runs, which take 1.6 to 2.3 times as long, reached 82.0, 77.0 and 89.7 %."""
LAYER_DECAY = 0.75
"""Learning rate of each layer of a pre-trained model relative to the layer above. It gained 2.6 points on 3,000
validation queries of CLINC150. If there is not enough time for the useful number of epochs, all layers learn at the
full rate: on newsgroup posts, lower rates learned too slowly. On five sets of 300 to 600 rows, choosing by the loss on
the 29 to 52 validation rows, after a complete run with each, gave a mean test accuracy of 56.0 %, this rule 56.4 %."""
MIN_ROWS_SHARE = 0.8
"""If few epochs fit, one more epoch over at least this share of the rows is better than fewer epochs over all rows."""
RESERVE = 0.1
"""Share of the budget left unplanned, since the machine may get busier."""
MIN_TRAINING_SHARE = 0.3
"""Minimum share of the budget planned for training, however long everything else takes."""
MINUTES_CHOICES: tuple[int, ...] = (*range(1, 31), *range(35, 121, 5), *range(150, 1441, 30))
"""Budgets in minutes among which the lowest sufficient one is searched for."""
OVERHEAD_SECONDS = 3.0
"""Time for fitting the calibration, computing intervals and saving."""
INFERENCE_SPEEDUP = 3.0
"""Tokens classified per second relative to tokens trained on per second."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """The chosen settings, and estimated times in seconds.

    Attributes:
        settings: as `section.key=value`.
        consistency: whether each text is read twice per step, with different dropout.
        max_length: maximum number of tokens read per text.
        one_layer: whether the model has the settings `ONE_LAYER`, instead of the pre-trained weights.
        read: share of the tokens that are read; tokens beyond the largest of `MAX_LENGTH_CHOICES` do not count.
        rows: number of training rows used; fewer than all if time is short.
        planning: time for reading and planning, before everything else.
        seconds: time for training.
        baseline: time for fitting the linear baseline, before training.
        measuring: time for calibration, classifying the test rows and saving, after training.
    """

    settings: tuple[str, ...]
    epochs: int
    consistency: bool
    max_length: int
    one_layer: bool
    read: float
    rows: int
    planning: float
    seconds: float
    baseline: float
    measuring: float

    @property
    def forecast(self) -> float:
        """Total seconds from start to end."""
        return self.planning + self.baseline + self.seconds + self.measuring


@dataclass(frozen=True, eq=False, slots=True)
class RecipeInputs:
    """The inputs of `choose_recipe`, apart from the time budget.

    Attributes:
        lengths: number of tokens in each text of a sample, before truncation.
        n: number of training rows.
        characters: total of all rows that the linear baseline is fitted to or classifies.
        tokens_per_second: measured training speed.
        one_layer: training speed of the model with the settings `ONE_LAYER`; None if it was not measured.
        n_measured: number of validation and test rows.
        pretrained: whether training starts from a pre-trained model.
        not_english: share of the texts that are not English, if that model has read only English; otherwise 0.
        read_as_bytes: whether that model would read the texts byte by byte.
        start: a sentence about the weights that training starts from, unless `ONE_LAYER` is chosen.
        planning: seconds from the start of the budget to the choice.
    """

    lengths: NDArray[np.int64]
    n: int
    n_classes: int
    characters: int
    tokens_per_second: float
    one_layer: float | None = None
    n_measured: int = 0
    pretrained: bool = True
    not_english: float = 0.0
    read_as_bytes: bool = False
    start: str = ""
    planning: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return {**{name: getattr(self, name) for name in self.__slots__}, "lengths": self.lengths.tolist()}

    @property
    def are_foreign(self) -> bool:
        """Whether the texts are read without the pre-trained model, however much time there is."""
        return self.pretrained and (self.read_as_bytes or are_foreign(self.lengths, self.n, self.not_english))

    def slowed(self, factor: float) -> "RecipeInputs":
        """The same inputs with speeds that are lower by this factor."""
        one_layer = None if self.one_layer is None else self.one_layer / factor
        return replace(self, tokens_per_second=self.tokens_per_second / factor, one_layer=one_layer)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "RecipeInputs":
        """The inverse of `to_dict`."""
        return cls(**{**values, "lengths": np.array(values["lengths"], dtype=np.int64)})


def are_foreign(lengths: NDArray[np.int64], n: int, not_english: float) -> bool:
    """Whether n training texts, of which this share is not English, are read without the encoder.

    `lengths` are the numbers of tokens in a sample of them.
    """
    return not_english >= MOSTLY and bool(n >= MANY_ROWS or np.median(lengths) >= LONG)


def batch_size(n: int) -> int:
    """Rows per step for n training rows: small sets need many steps."""
    return 16 if n < 1000 else 32 if n < 20_000 else 64


def max_length_for(lengths: NDArray[np.int64]) -> int:
    """The smallest of MAX_LENGTH_CHOICES that covers 99 % of the texts."""
    return min(
        (length for length in MAX_LENGTH_CHOICES if length >= np.percentile(lengths, 99)), default=MAX_LENGTH_CHOICES[0]
    )


def epochs_for(n: int, n_classes: int, *, pretrained: bool = True) -> int:
    """The best number of epochs over n training rows, if there is time."""
    factor = 1.0 if pretrained else RANDOM_START_FACTOR
    epochs = (EPOCHS + EPOCHS_PER_CLASS * n_classes) * (REFERENCE_ROWS / n) ** ROWS_EXPONENT * factor
    return int(np.clip(round(epochs), MIN_EPOCHS, MAX_EPOCHS))


def choose_recipe(inputs: RecipeInputs, *, minutes: float) -> Recipe:
    """The recipe for a time budget in minutes."""
    if not inputs.are_foreign:
        recipe = _recipe(inputs, minutes=minutes, one_layer=False)
        if recipe.read >= MIN_READ:
            return recipe
    return _recipe(inputs, minutes=minutes, one_layer=True)


def fits(recipe: Recipe, minutes: float) -> bool:
    """Whether the forecast, in whole seconds, is within the budget."""
    return round(recipe.forecast) <= 60 * minutes


def minutes_needed(inputs: RecipeInputs, *, all_rows: bool = False) -> int:
    """The lowest budget in minutes that the forecast does not exceed, and in which all rows are used if `all_rows`."""

    def is_enough(minutes: int) -> bool:
        recipe = choose_recipe(inputs, minutes=minutes)
        return fits(recipe, minutes) and (recipe.rows == inputs.n or not all_rows)

    return next(filter(is_enough, MINUTES_CHOICES), MINUTES_CHOICES[-1])


def minutes_for(seconds: float) -> int:
    """The lowest budget in minutes for a run of this many seconds, with the reserve."""
    return next((n for n in MINUTES_CHOICES if 60 * (1 - RESERVE) * n >= seconds), MINUTES_CHOICES[-1])


def one_layer_settings(n: int, *, are_foreign: bool) -> tuple[str, ...]:
    """The settings of the one-layer model for n training rows."""
    return (*ONE_LAYER, *(ONE_LAYER_OF_FEW_ROWS if are_foreign or n < FEW_ROWS else ()))


def _recipe(inputs: RecipeInputs, *, minutes: float, one_layer: bool) -> Recipe:
    lengths, n = inputs.lengths, inputs.n
    baseline = baseline_seconds(inputs.characters, inputs.n_classes)
    budget = 60 * minutes
    is_pretrained = inputs.pretrained and not one_layer
    useful_epochs = epochs_for(n, inputs.n_classes, pretrained=inputs.pretrained)
    enough_epochs = ENOUGH_ONE_LAYER_EPOCHS if one_layer else ENOUGH_EPOCHS
    tokens_per_second = inputs.tokens_per_second
    if one_layer:
        tokens_per_second = inputs.one_layer or ONE_LAYER_SPEEDUP * tokens_per_second

    def mean_tokens(length: int) -> float:
        return float(np.minimum(lengths, length).mean())

    def epoch_seconds(length: int) -> float:
        return n * mean_tokens(length) / tokens_per_second

    def measuring_seconds(length: int) -> float:
        return OVERHEAD_SECONDS + inputs.n_measured / n * epoch_seconds(length) / INFERENCE_SPEEDUP

    max_length = max_length_for(lengths)
    for length in (length for length in MAX_LENGTH_CHOICES if length <= max_length):
        measuring = measuring_seconds(length)
        seconds = max((1 - RESERVE) * budget - inputs.planning - baseline - measuring, MIN_TRAINING_SHARE * budget)
        if epoch_seconds(length) * enough_epochs <= seconds or length <= MIN_LENGTH:
            break
    epochs, rows = _epochs_and_rows(seconds / epoch_seconds(length), n, useful_epochs)
    rows = min(max(rows, inputs.n_classes), n)  # each class keeps a row
    affordable = seconds / (
        PASSES_PER_TEXT * epoch_seconds(length)
    )  # number of epochs with PASSES_PER_TEXT over each text
    consistency = is_pretrained and affordable >= useful_epochs
    if consistency:
        epochs = min(round(affordable), PASSES_PER_TEXT * useful_epochs)
    settings = (
        f"train.epochs={epochs}",
        f"train.consistency={CONSISTENCY_WEIGHT if consistency else 0}",
        f"train.batch_size={batch_size(n)}",
        "train.min_steps=0",
        "train.learning_rate=1e-3",
        "train.label_smoothing=0.1",
        "train.token_dropout=0.1",
        "train.ema_decay=0.99",
        "train.weight_decay=0.05",
        f"train.layer_decay={LAYER_DECAY if is_pretrained and epochs >= useful_epochs else 1.0}",
        "train.monitor=last",
        f"model.max_length={length}",
        *(one_layer_settings(n, are_foreign=inputs.are_foreign) if one_layer else ()),
    )
    training = min((PASSES_PER_TEXT if consistency else 1) * epochs * epoch_seconds(length) * rows / n, seconds)
    read = mean_tokens(length) / mean_tokens(MAX_LENGTH_CHOICES[0])
    return Recipe(
        settings, epochs, consistency, length, one_layer, read, rows, inputs.planning, training, baseline, measuring
    )


def _epochs_and_rows(affordable: float, n: int, useful: int) -> tuple[int, int]:
    """Number of epochs, and of rows to use out of n.

    There is time for `affordable` epochs over all rows, and more than `useful` epochs do not help. Rounded up, the last
    epoch may be cut short: the learning rate then ends at zero with the time.
    """
    rounded_up = math.ceil(affordable)
    fits_few_rows = affordable < 1 or affordable >= MIN_ROWS_SHARE * rounded_up
    if affordable < ENOUGH_EPOCHS and rounded_up <= useful and fits_few_rows:
        return rounded_up, int(n * affordable / rounded_up)
    return max(1, min(useful, round(affordable))), n
