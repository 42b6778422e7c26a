"""What can the class head read after each block?

The class head is applied to every state (logit lens); direct logit attribution splits the final logits by part.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from txcls.inference.predictor import Predictor
from txcls.inspection.attention import readout_weights
from txcls.inspection.tracing import FloatArray, TracedText, trace_text
from txcls.model import LayerNorm, TextClassifier

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ClassLens:
    """The residual stream of one text, state by state.

    Attributes:
        traced: the text's forward pass.
        states: names of the S states (`residual_states`).
        probabilities: (S, C) calibrated class probabilities from applying the final norm, pooling and head to each
            state. Only the last row is the model's output; the head was not trained on the other states.
        norms: (S, T) Euclidean norm of each token's state.
        sources: names of the terms that sum to the last state: embeddings, the output of each attention and
            feed-forward block, and, with post-norm, the biases of the norms.
        contributions: (sources, T, C) what each term adds to each logit through each token's last state.
        bias: (C,) what the biases of the final norm and the head add; with `contributions`, it sums to the logits.
        logits: (C,) before calibration.
    """

    traced: TracedText
    states: tuple[str, ...]
    probabilities: Floats
    norms: Floats
    sources: tuple[str, ...]
    contributions: Floats
    bias: Floats
    logits: FloatArray


def class_lens(classifier: Predictor, text: str) -> ClassLens:
    """Apply the head to every state of a text (nostalgebraist 2020, "the logit lens"), and decompose the logits.

    The decomposition is direct logit attribution (Elhage et al. 2021, https://transformer-circuits.pub/2021/framework):
    the last state is a sum, and the final norm, pooling and head are linear in it when the norm's scale and the pooling
    weights are fixed at their values for this text. Indirect effects, through later parts, count as those parts'.

    Raises:
        TraceError: the text contains no word.
    """
    model, config = classifier.checkpoint.model, classifier.checkpoint.config.model
    assert isinstance(model, TextClassifier)
    traced = trace_text(
        classifier, text, record=["embeddings.*", "layers.*.resid_*", "layers.*_out", "pool*", "logits"]
    )
    taps, states = residual_states(config.n_layers)
    stack = np.stack([traced.values[tap] for tap in taps])  # S T D
    ids = model.pad(torch.tensor([[token.id for token in traced.tokens]]))  # 1 T
    real = None if config.pool_padding else model.real(ids)  # 1 T
    with torch.inference_mode():
        logits = model.head(model.pool(model.norm(torch.from_numpy(stack)), real))  # S C
    names, terms = _terms(classifier, traced)  # sources T D
    contributions, bias = _to_logits(classifier, terms, stack[-1], readout_weights(traced))
    return ClassLens(
        traced=traced,
        states=states,
        probabilities=classifier.calibrated(logits, n_tokens=len(traced.prediction.tokens)).numpy(),
        norms=np.linalg.norm(stack.astype(np.float64), axis=-1),
        sources=names,
        contributions=contributions,
        bias=bias,
        logits=traced.values["logits"],
    )


def residual_states(n_layers: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Taps and names of the states of the residual stream: the embeddings, and the states after each attention and
    feed-forward block."""
    taps, names = ["embeddings.out"], ["embeddings"]
    for layer in range(n_layers):
        taps += [f"layers.{layer}.resid_mid", f"layers.{layer}.resid_post"]
        names += [f"layer {layer + 1}: attention", f"layer {layer + 1}: feed-forward"]
    return tuple(taps), tuple(names)


def _terms(classifier: Predictor, traced: TracedText) -> tuple[tuple[str, ...], Floats]:
    """The names of the terms that sum to the last state, and the terms, (sources, T, D).

    With pre-norm, the residual stream is a plain sum. With post-norm, each norm centres, scales and shifts the stream,
    so each term is transformed with the mean and variance of the sum for this text.
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
                weight, bias = (part.detach().double().numpy() for part in getattr(block, norm).parameters())  # D
                *parts, shifts = (
                    (part - part.mean(axis=-1, keepdims=True)) * scale * weight for part in (*parts, shifts)
                )
                shifts = shifts + bias
    if config.norm == "post":
        names, parts = [*names, "biases of the norms"], [*parts, shifts]
    return tuple(names), np.stack(parts)


def _to_logits(classifier: Predictor, terms: Floats, last: FloatArray, weights: FloatArray) -> tuple[Floats, Floats]:
    """What the terms (sources, T, D) of the last state (T, D) add to the logits, (sources, T, C), and what the biases
    add, (C,).

    The final norm subtracts each term's own mean, since the mean of a sum is the sum of the means, and divides by the
    standard deviation of the whole state; `weights` (T,) are the pooling weights.
    """
    model = classifier.checkpoint.model
    assert isinstance(model, TextClassifier)
    head, offset = (parameter.detach().double().numpy() for parameter in (model.head.weight, model.head.bias))  # C D, C
    if isinstance(model.norm, LayerNorm):  # with post-norm there is no norm after the last block
        scale, shift = (parameter.detach().double().numpy() for parameter in (model.norm.weight, model.norm.bias))  # D
        deviation = np.sqrt(last.astype(np.float64).var(axis=-1, keepdims=True) + 1e-5)  # T 1
        terms = (terms - terms.mean(axis=-1, keepdims=True)) / deviation * scale
        offset = offset + weights.sum() * (head @ shift)
    return weights[:, None] * (terms @ head.T), offset


def _embedded(traced: TracedText) -> tuple[list[str], list[Floats]]:
    """The start of the residual stream: token vectors, and position vectors if the model has them."""
    kinds = (("tokens", "token vectors"), ("positions", "position vectors"))
    recorded = {name: f"embeddings.{tap}" for tap, name in kinds if f"embeddings.{tap}" in traced.values}
    return list(recorded), [traced.values[tap].astype(np.float64) for tap in recorded.values()]
