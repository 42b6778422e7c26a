"""Join the browser code in this folder: modules with their imports, and style sheets."""

import re
from functools import cache
from pathlib import Path

from txcls.config import places
from txcls.figures import colours

HERE = Path(__file__).resolve().parent
_COMMENT = re.compile(r"^ *(/\*\*((?!\*/)[\s\S])*\*/|//[^\n]*)\n", re.MULTILINE)
_IMPORT = re.compile(r'^import \{[^}]*\} from "([./\w]+)\.js";\n', re.MULTILINE)


def script(*modules: str) -> str:
    """The named modules, such as "engine/model", and all modules that they import, joined into one.

    Each module appears once, after its imports and without import statements; top-level names must be unique.
    """
    joined: dict[Path, str] = {}
    for name in modules:
        _join(HERE / name, joined)
    return "\n".join(joined.values())


def without_comments(source: str) -> str:
    """A script without comments on separate lines, which would be a fifth of it."""
    return _COMMENT.sub("", source)


def style(*sheets: str) -> str:
    """The named style sheets, such as "page/page", joined in this order."""
    return "\n".join(_read(HERE / f"{name}.css") for name in sheets)


def _join(module: Path, joined: dict[Path, str]) -> None:
    if module in joined:
        return
    source = _read(module.with_suffix(".js"))
    for imported in _IMPORT.findall(source):
        _join((module.parent / imported).resolve(), joined)
    joined[module] = re.sub(r"^export ", "", _IMPORT.sub("", source), flags=re.MULTILINE)


@cache
def _read(file: Path) -> str:
    if file == HERE / "picture" / "palette.js":
        return colours.javascript()
    if file == HERE / "engine" / "implemented.js":
        return places.javascript()
    return file.read_text(encoding="utf-8")
