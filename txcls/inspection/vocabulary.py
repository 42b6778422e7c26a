"""Which tokens are similar, and how would another tokenizer split a text?"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from txcls.config import TextConfig
from txcls.inference.predictor import Predictor
from txcls.inspection.tracing import FloatArray
from txcls.text.subwords import PREFIX, BytePairs, spell
from txcls.text.tokenizer import Tokenizer
from txcls.text.vocabulary import SPECIAL_TOKENS


@dataclass(frozen=True)
class Tokenizers:
    """A word tokenizer and a subword tokenizer with the same cleaning, one of them the checkpoint's.

    `pairs` are the byte pairs; None for WordPiece. `words_from` and `pairs_from` describe what each was learned from.
    """

    words: Tokenizer
    subwords: Tokenizer
    pairs: BytePairs | None
    words_from: str
    pairs_from: str


def compare_tokenizers(tokenizer: Tokenizer) -> Tokenizers:
    """A checkpoint's tokenizer, and a tokenizer of the other kind.

    For a word tokenizer, a subword vocabulary of 4,000 tokens, including special tokens, is learned from the
    checkpoint's words. These are ordered by frequency but have no counts, so the word of rank r out of V gets the count
    V / r (Zipf's law). A subword tokenizer stores no words, so its tokens that begin a word, or begin with a mark, are
    taken as words.
    """
    cleaning, max_length = tokenizer.config.cleaning, tokenizer.max_length
    if tokenizer.word_pieces is not None:
        whole = [token for token in tokenizer.vocabulary.tokens if not token.startswith((PREFIX, "["))]
        lower = ("lowercase",) if tokenizer.word_pieces.normalizer.lowercase else ()
        of_words = {"format_version": 1, "max_length": max_length, "class_token": False}
        words = Tokenizer.from_dict(of_words | {"config": {"cleaning": lower}, "tokens": [*SPECIAL_TOKENS, *whole]})
        return Tokenizers(words, tokenizer, None, "the pieces that begin a word", "the published model")
    if tokenizer.byte_pairs is not None:
        spellings = map(spell, tokenizer.vocabulary.tokens[len(SPECIAL_TOKENS) :])
        known = [name for name in spellings if not (name[0].isalnum() or name[0] == "\\")]  # "\\" begins a byte
        config = TextConfig(cleaning=cleaning, tokenizer="word", min_frequency=1)
        words = Tokenizer.fit((name.removeprefix("␣") for name in known), config, max_length=max_length)
        origin = "the subwords that are whole words, so that every word that is split is unknown"
        return Tokenizers(words, tokenizer, tokenizer.byte_pairs, origin, "the checkpoint's training texts")
    tokens = tokenizer.vocabulary.tokens[len(SPECIAL_TOKENS) :]
    counts = {token: max(len(tokens) // rank, 1) for rank, token in enumerate(tokens, start=1)}
    config = TextConfig(cleaning=cleaning, tokenizer="bpe", max_vocabulary=4000)
    pairs = BytePairs.fit((token for token, n in counts.items() for _ in range(n)), config)
    return Tokenizers(
        words=tokenizer,
        subwords=Tokenizer(pairs, config, max_length=max_length),
        pairs=pairs,
        words_from="the checkpoint's training texts",
        pairs_from=f"the {len(tokens):,} words of this checkpoint's vocabulary, weighted by their frequency rank",
    )


def token_strings(tokenizer: Tokenizer) -> tuple[str, ...]:
    """The tokens of the vocabulary as text, by id; byte-pair tokens have ␣ for a preceding space."""
    tokens = tokenizer.vocabulary.tokens
    return tokens if tokenizer.byte_pairs is None else tuple(map(spell, tokens))


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
