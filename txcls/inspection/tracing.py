"""What happens inside the model for one text? Every tap as an array, with its name, shape and description."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from txcls.config import ModelConfig
from txcls.errors import TraceError, UnknownNameError
from txcls.inference.predictor import Prediction, Predictor
from txcls.tap import trace
from txcls.text.checks import check_text
from txcls.text.tokens import Encoding, Token
from txcls.text.vocabulary import PAD, SPECIAL_TOKENS

FloatArray = NDArray[np.float32]

MAX_BATCH_TOKENS = 2048
"""Maximum number of tokens in a batch of texts; larger batches are no faster on a CPU."""


def max_texts_per_batch(n_tokens: int) -> int:
    """Maximum number of texts of this length in a batch, at least one."""
    return max(1, MAX_BATCH_TOKENS // n_tokens)


@dataclass(frozen=True, slots=True)
class Stage:
    """A tensor of the forward pass: the `name` of its tap, the shape `letters` of its axes, its `shape` for this text,
    and a `note` that describes its contents."""

    name: str
    letters: str
    shape: tuple[int, ...]
    note: str


@dataclass(frozen=True, repr=False)
class TracedText:
    """The forward pass of one text; `traced["layers.0.attn.pattern"]` is the array at that tap, without the batch axis.

    Attributes:
        tokens: the T tokens, with offsets into the text; includes padding if the model pads to a fixed length.
        prediction: all classes, ranked, from the same forward pass.
        stages: the tensors in the order of computation, from token ids to probabilities.
        pooling: weight of each token in the text vector, (T,); None if the text vector is the state of one token.
        values: arrays without the batch axis, keyed by tap name.
    """

    tokens: tuple[Token, ...]
    prediction: Prediction
    stages: tuple[Stage, ...]
    pooling: FloatArray | None
    values: dict[str, FloatArray]

    @cached_property
    def attention(self) -> FloatArray:
        """Attention patterns (L, H, T, T); entry [l, h, i, j] is the weight of query i on key j; each row sums to 1.

        Raises:
            TraceError: none were recorded, or they have other shapes.
        """
        patterns = [value for name, value in self.values.items() if name.endswith(".attn.pattern")]
        n, shapes = len(self.tokens), {value.shape for value in patterns}
        if [shape[1:] for shape in shapes] != [(n, n)]:
            got = ", ".join(map(str, sorted(shapes))) or "none"
            raise TraceError(f"got attention patterns of shape {got}; expected (H, {n}, {n}), the same in every layer")
        return np.stack(patterns)

    def __getitem__(self, name: str) -> FloatArray:
        """The array at tap `name`, without the batch axis: `layers.0.attn.pattern` is (H, T, T).

        Raises:
            UnknownNameError: there is no such tap. It is both a TraceError and a KeyError.
        """
        try:
            return self.values[name]
        except (KeyError, TypeError):
            raise UnknownNameError("no tap", name, self.values) from None

    def __contains__(self, name: object) -> bool:
        return name in self.values

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        """A line per array: its name, axes, shape and description."""
        rows = [
            (stage.name, stage.letters.removeprefix("B "), str(self.values[stage.name].shape), stage.note)
            for stage in self.stages
            if stage.name in self.values
        ]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)) for row in rows]
        body = "\n".join(f"  {line}  {row[3]}" for line, row in zip(lines, rows, strict=True))
        return f"TracedText of {len(self.tokens)} tokens, {self.prediction!r}\n{body}"


def trace_text(classifier: Predictor, text: str, *, record: Iterable[str] | None = None) -> TracedText:
    """Run one text through the model and record all intermediate values, or only the taps in `record` (`txcls.tap`).

    Raises:
        TraceError: the text contains no word.
    """
    encoding = encode_for_trace(classifier, text)
    ids = torch.tensor([encoding.ids])  # 1 T
    with trace(record=record) as activations:
        logits = classifier.logits(ids)  # 1 C
    probabilities = classifier.calibrate(logits, n_tokens=len(encoding.ids))[0]  # C
    values = {name: value[0].detach().float().numpy() for name, value in activations.values.items()}
    config = classifier.checkpoint.config.model
    stages = [Stage("ids", "B T", tuple(ids.shape), "token ids, looked up in the vocabulary")]
    for name, value in activations.values.items():
        letters, note = _describe(name, config)
        stages.append(Stage(name, letters, tuple(value.shape), note))
    stages.append(Stage("probabilities", "B C", (1, len(probabilities)), "calibrated probabilities: sum to 1"))
    return TracedText(
        tokens=encoding.tokens + _padding(encoding, config),
        prediction=classifier.prediction_of(
            encoding, probabilities.tolist(), is_out_of_scope=classifier.out_of_scope(logits)[0]
        ),
        stages=tuple(stages),
        pooling=values.get("pool.pattern"),
        values=values,
    )


def _padding(encoding: Encoding, config: ModelConfig) -> tuple[Token, ...]:
    """The padding tokens that a model of fixed length adds to its input."""
    missing = config.max_length - len(encoding.tokens) if config.fixed_length else 0
    return (Token(SPECIAL_TOKENS[PAD], PAD, 0, 0, is_unknown=False, is_special=True),) * missing


def encode_for_trace(classifier: Predictor, text: str) -> Encoding:
    """Encode a text with at least one word.

    Raises:
        TraceError: the text contains no word.
        TypeError: the text is not a string.
    """
    encoding = classifier.encode(check_text(text))
    if not encoding.has_words:
        raise TraceError("there is no word in this text; expected at least one")
    return encoding


_NOTES = {
    "embeddings.tokens": ("B T D", "a vector for each token"),
    "embeddings.positions": ("B T D", "a vector for each position"),
    "embeddings.out": ("B T D", "their sum: the start of the residual stream"),
    "norm_attn.out": ("B T D", "the residual stream, normalised before (or after) attention"),
    "attn.q": ("B H T E", "queries"),
    "attn.k": ("B H T E", "keys"),
    "attn.v": ("B H T E", "values"),
    "attn.scores": ("B H T T", "query · key / sqrt(E)"),
    "attn.pattern": ("B H T T", "softmax of the scores: each row sums to 1"),
    "attn.z": ("B H T E", "values weighted by the pattern, per head"),
    "attn_out": ("B T D", "the heads concatenated and projected: the output of attention"),
    "resid_mid": ("B T D", "the residual stream after attention"),
    "norm_ff.out": ("B T D", "the residual stream, normalised before (or after) feed-forward"),
    "ff.hidden": ("B T F", "hidden activations of feed-forward"),
    "ff_out": ("B T D", "the output of feed-forward"),
    "resid_post": ("B T D", "the residual stream after the layer"),
    "norm.out": ("B T D", "the residual stream after the final norm"),
    "pool.pattern": ("B T", "weights of the tokens in the text vector: sum to 1"),
    "pooled": ("B D", "one vector for the whole text"),
    "logits": ("B C", "one logit per class"),
}


def _describe(name: str, config: ModelConfig) -> tuple[str, str]:
    """The shape letters and the description of a tap."""
    tap = name.split(".", 2)[2] if name.startswith("layers.") else name  # without the layer
    letters, note = _NOTES.get(tap, ("?", "a tap of a changed model.py"))
    if tap == "attn.scores" and config.causal:
        note += ", minus infinity for later tokens"
    return letters, note
