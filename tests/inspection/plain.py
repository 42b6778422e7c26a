"""A forward pass of one text, written out without the model's code, in which any tensor can be replaced."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from txcls.inference.predictor import Predictor

Site = tuple[str, int]
"""A tensor's name and a layer."""
Substitute = Callable[[Site, Tensor], Tensor]


@torch.no_grad()
def plain_forward(
    classifier: Predictor, ids: Sequence[int], substitute: Substitute = lambda site, value: value
) -> Tensor:
    """Logits (C,) of one text; `substitute` receives every tensor that can be replaced, and returns its replacement."""
    model, config = classifier.checkpoint.model, classifier.checkpoint.config.model
    weights: dict[str, Tensor] = {name: weight.detach().double() for name, weight in model.state_dict().items()}
    width = config.d_model // config.n_heads

    def linear(name: str, x: Tensor) -> Tensor:
        return x @ weights[f"{name}.weight"].T + weights.get(f"{name}.bias", torch.zeros((), dtype=torch.float64))

    def norm(name: str, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        scaled = centred / (x.var(-1, keepdim=True, unbiased=False) + 1e-5).sqrt()
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def attention(layer: int, x: Tensor) -> Tensor:
        name = f"layers.{layer}.attn"
        q, k, v = (linear(f"{name}.{projection}", x) for projection in ("query", "key", "value"))
        parts = [slice(head * width, (head + 1) * width) for head in range(config.n_heads)]
        patterns = [torch.softmax(q[:, part] @ k[:, part].T / math.sqrt(width), -1) for part in parts]
        patterns = list(substitute(("patterns", layer), torch.stack(patterns)))  # H T T
        outputs = [pattern @ v[:, part] for pattern, part in zip(patterns, parts, strict=True)]
        z = substitute(("heads", layer), torch.stack(outputs))  # H T E
        return substitute(("attention", layer), linear(f"{name}.output", torch.cat(list(z), dim=-1)))

    def feed_forward(layer: int, x: Tensor) -> Tensor:
        hidden = torch.nn.functional.gelu(linear(f"layers.{layer}.ff.expand", x))
        return substitute(("feed-forward", layer), linear(f"layers.{layer}.ff.contract", hidden))

    x = weights["embeddings.token.weight"][list(ids)] * (math.sqrt(config.d_model) if config.scale_embeddings else 1.0)
    x = substitute(("embeddings", 0), x + model.embeddings.positional[: len(ids)].double())
    for layer in range(config.n_layers):
        if config.norm == "pre":
            x = x + attention(layer, norm(f"layers.{layer}.norm_attn", x))
            x = x + feed_forward(layer, norm(f"layers.{layer}.norm_ff", x))
        else:
            x = norm(f"layers.{layer}.norm_attn", x + attention(layer, x))
            x = norm(f"layers.{layer}.norm_ff", x + feed_forward(layer, x))
        x = substitute(("stream", layer), x)
    x = norm("norm", x) if config.norm == "pre" else x
    pooled = x[0] if config.pooling == "class_token" else x.mean(0)
    return linear("head", pooled)
