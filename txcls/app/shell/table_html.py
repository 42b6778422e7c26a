"""HTML tables of visitors' data: all cells are escaped text, never markup."""

import html
from collections.abc import Collection, Mapping, Sequence

from txcls.figures import visible_lines

STYLE = """
<style>
.txcls-table {border-collapse: collapse; width: 100%; font-size: 0.95rem; line-height: 1.45;}
.txcls-table :is(th, td) {text-align: left; vertical-align: top; padding: 0.3rem 0.9rem 0.3rem 0;
  border-bottom: 1px solid color-mix(in srgb, currentColor 18%, transparent); overflow-wrap: break-word;}
.txcls-table td {white-space: pre-line;}
.txcls-table th {font-weight: 650; white-space: nowrap;}
.txcls-table td.txcls-number {font-variant-numeric: tabular-nums; white-space: nowrap;}
.txcls-table td.txcls-named {white-space: nowrap; overflow: hidden; text-overflow: ellipsis; max-width: 14rem;}
.txcls-table td.txcls-prose {overflow-wrap: anywhere; min-width: 9rem;}
.txcls-table tr.txcls-continued td {border-bottom: 0; padding-bottom: 0;}
.txcls-table tr.txcls-continued + tr td {padding-top: 0;}
.txcls-wide {overflow-x: auto;}
.txcls-figures {display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: 0.4rem 1.5rem;
  max-width: 60rem; font-size: 0.95rem;}
.txcls-figures b {display: block; font-size: 1.6rem; font-weight: 600; font-variant-numeric: tabular-nums;}
</style>
"""


def table(
    columns: Sequence[str],
    rows: Sequence[Mapping[str, object]],
    *,
    numbers: Sequence[str] = (),
    named: Sequence[str] = (),
    texts: Sequence[str] = (),
    continued_rows: Collection[int] = (),
    caption: str = "",
) -> str:
    """An HTML table.

    Args:
        columns: keys of the rows, also used as headings.
        rows: values by column; a missing value is an empty cell.
        numbers: columns with aligned digits.
        named: columns that are not wrapped, such as labels.
        texts: columns that may be broken within words to keep the table within the page.
        continued_rows: indices of rows without a line between them and the next row.
        caption: the table's name for screen readers.
    """
    classes = {"txcls-number": numbers, "txcls-named": named, "txcls-prose": texts}
    attributes = {column: f' class="{name}"' for name, styled in classes.items() for column in styled}
    head = "".join(f'<th scope="col">{_cell(name)}</th>' for name in columns)
    body = "".join(
        ('<tr class="txcls-continued">' if number in continued_rows else "<tr>")
        + "".join(f"<td{attributes.get(name, '')}>{_cell(row.get(name, ''))}</td>" for name in columns)
        + "</tr>"
        for number, row in enumerate(rows)
    )
    label = f' aria-label="{html.escape(caption)}"' if caption else ""
    return (
        f'<div class="txcls-wide"><table class="txcls-table"{label}><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _cell(value: object) -> str:
    """A value as text in its own writing direction, with its line breaks; `<br>` between the elements of a list."""
    parts = value if isinstance(value, list | tuple) else (value,)
    return "<br>".join(f"<bdi>{html.escape(visible_lines(str(part)))}</bdi>" for part in parts)
