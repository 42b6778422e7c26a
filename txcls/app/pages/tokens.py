"""From text to ids: cleaning, words and subwords, byte-pair merges, and the vocabulary."""

from collections.abc import Sequence
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from txcls.app import menu
from txcls.app.shell import cached_results, checkpoints, layout, lecture, token_html
from txcls.app.shell.markdown import plain, table
from txcls.app.shell.prediction import ask_for_text, load_classifier, loading_placeholder, say_no_tokens
from txcls.app.shell.sections import Part, draw_sections
from txcls.errors import TxclsError
from txcls.figures import minus, visible
from txcls.inspection.vocabulary import Tokenizers
from txcls.text.cleaning import clean, explain_cleaning
from txcls.text.formatting import percentage
from txcls.text.subwords import BytePairs, Merge, spell
from txcls.text.tokenizer import Tokenizer
from txcls.text.tokens import Encoding, Token
from txcls.text.vocabulary import BERT_TOKENS, SPECIAL_TOKENS

MAX_WORD_BYTES = 64
"""Maximum length, in bytes, of a word whose merges are shown."""
MAX_WORDS = 300
"""Maximum number of the text's words that the menu offers for merging."""
MAX_IDS = 24
"""Maximum number of ids shown at once."""
MIN_LENGTH, MAX_SIMILAR, N_NEAREST = 4, 4, 3
"""Of the text's tokens of at least `MIN_LENGTH` characters, the first `MAX_SIMILAR` are listed with their nearest."""
VOCABULARY_SIZES = (300, 500, 1000, 2000, 4000, 8000)
DEFAULT_SIZE = 4000


def main() -> None:
    """Draw the page."""
    page = layout.open_page(menu.TOKENS, first_text=_most_split_example)
    placeholder = loading_placeholder(page, height=480)
    tokenizer = load_classifier(page).tokenizer
    placeholder.empty()
    encoding = tokenizer.encode(page.view.text) if page.has_text else None
    if encoding is not None:
        with lecture.slide(lecture.WORDS):
            _draw_sentence(page)
            _draw_cleaning(page.view.text, tokenizer)
        with lecture.slide(lecture.WORDS):
            _draw_tokens(encoding, tokenizer)
    else:
        ask_for_text("its cleaning, tokens and ids appear here.")
    draw_sections(page.view, _parts(page, tokenizer, encoding))
    layout.close_page(page)


def _parts(page: layout.Page, tokenizer: Tokenizer, encoding: Encoding | None) -> list[Part]:
    """The parts drawn on demand; without a text, which has no `encoding`, only the search.

    The search is no slide: it shows nothing at first.
    """
    search = Part("search", "Search the vocabulary", partial(_draw_vocabulary, page, tokenizer), (lecture.WORDS,))
    searches = [] if lecture.is_on() else [search]
    if encoding is None:
        return searches
    parts = [
        Part("words", _why_not(tokenizer), partial(_draw_comparison, page, tokenizer, encoding), (lecture.WORDS,)),
    ]
    if tokenizer.word_pieces is None:
        draw = partial(_draw_merges, page, tokenizer)
        parts.append(Part("merges", "How tokens are built", draw, (lecture.WORDS,)))
    if words := _long_tokens(page, encoding):
        parts.append(Part("similar", "Similar words", partial(_draw_similar, page, words), (lecture.VECTORS,)))
    return [*parts, *searches]


def _why_not(tokenizer: Tokenizer) -> str:
    return f"Why not {'words' if _reads_subwords(tokenizer) else 'subwords'}?"


def _reads_subwords(tokenizer: Tokenizer) -> bool:
    return tokenizer.byte_pairs is not None or tokenizer.word_pieces is not None


def _most_split_example(name: str) -> str:
    """The example of a checkpoint with the most tokens per word, so that the page opens on words that are split.

    The first example if the checkpoint cannot be loaded, which the page then reports.
    """
    try:
        tokenizer = checkpoints.classifier(checkpoints.source(name)).tokenizer
    except TxclsError:
        return layout.first_example(name)
    texts = [example.text for example in checkpoints.examples(name)]
    return max(texts, key=lambda text: len(tokenizer.encode(text).tokens) / len(text.split()))


def _draw_sentence(page: layout.Page) -> None:
    """Say what the page shows, below the text box or, in lecture mode, on the slide."""
    sentence = "The model reads only numbers: a text is cleaned and cut into tokens, and each becomes a number."
    if lecture.is_on():
        st.subheader(page.info.question, anchor=False)
    (st if lecture.is_on() else page.answer).markdown(sentence)
    page.facts.empty()


