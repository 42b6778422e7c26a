"""What if the text were different? Compare two versions, and find the smallest one-word changes that flip the class."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice, zip_longest
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from txcls.inference.predictor import Prediction, Predictor
from txcls.inspection.attribution import logits_without
from txcls.inspection.tracing import encode_for_trace
from txcls.inspection.vocabulary import token_cosines
from txcls.text.tokens import Encoding

MAX_LEFT_OUT = 128
"""Maximum number of words for leave-one-out in a comparison; in longer texts, only those nearest to a change."""

TokenChange = Literal["same", "changed", "removed", "added"]


@dataclass(frozen=True, slots=True)
class TokenPair:
    """The index of a token before a change and of its counterpart after it; None if there is none."""

    before: int | None
    after: int | None
    change: TokenChange


def align_tokens(before: Sequence[str], after: Sequence[str]) -> tuple[TokenPair, ...]:
    """Pair the tokens of two texts: each occurs once, in order; those between common runs are paired in order."""
    pairs: list[TokenPair] = []
    matcher = SequenceMatcher(a=before, b=after, autojunk=False)
    for kind, a, a_end, b, b_end in matcher.get_opcodes():
        for old, new in zip_longest(range(a, a_end), range(b, b_end)):
            change: TokenChange = (
                "same" if kind == "equal" else "added" if old is None else "removed" if new is None else "changed"
            )
            pairs.append(TokenPair(old, new, change))
    return tuple(pairs)


@dataclass(frozen=True)
class TextComparison:
    """The predictions for a text and for its changed version.

    `effects_before` and `effects_after` are leave-one-out effects: how much the probability of `label`, the class
    predicted before the change, falls when a token is removed. They are NaN for special tokens, for a text of one word,
    and, in texts of more than MAX_LEFT_OUT words, for words far from any change.
    """

    before: Prediction
    after: Prediction
    label: str
    pairs: tuple[TokenPair, ...]
    effects_before: NDArray[np.float64]
    effects_after: NDArray[np.float64]


def compare_texts(classifier: Predictor, before: str, after: str) -> TextComparison:
    """Classify both versions and compare them token by token.

    Raises:
        TraceError: a text contains no word.
    """
    encodings = [encode_for_trace(classifier, text) for text in (before, after)]
    first, second = classifier.predict([before, after])
    label = str(first.label)
    pairs = align_tokens(*([token.text for token in encoding.tokens] for encoding in encodings))
    changed = [pair for pair in pairs if pair.change != "same"]
    changed_before = [pair.before for pair in changed if pair.before is not None]
    changed_after = [pair.after for pair in changed if pair.after is not None]
    effects = [
        _leave_one_out_effects(classifier, encoding, label, positions)
        for encoding, positions in zip(encodings, (changed_before, changed_after), strict=True)
    ]
    return TextComparison(first, second, label, pairs, effects[0], effects[1])


def _leave_one_out_effects(
    classifier: Predictor, encoding: Encoding, label: str, changed: Sequence[int]
) -> NDArray[np.float64]:
    """The effects in `TextComparison`, (T,); in long texts, only for the words nearest to the positions `changed`."""
    index = classifier.classes.index(label)
    ids = encoding.ids
    words = [position for position, token in enumerate(encoding.tokens) if not token.is_special]
    effects = np.full(len(ids), np.nan)
    if len(words) < 2:
        return effects
    words.sort(key=lambda word: min((abs(word - position) for position in changed), default=word))
    words = sorted(words[:MAX_LEFT_OUT])
    logits = logits_without(classifier, ids, [set(), *({word} for word in words)])  # 1 + words, C
    probabilities = classifier.calibrate(logits, n_tokens=len(ids))[:, index].numpy()
    effects[words] = probabilities[0] - probabilities[1:]
    return effects


@dataclass(frozen=True, slots=True)
class Flip:
    """A change of one word that changes the predicted class.

    `word` at token `position` is replaced by `replacement`, "" if the word is removed. `size` is 1 minus the cosine
    similarity of the two words' embeddings; removing a word has size 1, like replacing it with an unrelated word.
    """

    position: int
    word: str
    replacement: str
    size: float
    text: str
    label: str
    probability: float


@dataclass(frozen=True, slots=True)
class FlipSearch:
    """The state of a search: `done` of `total` changes tried, and all flips so far, smallest change first."""

    done: int
    total: int
    flips: tuple[Flip, ...]


def search_flips(
    classifier: Predictor, text: str, *, n_neighbours: int = 10, batch_size: int = 32
) -> Iterator[FlipSearch]:
    """Remove each word, then replace each word with its `n_neighbours` nearest, and find changes that flip the class.

    Yields after each batch of changed texts, which lets callers show early results or stop. The words with the largest
    leave-one-out effects are replaced first. Each changed text is tokenised again.

    Raises:
        TraceError: the text contains no word.
    """
    encoding = encode_for_trace(classifier, text)
    [original] = classifier.predict([text], top_k=1)
    label = str(original.label)
    removals = [_Change(position, "", 1.0) for position, token in enumerate(encoding.tokens) if token.end > token.start]
    replacements = _replacements(classifier, encoding, n_neighbours)
    probability_without: dict[int, float] = {}  # of the predicted class, without the word at each position
    flips: list[Flip] = []
    done, total = 0, len(removals) + len(replacements)
    for phase in (removals, replacements):
        phase.sort(key=lambda change: probability_without.get(change.position, 0.0))
        for start in range(0, len(phase), batch_size):
            batch = phase[start : start + batch_size]
            tokens = [encoding.tokens[change.position] for change in batch]
            changed = [
                text[: token.start] + change.replacement + text[token.end :]
                for change, token in zip(batch, tokens, strict=True)
            ]
            predictions = classifier.predict(changed)
            for change, token, new_text, prediction in zip(batch, tokens, changed, predictions, strict=True):
                if phase is removals:
                    by_label = {ranked.label: ranked.probability for ranked in prediction.ranked}
                    probability_without[change.position] = by_label.get(label, 0.0)
                if prediction.label is not None and prediction.label != label:
                    best, word = prediction.ranked[0], text[token.start : token.end]
                    flips.append(Flip(change.position, word, change.replacement, change.size, new_text, best.label,
                                      best.probability))  # fmt: skip
            done += len(batch)
            yield FlipSearch(done, total, tuple(sorted(flips, key=lambda flip: (flip.size, -flip.probability))))
    if not total:
        yield FlipSearch(0, 0, ())


class _Change(NamedTuple):
    """The replacement of a token, and the size of the change as in `Flip`."""

    position: int
    replacement: str
    size: float


def _replacements(classifier: Predictor, encoding: Encoding, n: int) -> list[_Change]:
    """The `n` nearest neighbours of each word that is in the vocabulary and has a letter or digit."""
    replaceable = [
        position
        for position, token in enumerate(encoding.tokens)
        if not token.is_special and not token.is_unknown and _is_word(token.text)
    ]
    if not replaceable:
        return []
    changes = []
    cosines = token_cosines(classifier, [encoding.tokens[position].id for position in replaceable])  # N V
    for position, row in zip(replaceable, cosines, strict=True):
        token = encoding.tokens[position]
        # More than n candidates, since punctuation and other spellings of the same word are skipped.
        candidates = np.argpartition(-row, min(3 * n + 1, len(row) - 1))[: 3 * n + 1].tolist()
        spellings = ((k, classifier.tokenizer.decode([k]).strip()) for k in sorted(candidates, key=lambda k: -row[k]))
        neighbours = ((k, word) for k, word in spellings if k != token.id and _is_word(word) and word != token.text)
        changes += [_Change(position, word, 1.0 - float(row[k])) for k, word in islice(neighbours, n)]
    return changes


def _is_word(text: str) -> bool:
    return any(character.isalnum() for character in text)
