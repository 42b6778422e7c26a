"""The image that messengers show beside a link to an exported page: its title, an example and the prediction."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from txcls.errors import make_printable
from txcls.figures.colours import CLASSES
from txcls.text.formatting import bounded_percentage

PREVIEW = "preview.png"
"""Name of the file beside the page."""
SIZE = (1200, 630)
INK, SOFT, GROUND = "#16191d", "#4a525c", "#ffffff"


def draw_preview(descriptions: Sequence[Mapping[str, Any]]) -> bytes:
    """A PNG of the first of a page's classifiers, from their descriptions (`txcls.web.export.describe`)."""
    first = descriptions[0]
    classes, title = first["classes"], first["title"] or first["name"]
    others = f" and {len(descriptions) - 1} more" if len(descriptions) > 1 else ""
    image = Image.new("RGB", SIZE, GROUND)
    drawing = ImageDraw.Draw(image)
    _write(drawing, (70, 60), title, size=60, fill=INK)
    _write(drawing, (70, 150), f"A whole Transformer{others}, in your browser", size=34, fill=SOFT)
    _write(drawing, (70, 240), f"“{first['examples'][0][1]}”", size=34, fill=INK)
    for row, (label, probability) in enumerate(first["opening"]):
        colour = CLASSES[(classes.index(label) if len(classes) <= len(CLASSES) else row)]
        top = 325 + 66 * row
        _write(drawing, (70, top), label, size=32, fill=INK, max_width=290)
        drawing.rounded_rectangle((370, top + 2, 370 + max(6, 600 * probability), top + 42), 8, fill=colour)
        _write(drawing, (990, top), bounded_percentage(probability), size=32, fill=SOFT)
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()


def _write(
    drawing: ImageDraw.ImageDraw, at: tuple[int, int], text: str, *, size: int, fill: str, max_width: int = 1060
) -> None:
    """Draw a line of text, cut to `max_width` pixels."""
    font = ImageFont.load_default(size)
    line = make_printable(" ".join(text.split()))  # the font has no other spaces
    while line and drawing.textlength(line, font) > max_width:
        line = line[:-2].rstrip("…") + "…" if len(line) > 2 else ""
    drawing.text(at, line, fill=fill, font=font)