def _draw_cleaning(text: str, tokenizer: Tokenizer) -> None:
    steps = tokenizer.config.cleaning
    effects = explain_cleaning(text[: token_html.MAX_CLEANED], steps)
    unchanged = ", ".join(step.name.replace("_", " ") for step in effects if not step.edits)
    about = f"No effect on this text: {unchanged}." if unchanged and tokenizer.word_pieces is None else None
    st.subheader("1 · Cleaning", anchor=False, help=about)
    if tokenizer.word_pieces is not None:
        st.markdown("WordPiece reads the text without control characters, and in this form:")
        st.html(token_html.plain_text(tokenizer.word_pieces.normalize(text[: token_html.MAX_CLEANED])))
    elif not steps:
        st.markdown("This checkpoint does not clean texts: no cleaning steps are configured.")
    elif not any(step.edits for step in effects):
        st.markdown(f"Nothing to clean: none of the {len(steps)} steps changed this text.")
    else:
        applied = "; ".join(plain(step.description) for step in effects if step.edits)
        st.markdown(f"{applied[:1].upper()}{applied[1:]}; changes are marked:")
        st.html(token_html.edits(text, steps))


def _draw_tokens(encoding: Encoding, tokenizer: Tokenizer) -> None:
    """Draw the checkpoint's tokens of the text, each above its id."""
    tokens = encoding.tokens
    kind = "words" if tokenizer.byte_pairs is None else "words and parts of words; ␣ is a space"
    if tokenizer.word_pieces is not None:
        kind = "words and parts of words; ## continues a word. Of each word, the longest start that is known is taken"
    st.subheader("2 · Tokens and their ids", anchor=False)
    if not tokens:
        say_no_tokens()
        return
    st.markdown(f"**{len(tokens):,} tokens** ({kind}), each above its **id**, its number in the vocabulary:")
    names = [_token_name(token, tokenizer) for token in tokens]
    st.html(token_html.ids(names[:MAX_IDS], tokens[:MAX_IDS]))
    if len(names) > MAX_IDS:
        with st.expander(f"{len(names) - MAX_IDS:,} more"):
            st.html(token_html.ids(names[MAX_IDS:], tokens[MAX_IDS:]))
    if encoding.truncated_at is not None:
        st.markdown(f"✂ The rest of the text is not read: the model reads {tokenizer.max_length:,} tokens at most.")


def _token_name(token: Token, tokenizer: Tokenizer) -> str:
    return token.text if tokenizer.byte_pairs is None else spell(tokenizer.vocabulary.token_of(token.id))


def _draw_comparison(page: layout.Page, tokenizer: Tokenizer, encoding: Encoding) -> None:
    """Draw the text in words if the checkpoint reads subwords, and otherwise the reverse."""
    reads_subwords = _reads_subwords(tokenizer)
    st.subheader(_why_not(tokenizer), anchor=False)
    spelled = "most words" if tokenizer.word_pieces else "every word"
    st.markdown(f"Subwords spell {spelled}, at the cost of more tokens; a word outside a vocabulary of words is lost.")
    if not reads_subwords:
        st.select_slider(
            "Size of the subword vocabulary",
            VOCABULARY_SIZES,
            DEFAULT_SIZE,
            format_func=lambda n: f"{n:,}",
            key="subword_size",
            persist_state="session",
            help="260 entries are bytes and special tokens; every merge adds one.",
            width=420,
        )
    tokenizers, text = _tokenizers(page), page.view.text
    both = tokenizers.words, tokenizers.subwords
    other, origin = (both[0], tokenizers.words_from) if reads_subwords else (both[1], tokenizers.pairs_from)
    in_other = other.encode(text)
    marked_column, table_column = st.columns(2, gap="large")
    with marked_column:
        lower, cut, limit = "lowercase" in other.config.cleaning, in_other.truncated_at, other.max_length
        st.html(token_html.marked_text(text, in_other.tokens, truncated_at=cut, limit=limit, lower=lower))
        st.caption(f"Vocabulary from {origin}.")
    encodings = (in_other, encoding) if reads_subwords else (encoding, in_other)
    tokens_by_kind = [[token for token in one.tokens if not token.is_special] for one in encodings]
    cells = [
        ("tokens of this text", *(f"{len(tokens):,}" for tokens in tokens_by_kind)),
        ("characters per token", *(_characters_per_token(tokens) for tokens in tokens_by_kind)),
        ("not in the vocabulary", *map(_unknown_share, tokens_by_kind)),
        ("vocabulary size", *(f"{one.vocab_size:,}" for one in both)),
    ]
    table_column.markdown(table(("", "words", "subwords"), cells, right=("words", "subwords")))


