"""What became of a text, as HTML: edits, tokens, ids and merges, everything marked in two ways."""

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

from txcls.figures import percent, visible
from txcls.text.cleaning import CleaningStep
from txcls.text.encoder import Token

if TYPE_CHECKING:
    from txcls.inspection.random_texts import ClassifiedText

LONGEST_TAIL = 600
"""Characters of a cut-off part that are shown; the rest is counted."""

STYLE = """
<style>
.txcls-text {font-size: 1.15rem; line-height: 2; white-space: pre-wrap; overflow-wrap: anywhere;
  unicode-bidi: plaintext;}
.txcls-token {background: color-mix(in srgb, currentColor 9%, transparent); border-radius: 4px; padding: 2px 3px;
  box-shadow: inset 0 0 0 1px color-mix(in srgb, currentColor 14%, transparent); margin-right: 1px;}
.txcls-unknown {background: color-mix(in srgb, #E69F00 22%, transparent); border-radius: 4px; padding: 2px 3px;
  border-bottom: 3px dashed #D98E00;}
.txcls-unknown::after {content: "?"; font-size: 0.7em; vertical-align: super; font-weight: 700; margin-left: 2px;}
.txcls-special {border: 1px solid currentColor; border-radius: 4px; padding: 1px 4px; opacity: 0.75;
  font-size: 0.85em;}
.txcls-cut {opacity: 0.65; font-style: italic; border-left: 3px solid #D55E00; padding-left: 6px;}
.txcls-legend {display: flex; flex-wrap: wrap; gap: 0.4rem 1.4rem; font-size: 0.9rem; padding-top: 0.6rem;
  line-height: 1.8;}
.txcls-edits {line-height: 1.75; padding-bottom: 0.5rem;}
.txcls-edits ins {text-decoration: underline 2px; background: color-mix(in srgb, #1F83C4 24%, transparent);
  border-radius: 3px; padding: 0 1px;}
.txcls-edits del {text-decoration: line-through; background: color-mix(in srgb, #D55E00 20%, transparent);
  border-radius: 3px; padding: 0 1px;}
.txcls-chips {display: flex; flex-wrap: wrap; gap: 0.45rem 0.4rem; padding: 0.2rem 0;}
.txcls-chip {display: inline-flex; flex-direction: column; align-items: center; border-radius: 6px; line-height: 1.35;
  border: 1px solid color-mix(in srgb, currentColor 25%, transparent); padding: 2px 8px; max-width: 100%;}
.txcls-chip b {font-weight: 600; overflow-wrap: anywhere; white-space: pre-wrap;}
.txcls-chip i {font-style: normal; font-variant-numeric: tabular-nums; font-size: 0.95em;}
.txcls-chip small {font-size: 0.75em; opacity: 0.75;}
.txcls-chip.unknown {border: 2px dashed #D98E00; background: color-mix(in srgb, #E69F00 16%, transparent);}
.txcls-chip.special {opacity: 0.8; border-style: dotted;}
.txcls-chip.new {border: 2px solid #FF6A13; background: color-mix(in srgb, #FF6A13 16%, transparent);}
.txcls-pieces {font-size: 1.5rem; min-height: 3.2rem;}
.txcls-merges {overflow-x: auto;}
.txcls-merges table {border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.95rem;}
.txcls-merges :is(th, td) {text-align: left; padding: 0.2rem 0.9rem 0.2rem 0; vertical-align: baseline;
  border-bottom: 1px solid color-mix(in srgb, currentColor 15%, transparent);}
.txcls-merges .n {text-align: right;}
.txcls-merges .later {opacity: 0.5;}
.txcls-merges .now {font-weight: 700;}
.txcls-merges .p {white-space: nowrap;}
.txcls-drawn {display: grid; grid-template-columns: max-content 1fr; gap: 0 0.9rem;}
.txcls-drawn > div {padding: 0.45rem 0; border-top: 1px solid color-mix(in srgb, currentColor 15%, transparent);
  overflow-wrap: anywhere;}
.txcls-drawn small {display: block; font-size: 0.9em;}
.txcls-right {font-weight: 650; color: #009E73;}
.txcls-wrong {font-weight: 650; color: #D55E00; text-decoration: underline;}
</style>
"""
LONGEST_EDITS = 1200
"""Characters of a cleaning step that are shown, from shortly before its first edit on."""
LONGEST_DRAWN = 240
"""Characters of a drawn text that are shown; the rest, if it is worth the words, is counted."""
MOST_CHIPS = 200
"""Tokens that are shown with their ids; the rest is counted."""


