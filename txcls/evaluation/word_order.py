"""Accuracy without word order: shuffled words, and mean or permuted position vectors."""

from collections.abc import Callable
from copy import deepcopy

import numpy as np
import torch

from txcls.data.batches import TokenisedTexts
from txcls.evaluation.predict_logits import predict_logits
from txcls.model import TextClassifier
from txcls.text.tokenizer import Tokenizer


def accuracy_without_order(
    model: TextClassifier,
    texts: TokenisedTexts,
    *,
    tokenizer: Tokenizer,
    device: torch.device | str = "cpu",
    on_batch: Callable[[int], None] | None = None,
) -> dict[str, float]:
    """Accuracy without word order; the difference from normal accuracy is what the model gains from word order.

    `words_shuffled`: the words of each text in random order (seeded). `positions_mean`: every position vector replaced
    by the mean over the positions of all tokens; zeros would be an input unlike any in training. `positions_permuted`:
    the position vectors of each text in random order; omitted if tokens are words, where it equals `words_shuffled`.
    """
    logits = {
        "words_shuffled": predict_logits(model, shuffle_words(texts, tokenizer), device=device, on_batch=on_batch)
    }
    if model.config.adds_positions:
        without_positions = deepcopy(model)  # the model itself may be shared
        vectors = without_positions.embeddings.positional
        counts = torch.from_numpy((texts.lengths[:, None] > np.arange(len(vectors))).sum(axis=0)).to(vectors)  # T
        with torch.no_grad():
            vectors.copy_((counts @ vectors / counts.sum()).expand_as(vectors))
        logits["positions_mean"] = predict_logits(without_positions, texts, device=device, on_batch=on_batch)
    if has_permuted(model, tokenizer):
        permuted = shuffle_words(texts, tokenizer, whole_words=False)
        logits["positions_permuted"] = predict_logits(model, permuted, device=device, on_batch=on_batch)
    return {
        name: round(float((scores.argmax(-1).numpy() == texts.labels).mean()), 6)  # N C
        for name, scores in logits.items()
    }


def has_permuted(model: TextClassifier, tokenizer: Tokenizer) -> bool:
    """Whether permuting position vectors equals permuting tokens, and differs from shuffling words."""
    treats_tokens_alike = model.config.pooling != "first" and not model.config.causal
    return tokenizer.byte_pairs is not None and model.config.adds_positions and treats_tokens_alike


def shuffle_words(
    texts: TokenisedTexts, tokenizer: Tokenizer, *, seed: int = 0, whole_words: bool = True
) -> TokenisedTexts:
    """The same texts with their words in random order; a class token stays first.

    The subwords of a word stay together unless `whole_words` is false. If every token attends to all tokens, this
    equals permuting the position vectors of each text.
    """
    if tokenizer.byte_pairs is None or not whole_words:
        begins = np.ones(tokenizer.vocab_size, dtype=bool)  # V
    else:
        begins = np.array([token.startswith("Ġ") for token in tokenizer.vocabulary.tokens])  # V: Ġ is a leading space
    starts_word = begins[texts.ids]
    starts_word[texts.offsets[:-1]] = True
    word = np.cumsum(starts_word)  # the word of each token, numbered from 1 over all texts
    random_key = np.random.default_rng(seed).random(len(word) + 1)[word]
    if tokenizer.class_token:
        random_key[texts.offsets[:-1]] = -1.0
    text = np.repeat(np.arange(len(texts)), texts.lengths)  # the text of each token
    order = np.lexsort((np.arange(len(word)), random_key, text))  # by text, then randomly by word, then by position
    return TokenisedTexts(texts.ids[order], texts.offsets, texts.labels)
