"""What can the class head read after each block? The head applied to every state, the "logit lens"."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from txcls.inference.predictor import Predictor
from txcls.inspection.tracing import FloatArray, TracedText, trace_text
from txcls.model import TextClassifier


@dataclass(frozen=True)
class ClassLens:
    """What the class head reads in each of the S states of one text's residual stream.

    Attributes:
        states: names of the states (`residual_states`).
        logits: (S, C) from applying the final norm, pooling and head to each state. Only the last row is the model's
            output; the head was not trained on the other states.
        probabilities: (S, C) the same, calibrated.
    """

    states: tuple[str, ...]
    logits: FloatArray
    probabilities: NDArray[np.float64]


def class_lens(classifier: Predictor, text: str | TracedText) -> ClassLens:
    """Apply the head to every state of a text, or of one already traced (nostalgebraist 2020, "the logit lens").

    Raises:
        TraceError: the text contains no word, or a state was not recorded.
    """
    model, config = classifier.checkpoint.model, classifier.checkpoint.config.model
    assert isinstance(model, TextClassifier)
    taps, states = residual_states(config.n_layers)
    traced = text if isinstance(text, TracedText) else trace_text(classifier, text, record=taps)
    stack = torch.from_numpy(np.stack([traced[tap] for tap in taps]))  # S T D
    ids = torch.tensor([[token.id for token in traced.tokens]])  # 1 T
    with torch.inference_mode():
        logits = model.head(model.pool(model.norm(stack), None if config.pool_padding else model.real(ids)))  # S C
    probabilities = classifier.calibrate(logits, n_tokens=len(traced.prediction.tokens)).numpy()
    return ClassLens(states, logits.numpy(), probabilities)


def residual_states(n_layers: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Taps and names of the states of the residual stream: the embeddings, and the states after each attention and
    feed-forward block."""
    taps, names = ["embeddings.out"], ["embeddings"]
    for layer in range(n_layers):
        taps += [f"layers.{layer}.resid_mid", f"layers.{layer}.resid_post"]
        names += [f"layer {layer + 1}: attention", f"layer {layer + 1}: feed-forward"]
    return tuple(taps), tuple(names)
