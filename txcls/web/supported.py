"""The settings of a model that the browser's engine supports, from the table of engine/supported.js."""

import json
import re
from typing import Any

from txcls.config import ModelConfig
from txcls.web.join_scripts import HERE

_TABLE = re.compile(r"^export const SUPPORTED = (\{.*?^\});$", re.DOTALL | re.MULTILINE)


def _supported() -> dict[str, list[Any] | str]:
    table = _TABLE.search((HERE / "engine" / "supported.js").read_text(encoding="utf-8"))
    assert table is not None
    values: dict[str, list[Any] | str] = json.loads(table[1])
    return values


SUPPORTED = _supported()
"""For each setting that the engine reads, the values that it supports; a string for numbers, which it all supports."""
EFFECTS = {
    "mask_padding": "lets padding take part in attention and pooling",
    "pool_padding": "lets padding into the mean",
    "fixed_length": "pads every text to max_length",
}
"""What the other value of a setting does in the reference systems, which are not supported."""


def unsupported_setting(config: ModelConfig) -> str | None:
    """The reason why the engine does not support a model, as the end of a sentence about it; None if it does."""
    for name, values in SUPPORTED.items():
        value = getattr(config, name)
        if isinstance(values, str) or value in values:
            continue
        if name in EFFECTS:
            return (
                f"is a reference system that {EFFECTS[name]} (model.{name}); only models without that setting can be "
                "exported as a page"
            )
        return (
            f"has model.{name} = {value!r}, which a page does not support; it supports {', '.join(map(repr, values))}"
        )
    return None