def _tokenizers(page: layout.Page) -> Tokenizers:
    """The checkpoint's tokenizer, and one of the other kind with a subword vocabulary of the chosen size."""
    return cached_results.tokenizers(page.source, size=st.session_state.get("subword_size", DEFAULT_SIZE))


def _characters_per_token(tokens: Sequence[Token]) -> str:
    covered_characters = {index for token in tokens for index in range(token.start, token.end)}
    return f"{len(covered_characters) / len(tokens):.1f}" if tokens else "–"


def _unknown_share(tokens: Sequence[Token]) -> str:
    n = sum(token.is_unknown for token in tokens)
    if tokens and not n:
        return "0"
    return f"{n:,}\u00a0({percentage(n / len(tokens), 0)})" if tokens else "–"


def _draw_merges(page: layout.Page, tokenizer: Tokenizer) -> None:
    st.subheader("How merges build a word from its bytes", anchor=False)
    text, tokenizers = page.view.text, _tokenizers(page)
    pairs, steps = tokenizers.pairs, tokenizer.config.cleaning
    assert pairs is not None  # since the tokenizer is not WordPiece
    st.markdown(
        "Byte-pair encoding starts from single bytes and always merges the pair of neighbours that was **learned "
        "first**."
    )
    parts_of_text = pairs.parts(clean(text[: token_html.MAX_CLEANED], steps))
    whole_parts = parts_of_text if len(text) <= token_html.MAX_CLEANED else parts_of_text[:-1]
    parts = {spell(part): part for part in whole_parts if len(part) <= MAX_WORD_BYTES}
    options = list(parts)[:MAX_WORDS]
    most_merged = max(range(len(options)), key=lambda n: len(pairs.build(parts[options[n]])), default=None)
    word_column, slider_column = st.columns([1, 3], gap="large")
    chosen = word_column.selectbox(
        "Word",
        options,
        index=most_merged,
        accept_new_options=True,
        placeholder="Type a word",
        key=f"merge_word_{hash(tuple(options))}",
        help="Pick a word of this text, or type any other.",
    )
    if not chosen:
        return
    part = parts.get(chosen) or _first_word(chosen, pairs, steps)
    if part is None:
        st.info(f"Type a word of at most {MAX_WORD_BYTES} bytes that is not empty after cleaning.")
        return
    _draw_merge_steps(part, pairs, tokenizers, slider_column)


def _first_word(typed: str, pairs: BytePairs, steps: Sequence[str]) -> str | None:
    """The bytes of the first typed word; None if there is none, or if it is too long."""
    parts = pairs.parts(clean(typed[: token_html.MAX_CLEANED].replace("␣", " "), steps))
    if len(parts) > 1:
        first = plain(spell(parts[0])[:MAX_WORD_BYTES])
        st.caption(f"Only {first}: merges never cross word boundaries.")
    return parts[0] if parts and len(parts[0]) <= MAX_WORD_BYTES else None


def _draw_merge_steps(part: str, pairs: BytePairs, tokenizers: Tokenizers, slider_column: DeltaGenerator) -> None:
    merges = pairs.build(part)
    if not merges:
        st.html(token_html.pieces([spell(piece) for piece in part], new=None))
        st.caption(
            "A single byte: there is nothing to merge."
            if len(part) == 1
            else "This word contains no learned pair, so it stays split into bytes."
        )
        return
    n_merged = slider_column.slider(
        "Merges applied", 0, len(merges), len(merges), key=f"merges_{len(pairs.merges)}_{part}"
    )
    last_merge = merges[n_merged - 1] if n_merged else None
    st.html(
        token_html.pieces(
            [spell(piece) for piece in (last_merge.pieces if last_merge else part)],
            new=last_merge.new_piece if last_merge else None,
        )
    )
    if last_merge is None:
        st.markdown(f"**{len(part)} bytes**, before any merge.")
    else:
        left, right = (plain(spell(piece)) for piece in last_merge.pair)
        count = _pair_count(last_merge, tokenizers)
        st.markdown(
            f"**Merge {n_merged} of {len(merges)}**: {left} + {right}, rank {last_merge.rank:,} of "
            f"{len(pairs.merges):,}" + (f"; it occurred {count} times when it was learned." if count else ".")
        )
    rows = [
        (
            " + ".join(map(spell, merge.pair)),
            f"{merge.rank:,}",
            _pair_count(merge, tokenizers),
            " · ".join(map(spell, merge.pieces)),
        )
        for merge in merges
    ]
    if lecture.is_on():
        st.html(token_html.merges(rows, current_merge=n_merged))
        return
    with st.expander("All merges of this word", key="all_merges", on_change="rerun") as expander:
        if expander.open:
            st.html(token_html.merges(rows, current_merge=n_merged))
            if tokenizers.frequencies:
                st.caption(
                    "**Count**: how often the pair occurred when it was learned. A vocabulary stores no counts, so "
                    "these assume Zipf's law: the word at rank r of V occurs V / r times."
                )


