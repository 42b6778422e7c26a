"""From text to ids: cleaning, words and subwords, byte-pair merges, and the vocabulary."""

from collections.abc import Sequence

import streamlit as st

from txcls.app import menu
from txcls.app.shell import checkpoints, compute, layout, lecture, token_html
from txcls.app.shell.markdown import plain, table
from txcls.app.shell.prediction import ask_for_text, load_classifier, loading_placeholder, say_no_tokens
from txcls.errors import TxclsError
from txcls.inspection.vocabulary import Tokenizers
from txcls.text.cleaning import clean, explain_cleaning
from txcls.text.encoder import TextEncoder
from txcls.text.subwords import BytePairs, Merge, spell
from txcls.text.tokens import SPACE, Encoding, Token
from txcls.text.vocabulary import SPECIAL_TOKENS
from txcls.wording import percentage

MAX_CLEANED_CHARACTERS = 20_000
"""Maximum length, in characters, of a text whose cleaning is shown and whose words can be selected."""
MAX_PART_BYTES = 64
"""Maximum length, in bytes, of a word whose merges are shown."""
MAX_PARTS = 300
SIZES = (300, 500, 1000, 2000, 4000, 8000)


def main() -> None:
    """Draw the page."""
    opened = layout.open_page(menu.TOKENS, first_text=_most_split)
    placeholder = loading_placeholder(opened, height=480)
    encoder = load_classifier(opened).encoder
    placeholder.empty()
    if opened.has_text:
        with lecture.slide(lecture.WORDS):
            _cleaning(opened.view.text, encoder)
        with lecture.slide(lecture.WORDS):
            tokenizers, encodings = _tokens(opened, encoder)
        with lecture.slide(lecture.WORDS):
            _ids(opened, encoder)
            _comparison(encodings, (tokenizers.words, tokenizers.subwords))
        with lecture.slide(lecture.WORDS):
            _merges(opened.view.text, encoder, tokenizers)
    else:
        ask_for_text("its cleaning, tokens and ids appear here.")
    with lecture.slide(lecture.WORDS):
        _vocabulary(opened, encoder)
    layout.close_page(opened)


def _most_split(name: str) -> str:
    """The example of a checkpoint with the most subwords per word, so that the page opens on words that are split.

    The first example if the checkpoint cannot be loaded, which the page then reports.
    """
    try:
        encoder = checkpoints.classifier(checkpoints.source(name)).encoder
    except TxclsError:
        return layout.first_example(name)
    texts = [example.text for example in checkpoints.examples(name)]
    return max(texts, key=lambda text: len(encoder.encode(text).tokens) / len(text.split()))


def _cleaning(text: str, encoder: TextEncoder) -> None:
    st.subheader("1 · Cleaning", anchor=False)
    if not encoder.config.cleaning:
        st.markdown("This checkpoint does not clean texts: no cleaning steps are configured.")
        return
    steps = explain_cleaning(text[:MAX_CLEANED_CHARACTERS], encoder.config.cleaning)
    idle = [step for step in steps if not step.edits]
    line = st.container()
    for number, step in enumerate(steps, start=1):
        if step.edits:
            n = len(step.edits)
            line = st.container(horizontal=True, vertical_alignment="center", gap="medium")
            line.markdown(
                f"**{plain(step.name.replace('_', ' ').capitalize())}** (step {number} of {len(steps)}, "
                f"{plain(step.description)}): {n:,} change{'s' if n > 1 else ''}",
                width="content",
            )
            st.html(token_html.edits(step))
    names = ", ".join(step.name.replace("_", " ") for step in idle)
    if len(idle) == len(steps):
        st.markdown(f"Nothing to clean: none of the {len(steps)} steps ({names}) changed this text.")
    elif idle:
        line.caption(f"No effect on this text: {names}.")
    if len(text) > MAX_CLEANED_CHARACTERS:
        st.caption(f"Shown for the first {MAX_CLEANED_CHARACTERS:,} of {len(text):,} characters.")


def _tokens(opened: layout.Page, encoder: TextEncoder) -> tuple[Tokenizers, tuple[Encoding, Encoding]]:
    """Draw the text as words and as subwords; returns both tokenizers and what they make of the text."""
    st.subheader("2 · Tokens", anchor=False)
    text = opened.view.text
    own_pairs = encoder.byte_pairs is not None
    size = SIZES[-2]
    if not own_pairs:
        size = st.select_slider(
            "Size of the subword vocabulary",
            SIZES,
            size,
            format_func=lambda n: f"{n:,}",
            key="subword_size",
            persist_state="session",
            help="260 entries are bytes and special tokens; every merge adds one.",
            width=420,
        )
    tokenizers = compute.tokenizers(opened.source, size=size)
    encodings = tokenizers.words.encode(text), tokenizers.subwords.encode(text)
    kinds = [
        ("Words", tokenizers.words, encodings[0], not own_pairs, tokenizers.words_from),
        ("Subwords", tokenizers.subwords, encodings[1], own_pairs, tokenizers.pairs_from),
    ]
    kinds.sort(key=lambda kind: not kind[3])  # the checkpoint's own first
    for column, (kind, of, encoding, own, origin) in zip(st.columns(2, gap="large"), kinds, strict=True):
        with column:
            st.markdown(f"**{kind}**, " + ("as this checkpoint reads them" if own else "for comparison"))
            cut = encoding.truncated_at
            lower = "lowercase" in of.config.cleaning
            st.html(token_html.marked_text(text, encoding.tokens, truncated_at=cut, limit=of.max_length, lower=lower))
            st.caption(f"Learned from {origin}.{_bytes_note(encoding)}")
    return tokenizers, encodings