def show(text: str) -> str:
    """Typed text as HTML that shows it and does nothing: markup escaped, control characters visible."""
    return html.escape("\n".join(visible(line) for line in text.replace("\t", "    ").split("\n")))


def tokens_html(text: str, tokens: Sequence[Token], *, truncated_at: int | None, limit: int) -> str:
    """`text` with its tokens marked, and below it a legend of the marks in it with their counts.

    Args:
        text: as typed.
        tokens: what the model read, with offsets into `text`.
        truncated_at: offset of the first character that was not read; None if all was.
        limit: how many tokens the model reads at most; said in the legend of a cut-off text.
    """
    parts = [f'<span class="txcls-special">{show(token.text)}</span> ' for token in tokens if token.is_special]
    end_of_read = len(text) if truncated_at is None else truncated_at
    at = 0
    for place, token in enumerate(tokens, start=1):
        start, end = max(token.start, at), min(token.end, end_of_read)
        if token.is_special or end <= start:
            continue
        parts.append(show(text[at:start]))
        kind = "unknown" if token.is_unknown else "token"
        title = f"token {place}: {token.text[:60]}, " + (
            "not in the vocabulary" if token.is_unknown else f"id {token.id}"
        )
        parts.append(f'<span class="txcls-{kind}" title="{show(title)}">{show(text[start:end][:2000])}</span>')
        at = end
    parts.append(show(text[at:end_of_read]))
    if truncated_at is not None:
        tail = text[truncated_at : truncated_at + LONGEST_TAIL]
        parts.append(f'<span class="txcls-cut">✂ {show(tail)}</span>')
        hidden = len(text) - truncated_at - len(tail)
        if hidden > 0:
            parts.append(f" … and {hidden:,} more characters")
    return f'{STYLE}<div class="txcls-text" dir="auto">{"".join(parts)}</div>{_legend(tokens, truncated_at, limit)}'


def _legend(tokens: Sequence[Token], truncated_at: int | None, limit: int) -> str:
    n_unknown = sum(token.is_unknown for token in tokens)
    n_special = sum(token.is_special for token in tokens)
    n_words = len(tokens) - n_special
    items = [f'<span class="txcls-token">word</span> {n_words} token{"" if n_words == 1 else "s"}']
    if n_unknown:
        items.append(f'<span class="txcls-unknown">word</span> {n_unknown} not in the vocabulary, read as &lt;unk&gt;')
    if n_special:
        items.append(f'<span class="txcls-special">{n_special}</span> added by the model')
    if truncated_at is not None:
        items.append(f'<span class="txcls-cut">✂</span> not read: the model stops after {limit} tokens')
    return '<div class="txcls-legend">' + "".join(f"<span>{item}</span>" for item in items) + "</div>"


def edits_html(step: CleaningStep) -> str:
    """What a cleaning step did to its text: removed characters struck through, new ones underlined.

    Where only the case changed, and where white space became white space, the new ones alone are shown.
    """
    first = max(step.edits[0][0] - 200, 0) if step.edits else 0
    last = min(first + LONGEST_EDITS, len(step.before))
    parts = ["… "] if first else []
    old = first
    for start, end, new_start, new_end in step.edits:
        if start >= last:
            break
        removed, added = step.before[start:end], step.after[new_start:new_end]
        parts.append(show(step.before[old:start]))
        if removed.strip() and removed.lower() != added.lower():
            parts.append(f"<del>{show(removed[:300])}</del>")
        elif removed and not added:
            parts.append("<del>␣</del>")
        if added:
            parts.append(f"<ins>{show(added[:300]) if added.strip() else '␣'}</ins>")
        old = end
    parts.append(show(step.before[old:last]))
    if last < len(step.before):
        parts.append(f" … and {len(step.before) - max(last, old):,} more characters")
    return f'<div class="txcls-edits txcls-text" dir="auto">{"".join(parts)}</div>'


