"""Kinds of tokens (negation, rare word, role, previous token, …), and how much each kind attends to each kind.

A kind is a property of a token (TOKEN_KINDS and a data set's roles) or of a key relative to its query (RELATIONS).
"""

import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from txcls.data.batches import TokenisedTexts, batches_by_length
from txcls.data.types import Roles
from txcls.predictor import Predictor, padded
from txcls.tap import trace
from txcls.text.encoder import TextEncoder
from txcls.text.tokens import Encoding, Token
from txcls.text.vocabulary import SPECIAL_TOKENS

Bools = NDArray[np.bool_]

ANY = "any token"
"""The kind that matches every query."""
TOKEN_KINDS = ("class token", "first token", "punctuation", "negation", "typical word", "rare word")
"""Intrinsic kinds of a token; a data set may add roles (`txcls.data.generated.who_won`)."""
RELATIONS = ("itself", "previous token", "next token", "same token elsewhere")
"""Kinds of keys that depend on the query."""
NEGATIONS = frozenset(
    {"not", "no", "never", "none", "nothing", "nobody", "neither", "nor", "without", "cannot", "n't", "hardly"}
    | {f"{verb}n't" for verb in ("is", "was", "are", "were", "do", "does", "did", "wo", "would", "ca", "could", "has")}
)


@dataclass(frozen=True)
class TextKinds:
    """A text as token ids, with the kinds of its tokens.

    Attributes:
        ids: (T,) token ids.
        label: the class of the text.
        kinds: kind to a mask, (T,), of the tokens of that kind.
        counts: (T,) number of occurrences of each token's id in the training texts.
    """

    ids: NDArray[np.int64]
    label: int
    kinds: Mapping[str, Bools]
    counts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ids)


def kinds_of_text(
    encoding: Encoding,
    label: int,
    *,
    counts: NDArray[np.int64],
    typical: Collection[int] = (),
    rare: Collection[int] = (),
    roles: Roles | None = None,
) -> TextKinds:
    """The kinds of a text's tokens.

    Args:
        encoding: the encoded text, with at least one token.
        label: its class.
        counts: (V,) number of occurrences of each id in the training texts.
        typical: ids of the tokens most typical of a class.
        rare: ids of tokens that are rare in the training texts.
        roles: the roles of the parts of the text.
    """
    tokens = encoding.tokens
    kinds = {
        "class token": [token.is_special for token in tokens],
        "first token": [number == 0 for number in range(len(tokens))],
        "punctuation": [_is_punctuation(token) for token in tokens],
        "negation": [token.text.strip().lower() in NEGATIONS for token in tokens],
        "typical word": [token.id in typical for token in tokens],
        "rare word": [token.id in rare or token.is_unknown for token in tokens],
    }
    for role, ranges in (roles or {}).items():
        kinds[role] = [
            not token.is_special and any(token.start < end and start < token.end for start, end in ranges)
            for token in tokens
        ]
    ids = np.array(encoding.ids, dtype=np.int64)
    return TextKinds(ids, label, {kind: np.array(of, dtype=bool) for kind, of in kinds.items()}, counts[ids])


NAMED, NOT_NAMED = "team it names", "team it does not name"
"""The two teams of a match report of `txcls.data.generated.who_won`, according to the model's prediction."""
AGREEING, ATTRACTOR = "agreeing noun", "attractor"
"""Nouns of `txcls.data.generated.agreement`: the last one of the number that the model names, and those of the other
number after it."""


_NOUNS = ("singular noun", "plural noun")
_OF_CLASS = ("winner", "loser", *_NOUNS)
"""Roles that are replaced by those that depend on the model's prediction."""


def roles_by_answer(classifier: Predictor, texts: Sequence[str], roles: Sequence[Roles]) -> list[Roles]:
    """The roles of each text, with winner and loser replaced by the team the model names and the other one, and nouns
    by those that agree with its prediction and by attractors.

    Winner and loser depend on the true class; a head can at most attend to the team that the model then names.
    """
    by_answer: list[Roles] = []
    for text, prediction, given in zip(texts, classifier.predict(texts, top_k=1), roles, strict=True):
        of_text: dict[str, Sequence[tuple[int, int]]] = {
            role: ranges for role, ranges in given.items() if role not in _OF_CLASS
        }
        for ranges, others in ((given.get("winner"), given.get("loser")), (given.get("loser"), given.get("winner"))):
            if ranges and others and text[slice(*ranges[0])] == prediction.label:
                of_text |= {NAMED: ranges, NOT_NAMED: others}
        if nouns := given.get(f"{prediction.label} noun"):
            last = nouns[-1]
            others = [span for role in _NOUNS if role != f"{prediction.label} noun" for span in given.get(role, ())]
            of_text |= {AGREEING: [last]}
            if after := [span for span in others if span > last]:
                of_text |= {ATTRACTOR: after}
        by_answer.append(of_text)
    return by_answer


