"""The recorded forward pass of one text: values at the taps, weights, axes, and the token that questions are about."""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from torch import Tensor, nn

from txcls.inspection.tracing import FloatArray, TracedText
from txcls.inspection.walk.step import Axis, Question, ask_largest, ask_percentage
from txcls.model import Block, TextClassifier
from txcls.predictor import Predictor


class ForwardPass:
    """What all steps of one text are made from.

    Attributes:
        names: the T tokens as text.
        ids: their T ids.
        tokens, model_dims, head_dims, classes, text: the axes of matrices.
        focus: the token that questions are about: the one with the largest pooling weight, else the middle one.
        who: that token with its number, for sentences.
    """

    def __init__(self, classifier: Predictor, traced: TracedText) -> None:
        model = classifier.checkpoint.model
        assert isinstance(model, TextClassifier)
        self.classifier, self.traced, self.model = classifier, traced, model
        self.config = config = classifier.checkpoint.config.model
        self.names = tuple(token.label for token in traced.tokens)
        self.ids = [token.id for token in traced.tokens]
        self.tokens = Axis("T", "token", len(self.names), self.names)
        self.model_dims = Axis("D", "dimension", config.d_model)
        self.head_dims = Axis("E", "dimension", config.d_head)
        self.classes = Axis("C", "class", len(classifier.classes), classifier.classes)
        self.text = Axis("B", "text", 1, ("the text",))
        self.focus = self._focus()
        self.who = f"“{self.names[self.focus]}” (token {self.focus + 1})"

    def value(self, tap: str) -> FloatArray:
        """What was recorded at a tap, without the batch axis."""
        return self.traced.values[tap]

    def block(self, layer: int) -> Block:
        """The block of a layer, counted from 0."""
        block = self.model.layers[layer]
        assert isinstance(block, Block)
        return block

    def token_labels(self) -> tuple[str, ...]:
        """The tokens with their numbers."""
        return tuple(f"{n} · {name}" for n, name in enumerate(self.names, start=1))

    def ask_token(
        self,
        text: str,
        values: Sequence[float],
        because: Callable[[int], str],
        cell: Callable[[int], tuple[int, int]] | None = None,
    ) -> Question | None:
        """Which token has the largest value?"""
        return ask_largest(text, self.token_labels(), values, because, cell)

    def ask_weight(self, weights: FloatArray, text: str, cell: Callable[[int], tuple[int, int]]) -> Question | None:
        """How large is the largest of T weights? `text` is the question, with {} for its token; None for one token."""
        if len(self.names) < 2:
            return None
        best = int(np.argmax(weights))
        return ask_percentage(text.format(f"“{self.names[best]}” (token {best + 1})"), float(weights[best]), cell(best))

    def _focus(self) -> int:
        words = [n for n, token in enumerate(self.traced.tokens) if not token.is_special]
        weights = self.traced.pooling
        if weights is None or self.config.pooling == "mean":
            return words[len(words) // 2]
        return max(words, key=lambda n: float(weights[n]))


def to_numpy(parameter: Tensor) -> FloatArray:
    """A parameter's numbers."""
    values: FloatArray = parameter.detach().float().numpy()
    return values


def weight_and_bias(linear: nn.Linear) -> tuple[FloatArray, FloatArray | None]:
    """The numbers of a linear map; None for the bias if it has none."""
    bias = dict(linear.named_parameters()).get("bias")
    return to_numpy(linear.weight), None if bias is None else to_numpy(bias)


@cache
def dimensions(n: int) -> tuple[str, ...]:
    """Names of n dimensions: 0, 1, …"""
    return tuple(map(str, range(n)))
