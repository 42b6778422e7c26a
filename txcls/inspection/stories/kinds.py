"""Kinds of tokens: what a query or a key is (a negation, a rare word, a role), and how a key lies to its query."""

import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from txcls.data.types import Roles
from txcls.text.encoder import Encoding, Token

Bools = NDArray[np.bool_]

ANY = "any token"
"""The kind of every query."""
TOKEN_KINDS = ("class token", "first token", "punctuation", "negation", "typical word", "rare word")
"""Kinds that a token has by itself; a data set may add roles (`txcls.data.generated.who_won`)."""
RELATIONS = ("itself", "previous token", "next token", "same token elsewhere")
"""Kinds of keys that depend on the query."""
NEGATIONS = frozenset(
    {"not", "no", "never", "none", "nothing", "nobody", "neither", "nor", "without", "cannot", "n't", "hardly"}
    | {f"{verb}n't" for verb in ("is", "was", "are", "were", "do", "does", "did", "wo", "would", "ca", "could", "has")}
)


@dataclass(frozen=True)
class TextKinds:
    """A text as token ids, and which of its tokens are of which kind.

    Attributes:
        ids: (T,) token ids.
        label: the class of the text.
        kinds: kind of token to which tokens are of it, (T,).
        counts: (T,) how often training texts hold each token's id.
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
        encoding: of the text, with at least one token.
        label: its class.
        counts: (V,) how often training texts hold each id.
        typical: ids of the tokens most typical of a class.
        rare: ids of tokens that training texts seldom hold.
        roles: what its parts do.
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
    """The kinds of queries that these texts hold."""
    return (ANY, *_held(texts))


def key_kinds(texts: Sequence[TextKinds]) -> tuple[str, ...]:
    """The kinds of keys that these texts hold."""
    return (*RELATIONS, *_held(texts))


def _held(texts: Sequence[TextKinds]) -> list[str]:
    """The kinds of tokens that occur; where every text begins with the class token, the first token is no kind too."""
    names = dict.fromkeys(name for text in texts for name in text.kinds)
    found = [name for name in names if any(_of(name, text).any() for text in texts)]
    begin = all(_of("class token", text)[:1].any() for text in texts)
    return [name for name in found if name != "first token" or not begin]


def _of(kind: str, text: TextKinds) -> Bools:
    """Which tokens are of a kind of token; none where the text's kinds do not name it."""
    return text.kinds.get(kind, np.zeros(len(text), dtype=bool))


def _is_punctuation(token: Token) -> bool:
    letters = "" if token.is_special else token.text.strip()
    return bool(letters) and all(unicodedata.category(character)[0] in "PS" for character in letters)