def queries_of(kind: str, text: TextKinds) -> Bools:
    """Which queries are of this kind, (T,)."""
    return np.ones(len(text), dtype=bool) if kind == ANY else _of(kind, text)


def keys_of(kind: str, text: TextKinds) -> Bools:
    """Which keys (columns) are of this kind for each query (row), (T, T)."""
    n = len(text)
    if kind == "itself":
        return np.eye(n, dtype=bool)
    if kind == "previous token":
        return np.eye(n, k=-1, dtype=bool)
    if kind == "next token":
        return np.eye(n, k=1, dtype=bool)
    if kind == "same token elsewhere":
        return np.equal.outer(text.ids, text.ids) & ~np.eye(n, dtype=bool)
    return np.broadcast_to(_of(kind, text), (n, n))


def query_kinds(texts: Sequence[TextKinds]) -> tuple[str, ...]:
    """The kinds of queries that occur in these texts."""
    return (ANY, *_occurring(texts))


def key_kinds(texts: Sequence[TextKinds]) -> tuple[str, ...]:
    """The kinds of keys that occur in these texts."""
    return (*RELATIONS, *_occurring(texts))


def _occurring(texts: Sequence[TextKinds]) -> list[str]:
    """The kinds of tokens that occur; "first token" is left out if every text begins with the class token."""
    names = dict.fromkeys(name for text in texts for name in text.kinds)
    occurring = [name for name in names if any(_of(name, text).any() for text in texts)]
    is_first_class_token = all(_of("class token", text)[:1].any() for text in texts)
    return [name for name in occurring if name != "first token" or not is_first_class_token]


def _of(kind: str, text: TextKinds) -> Bools:
    """Which tokens are of this kind; none if the text does not have the kind."""
    return text.kinds.get(kind, np.zeros(len(text), dtype=bool))


def _is_punctuation(token: Token) -> bool:
    letters = "" if token.is_special else token.text.strip()
    return bool(letters) and all(unicodedata.category(character)[0] in "PS" for character in letters)


TYPICAL = 20
"""Maximum number of typical tokens per class."""
MIN_Z = 4.0
"""Minimum z-score of a typical token."""
RARE_SHARE = 0.05
"""Rare tokens are the least frequent tokens that together make up this fraction of all tokens in the training texts."""


@dataclass(frozen=True)
class TokenStatistics:
    """Counts of the V ids in training texts, and the ids that are typical of a class or rare.

    Attributes:
        counts: (V,) occurrences.
        typical: up to TYPICAL ids per class, with the largest z-scores of the log-odds ratio between the texts of the
            class and all other texts (Monroe et al. 2008, "Fightin' Words", equation 22, with a uniform prior of one
            text per token); a token is counted once per text.
        rare: ids that together make up RARE_SHARE of all tokens.
    """

    counts: NDArray[np.int64]
    typical: frozenset[int]
    rare: frozenset[int]

    @classmethod
    def of(cls, texts: TokenisedTexts, *, n_classes: int, vocab_size: int) -> "TokenStatistics":
        """Compute the statistics from labelled training texts."""
        counts = np.bincount(texts.ids, minlength=vocab_size)
        held = np.zeros((n_classes, vocab_size))  # C V: number of texts of the class that contain the token
        for number, label in enumerate(texts.labels):
            held[label, np.unique(texts[number])] += 1
        return cls(counts, _typical(held, np.bincount(texts.labels, minlength=n_classes)), _rare(counts))

    def read(
        self,
        encoder: TextEncoder,
        texts: Sequence[str],
        labels: Sequence[int],
        *,
        roles: Sequence[Roles] | None = None,
    ) -> list[TextKinds]:
        """The texts with the kinds of their tokens; texts without a word are left out."""
        rows = zip(map(encoder.encode, texts), labels, roles or [{}] * len(texts), strict=True)
        return [
            kinds_of_text(encoding, label, counts=self.counts, typical=self.typical, rare=self.rare, roles=role)
            for encoding, label, role in rows
            if encoding.has_words
        ]


