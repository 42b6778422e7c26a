"""A text as the model read it, as HTML: tokens, unknown words and the cut-off part, each marked in two ways."""

import html
from collections.abc import Sequence

from txcls.figures import visible
from txcls.text.encoder import Token

LONGEST_TAIL = 600
"""Characters of a cut-off part that are shown; the rest is counted."""

STYLE = """
<style>
.txcls-text {font-size: 1.15rem; line-height: 2; white-space: pre-wrap; overflow-wrap: anywhere;
  unicode-bidi: plaintext;}
.txcls-token {background: color-mix(in srgb, currentColor 9%, transparent); border-radius: 4px; padding: 2px 3px;}
.txcls-unknown {background: color-mix(in srgb, #E69F00 22%, transparent); border-radius: 4px; padding: 2px 3px;
  border-bottom: 3px dashed #D98E00;}
.txcls-unknown::after {content: "?"; font-size: 0.7em; vertical-align: super; font-weight: 700; margin-left: 2px;}
.txcls-special {border: 1px solid currentColor; border-radius: 4px; padding: 1px 4px; opacity: 0.75;
  font-size: 0.85em;}
.txcls-cut {opacity: 0.65; font-style: italic; border-left: 3px solid #D55E00; padding-left: 6px;}
.txcls-legend {display: flex; flex-wrap: wrap; gap: 0.4rem 1.4rem; font-size: 0.9rem; padding-top: 0.6rem;
  line-height: 1.8;}
</style>
"""


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
