"""Which tokens are in the vocabulary, which are similar, and how would another tokenizer split a text?"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np

from txcls.config import TextConfig
from txcls.inference.predictor import Predictor
from txcls.inspection.tracing import FloatArray
from txcls.text.subwords import PREFIX, BytePairs, count_merges, spell
from txcls.text.tokenizer import Tokenizer
from txcls.text.vocabulary import SPECIAL_TOKENS


@dataclass(frozen=True)
class Tokenizers:
    """A word tokenizer and a subword tokenizer with the same cleaning, one of them the checkpoint's.

    `pairs` are the byte pairs; None for WordPiece. `words_from` and `pairs_from` describe what each was learned from.
    `frequencies` holds the count of each merged pair
    at the time of its merge; it is empty if the merges are the checkpoint's, which stores no counts.
    """

    words: Tokenizer
    subwords: Tokenizer
    pairs: BytePairs | None
    words_from: str
    pairs_from: str
    frequencies: tuple[int, ...]


def compare_tokenizers(tokenizer: Tokenizer, *, size: int = 4000) -> Tokenizers:
    """A checkpoint's tokenizer, and a tokenizer of the other kind.

    For a word tokenizer, a subword vocabulary of `size` tokens, including special tokens, is learned from the
    checkpoint's words. These are ordered by frequency but have no counts, so the word of rank r out of V gets the count
    V / r (Zipf's law). For a subword tokenizer, which stores no words, the words are its tokens that begin a word or
    with a mark.
    """
    cleaning, max_length = tokenizer.config.cleaning, tokenizer.max_length
    if tokenizer.word_pieces is not None:
        whole = [token for token in tokenizer.vocabulary.tokens if not token.startswith((PREFIX, "["))]
        lower = ("lowercase",) if tokenizer.word_pieces.normalizer.lowercase else ()
        of_words = {"format_version": 1, "max_length": max_length, "class_token": False}
        words = Tokenizer.from_dict(of_words | {"config": {"cleaning": lower}, "tokens": [*SPECIAL_TOKENS, *whole]})
        return Tokenizers(words, tokenizer, None, "the pieces that begin a word", "the published model", ())
    if tokenizer.byte_pairs is not None:
        spellings = map(spell, tokenizer.vocabulary.tokens[len(SPECIAL_TOKENS) :])
        known = [name for name in spellings if not (name[0].isalnum() or name[0] == "\\")]  # "\\" begins a byte
        config = TextConfig(cleaning=cleaning, tokenizer="word", min_frequency=1)
        words = Tokenizer.fit((name.removeprefix("␣") for name in known), config, max_length=max_length)
        origin = "the subwords that are whole words, so that every word that is split is unknown"
        return Tokenizers(words, tokenizer, tokenizer.byte_pairs, origin, "the checkpoint's training texts", ())
    tokens = tokenizer.vocabulary.tokens[len(SPECIAL_TOKENS) :]
    counts = {token: max(len(tokens) // rank, 1) for rank, token in enumerate(tokens, start=1)}
    config = TextConfig(cleaning=cleaning, tokenizer="bpe", max_vocabulary=size)
    pairs = BytePairs.fit((token for token, n in counts.items() for _ in range(n)), config)
    parts: Counter[str] = Counter()
    for token, n in counts.items():
        for part in pairs.parts(token):
            parts[part] += n
    return Tokenizers(
        words=tokenizer,
        subwords=Tokenizer(pairs, config, max_length=max_length),
        pairs=pairs,
        words_from="the checkpoint's training texts",
        pairs_from=f"the {len(tokens):,} words of this checkpoint's vocabulary, weighted by their frequency rank",
        frequencies=tuple(count_merges(parts, pairs.merges)),
    )


def token_strings(tokenizer: Tokenizer) -> tuple[str, ...]:
    """The tokens of the vocabulary as text, by id; subwords have ␣ for a preceding space."""
    tokens = tokenizer.vocabulary.tokens
    return tokens if tokenizer.byte_pairs is None else tuple(map(spell, tokens))


@dataclass(frozen=True, slots=True)
class VocabularySearch:
    """The ids of matching tokens: with this spelling (`exact`), with this id (`by_id`), and with related spellings.

    `starting` start with the query, and `containing` contain it elsewhere; both are in order of id and limited to the
    search's `at_most`, while `n_starting` and `n_containing` count all matches. `similar` have a similar spelling, the
    most similar first.
    """

    exact: int | None
    by_id: int | None
    starting: tuple[int, ...]
    n_starting: int
    containing: tuple[int, ...]
    n_containing: int
    similar: tuple[int, ...]


def search_vocabulary(tokens: Sequence[str], query: str, *, at_most: int = 24) -> VocabularySearch:
    """Search the `token_strings` of a vocabulary for a token by its spelling, part of its spelling, or its id.

    The space before a subword (␣) may be omitted. An empty query has no matches; only the first 60 characters are used.
    """
    query = query[:60]
    if not query:
        return VocabularySearch(None, None, (), 0, (), 0, ())
    ids = {token: index for index, token in reversed(list(enumerate(tokens)))}
    exact = next((ids[form] for form in (query, "␣" + query) if form in ids), None)
    number = int(query) if query.isascii() and query.isdigit() else len(tokens)
    starting = [index for index, token in enumerate(tokens) if token.removeprefix("␣").startswith(query)]
    starts = set(starting)
    containing = [index for index, token in enumerate(tokens) if query in token and index not in starts]
    near = [token for token in ids if abs(len(token) - len(query)) <= 2 and ids[token] != exact]
    similar = get_close_matches(query, near, n=8, cutoff=0.7)
    return VocabularySearch(
        exact=exact,
        by_id=number if number < len(tokens) else None,
        starting=tuple(starting[:at_most]),
        n_starting=len(starting),
        containing=tuple(containing[:at_most]),
        n_containing=len(containing),
        similar=tuple(ids[token] for token in similar),
    )


def token_cosines(classifier: Predictor, ids: Sequence[int]) -> FloatArray:
    """Cosine similarities of N tokens' embeddings with all V embeddings, (N, V); minus infinity for special tokens."""
    vectors = classifier.checkpoint.model.embeddings.token.weight.detach().float().numpy()  # V D
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    cosines: FloatArray = units[list(ids)] @ units.T
    cosines[:, : len(SPECIAL_TOKENS)] = -np.inf
    return cosines


def nearest_tokens(classifier: Predictor, index: int, *, n: int = 8) -> list[tuple[int, float]]:
    """The tokens with the most similar embeddings, without special tokens: (id, cosine similarity), nearest first.

    Raises:
        IndexError: there is no such id.
    """
    classifier.tokenizer.vocabulary.token_of(index)
    cosines = token_cosines(classifier, [index])[0]  # V
    order = [other for other in np.argsort(-cosines, kind="stable")[: n + 1].tolist() if other != index][:n]
    return [(other, float(cosines[other])) for other in order if np.isfinite(cosines[other])]
