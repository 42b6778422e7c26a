"""Workbooks (.xlsx) with parts of any content, which openpyxl would not write."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_TYPES = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def packed(parts: Mapping[str, str | bytes]) -> bytes:
    """A zip file with these parts."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()


def cell(value: float, *, style: int = 0) -> str:
    """A number with a style."""
    return f'<c s="{style}"><v>{value!r}</v></c>'


def row(number: int, *cells: str, attributes: str = "") -> str:
    """A row of texts, or of cells that are XML already."""
    xml = (one if one.startswith("<c ") else f'<c t="inlineStr"><is><t>{escape(one)}</t></is></c>' for one in cells)
    return f'<row r="{number}" {attributes}>{"".join(xml)}</row>'


def sheet(rows: Sequence[str], after: str = "") -> str:
    """A sheet; its stated size is the largest possible."""
    return (
        f'<?xml version="1.0"?><worksheet xmlns="{_MAIN}"><dimension ref="A1:XFD1048576"/><sheetData>'
        f"{''.join(rows)}</sheetData>{after}</worksheet>"
    )


def workbook(
    rows: Sequence[str],
    *,
    after: str = "",
    strings: Sequence[str] = (),
    formats: Sequence[int] = (0,),
    codes: Mapping[int, str] | None = None,
    is_1904: bool = False,
    sheets: str = '<sheet name="Sheet" sheetId="1" r:id="rId1"/>',
    parts: Mapping[str, str | bytes] | None = None,
) -> bytes:
    """A workbook with one sheet of these rows, shared strings, number formats by style, and further or other parts."""
    custom = "".join(
        f'<numFmt numFmtId="{key}" formatCode="{escape(code, {chr(34): "&quot;"})}"/>'
        for key, code in (codes or {}).items()
    )
    styles = "".join(f'<xf numFmtId="{number}"/>' for number in formats)
    names = {"worksheet": "worksheets/sheet1", "sharedStrings": "sharedStrings", "styles": "styles"}
    return packed(
        {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": _relations({"officeDocument": "xl/workbook.xml"}),
            "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_TYPES}"><workbookPr date1904="{int(is_1904)}"/>'
            f"<sheets>{sheets}</sheets></workbook>",
            "xl/_rels/workbook.xml.rels": _relations({kind: f"/xl/{name}.xml" for kind, name in names.items()}),
            "xl/sharedStrings.xml": f'<sst xmlns="{_MAIN}">{"".join(strings)}</sst>',
            "xl/styles.xml": f'<styleSheet xmlns="{_MAIN}"><numFmts>{custom}</numFmts><cellStyleXfs><xf numFmtId="14"/>'
            f"</cellStyleXfs><cellXfs>{styles}</cellXfs></styleSheet>",
            "xl/worksheets/sheet1.xml": sheet(rows, after),
            **(parts or {}),
        }
    )


def _relations(targets: Mapping[str, str]) -> str:
    entries = (
        f'<Relationship Id="rId{number}" Type="{_TYPES}/{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(targets.items(), start=1)
    )
    return f'<Relationships xmlns="{_RELATIONS}">{"".join(entries)}</Relationships>'