def _bytes_note(encoding: Encoding) -> str:
    """A note that a character of several bytes is marked once, although it may be several tokens."""
    places = [(token.start, token.end) for token in encoding.tokens if not token.is_special and token.text != SPACE]
    n = len(places) - len(set(places))
    if n < 2:
        return " One token is a further byte of a character that is already marked." if n else ""
    return f" {n:,} tokens are further bytes of characters that are already marked."


def _comparison(encodings: Sequence[Encoding], encoders: Sequence[TextEncoder]) -> None:
    """Draw a table of words and subwords: tokens of this text, characters per token, unknown words, vocabulary."""
    rows = [[token for token in encoding.tokens if not token.is_special] for encoding in encodings]
    cells = [
        ("tokens of this text", *(f"{len(row):,}" for row in rows)),
        ("characters per token", *(_average(row) for row in rows)),
        ("not in the vocabulary", _unknown(rows[0]), "0: bytes cover any text"),
        ("vocabulary size", *(f"{encoder.vocab_size:,}" for encoder in encoders)),
    ]
    st.markdown(table(("", "words", "subwords"), cells, right=("words", "subwords")))


def _average(row: Sequence[Token]) -> str:
    covered = {place for token in row for place in range(token.start, token.end)}
    return f"{len(covered) / len(row):.1f}" if row else "–"


def _unknown(row: Sequence[Token]) -> str:
    n = sum(token.is_unknown for token in row)
    return f"{n:,}\u00a0({percentage(n / len(row), 0)})".replace(" ", "\u00a0") if row else "–"


def _ids(opened: layout.Page, encoder: TextEncoder) -> None:
    st.subheader("3 · Ids", anchor=False)
    encoding = encoder.encode(opened.view.text)
    if not encoding.tokens:
        say_no_tokens()
        return
    st.markdown(
        "The model reads only these numbers: each token's **id**, its index in the vocabulary. In small print: its "
        "place in the typed text."
    )
    st.html(token_html.ids([_name(token, encoder) for token in encoding.tokens], encoding.tokens))


def _name(token: Token, encoder: TextEncoder) -> str:
    return token.text if encoder.byte_pairs is None else spell(encoder.vocabulary.token_of(token.id))


def _merges(text: str, encoder: TextEncoder, tokenizers: Tokenizers) -> None:
    st.subheader("How merges build a word from its bytes", anchor=False)
    pairs, steps = tokenizers.pairs, encoder.config.cleaning
    st.markdown(
        "Byte-pair encoding starts from single bytes and repeatedly merges two neighbours: always the pair that was "
        f"**learned first**, which has the lowest rank of {len(pairs.merges):,}. ␣ is the space before a word."
    )
    parts_of_text = pairs.parts(clean(text[:MAX_CLEANED_CHARACTERS], steps))
    whole = parts_of_text if len(text) <= MAX_CLEANED_CHARACTERS else parts_of_text[:-1]
    parts = {spell(part): part for part in whole if len(part) <= MAX_PART_BYTES}
    options = list(parts)[:MAX_PARTS]
    longest = max(range(len(options)), key=lambda place: len(pairs.build(parts[options[place]])), default=None)
    chosen = st.selectbox(
        "Word",
        options,
        index=longest,
        accept_new_options=True,
        placeholder="Type a word",
        key=f"merge_word_{hash(tuple(options))}",
        help="Pick a word of this text, or type any other.",
        width=360,
    )
    if not chosen:
        return
    part = parts.get(chosen) or _first_part(chosen, pairs, steps)
    if part is None:
        st.info(f"Type a word of at most {MAX_PART_BYTES} bytes that is not empty after cleaning.")
        return
    _merge_steps(part, pairs.build(part), tokenizers)


def _first_part(typed: str, pairs: BytePairs, steps: Sequence[str]) -> str | None:
    """The first typed word, as bytes; None if there is none, or if it is too long."""
    parts = pairs.parts(clean(typed[:MAX_CLEANED_CHARACTERS].replace("␣", " "), steps))
    if len(parts) > 1:
        first = plain(spell(parts[0])[:MAX_PART_BYTES])
        st.caption(f"Only {first}: merges never cross word boundaries.")
    return parts[0] if parts and len(parts[0]) <= MAX_PART_BYTES else None


