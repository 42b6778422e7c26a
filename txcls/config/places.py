"""Where the values of a model's settings are implemented besides txcls/model.py: the one table that all parts read."""

import json
from collections.abc import Mapping
from typing import Literal

from txcls.config.settings import ModelConfig

Place = Literal["page", "training", "picture", "steps"]
"""The exported page, training in the browser, the picture of the whole model, and Step by step."""

ALL: tuple[Place, ...] = ("page", "training", "picture", "steps")
SIZES = {
    "d_model": "number", "n_heads": "number", "n_layers": "number", "d_embedding": "number or null",
    "d_ff": "number", "max_length": "number",
}  # fmt: skip
"""The settings that are sizes, which all places implement."""
BROWSED: tuple[Place, ...] = ("page", "picture", "steps")
"""All but training in the browser."""
IMPLEMENTED: Mapping[str, Mapping[str | bool | float, tuple[Place, ...]]] = {
    "positions": {"sinusoidal": ALL, "learned": ALL, "none": ALL},
    "scale_embeddings": {False: ALL, True: ALL},
    "causal": {False: ALL, True: ALL},
    "pooling": {"first": ALL, "class_token": ALL, "mean": ALL, "attention": ALL},
    "norm": {"pre": ALL, "post": ALL},
    "norm_epsilon": {1e-5: ALL, 1e-12: BROWSED},
    "embedding_norm": {False: ALL, True: BROWSED},
    "pooler": {"none": ALL, "tanh": BROWSED, "relu": BROWSED},
    "activation": {"relu": ALL, "gelu": ALL, "gelu_tanh": ALL},
    "mask_padding": {True: ALL, False: ("steps",)},
    "pool_padding": {False: ALL, True: ("steps",)},
    "fixed_length": {False: ALL, True: ("steps",)},
}
"""The places that implement each value. No place implements a value that is not listed; for a setting that is not
listed, every place implements only the default."""
UNREAD = ("init", "token_bias", "tie_output", "qkv_bias", "output_bias", "dropout", "attention_dropout")
"""Settings that these places need not read: they matter only in training, in language models, or as missing weights."""


def not_available(config: ModelConfig, place: Place) -> str | None:
    """What a place does not implement: `not available for max pooling (model.pooling = 'max')`; None if nothing."""
    for name, field in ModelConfig.model_fields.items():
        value = getattr(config, name)
        if name in (*UNREAD, *SIZES):
            continue
        if place not in IMPLEMENTED.get(name, {field.default: ALL}).get(value, ()):
            setting = f"model.{name} = {value!r}"
            words = f"{value.replace('_', ' ')} {name} ({setting})" if isinstance(value, str) else setting
            return f"not available for {words}"
    return None


def javascript() -> str:
    """A JavaScript module: the sizes, and the values of each setting that the browser's code implements, by place."""
    values = {
        place: {name: [value for value in places if place in places[value]] for name, places in IMPLEMENTED.items()}
        for place in ALL
    }
    return f"export const SIZES = {json.dumps(SIZES)};\nexport const IMPLEMENTED = {json.dumps(values)};\n"
