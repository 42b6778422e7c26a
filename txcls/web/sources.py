"""The browser code of this folder: which module needs which, and modules and style sheets joined into one."""

import re
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
MODULES = (
    "tensor",
    "words",
    "cleaning",
    "subwords",
    "encoder",
    "calibration",
    "weights",
    "model",
    "ablation",
    "classifier",
)
"""What computes, each module after those that it imports."""
PICTURE = ("reader", "dom", "figures", "saving", "scene", "kept", "placing", "lines", "painting", "tracing", "machine")
"""What draws the picture of the whole model."""
DRAWING = (*PICTURE, "bins", "lesson", "view", "drawing", "page")
"""What draws the page."""
SHEETS = ("buttons", "page", "machine", "saving", "bins", "lesson")
"""The page's style sheets."""


def script(modules: Sequence[str]) -> str:
    """The named modules as one: joined in this order, without their imports of each other."""
    sources = [_read(f"{name}.js") for name in modules]
    own = re.compile(r'^import \{[^}]*\} from "\./\w+\.js";\n', re.MULTILINE)
    return "\n".join(re.sub(r"^export ", "", own.sub("", source), flags=re.MULTILINE) for source in sources)


def style(sheets: Sequence[str]) -> str:
    """The named style sheets as one, in this order."""
    return "\n".join(_read(f"{name}.css") for name in sheets)


def _read(file: str) -> str:
    return (HERE / file).read_text(encoding="utf-8")