def _pair_count(merge: Merge, tokenizers: Tokenizers) -> str:
    return f"{tokenizers.frequencies[merge.rank - 1]:,}" if tokenizers.frequencies else ""


def _long_tokens(page: layout.Page, encoding: Encoding) -> list[int]:
    """The ids of the first long tokens of the text."""
    names = cached_results.token_strings(page.source)
    ids = dict.fromkeys(token.id for token in encoding.tokens if not (token.is_unknown or token.is_special))
    return [index for index in ids if len(names[index].removeprefix("␣")) >= MIN_LENGTH][:MAX_SIMILAR]


def _draw_similar(page: layout.Page, words: Sequence[int]) -> None:
    """Draw the tokens with the most similar embeddings for these ids."""
    names = cached_results.token_strings(page.source)
    st.subheader("Words with similar vectors", anchor=False)
    st.markdown(f"For each token, the {N_NEAREST} whose vectors point most nearly in the same direction.")
    rows = [
        (
            f"**{plain(names[index])}**",
            ", ".join(
                f"{plain(visible(names[other]))} {minus(f'{cosine:.2f}')}"
                for other, cosine in cached_results.nearest_tokens(page.source, index)[:N_NEAREST]
            ),
        )
        for index in words
    ]
    st.markdown(
        table(("token", "nearest by cosine similarity"), rows),
        help="Token embeddings, before any layer, compared in all their dimensions; the similarity is at most 1.",
    )


def _draw_vocabulary(page: layout.Page, tokenizer: Tokenizer) -> None:
    st.subheader("Search the vocabulary", anchor=False)
    names = cached_results.token_strings(page.source)
    typed = st.text_input(
        f"Word, part of a word, or id (0 to {len(names) - 1:,})",
        key="vocabulary_query",
        persist_state="session",
        placeholder="for example: govern",
        max_chars=200,
        width=420,
    ).strip()
    if not typed:
        return
    query = typed
    if typed not in (*SPECIAL_TOKENS, *BERT_TOKENS):
        query = clean(typed, tokenizer.config.cleaning)
        if tokenizer.word_pieces is not None:
            query = tokenizer.word_pieces.normalize(query).strip()
    if query != typed:
        st.caption(f"After cleaning: “{plain(query)}”.")
    matches = cached_results.search(page.source, query)
    if matches.exact is not None:
        st.markdown(f"✓ **{plain(names[matches.exact])}** is in the vocabulary: id **{matches.exact}**.")
    else:
        st.markdown(f"✗ **{plain(query)}** is not in the vocabulary. The model reads it as:")
        tokens = tokenizer.encode(typed).tokens[:24]
        st.html(token_html.ids([_token_name(token, tokenizer) for token in tokens], tokens))
    if matches.by_id is not None:
        st.markdown(f"Id **{matches.by_id}** is **{plain(names[matches.by_id])}**.")
    left, right = st.columns(2, gap="large")
    with left:
        _draw_matches("Starting with it", matches.starting, matches.n_starting, names)
        _draw_matches("Containing it", matches.containing, matches.n_containing, names)
    with right:
        _draw_matches("Spelled similarly", matches.similar, len(matches.similar), names)
        anchor = matches.exact if matches.exact is not None else matches.by_id
        if anchor is not None and anchor >= len(SPECIAL_TOKENS):
            nearest = cached_results.nearest_tokens(page.source, anchor)
            st.markdown(f"**Nearest to {plain(names[anchor])} in the embedding**, by cosine similarity (at most 1):")
            st.html(token_html.chips([(names[index], f"{cosine:.2f}") for index, cosine in nearest]))


def _draw_matches(title: str, ids: Sequence[int], n: int, names: Sequence[str]) -> None:
    more = f", the first {len(ids)}" if n > len(ids) else ""
    st.markdown(f"**{title}**: {n:,}{more}" if n else f"**{title}**: none")
    if ids:
        st.html(token_html.chips([(names[index], str(index)) for index in ids]))


if __name__ == "__main__":
    main()