def _typical(held: NDArray[np.float64], n_texts: NDArray[np.int64]) -> frozenset[int]:
    """Typical tokens, from the number of texts per class that contain each token, (C, V), and per class, (C,)."""
    inside, outside = held + 1, held.sum(axis=0) - held + 1  # C V
    without_inside = n_texts[:, None] - held + 1
    without_outside = (n_texts.sum() - n_texts)[:, None] - (held.sum(axis=0) - held) + 1
    log_odds = np.log(inside / without_inside) - np.log(outside / without_outside)
    z = log_odds / np.sqrt(1 / inside + 1 / outside)
    z[:, : len(SPECIAL_TOKENS)] = -np.inf
    best = np.argsort(-z, axis=1)[:, :TYPICAL]  # C TYPICAL
    return frozenset(int(token) for row, tokens in zip(z, best, strict=True) for token in tokens if row[token] > MIN_Z)


def _rare(counts: NDArray[np.int64]) -> frozenset[int]:
    ordinary = counts.copy()
    ordinary[: len(SPECIAL_TOKENS)] = 0
    order = np.argsort(ordinary, kind="stable")
    few = np.cumsum(ordinary[order]) <= RARE_SHARE * ordinary.sum()
    return frozenset(int(token) for token in order[few] if token >= len(SPECIAL_TOKENS))


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class KindsTable:
    """Attention by kind of query (Q kinds) and kind of key (K kinds), over queries whose text has such a key.

    Attributes:
        queries: names of the kinds of queries.
        keys: names of the kinds of keys.
        coverage: (Q, K) fraction of the texts that have such a query with such a key.
        chance: (Q, K) weight that uniform attention would put on keys of the kind; 0 if there are none.
        attention: (L, H, Q, K) weight that each head puts on them.
        entropy: (L, H) entropy of a query's weights divided by the entropy of uniform weights, averaged over all
            queries: 0 if all weight is on one key, 1 if it is uniform.
    """

    queries: tuple[str, ...]
    keys: tuple[str, ...]
    coverage: Floats
    chance: Floats
    attention: Floats
    entropy: Floats


def measure_kinds(classifier: Predictor, texts: Sequence[TextKinds]) -> KindsTable:
    """The attention of every head on these texts, by kinds.

    Args:
        texts: at least one.

    Raises:
        ValueError: there are no texts.
    """
    if not texts:
        raise ValueError("got no texts; expected at least one")
    config = classifier.checkpoint.config.model
    queries, keys = query_kinds(texts), key_kinds(texts)
    shape = (len(queries), len(keys))
    coverage, n, chance = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    attention = np.zeros((config.n_layers, config.n_heads, *shape))
    entropy, n_queries = np.zeros((config.n_layers, config.n_heads)), 0
    for place, pattern in head_patterns(classifier, texts, batch_size=32):
        text, size = texts[place], len(texts[place])
        pattern = pattern.astype(np.float64)  # L H T T
        rows = np.stack([queries_of(kind, text) for kind in queries])  # Q T
        visible = np.tril(np.ones((size, size))) if config.causal else np.ones((size, size))
        columns = np.stack([keys_of(kind, text) for kind in keys]) * visible  # K T T
        share = columns.sum(axis=-1) / visible.sum(axis=-1)  # K T: fraction of the keys visible to each query
        pairs = rows[:, None] & (share > 0)  # Q K T: queries with such a key
        coverage += pairs.any(axis=-1)
        n += pairs.sum(axis=-1)
        chance += (pairs * share).sum(axis=-1)
        weights = np.einsum("lhqt,kqt->lhkq", pattern, columns)  # L H K T
        attention += np.einsum("lhkt,qkt->lhqk", weights, pairs)
        if size > 1:
            logs = np.log(pattern, out=np.zeros_like(pattern), where=pattern > 0)
            largest = np.log(np.maximum(visible.sum(axis=-1), 2))  # T
            entropy += (-(pattern * logs).sum(axis=-1) / largest).sum(axis=-1)
            n_queries += size
    pairs_n = np.maximum(n, 1)
    return KindsTable(
        queries, keys, coverage / len(texts), chance / pairs_n, attention / pairs_n, entropy / max(n_queries, 1)
    )


def head_patterns(
    classifier: Predictor, texts: Sequence[TextKinds], *, batch_size: int
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield the index of each text and its attention patterns (L, H, T, T), in batches of texts of similar length."""
    names = [f"layers.{layer}.attn.pattern" for layer in range(classifier.checkpoint.config.model.n_layers)]
    for batch in batches_by_length(map(len, texts), batch_size=batch_size):
        with trace(record=names) as opened:
            classifier.logits(padded([texts[place].ids.tolist() for place in batch]))
        patterns = torch.stack([opened[name] for name in names], dim=1).numpy()  # B L H T T
        for place, pattern in zip(batch.tolist(), patterns, strict=True):
            size = len(texts[place])
            yield place, pattern[..., :size, :size]
