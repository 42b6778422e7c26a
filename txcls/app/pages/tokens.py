"""From text to ids: cleaning, words and subwords, byte-pair merges, and the vocabulary."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from txcls.app import menu
from txcls.app.shell import cached_results, checkpoints, layout, lecture, token_html
from txcls.app.shell.controls import PageSection, draw_sections
from txcls.app.shell.markdown import escape, table
from txcls.app.shell.prediction import ask_for_text, load_classifier, loading_placeholder, say_no_tokens
from txcls.errors import TxclsError
from txcls.figures import minus, visible
from txcls.text.cleaning import clean, explain_cleaning
from txcls.text.subwords import spell
from txcls.text.tokenizer import Tokenizer
from txcls.text.tokens import Encoding, Token

MAX_WORD_BYTES = 64
"""Maximum length, in bytes, of a word whose merges are shown."""
MAX_WORDS = 300
"""Maximum number of the text's words that the menu offers for merging."""
MAX_IDS = 24
"""Maximum number of ids shown at once."""
MIN_LENGTH, MAX_SIMILAR, N_NEAREST = 4, 4, 3
"""Of the text's tokens of at least `MIN_LENGTH` characters, the first `MAX_SIMILAR` are listed with similar tokens."""


def main() -> None:
    """Draw the page."""
    page = layout.open_page(menu.TOKENS, first_text=_choose_example)
    placeholder = loading_placeholder(page, height=480)
    tokenizer = load_classifier(page).tokenizer
    placeholder.empty()
    if page.has_text:
        encoding = tokenizer.encode(page.view.text)
        with lecture.slide(lecture.WORDS):
            if encoding.tokens:
                n = len(encoding.tokens)
                read = f"it is cut into **{n:,} token{'s' * (n > 1)}**, and each becomes its **id**, its number in a "
                layout.draw_answer(page, f"After cleaning, {read}vocabulary of {tokenizer.vocab_size:,}.")
            page.facts.empty()
            _draw_cleaning(page.view.text, tokenizer)
            _draw_tokens(encoding, tokenizer)
        draw_sections(page.view, _list_sections(page, tokenizer, encoding))
    else:
        ask_for_text("its cleaning, tokens and ids appear here.")
    layout.close_page(page)


def _list_sections(page: layout.Page, tokenizer: Tokenizer, encoding: Encoding) -> list[PageSection]:
    """The sections drawn on demand."""
    parts = [
        PageSection(
            "words", _ask_why_not(tokenizer), partial(_draw_comparison, page, tokenizer, encoding), (lecture.WORDS,)
        ),
    ]
    if tokenizer.word_pieces is None:
        draw = partial(_draw_merges, page, tokenizer)
        parts.append(PageSection("merges", "How tokens are built", draw, (lecture.WORDS,)))
    if words := _find_long_words(page, encoding, tokenizer):
        parts.append(PageSection("similar", "Similar words", partial(_draw_similar, page, words), (lecture.VECTORS,)))
    return parts


def _ask_why_not(tokenizer: Tokenizer) -> str:
    return f"Why not {'words' if _reads_subwords(tokenizer) else 'subwords'}?"


def _reads_subwords(tokenizer: Tokenizer) -> bool:
    return tokenizer.byte_pairs is not None or tokenizer.word_pieces is not None


def _choose_example(name: str) -> str:
    """A checkpoint's example with the most tokens per word, so that the page opens on words that are split.

    The first example if the checkpoint cannot be loaded, which the page then reports.
    """
    try:
        tokenizer = checkpoints.classifier(checkpoints.source(name)).tokenizer
    except TxclsError:
        return layout.first_example(name)
    texts = [example.text for example in checkpoints.examples(name)]
    return max(texts, key=lambda text: len(tokenizer.encode(text).tokens) / len(text.split()))


