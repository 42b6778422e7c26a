"""Kinds of tokens (negation, rare word, previous token, …), and how much tokens of each kind attend to each kind.

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
from txcls.inference.predictor import Predictor, padded
from txcls.tap import trace
from txcls.text.tokenizer import Tokenizer
from txcls.text.tokens import Encoding, Token
from txcls.text.vocabulary import SPECIAL_TOKENS

Bools = NDArray[np.bool_]

ANY = "any token"
"""The kind that matches every query."""
TOKEN_KINDS = ("class token", "first token", "punctuation", "negation", "typical word", "rare word")
"""Kinds that do not depend on the query; a data set may add roles (`txcls.data.generated.who_won`)."""
RELATIONS = ("itself", "previous token", "next token", "same token elsewhere")
"""Kinds of a key that depend on the query."""
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
        kinds: for each kind, a mask of the tokens of that kind, (T,).
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
    """The kinds of a text's tokens; `counts` (V,), `typical` and `rare` are those of `TokenStatistics`."""
    tokens = encoding.tokens
    kinds = {
        "class token": [token.is_special for token in tokens],
        "first token": [position == 0 for position in range(len(tokens))],
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
    return TextKinds(ids, label, {kind: np.array(mask, dtype=bool) for kind, mask in kinds.items()}, counts[ids])


NAMED, NOT_NAMED = "team it names", "team it does not name"
"""Roles in `txcls.data.generated.who_won`: the team that the model predicts, and the other team."""
AGREEING, ATTRACTOR = "agreeing noun", "attractor"
"""Roles in `txcls.data.generated.agreement`: the last noun whose number the model predicts, and all later nouns, whose
number is the other."""
PREDICTION_ROLES = frozenset({NAMED, NOT_NAMED, AGREEING, ATTRACTOR})
"""Roles that depend on the prediction. They are not used as queries: a head cannot select a query by an output that is
computed after it."""
_NOUNS = ("singular noun", "plural noun")
_CLASS_ROLES = ("winner", "loser", *_NOUNS)
"""Roles that depend on the true class."""


def roles_by_prediction(classifier: Predictor, texts: Sequence[str], roles: Sequence[Roles]) -> list[Roles]:
    """The roles of each text, with roles that depend on the true class replaced by roles that depend on the prediction.

    The model does not know the true class, so a head can attend to the predicted team, but not to the winner as such.
    A story's keys may have these roles, but not its queries (`PREDICTION_ROLES`).
    """
    by_prediction: list[Roles] = []
    for text, prediction, given in zip(texts, classifier.predict(texts, top_k=1), roles, strict=True):
        of_text: dict[str, Sequence[tuple[int, int]]] = {
            role: ranges for role, ranges in given.items() if role not in _CLASS_ROLES
        }
        for ranges, others in ((given.get("winner"), given.get("loser")), (given.get("loser"), given.get("winner"))):
            if ranges and others and text[slice(*ranges[0])] == prediction.label:
                of_text |= {NAMED: ranges, NOT_NAMED: others}
        if nouns := given.get(f"{prediction.label} noun"):
            last = nouns[-1]
            others = [noun for role in _NOUNS if role != f"{prediction.label} noun" for noun in given.get(role, ())]
            of_text |= {AGREEING: [last]}
            if attractors := [noun for noun in others if noun > last]:
                of_text |= {ATTRACTOR: attractors}
        by_prediction.append(of_text)
    return by_prediction


def queries_of(kind: str, text: TextKinds) -> Bools:
    """Which queries are of this kind, (T,)."""
    return np.ones(len(text), dtype=bool) if kind == ANY else _tokens_of_kind(kind, text)


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
    return np.broadcast_to(_tokens_of_kind(kind, text), (n, n))


def _occurring(texts: Sequence[TextKinds]) -> list[str]:
    """The kinds of tokens that occur, except "first token" if that is the class token in every text."""
    names = dict.fromkeys(name for text in texts for name in text.kinds)
    occurring = [name for name in names if any(_tokens_of_kind(name, text).any() for text in texts)]
    class_token_is_first = all(_tokens_of_kind("class token", text)[:1].any() for text in texts)
    return [name for name in occurring if name != "first token" or not class_token_is_first]


def _tokens_of_kind(kind: str, text: TextKinds) -> Bools:
    """Which tokens are of this kind, (T,); none if the text has no such kind."""
    return text.kinds.get(kind, np.zeros(len(text), dtype=bool))


def _is_punctuation(token: Token) -> bool:
    characters = "" if token.is_special else token.text.strip()
    return bool(characters) and all(unicodedata.category(character)[0] in "PS" for character in characters)


TYPICAL = 20
"""Maximum number of typical tokens per class."""
MIN_Z = 4.0
"""Minimum z-score of a typical token."""
RARE_SHARE = 0.05
"""Rare tokens are the least frequent ones, which together make up this fraction of the tokens in the training texts."""


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
        n_containing = np.zeros((n_classes, vocab_size))  # C V: number of texts of the class that contain the token
        for n, label in enumerate(texts.labels):
            n_containing[label, np.unique(texts[n])] += 1
        return cls(counts, _typical(n_containing, np.bincount(texts.labels, minlength=n_classes)), _rare(counts))

    def read(
        self,
        tokenizer: Tokenizer,
        texts: Sequence[str],
        labels: Sequence[int],
        *,
        roles: Sequence[Roles] | None = None,
    ) -> list[TextKinds]:
        """The texts with the kinds of their tokens; texts without a word are left out."""
        rows = zip(map(tokenizer.encode, texts), labels, roles or [{}] * len(texts), strict=True)
        return [
            kinds_of_text(encoding, label, counts=self.counts, typical=self.typical, rare=self.rare, roles=role)
            for encoding, label, role in rows
            if encoding.has_words
        ]


def _typical(n_containing: NDArray[np.float64], n_texts: NDArray[np.int64]) -> frozenset[int]:
    """Typical tokens, from the number of texts per class that contain each token, (C, V), and per class, (C,)."""
    inside, outside = n_containing + 1, n_containing.sum(axis=0) - n_containing + 1  # C V
    without_inside = n_texts[:, None] + 2 - inside
    without_outside = (n_texts.sum() - n_texts)[:, None] + 2 - outside
    log_odds = np.log(inside / without_inside) - np.log(outside / without_outside)
    z = log_odds / np.sqrt(1 / inside + 1 / outside)
    z[:, : len(SPECIAL_TOKENS)] = -np.inf
    best = np.argsort(-z, axis=1)[:, :TYPICAL]  # C TYPICAL
    return frozenset(int(token) for row, tokens in zip(z, best, strict=True) for token in tokens if row[token] > MIN_Z)


def _rare(counts: NDArray[np.int64]) -> frozenset[int]:
    ordinary = counts.copy()
    ordinary[: len(SPECIAL_TOKENS)] = 0
    order = np.argsort(ordinary, kind="stable")
    is_rare = np.cumsum(ordinary[order]) <= RARE_SHARE * ordinary.sum()
    return frozenset(int(token) for token in order[is_rare] if token >= len(SPECIAL_TOKENS))


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class KindsTable:
    """Attention by kind of query (Q kinds) and kind of key (K kinds), over queries that have such a key.

    Attributes:
        queries, keys: names of the kinds.
        coverage: (Q, K) fraction of the texts that have such a query with such a key.
        chance: (Q, K) weight of uniform attention on keys of the kind; 0 if there are none.
        attention: (L, H, Q, K) weight of each head on keys of the kind.
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

    Raises:
        ValueError: there are no texts.
    """
    if not texts:
        raise ValueError("got no texts; expected at least one")
    config = classifier.checkpoint.config.model
    occurring = _occurring(texts)
    queries, keys = (ANY, *occurring), (*RELATIONS, *occurring)
    shape = (len(queries), len(keys))
    coverage, n, chance = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    attention = np.zeros((config.n_layers, config.n_heads, *shape))
    entropy, n_queries = np.zeros((config.n_layers, config.n_heads)), 0
    for index, pattern in head_patterns(classifier, texts, batch_size=32):
        text, size = texts[index], len(texts[index])
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
    n_pairs = np.maximum(n, 1)
    return KindsTable(
        queries, keys, coverage / len(texts), chance / n_pairs, attention / n_pairs, entropy / max(n_queries, 1)
    )


def head_patterns(
    classifier: Predictor, texts: Sequence[TextKinds], *, batch_size: int
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield the index of each text and its attention patterns (L, H, T, T), batch by batch."""
    names = [f"layers.{layer}.attn.pattern" for layer in range(classifier.checkpoint.config.model.n_layers)]
    for batch in batches_by_length(map(len, texts), batch_size=batch_size):
        with trace(record=names) as activations:
            classifier.logits(padded([texts[index].ids.tolist() for index in batch]))
        patterns = torch.stack([activations[name] for name in names], dim=1).numpy()  # B L H T T
        for index, pattern in zip(batch.tolist(), patterns, strict=True):
            size = len(texts[index])
            yield index, pattern[..., :size, :size]
