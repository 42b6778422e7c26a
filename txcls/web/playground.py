"""A page on which visitors train a Transformer in their browser: one file that opens from disk, without a server."""

from functools import cache
from pathlib import Path

from txcls import __version__
from txcls.checkpoint.files import new_folder, reason
from txcls.checkpoint.schema import FORMAT_VERSION
from txcls.config import Calibration, load_preset
from txcls.data.generated import who_won
from txcls.data.generated.sample import open_sample
from txcls.errors import CheckpointError
from txcls.web.export import GENERATOR, filled_page, inline_hash, page_json, policy, refuse_other_files
from txcls.web.sources import script, style
from txcls.web.tables import reading_tables

SHEETS = ("picture/buttons", "playground/playground", "picture/machine", "picture/saving")


def export_playground(out: str | Path) -> Path:
    """Write the page as index.html into a folder, replacing an older page there.

    Raises:
        CheckpointError: the folder holds other files or cannot be written.
    """
    target = Path(out)
    refuse_other_files(target)
    try:
        with new_folder(target) as temporary:
            (temporary / "index.html").write_bytes(playground())
            (temporary / "index.html").chmod(0o644)
    except OSError as error:
        raise CheckpointError(
            f"cannot write {target}: {reason(error):.200}. Free some space or choose another folder"
        ) from error
    return target / "index.html"


@cache
def playground() -> bytes:
    """The page as HTML."""
    code, styles = script("playground/playground"), style(*SHEETS)
    sources = {
        "default-src": "'none'",
        "script-src": inline_hash(code),
        "worker-src": "blob:",  # the page contains the worker's source
        "style-src": inline_hash(styles),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    config = load_preset("own").model_dump(mode="json")
    sample = open_sample()
    messages = []
    for split in sample.splits:
        rows = sample.load(split)
        labels = [sample.classes[label] for label in rows.labels]
        messages += [(text, label, split == "test") for text, label in zip(rows.texts, labels, strict=True)]
    data = {
        "version": __version__,
        "tables": reading_tables(tokenizers={"basic_english"}),
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
        {
            "GENERATOR": f'{GENERATOR}{__version__}">',
            "POLICY": policy(sources),
            "STYLE": styles,
            "DATA": page_json(data).decode("utf-8"),
            "WORKER": script("training/worker"),
            "SCRIPT": code,
        },
    )