def _draw_cleaning(text: str, tokenizer: Tokenizer) -> None:
    steps = tokenizer.config.cleaning
    effects = explain_cleaning(text[: token_html.MAX_CLEANED], steps)
    unchanged = ", ".join(step.name.replace("_", " ") for step in effects if not step.edits)
    about = f"No effect on this text: {unchanged}." if unchanged and tokenizer.word_pieces is None else None
    cleaning = "**1 · Cleaning**: "
    if tokenizer.word_pieces is not None:
        st.markdown(f"{cleaning}WordPiece reads the text without control characters, and in this form:")
        st.html(token_html.plain_text(tokenizer.word_pieces.normalize(text[: token_html.MAX_CLEANED])))
    elif not steps:
        st.markdown(f"{cleaning}no cleaning steps are configured, so texts stay as they are.")
    elif not any(step.edits for step in effects):
        st.markdown(f"{cleaning}none of the {len(steps)} steps changed this text.")
    else:
        applied = "; ".join(escape(step.description) for step in effects if step.edits)
        st.markdown(f"{cleaning}{applied}; changes are marked:", help=about)
        st.html(token_html.edits(text, steps))


def _draw_tokens(encoding: Encoding, tokenizer: Tokenizer) -> None:
    """Draw the checkpoint's tokens of the text, each above its id."""
    tokens = encoding.tokens
    if not tokens:
        say_no_tokens()
        return
    kind = "words" if tokenizer.byte_pairs is None else "words and parts of words; ␣ is a space"
    if tokenizer.word_pieces is not None:
        kind = "words and parts of words; ## continues a word. Each is split by its longest known beginning first"
    st.markdown(f"**2 · Tokens and their ids**: {kind}:")
    names = [_name_token(token, tokenizer) for token in tokens]
    st.html(token_html.ids(names[:MAX_IDS], tokens[:MAX_IDS]))
    if len(names) > MAX_IDS:
        with st.expander(f"{len(names) - MAX_IDS:,} more"):
            st.html(token_html.ids(names[MAX_IDS:], tokens[MAX_IDS:]))
    if encoding.truncated_at is not None:
        st.markdown(f"✂ The rest of the text is not read: the model reads {tokenizer.max_length:,} tokens at most.")


def _name_token(token: Token, tokenizer: Tokenizer) -> str:
    return token.text if tokenizer.byte_pairs is None else spell(tokenizer.vocabulary.token_of(token.id))


def _draw_comparison(page: layout.Page, tokenizer: Tokenizer, encoding: Encoding) -> None:
    """Draw the text in words if the checkpoint reads subwords, and in subwords otherwise."""
    reads_subwords = _reads_subwords(tokenizer)
    st.subheader(_ask_why_not(tokenizer), anchor=False)
    answer = st.empty()
    tokenizers, text = cached_results.tokenizers(page.source), page.view.text
    both = tokenizers.words, tokenizers.subwords
    other, origin = (both[0], tokenizers.words_from) if reads_subwords else (both[1], tokenizers.pairs_from)
    in_other = other.encode(text)
    marked_column, table_column = st.columns(2, gap="large")
    with marked_column:
        lower, cut, limit = "lowercase" in other.config.cleaning, in_other.truncated_at, other.max_length
        st.html(token_html.marked_text(text, in_other.tokens, truncated_at=cut, limit=limit, lower=lower))
        st.caption(f"Vocabulary from {origin}.")
    encodings = (in_other, encoding) if reads_subwords else (encoding, in_other)
    read = [[token for token in one.tokens if not token.is_special] for one in encodings]
    n_words, n_subwords = map(len, read)
    n_lost, n_unspelled = (sum(token.is_unknown for token in tokens) for tokens in read)
    verb = "would be" if reads_subwords else "is" if n_lost < 2 else "are"
    lost = f"{n_lost:,} of {n_words:,} words {verb} lost" if n_lost else f"No word of this text {verb} lost"
    spelled = "most words" if tokenizer.word_pieces else "every word"
    answer.markdown(
        f"**{lost}** by a model that knows only {both[0].vocab_size:,} whole words; subwords spell {spelled}, here in "
        f"{n_subwords:,} tokens."
    )
    cells = [
        ("tokens", f"{n_words:,}", f"{n_subwords:,}"),
        ("unknown", f"{n_lost:,}", f"{n_unspelled:,}"),
        ("vocabulary", *(f"{one.vocab_size:,}" for one in both)),
    ]
    table_column.markdown(table(("", "words", "subwords"), cells, right=("words", "subwords")))


