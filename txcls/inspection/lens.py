"""Where does the decision form? The class head applied to every state, and the terms that the last state sums."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from txcls.inspection.attention import readout_weights
from txcls.inspection.tracing import FloatArray, TracedText, trace_text
from txcls.predictor import Predictor

__all__ = ["ClassLens", "class_lens"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ClassLens:
    """The residual stream of one text, state by state.

    Attributes:
        traced: the text's forward pass.
        states: names of the S states: the embeddings, and after each block's attention and feed-forward.
        probabilities: (S, C) calibrated class probabilities if the final norm, pooling and head are applied to that
            state. Only the last row is what the model computes; the head was not trained on the others.
        lengths: (S, T) Euclidean norm of each token's state.
        sources: names of the terms of the sum: embeddings, the output of each attention and feed-forward block, and,
            with post-norm, the biases of the norms.
        shares: (sources, T) projection of each term onto the token's last state, as a share of that state's norm; each
            column sums to 1, and a negative share is opposed to the state.
        weights: (T,) how much each token counts in the text's vector.
    """

    traced: TracedText
    states: tuple[str, ...]
    probabilities: Floats
    lengths: Floats
    sources: tuple[str, ...]
    shares: Floats
    weights: FloatArray


def class_lens(classifier: Predictor, text: str) -> ClassLens:
    """Apply the head to every state of a text (nostalgebraist 2020, "the logit lens"), and split up the last state.

    Raises:
        TraceError: the text holds no token to read.
    """
    import torch

    from txcls.model import TextClassifier

    model, config = classifier.checkpoint.model, classifier.checkpoint.config.model
    assert isinstance(model, TextClassifier)
    traced = trace_text(classifier, text)
    taps = ["embeddings.out"]
    states = ["embeddings"]
    for layer in range(config.n_layers):
        taps += [f"layers.{layer}.resid_mid", f"layers.{layer}.resid_post"]
        states += [f"layer {layer + 1}: attention", f"layer {layer + 1}: feed-forward"]
    stack = np.stack([traced.values[tap] for tap in taps])  # S T D
    ids = model.pad(torch.tensor([[token.id for token in traced.tokens]]))  # 1 T
    real = None if config.pool_padding else model.real(ids)  # 1 T
    with torch.inference_mode():
        logits = model.head(model.pool(model.norm(torch.from_numpy(stack)), real))  # S C
    names, written = _written(classifier, traced)  # sources T D
    last = stack[-1].astype(np.float64)  # T D
    shares = (written * last).sum(axis=-1) / np.maximum((last * last).sum(axis=-1), 1e-12)  # sources T
    return ClassLens(
        traced=traced,
        states=tuple(states),
        probabilities=classifier.calibrated(logits).numpy(),
        lengths=np.linalg.norm(stack.astype(np.float64), axis=-1),
        sources=names,
        shares=shares,
        weights=readout_weights(traced),
    )


def _written(classifier: Predictor, traced: TracedText) -> tuple[tuple[str, ...], Floats]:
    """The terms that sum to the last state, (sources, T, D).

    With pre-norm, the residual stream is a plain sum. With post-norm, each norm centres, scales and shifts it; its mean
    and variance for this text are applied to each term.
    """
    config, values = classifier.checkpoint.config.model, traced.values
    names, parts = _embedded(traced)
    shifts = np.zeros_like(parts[0])  # T D
    for layer in range(config.n_layers):
        block = classifier.checkpoint.model.layers[layer]
        for tap, norm, name in (("attn_out", "norm_attn", "attention"), ("ff_out", "norm_ff", "feed-forward")):
            parts.append(values[f"layers.{layer}.{tap}"].astype(np.float64))
            names.append(f"layer {layer + 1}: {name}")
            if config.norm == "post":
                total = np.sum(parts, axis=0) + shifts  # T D
                scale = 1.0 / np.sqrt(total.var(axis=-1, keepdims=True) + 1e-5)  # T 1
                weight, bias = (
                    getattr(getattr(block, norm), which).detach().double().numpy() for which in ("weight", "bias")
                )  # D
                *parts, shifts = (
                    (part - part.mean(axis=-1, keepdims=True)) * scale * weight for part in (*parts, shifts)
                )
                shifts = shifts + bias
    if config.norm == "post":
        names, parts = [*names, "biases of the norms"], [*parts, shifts]
    return tuple(names), np.stack(parts)


def _embedded(traced: TracedText) -> tuple[list[str], list[Floats]]:
    """The start of the residual stream: token vectors, and position vectors if the model has them."""
    kinds = (("tokens", "token vectors"), ("positions", "position vectors"))
    found = [(name, f"embeddings.{tap}") for tap, name in kinds if f"embeddings.{tap}" in traced.values]
    return [name for name, _ in found], [traced.values[tap].astype(np.float64) for _, tap in found]