def ids_html(names: Sequence[str], tokens: Sequence[Token]) -> str:
    """Tokens in a row, each above its id and its place in the typed text.

    Args:
        names: what to call each token.
        tokens: as many.
    """
    parts = []
    for name, token in list(zip(names, tokens, strict=True))[:MOST_CHIPS]:
        kind = " unknown" if token.is_unknown else " special" if token.is_special else ""
        place = "added" if token.is_special else f"{token.start}–{token.end}"
        label = show(name[:60]) + ("<sup>?</sup>" if token.is_unknown else "")
        parts.append(_chip(label, str(token.id), place, kind))
    rest = len(tokens) - MOST_CHIPS
    more = f'<div class="txcls-legend">… and {rest:,} more</div>' if rest > 0 else ""
    return f'{STYLE}<div class="txcls-chips">{"".join(parts)}</div>{more}'


def words_html(words: Sequence[tuple[str, str]]) -> str:
    """Tokens of the vocabulary in a row, each above a number: (token, number)."""
    return f'{STYLE}<div class="txcls-chips">{"".join(_chip(show(word[:60]), number) for word, number in words)}</div>'


def _chip(label: str, number: str, place: str = "", kind: str = "") -> str:
    small = f"<small>{place}</small>" if place else ""
    return f'<span class="txcls-chip{kind}"><b>{label}</b><i>{number}</i>{small}</span>'


def pieces_html(pieces: Sequence[str], *, new: int | None) -> str:
    """The pieces of a word in a row, the one just made framed."""
    parts = [
        f'<span class="txcls-chip{" new" if place == new else ""}"><b>{show(piece)}</b></span>'
        for place, piece in enumerate(pieces)
    ]
    return f'{STYLE}<div class="txcls-chips txcls-pieces">{"".join(parts)}</div>'


def merges_html(rows: Sequence[tuple[str, str, str, str]], *, now: int) -> str:
    """The merges of a word as a table: (pair, rank, frequency, pieces) of each; those after number `now` are pale."""
    lines = []
    for number, (pair, rank, frequency, pieces) in enumerate(rows, start=1):
        kind = "now" if number == now else "later" if number > now else ""
        mark = "▶" if number == now else ""
        lines.append(
            f'<tr class="{kind}"><td class="n">{mark} {number}</td><td class="p">{show(pair)}</td>'
            f'<td class="n">{rank}</td><td class="n">{frequency}</td><td>{show(pieces)}</td></tr>'
        )
    return (
        '<div class="txcls-merges"><table><thead><tr><th class="n">merge</th><th>pair</th><th class="n">rank</th>'
        f'<th class="n">counted</th><th>pieces then</th></tr></thead><tbody>{"".join(lines)}</tbody></table></div>'
    )


def drawn_html(drawn: "Sequence[ClassifiedText]") -> str:
    """Texts with the class they have and the class they were given, each marked right or wrong in words."""
    parts = []
    for one in drawn:
        kind = "right" if one.is_right else "wrong"
        mark = f'<div><span class="txcls-{kind}">{"✓" if one.is_right else "✗"} {kind}</span></div>'
        rest = len(one.text) - LONGEST_DRAWN
        text = show(one.text) if rest < 60 else f"{show(one.text[:LONGEST_DRAWN])} … and {rest:,} more characters"
        truth = "none of the classes" if one.truth is None else one.truth
        if one.prediction.label is None:
            said = "nothing to read"
        else:
            probability = percent(one.prediction.scores[0].probability).replace(" ", "&nbsp;")
            said = f"<b>{show(one.prediction.label)}</b> {probability}"
            if one.prediction.out_of_scope:
                said = f"<b>probably none of these</b>, nearest {said}"
        parts.append(f'{mark}<div dir="auto">{text}<small>is <b>{show(truth)}</b> · prediction {said}</small></div>')
    return f'{STYLE}<div class="txcls-drawn">{"".join(parts)}</div>'
