"""`Predictor` applies a checkpoint: from texts to ranked classes.

`txcls.Classifier` is a Predictor that can also be inspected, evaluated and saved (txcls/classifier.py).
"""

import copy
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.load import load_checkpoint
from txcls.checkpoint.probabilities import CountSurprisal, calibrated_probabilities, scope_scores
from txcls.config import Precision
from txcls.data.batches import batches_by_length
from txcls.data.generated.who_won import pattern_of
from txcls.data.html import reduce_html
from txcls.data.labels import label_name
from txcls.errors import CheckpointError, sanitize
from txcls.inference.device import autocast_dtype, map_in_threads
from txcls.inference.interrupts import may_pause
from txcls.text.checks import check_texts
from txcls.text.formatting import percentage
from txcls.text.tokenizer import Tokenizer
from txcls.text.tokens import Encoding, Token


@dataclass(frozen=True, slots=True)
class ClassProbability:
    """A class and its calibrated probability."""

    label: str
    probability: float


@dataclass(frozen=True, slots=True, repr=False)
class Prediction:
    """The prediction for one text.

    Attributes:
        label: the most probable class; None for a text without words.
        ranked: the top classes with their calibrated probabilities, most probable first; empty if there is no label.
        other: the total probability of all other classes.
        tokens: the tokens that the model read, with character offsets into `text`.
        unknown: the tokens outside the vocabulary.
        truncated_at: the offset at which the text was truncated; None if all of it was read.
        is_out_of_scope: whether the text seems to belong to none of the classes; None if the checkpoint has no
            out-of-scope rule.
        is_unusual: whether the text differs from almost all training texts; False if the checkpoint cannot tell.
    """

    text: str
    label: str | None
    ranked: tuple[ClassProbability, ...]
    other: float
    tokens: tuple[Token, ...]
    unknown: tuple[Token, ...]
    truncated_at: int | None
    is_out_of_scope: bool | None = None
    is_unusual: bool = False

    def __eq__(self, other: object) -> bool:
        """Compare with another prediction, or compare the label, as in `(np.array(predictions) == labels).mean()`."""
        if isinstance(other, Prediction):
            return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)
        if isinstance(other, str | int | float | np.generic):
            return self.label == label_name(other.item() if isinstance(other, np.generic) else other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.label)

    @property
    def probability(self) -> float | None:
        """The calibrated probability of `label`; None for a text without words."""
        return self.ranked[0].probability if self.ranked else None

    @property
    def probabilities(self) -> dict[str, float]:
        """The calibrated probability of each class in `ranked`, most probable first."""
        return {ranked.label: ranked.probability for ranked in self.ranked}

    def __repr__(self) -> str:
        """One line: label, probability, remarks on the text, and its beginning."""
        facts = [percentage(self.probability)] if self.probability is not None else []
        facts += ["out of scope"] if self.is_out_of_scope else []
        facts += ["unusual"] if self.is_unusual else []
        facts += [f"{len(self.unknown)} unknown"] if self.unknown else []
        facts += ["truncated"] if self.truncated_at is not None else []
        label = "no words" if self.label is None else sanitize(self.label, limit=40)
        return f"Prediction({', '.join([label, *facts])}: '{sanitize(self.text, limit=50)}')"


class Predictor:
    """A checkpoint ready to classify texts; it is never modified, so threads can share it."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        if checkpoint.config.objective != "classify":
            raise CheckpointError(
                f"{checkpoint.name} is a language model and has no classes; use it with `generate`, or train a "
                f"classifier from it: train PRESET --init {checkpoint.name}"
            )
        self.checkpoint = checkpoint

    @classmethod
    def load(cls, path_or_name: str | Path) -> Self:
        """Load a checkpoint onto the CPU, by its folder, its name in `checkpoints/`, or its zip file.

        Raises:
            CheckpointError: it is missing, damaged, or a language model.
            TypeError: `path_or_name` is neither a string nor a path.
        """
        return cls(load_checkpoint(path_or_name))

    @property
    def name(self) -> str:
        """The checkpoint's name."""
        return self.checkpoint.name

    @property
    def classes(self) -> tuple[str, ...]:
        """Class names in the order of the logits."""
        return self.checkpoint.classes

    @property
    def tokenizer(self) -> Tokenizer:
        """Text to token ids: cleaning, words or byte pairs, and the vocabulary."""
        return self.checkpoint.tokenizer

    @property
    def n_parameters(self) -> int:
        """Number of trained parameters."""
        return self.checkpoint.model.n_parameters

    def visible_text(self, text: str) -> str:
        """The text, or only its visible part if HTML was removed from the training texts."""
        return reduce_html(text, self.checkpoint.config.data)

    def encode(self, text: str) -> Encoding:
        """The tokens of a text, reduced like the training texts."""
        return self.tokenizer.encode(self.visible_text(text))

    def predict(self, texts: Iterable[str], *, top_k: int | None = None, batch_size: int = 256) -> list[Prediction]:
        """The predictions for an iterable of strings, in the same order.

        Args:
            texts: a list, tuple, array, pandas Series or other iterable.
            top_k: how many classes to rank, at least 1; None for all.
            batch_size: maximum number of texts per forward pass; each batch holds texts of similar length.

        Raises:
            TypeError: `texts` is a single string or a table, or contains a value that is not a string; the message
                gives the row.
            ValueError: top_k or batch_size is below 1.
        """
        if (top_k is not None and top_k < 1) or batch_size < 1:
            raise ValueError(f"got top_k={top_k}, batch_size={batch_size}; expected at least 1 of each")
        encodings = list(map(self.encode, check_texts(texts)))
        rows = [n for n, encoding in enumerate(encodings) if encoding.has_words]
        predictions = [
            Prediction(encoding.text, None, (), 0.0, encoding.tokens, (), encoding.truncated_at)
            for encoding in encodings
        ]
        for indices in batches_by_length((len(encodings[n].tokens) for n in rows), batch_size=batch_size):
            batch = [rows[index] for index in indices]
            logits = self.logits(pad_rows([encodings[n].ids for n in batch]))  # B C
            lengths = np.array([len(encodings[n].tokens) for n in batch])
            probabilities = calibrated_probabilities(logits.numpy(), self.checkpoint.calibration, lengths).tolist()
            for n, row, out_of_scope in zip(batch, probabilities, self.out_of_scope(logits), strict=True):
                predictions[n] = self.prediction_of(encodings[n], row, top_k=top_k, is_out_of_scope=out_of_scope)
        return predictions

    def probabilities(
        self, texts: Iterable[str], *, batch_size: int = 128, precision: Precision = "auto"
    ) -> NDArray[np.float64]:
        """Calibrated probabilities (N, C) of many texts, several times faster than `predict`.

        Batches are computed in parallel if there are several processors. The row of a text without words has the share
        of each class in the training rows, or equal shares if it is unknown. With precision "auto", bfloat16 is used if
        it is faster, which changes probabilities by less than 0.01; "float32" gives the same ones as `predict`.

        Raises:
            TypeError: as for `predict`.
        """
        rows = self.tokenizer.encode_ids(map(self.visible_text, check_texts(texts)))
        probabilities = self.probabilities_of_ids(rows, batch_size=batch_size, precision=precision)
        counts = np.array(self.checkpoint.metrics.get("data", {}).get("train_rows_by_class") or [1] * len(self.classes))
        return np.where(np.isnan(probabilities), counts / counts.sum(), probabilities)

    def probabilities_of_ids(
        self, rows: Sequence[NDArray[np.int32]], *, batch_size: int = 128, precision: Precision = "auto"
    ) -> NDArray[np.float64]:
        """Like `probabilities`, for ids (T,) from `Tokenizer.encode_ids`; nan for a text without words."""
        dtype = autocast_dtype(precision, device=torch.device("cpu"), model=self.checkpoint.config.model)
        model = self.checkpoint.model if dtype is None else self._in_bfloat16
        length_without_words = self.tokenizer.n_added
        with_words = np.array([n for n, row in enumerate(rows) if len(row) > length_without_words], dtype=np.int64)
        probabilities = np.full((len(rows), len(self.classes)), np.nan)  # N C

        def compute(batch: NDArray[np.int64]) -> NDArray[np.floating]:
            with torch.inference_mode():
                logits = model(pad_rows([rows[n].tolist() for n in batch])).float()  # B C
            lengths = np.array([len(rows[n]) for n in batch])
            return calibrated_probabilities(logits.numpy(), self.checkpoint.calibration, lengths)

        indices = batches_by_length((len(rows[n]) for n in with_words), batch_size=batch_size)
        batches = [with_words[index] for index in indices]
        for batch, values in zip(batches, map_in_threads(compute, batches), strict=True):
            probabilities[batch] = values
        return probabilities

    @cached_property
    def _in_bfloat16(self) -> nn.Module:
        """A copy of the model in bfloat16, because autocast would spend a fifth of the time on casting."""
        return copy.deepcopy(self.checkpoint.model).bfloat16()

    def logits(self, ids: Tensor) -> Tensor:
        """Class logits (B, C) of token ids (B, T), padded with id 0; calls `may_pause` first."""
        may_pause()
        with torch.inference_mode():  # not in the caller, because it is set per thread
            logits: Tensor = self.checkpoint.model(ids)  # B C
            return logits

    def calibrate(self, logits: Tensor, *, n_tokens: int) -> Tensor:
        """Calibrated class probabilities (B, C) from logits (B, C), each row for a text with `n_tokens` tokens."""
        return torch.from_numpy(calibrated_probabilities(logits.numpy(), self.checkpoint.calibration, n_tokens))

    def out_of_scope(self, logits: Tensor) -> list[bool | None]:
        """Whether each row of logits (B, C) is out of scope; None if there is no out-of-scope rule."""
        rule = self.checkpoint.scope
        if rule is None:
            return [None] * len(logits)
        scores = scope_scores(logits.numpy(), calibration=self.checkpoint.calibration, score=rule.score)  # B
        return [bool(score < rule.threshold) for score in scores]

    @property
    def sentence_pattern(self) -> str | None:
        """A regular expression (ignoring case) that all texts of the data set match; None if there is none."""
        return pattern_of(self.checkpoint.config.data.dataset)

    def is_unusual(self, text: str, ids: Sequence[int] | NDArray[np.int32]) -> bool:
        """Whether a text with these ids, (T,), differs from almost all training texts; its prediction may be wrong.

        If the training texts were generated, a text is unusual if the grammar cannot write it; otherwise, if its tokens
        are rare (`TokenCounts`). Without a grammar and counts, no text is unusual.
        """
        if self.sentence_pattern is not None:
            return re.match(self.sentence_pattern, text.strip(), re.IGNORECASE) is None
        counts = self.checkpoint.token_counts
        return counts is not None and self._surprisal.per_character(ids) > counts.bound

    @cached_property
    def _surprisal(self) -> CountSurprisal:
        counts = self.checkpoint.token_counts
        return CountSurprisal(() if counts is None else counts.counts, self.tokenizer)

    def prediction_of(
        self,
        encoding: Encoding,
        probabilities: Sequence[float],
        *,
        top_k: int | None = None,
        is_out_of_scope: bool | None = None,
    ) -> Prediction:
        """The prediction for an encoded text with these calibrated probabilities, (C,)."""
        order = sorted(range(len(self.classes)), key=lambda c: -probabilities[c])
        top = order[:top_k]
        ranked = tuple(ClassProbability(self.classes[c], probabilities[c]) for c in top)
        return Prediction(
            text=encoding.text,
            label=ranked[0].label,
            ranked=ranked,
            other=sum(probabilities[c] for c in order[len(top) :]),
            tokens=encoding.tokens,
            unknown=tuple(token for token in encoding.tokens if token.is_unknown),
            truncated_at=encoding.truncated_at,
            is_out_of_scope=is_out_of_scope,
            is_unusual=self.is_unusual(encoding.text, encoding.ids),
        )


def pad_rows(rows: Sequence[Sequence[int]]) -> Tensor:
    """Rows of ids as one tensor (B, T), padded at the end with id 0."""
    length = max(len(row) for row in rows)
    return torch.tensor([[*row, *[0] * (length - len(row))] for row in rows], dtype=torch.int64)