def _merge_steps(part: str, merges: Sequence[Merge], tokenizers: Tokenizers) -> None:
    if not merges:
        st.html(token_html.pieces([spell(piece) for piece in part], new=None))
        st.caption(
            "A single byte: there is nothing to merge."
            if len(part) == 1
            else "It contains no learned pair, so it stays split into bytes."
        )
        return
    done = st.slider("Merges applied", 0, len(merges), len(merges), key=f"merges_{len(tokenizers.pairs.merges)}_{part}")
    now = merges[done - 1] if done else None
    st.html(
        token_html.pieces([spell(piece) for piece in (now.pieces if now else part)], new=now.place if now else None)
    )
    if now is None:
        st.markdown(f"**{len(part)} bytes**, before any merge.")
    else:
        left, right = (plain(spell(piece)) for piece in now.pair)
        counted = _counted(now, tokenizers)
        st.markdown(
            f"**Merge {done} of {len(merges)}**: {left} + {right}, rank {now.rank:,} of "
            f"{len(tokenizers.pairs.merges):,}"
            + (f"; it occurred {counted} times when it was learned." if counted != "–" else ".")
        )
    rows = [
        (
            " + ".join(map(spell, merge.pair)),
            f"{merge.rank:,}",
            _counted(merge, tokenizers),
            " · ".join(map(spell, merge.pieces)),
        )
        for merge in merges
    ]
    st.html(token_html.merges(rows, now=done))
    st.caption(
        "**Count**: how often the pair occurred when it was learned; each step learns the most frequent pair. A "
        "vocabulary lists its words by frequency but does not store counts, so these assume Zipf's law: the word at "
        "rank r of V occurs V / r times."
        if tokenizers.frequencies
        else "Checkpoints do not store how often each pair occurred; ranks are the order in which pairs were learned."
    )


def _counted(merge: Merge, tokenizers: Tokenizers) -> str:
    return f"{tokenizers.frequencies[merge.rank - 1]:,}" if tokenizers.frequencies else "–"


def _vocabulary(opened: layout.Page, encoder: TextEncoder) -> None:
    st.subheader("Search the vocabulary", anchor=False)
    names = compute.spellings(opened.source)
    typed = st.text_input(
        f"Word, part of a word, or id (0 to {len(names) - 1:,})",
        key="vocabulary_query",
        persist_state="session",
        placeholder="for example: govern",
        max_chars=200,
        width=420,
    ).strip()
    if not typed:
        some = [(name, str(index)) for index, name in enumerate(names)][:24]
        st.markdown(
            f"{len(names):,} tokens. The first {len(some)} by id: special tokens, then "
            + ("the most frequent words:" if encoder.byte_pairs is None else "single bytes:")
        )
        st.html(token_html.chips(some))
        return
    query = typed if typed in SPECIAL_TOKENS else clean(typed, encoder.config.cleaning)
    if query != typed:
        st.caption(f"After cleaning: “{plain(query)}”.")
    matches = compute.search(opened.source, query)
    if matches.exact is not None:
        st.markdown(f"✓ **{plain(names[matches.exact])}** is in the vocabulary: id **{matches.exact}**.")
    else:
        st.markdown(f"✗ **{plain(query)}** is not in the vocabulary. The model reads it as:")
        read = encoder.encode(typed).tokens[:24]
        st.html(token_html.ids([_name(token, encoder) for token in read], read))
    if matches.by_id is not None:
        st.markdown(f"Id **{matches.by_id}** is **{plain(names[matches.by_id])}**.")
    left, right = st.columns(2, gap="large")
    with left:
        _matches("Starting with it", matches.starting, matches.n_starting, names)
        _matches("Containing it", matches.containing, matches.n_containing, names)
    with right:
        _matches("Spelled similarly", matches.similar, len(matches.similar), names)
        anchor = matches.exact if matches.exact is not None else matches.by_id
        if anchor is not None and anchor >= len(SPECIAL_TOKENS):
            near = compute.nearest_tokens(opened.source, anchor)
            st.markdown(f"**Nearest to {plain(names[anchor])} in the embedding**, by cosine similarity (at most 1):")
            st.html(token_html.chips([(names[index], f"{cosine:.2f}") for index, cosine in near]))


def _matches(what: str, ids: Sequence[int], n: int, names: Sequence[str]) -> None:
    more = f", the first {len(ids)}" if n > len(ids) else ""
    st.markdown(f"**{what}**: {n:,}{more}" if n else f"**{what}**: none")
    if ids:
        st.html(token_html.chips([(names[index], str(index)) for index in ids]))


if __name__ == "__main__":
    main()
