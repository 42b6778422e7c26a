"""How does the forward pass compute its output, step by step?

`walk_through` returns the steps for one text, from the text to calibrated probabilities and the class lens; there is
one module per part of the model. All numbers are recorded in one forward pass, or follow from it by the arithmetic that
the step shows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from txcls.config.places import not_available
from txcls.errors import TraceError, UnknownNameError
from txcls.inference.predictor import Predictor
from txcls.inspection.steps.input import embedding_steps, text_steps
from txcls.inspection.steps.layer import block_steps, norm_step
from txcls.inspection.steps.output import head_steps, lens_step, pooling_steps
from txcls.inspection.steps.step import Axis, ForwardPass, WalkStep, source_of
from txcls.inspection.tracing import TracedText, trace_text
from txcls.model import Encoder, LayerNorm

__all__ = ["Axis", "Walk", "WalkStep", "walk_through"]


@dataclass(frozen=True, repr=False)
class Walk:
    """One text's forward pass as steps.

    Attributes:
        sizes: sizes for this text, keyed by shape letter.
        focus: index of the token that the steps show first.
    """

    traced: TracedText
    steps: tuple[WalkStep, ...]
    sizes: dict[str, int]
    focus: int

    def find(self, name: str, layer: int = 0) -> int:
        """The index of a step by name (and layer, for steps in layers); UnknownNameError if there is none."""
        for index, step in enumerate(self.steps):
            if step.name == name and step.layer in (None, layer):
                return index
        raise UnknownNameError("no step", name, dict.fromkeys(step.name for step in self.steps))

    def __repr__(self) -> str:
        """A line per step: its index, name, layer and title."""
        width = max(len(step.name) for step in self.steps)
        lines = [f"Walk of {len(self.steps)} steps, {self.traced.prediction!r}"]
        for index, step in enumerate(self.steps):
            layer = "" if step.layer is None else f"layer {step.layer}"
            lines.append(f"  {index:>2}  {step.name:<{width}}  {layer:<7}  {step.title}")
        return "\n".join(lines)


def walk_through(classifier: Predictor, text: str) -> Walk:
    """All steps of the forward pass of one text; the steps depend on the classifier's configuration.

    Raises:
        TraceError: the text contains no word, a setting has no steps, or model.py does not compute what they show.
    """
    if reason := not_available(classifier.checkpoint.config.model, "steps"):
        raise TraceError(f"Step by step is {reason}")
    run = ForwardPass(classifier, trace_text(classifier, text))
    steps, config = [*text_steps(run), *embedding_steps(run)], run.config
    for layer in range(config.n_layers):
        steps += block_steps(run, layer, steps[-1])
    if isinstance(run.model.norm, LayerNorm):
        norm = norm_step(run, "norm", "Final norm", run.model.norm, steps[-1], None)
        steps.append(replace(norm, code=(source_of(Encoder.read, "normed: Tensor"), *norm.code)))
    steps += pooling_steps(run, steps[-1])
    steps += head_steps(run, steps[-1])
    steps.append(lens_step(run))
    _check(steps)
    sizes = {"B": 1, "T": len(run.names), "D": config.d_model, "H": config.n_heads, "E": config.d_head,
             "F": config.d_ff, "C": len(classifier.classes), "V": classifier.tokenizer.vocab_size,
             "L": config.n_layers, "S": 2 * config.n_layers + 1}  # fmt: skip
    return Walk(run.traced, tuple(steps), sizes, run.focus)


def _check(steps: Sequence[WalkStep]) -> None:
    """Recompute the largest number of every step; TraceError if one differs, because model.py has changed."""
    for step in steps:
        if step.values is None:
            continue
        size = np.where(np.isfinite(step.values), np.abs(step.values), -1.0)
        head, row, column = map(int, np.unravel_index(int(size.argmax()), size.shape))
        shown, expected = float(step.values[head, row, column]), step.explain(row, column, head=head).value
        if not np.isclose(shown, expected, rtol=1e-3, atol=1e-3):
            layer = "" if step.layer is None else f" of layer {step.layer + 1}"
            raise TraceError(
                f"Step by step is not available: model.py has changed; in “{step.title}”{layer}, it computes "
                f"{shown:.4f}, not {expected:.4f}"
            )