def _draw_merges(page: layout.Page, tokenizer: Tokenizer) -> None:
    st.subheader("How are tokens built?", anchor=False)
    pairs = cached_results.tokenizers(page.source).pairs
    assert pairs is not None  # since the tokenizer is not WordPiece
    answer = st.empty()
    parts = pairs.parts(clean(page.view.text[: token_html.MAX_CLEANED], tokenizer.config.cleaning))
    words = {spell(part): part for part in parts if len(part) <= MAX_WORD_BYTES}
    options = list(words)[:MAX_WORDS]
    if not options:
        say_no_tokens()
        return
    most_merged = max(range(len(options)), key=lambda n: len(pairs.merges_of(words[options[n]])))
    word_column, slider_column = st.columns([1, 3], gap="large")
    key = f"merge_word_{hash(tuple(options))}"
    part = words[word_column.selectbox("Word of this text", options, index=most_merged, key=key)]
    merges = pairs.merges_of(part)
    n_tokens = len(merges[-1].pieces) if merges else len(part)
    answer.markdown(
        f"**{len(merges)} merge{'s' * (len(merges) != 1)}** of neighbours, in the order they were learned, build "
        f"{n_tokens} token{'s' * (n_tokens != 1)} from the {len(part)} bytes of **{escape(spell(part))}**."
    )
    n_merged = len(merges)
    if merges:
        key = f"merges_{len(pairs.merges)}_{part}"
        n_merged = slider_column.slider("Merges applied", 0, n_merged, n_merged, key=key)
    rows = [("", "", [*map(spell, part)], None)] + [
        (" + ".join(map(spell, merge.pair)), f"{merge.rank:,}", [*map(spell, merge.pieces)], merge.new_piece)
        for merge in merges
    ]
    st.html(token_html.merges(rows, current_merge=n_merged))


def _find_long_words(page: layout.Page, encoding: Encoding, tokenizer: Tokenizer) -> list[int]:
    """The ids of the first long tokens of the text that begin a word."""
    names = cached_results.token_strings(page.source)
    ids = dict.fromkeys(token.id for token in encoding.tokens if not (token.is_unknown or token.is_special))
    begins = "" if tokenizer.byte_pairs is None else "␣"  # parts of words mean little
    long = [
        index for index in ids if names[index].startswith(begins) and len(names[index].removeprefix("␣")) >= MIN_LENGTH
    ]
    return long[:MAX_SIMILAR]


def _draw_similar(page: layout.Page, words: Sequence[int]) -> None:
    """Draw the tokens with the most similar embeddings for these ids."""
    names = cached_results.token_strings(page.source)
    st.subheader("Which words have similar vectors?", anchor=False)
    rows = []
    for index in words:
        nearest = cached_results.nearest_tokens(page.source, index)[:N_NEAREST]
        found = [f"{_name_word(names[other])} {minus(f'{cosine:.2f}')}" for other, cosine in nearest]
        rows.append((f"**{_name_word(names[index])}**", ", ".join(found)))
    closest = cached_results.nearest_tokens(page.source, words[0])[0][0]
    st.markdown(f"The nearest to **{_name_word(names[words[0]])}** is **{_name_word(names[closest])}**.")
    st.markdown(
        table(("token", "nearest by cosine similarity"), rows),
        help="Token embeddings, before any layer, compared in all their dimensions; the similarity is at most 1.",
    )


def _name_word(name: str) -> str:
    return escape(visible(name.removeprefix("␣")))


if __name__ == "__main__":
    main()
