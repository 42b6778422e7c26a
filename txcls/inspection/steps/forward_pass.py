"""The recorded forward pass of one text, from which the steps are built."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from torch import Tensor, nn

from txcls.inference.predictor import Predictor
from txcls.inspection.steps.arithmetic import Floats
from txcls.inspection.steps.step import Axis, Question, ask_largest, ask_percentage
from txcls.inspection.tracing import FloatArray, TracedText
from txcls.model import Block, TextClassifier


class ForwardPass:
    """The forward pass of one text: values at the taps, weights, axes, and the token that questions refer to.

    Attributes:
        names: the T tokens as text.
        ids: their T ids.
        axes: matrix axes, keyed by shape letter.
        focus: index of the token that questions refer to: the word with the largest pooling weight, or the middle
            word if the model does not pool by attention.
        focus_name: that token with its number.
    """

    def __init__(self, classifier: Predictor, traced: TracedText) -> None:
        model = classifier.checkpoint.model
        assert isinstance(model, TextClassifier)
        self.classifier, self.traced, self.model = classifier, traced, model
        self.config = config = classifier.checkpoint.config.model
        self.names = tuple(token.label for token in traced.tokens)
        self.ids = [token.id for token in traced.tokens]
        sizes = {"D": config.d_model, "E": config.d_head, "F": config.d_ff}
        self.axes = {letter: Axis(letter, "dimension", size) for letter, size in sizes.items()} | {
            "T": Axis("T", "token", len(self.names), self.names),
            "C": Axis("C", "class", len(classifier.classes), classifier.classes),
            "B": Axis("B", "text", 1, ("the text",)),
        }
        words = [n for n, token in enumerate(traced.tokens) if not token.is_special]
        if traced.pooling is None or config.pooling == "mean":
            self.focus = words[len(words) // 2]
        else:
            self.focus = words[int(traced.pooling[words].argmax())]
        self.focus_name = f"“{self.names[self.focus]}” (token {self.focus + 1})"

    def value(self, tap: str) -> FloatArray:
        """The value recorded at a tap, without the batch axis; TraceError if there is none."""
        return self.traced[tap]

    def numbers(self, symbol: str, letters: str, values: Floats, layer: int | None = None) -> dict[str, Any]:
        """The fields of a step that hold its numbers; `letters` names the axes of `values`, H first if there are
        heads."""
        rows, columns = (self.axes[letter] for letter in letters[-2:])
        return {
            "symbol": symbol,
            "layer": layer,
            "rows": rows,
            "columns": columns,
            "values": values.astype(np.float32).reshape(-1, rows.size, columns.size),
            "by_head": letters[0] == "H",
        }

    def block(self, layer: int) -> Block:
        """The block of a layer (from 0)."""
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
        explanation: Callable[[int], str],
        cell: Callable[[int], tuple[int, int]] | None = None,
    ) -> Question | None:
        """Ask which token has the largest value."""
        return ask_largest(text, self.token_labels(), values, explanation, cell)

    def ask_weight(self, weights: FloatArray, text: str, cell: Callable[[int], tuple[int, int]]) -> Question | None:
        """Ask how large the largest of T weights is; `text` contains {} for its token. None if T is 1."""
        if len(self.names) < 2:
            return None
        best = int(np.argmax(weights))
        return ask_percentage(text.format(f"“{self.names[best]}” (token {best + 1})"), float(weights[best]), cell(best))


def to_numpy(parameter: Tensor) -> FloatArray:
    """A parameter as a NumPy array."""
    values: FloatArray = parameter.detach().float().numpy()
    return values


def weight_and_bias(linear: nn.Linear) -> tuple[FloatArray, FloatArray | None]:
    """The weight and the bias (or None) of a linear map."""
    bias = dict(linear.named_parameters()).get("bias")
    return to_numpy(linear.weight), None if bias is None else to_numpy(bias)
