"""A page on which visitors train a Transformer in their browser: one file that opens from disk, without a server."""

import re
from functools import cache
from pathlib import Path

from txcls import __version__
from txcls.checkpoint.schema import FORMAT_VERSION
from txcls.config import Calibration, load_preset
from txcls.data.generated import who_won
from txcls.data.generated.sample import open_sample
from txcls.web.export import refuse_other_files, write_page
from txcls.web.fill_page import filled_page, page_json
from txcls.web.join_scripts import script
from txcls.web.tokenizer_rules import reading_tables

SHEETS = ("page/theme", "picture/buttons", "playground/playground", "picture/machine", "picture/saving")
PATTERNS = ("composed", "spaces", "basic_english")
"""The patterns for the text settings of the page (`TEXT` in playground.js)."""
_COMMENT = re.compile(r"^ *(/\*\*((?!\*/)[\s\S])*\*/|//[^\n]*)\n", re.MULTILINE)


def export_playground(out: str | Path) -> Path:
    """Write the page as index.html into a folder, replacing an older page there.

    Raises:
        CheckpointError: the folder holds other files or cannot be written.
    """
    target = Path(out)
    refuse_other_files(target)
    return write_page(target, {"index.html": playground()})


@cache
def playground() -> bytes:
    """The page as HTML."""
    patterns = reading_tables(tokenizers={"basic_english"})["patterns"]
    config = load_preset("own").model_dump(mode="json")
    sample = open_sample()
    messages: dict[str, dict[str, list[str]]] = {label: {} for label in sample.classes}
    for split in sample.splits:
        rows = sample.load(split)
        for text, label in zip(rows.texts, rows.labels, strict=True):
            messages[sample.classes[label]].setdefault(split, []).append(text)
    data = {
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
    return filled_page(
        "playground/playground.html",
        code=_without_comments(script("playground/playground")),
        sheets=SHEETS,
        sources={"worker-src": "blob:"},  # the page contains the worker's source
        values={
            "DATA": page_json(data).decode("utf-8"),
            "WORKER": _without_comments(script("playground/training/worker")),
        },
    )


def _without_comments(source: str) -> str:
    """A script without comments on separate lines, which would be a fifth of the page."""
    return _COMMENT.sub("", source)
