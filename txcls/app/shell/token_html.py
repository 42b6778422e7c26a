"""A text's edits, tokens, ids and merges as HTML; no mark relies on colour alone."""

import html
from collections.abc import Sequence

from txcls.figures import visible_lines
from txcls.text.cleaning import effect_of_cleaning
from txcls.text.tokens import Token

MAX_TAIL_CHARACTERS = 600
"""Number of characters shown of the truncated part; the rest is counted."""
MAX_CLEANED = 20_000
"""Number of characters of a text in which edits are looked for."""
MAX_EDIT_CHARACTERS = 1200
"""Number of characters shown of a cleaned text, starting shortly before its first edit."""
MAX_CHIPS = 200
"""Maximum number of tokens shown with their ids; the rest is counted."""


def escape(text: str) -> str:
    """Escape text for HTML, with control characters made visible."""
    return html.escape(visible_lines(text.replace("\t", "    ")))


def marked_text(
    text: str, tokens: Sequence[Token], *, truncated_at: int | None, limit: int, lower: bool = False
) -> str:
    """`text` with its tokens marked, and a legend of the marks with counts.

    `tokens` are those that the model read, `truncated_at` is the offset of the first character that was not read, and
    `limit` the model's maximum number of tokens; with `lower`, the tokens are shown in lower case.
    """
    added = [f'<span class="txcls-special">{escape(token.text)}</span>' for token in tokens if token.is_special]
    parts = [f"{token} " for token in added[:1]]
    end_of_read = len(text) if truncated_at is None else truncated_at
    position = 0
    for index, token in enumerate(tokens):
        start, end = max(token.start, position), min(token.end, end_of_read)
        if token.is_special or end <= start:
            continue
        parts.append(escape(text[position:start]))
        kind = "unknown" if token.is_unknown else "token"
        title = _describe(index + 1, token)
        typed = text[start:end][:2000]
        shown = escape(typed.lower() if lower else typed)
        parts.append(f'<span class="txcls-{kind}" title="{escape(title)}">{shown}</span>')
        position = end
    parts.append(escape(text[position:end_of_read]))
    if truncated_at is not None:
        tail = text[truncated_at : truncated_at + MAX_TAIL_CHARACTERS]
        parts.append(f'<span class="txcls-cut">✂ {escape(tail)}</span>')
        hidden = len(text) - truncated_at - len(tail)
        if hidden > 0:
            parts.append(f" … and {hidden:,} more characters")
    parts += [f" {token}" for token in added[1:]]
    return f'<div class="txcls-text" dir="auto">{"".join(parts)}</div>{_legend(tokens, truncated_at, limit)}'


def _describe(number: int, token: Token) -> str:
    is_part = len(token.text) == 1 and token.parts
    label = token.parts_description if is_part else token.label[:60]
    return f"token {number}: {label}, {'not in the vocabulary' if token.is_unknown else f'id {token.id}'}"


def _legend(tokens: Sequence[Token], truncated_at: int | None, limit: int) -> str:
    n_unknown = sum(token.is_unknown for token in tokens)
    n_special = sum(token.is_special for token in tokens)
    n_words = len(tokens) - n_special
    items = [f"{n_words} token{'' if n_words == 1 else 's'}"]
    if n_unknown:
        items.append(f'<span class="txcls-unknown">token</span> {n_unknown} not in the vocabulary')
    if n_special:
        items.append(f'<span class="txcls-special">{n_special}</span> added by the model')
    if truncated_at is not None:
        items.append(f'<span class="txcls-cut">✂</span> not read: the model reads {limit} tokens at most')
    return '<div class="txcls-legend">' + "".join(f"<span>{item}</span>" for item in items) + "</div>"


def plain_text(text: str) -> str:
    """A text without marks, as HTML."""
    return f'<div class="txcls-text" dir="auto">{escape(text[:MAX_EDIT_CHARACTERS])}</div>'


def edits(text: str, steps: Sequence[str]) -> str:
    """The edits of a text by cleaning steps: removed characters struck through, inserted ones underlined.

    If only case or the kind of whitespace changed, only the new characters are shown.
    """
    step = effect_of_cleaning(text[:MAX_CLEANED], steps)
    first = max(step.edits[0][0] - 200, 0) if step.edits else 0
    last = min(first + MAX_EDIT_CHARACTERS, len(step.before))
    parts = ["… "] if first else []
    old = first
    for start, end, new_start, new_end in step.edits:
        if start >= last:
            break
        removed, added = step.before[start:end], step.after[new_start:new_end]
        parts.append(escape(step.before[old:start]))
        if removed.strip() and removed.lower() != added.lower():
            parts.append(f"<del>{escape(removed[:300])}</del>")
        elif removed and not added:
            parts.append("<del>␣</del>")
        if added:
            parts.append(f"<ins>{escape(added[:300]) if added.strip() else '␣'}</ins>")
        old = end
    parts.append(escape(step.before[old:last]))
    if last < len(text):
        parts.append(f" … and {len(text) - max(last, old):,} more characters")
    return f'<div class="txcls-edits txcls-text" dir="auto">{"".join(parts)}</div>'


def ids(names: Sequence[str], tokens: Sequence[Token]) -> str:
    """A row of T tokens with their display strings, each above its id."""
    parts = []
    for name, token in list(zip(names, tokens, strict=True))[:MAX_CHIPS]:
        kind = " unknown" if token.is_unknown else " special" if token.is_special else ""
        note = "added" if token.is_special else escape(token.parts_description) if token.parts else ""
        label = escape(name[:60]) + ("<sup>?</sup>" if token.is_unknown else "")
        parts.append(_chip(label, str(token.id), note, kind))
    rest = len(tokens) - MAX_CHIPS
    more = f'<div class="txcls-legend">… and {rest:,} more</div>' if rest > 0 else ""
    return f'<div class="txcls-chips">{"".join(parts)}</div>{more}'


def _chip(label: str, number: str, note: str = "", kind: str = "") -> str:
    small = f"<small>{note}</small>" if note else ""
    return f'<span class="txcls-chip{kind}"><b>{label}</b><i>{number}</i>{small}</span>'


def merges(rows: Sequence[tuple[str, str, Sequence[str], int | None]], *, current_merge: int) -> str:
    """The merges of a word as an HTML table; `rows` are (pair, rank, pieces, index of the new piece), the first one for
    the word's bytes. Rows after `current_merge` are pale."""
    lines = []
    for number, (pair, rank, pieces, new) in enumerate(rows):
        kind = "now" if number == current_merge else "later" if number > current_merge else ""
        mark = "▶" if number == current_merge else ""
        boxes = "".join(
            f'<span class="txcls-chip{" new" if index == new else ""}">{escape(piece)}</span>'
            for index, piece in enumerate(pieces)
        )
        lines.append(
            f'<tr class="{kind}"><td class="n">{mark} {number}</td><td class="p">{escape(pair)}</td>'
            f'<td class="n">{rank}</td><td class="p">{boxes}</td></tr>'
        )
    return (
        '<div class="txcls-merges"><table><thead><tr><th class="n">merge</th><th>pair</th><th class="n">learned as no.'
        f"</th><th>pieces afterwards</th></tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )
