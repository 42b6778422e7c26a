"""A page on which visitors train a Transformer in their browser: one file that opens from disk, without a server."""

import base64
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from txcls import __version__
from txcls.checkpoint.schema import FORMAT_VERSION
from txcls.config import Calibration, load_preset
from txcls.data.generated import who_won
from txcls.data.generated.sample import open_sample
from txcls.errors import CheckpointError
from txcls.web.assemble import HERE, fill_page, page_json, page_languages, script, without_comments
from txcls.web.encoder import BrowserEncoder, browser_encoder, packed_encoder
from txcls.web.export import refuse_other_files, write_page
from txcls.web.tokenizer_rules import reading_tables

SHEETS = ("page/theme", "picture/buttons", "playground/playground", "picture/machine", "picture/saving")
TEMPLATE = "playground/playground.html"
PATTERNS = ("composed", "spaces", "basic_english", "entity", "tag", "url")
"""The patterns for the text settings of the page (`TEXT` in saving.js) and of the encoder."""
ENCODER_PART = '<script type="text/plain" id="encoder">{}</script>'
"""The element with the encoder, in base64."""


def export_playground(out: str | Path, *, encoder: bool = False, language: str = "") -> Path:
    """Write the page as index.html into a folder, replacing an older page there.

    With `encoder`, the page contains the pre-trained encoder, which makes it 11 MB larger. With `language`, such as
    "de", it is only in that language.

    Raises:
        CheckpointError: the folder holds other files or cannot be written, or there is no encoder or no such language.
    """
    target = Path(out)
    refuse_other_files(target)
    page = playground_with_encoder(language) if encoder else playground(language=language)
    return write_page(target, {"index.html": page})


def playground_with_encoder(language: str = "") -> bytes:
    """The page as HTML, with the pre-trained encoder inside.

    Raises:
        CheckpointError: there is no encoder, or it cannot be read.
    """
    part = ENCODER_PART.format(base64.b64encode(packed_encoder()).decode())
    return _page(browser_encoder(), {"embedded": True}, part, language)


def playground(encoder_address: str | None = None, *, language: str = "") -> bytes:
    """The page as HTML; given an address, it fetches the encoder from there when a visitor chooses that start."""
    try:
        encoder = browser_encoder()
    except CheckpointError:  # the page works without it
        encoder = None
    return _page_without_parts(encoder, encoder_address, language)


@lru_cache(maxsize=4)
def _page_without_parts(encoder: BrowserEncoder | None, address: str | None, language: str) -> bytes:
    return _page(encoder, None if encoder is None or address is None else {"address": address}, "", language)


def _page(encoder: BrowserEncoder | None, source: dict[str, Any] | None, parts: str, language: str) -> bytes:
    code, data = script("playground/playground"), page_data(encoder, source)
    return fill_page(
        TEMPLATE,
        code=without_comments(code),
        sheets=SHEETS,
        sources={"worker-src": "blob:"},  # the page contains the worker's source
        values={
            "DATA": page_json(data | page_languages(data["template"], code, only=language)).decode("utf-8"),
            "WORKER": without_comments(script("playground/worker")),
            "PARTS": parts,
        },
    )


def page_data(encoder: BrowserEncoder | None, source: dict[str, Any] | None) -> dict[str, Any]:
    """The page's data; `source` says where the encoder is: at an address, embedded, or not in this page (None)."""
    return _data() | {
        "encoder": source and {**source, "bytes": len(encoder.content) if encoder else 0},
        # Its settings, which the page shows before it has the encoder.
        "pretrained": encoder and encoder.summary,
        # With this, a page can write itself with a model inside (playground/own_page.js).
        "template": (HERE / TEMPLATE).read_text(encoding="utf-8"),
    }


@cache
def _data() -> dict[str, Any]:
    """The part of the page's data that does not depend on the encoder."""
    patterns = reading_tables(tokenizers={"basic_english"})["patterns"]
    config = load_preset("own").model_dump(mode="json")
    sample = open_sample()
    messages: dict[str, dict[str, list[str]]] = {label: {} for label in sample.classes}
    for split in sample.splits:
        rows = sample.load(split)
        for text, label in zip(rows.texts, rows.labels, strict=True):
            messages[sample.classes[label]].setdefault(split, []).append(text)
    return {
        "version": __version__,
        "tables": {"patterns": {name: patterns[name] for name in PATTERNS}},
        "messages": messages,
        "grammar": {
            "verbs": who_won.VERBS,
            "inverse": who_won.INVERSE_VERBS,
            "manners": who_won.MANNERS,
            "endings": who_won.ENDINGS,
            "teams": who_won.TEAMS,
        },
        # For the config.json of a saved model; the page adds the rest.
        "config": {
            "format_version": FORMAT_VERSION,
            "calibration": Calibration().model_dump(mode="json"),
            "scope": None,
            **config,
        },
    }
