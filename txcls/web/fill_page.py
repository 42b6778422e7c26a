"""Fill the template of a page: inline code and styles, a content security policy with their hashes, and data."""

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from txcls import __version__
from txcls.figures import colours
from txcls.web.join_scripts import HERE, style

GENERATOR = '<meta name="generator" content="txcls '
"""The mark of an exported page, which may be replaced."""


_SURROGATE = re.compile("[\ud800-\udfff]")


def filled_page(
    template: str, *, code: str, sheets: Sequence[str], sources: Mapping[str, str], values: Mapping[str, str]
) -> bytes:
    """A page from a template of this folder, with its {{NAMES}} filled in.

    Its content security policy allows only what the page contains, and `sources` (directive to source).
    """
    styles = colours.css() + style(*sheets)
    policy = {
        "default-src": "'none'",
        "script-src": _hash(code) + (" 'wasm-unsafe-eval'" if "WebAssembly" in code else ""),  # the engine's kernel.wat
        "style-src": _hash(styles),
        **sources,
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    filled = {
        "GENERATOR": f'{GENERATOR}{__version__}">',
        "POLICY": html.escape("; ".join(f"{name} {value}" for name, value in policy.items()), quote=True),
        "STYLE": styles,
        "SCRIPT": code,
        **values,
    }
    text = (HERE / template).read_text(encoding="utf-8")
    return re.sub(r"\{\{([A-Z]+)\}\}", lambda match: filled[match[1]], text).encode("utf-8")


def _hash(inline: str) -> str:
    """The hash of an inline script or style sheet as a source in a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()}'"


def page_json(value: Any) -> bytes:
    """JSON for a <script> element, with every < and lone surrogate escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text).encode("utf-8")
