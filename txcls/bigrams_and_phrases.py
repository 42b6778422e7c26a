"""Bigram vectors beside the token embeddings, and votes of phrases beside the class head."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from txcls.config import ModelConfig
from txcls.tap import Tap
from txcls.text.vocabulary import PAD

NO_KEY = 2**63 - 1
"""Stands where no phrase is known: larger than any key."""


class Bigrams(nn.Module):
    """A vector for each pair of neighbouring tokens, added to the right one's: "new york" is more than "new" + "york".

    There are far too many pairs for a row each; which of them have one is what the kinds below differ in.
    """

    def __init__(self, config: ModelConfig, *, none: int | None = None) -> None:
        super().__init__()
        self.table = nn.Embedding(config.ngram_buckets, config.d_ngram, padding_idx=none)  # row `none` stays at zero
        self.project = nn.Linear(config.d_ngram, config.d_model, bias=False)
        self.drop = config.ngram_dropout

    def rows(self, ids: Tensor) -> Tensor:
        """The table row of each (previous token, token) pair, (B, T); the first token's neighbour is padding."""
        raise NotImplementedError

    def forward(self, ids: Tensor) -> Tensor:
        vectors = self.table(self.rows(ids))  # B T d_ngram
        if self.training and self.drop:
            # Whole vectors, not single numbers: the model must also manage without the pair it could learn by heart.
            kept = torch.rand(ids.shape, device=ids.device) >= self.drop  # B T
            vectors = vectors * kept.unsqueeze(-1) / (1.0 - self.drop)  # B T d_ngram
        projected: Tensor = self.project(vectors)  # B T D
        return projected


class HashedBigrams(Bigrams):
    """A hash picks a pair's row, so that every pair has one, which it shares by chance with others, most of them rare.

    So it is in fastText (Joulin et al. 2017, https://arxiv.org/abs/1607.01759), whose table is a hundred times larger.
    """

    def rows(self, ids: Tensor) -> Tensor:
        """The table row of each (previous token, token) pair, (B, T); the first token's neighbour is padding."""
        previous = F.pad(ids, (1, 0), value=PAD)[:, :-1]  # B T
        mixed = previous * 2_654_435_761 + ids * 2_246_822_519  # B T: large odd factors spread neighbouring ids apart
        return (mixed ^ (mixed >> 15)) % self.table.num_embeddings  # B T


class FrequentBigrams(Bigrams):
    """The pairs that are most frequent in the training texts have a row each; all others share one of zeros, the last.

    Where a hashed table is small, a dozen rare pairs speak through the row of a frequent one; here nobody else does.
    """

    known: Tensor

    def __init__(self, config: ModelConfig, vocab_size: int) -> None:
        super().__init__(config, none=config.ngram_buckets - 1)
        self.vocab_size = vocab_size
        # Not trained but counted, and saved with the weights: keys of pairs, sorted. Until then no pair is known.
        dtype = torch.int32 if vocab_size**2 < 2**31 else torch.int64  # half the space where they fit
        self.register_buffer("known", torch.full((config.ngram_buckets - 1,), vocab_size**2, dtype=dtype))

    def learn(self, pairs: Tensor) -> None:
        """From now on these (previous token, token) pairs, (N, 2), each once, have rows of their own.

        Raises:
            ValueError: there are more of them than rows.
        """
        if len(pairs) > len(self.known):
            raise ValueError(f"got {len(pairs):,} pairs for {len(self.known):,} rows")
        keys = self._keys(pairs[:, 0], pairs[:, 1]).sort().values  # N
        self.known.fill_(self.vocab_size**2)[: len(keys)] = keys

    def rows(self, ids: Tensor) -> Tensor:
        """The table row of each (previous token, token) pair, (B, T); the first token's neighbour is padding."""
        previous = F.pad(ids, (1, 0), value=PAD)[:, :-1]  # B T
        keys = self._keys(previous, ids)  # B T
        rows = torch.searchsorted(self.known, keys).clamp(max=len(self.known) - 1)  # B T: where each would stand
        return torch.where(self.known[rows] == keys, rows, len(self.known))  # B T

    def _keys(self, previous: Tensor, ids: Tensor) -> Tensor:
        """One number for each pair."""
        return (previous * self.vocab_size + ids).to(self.known.dtype)


def bigrams_of(config: ModelConfig, vocab_size: int) -> Bigrams | None:
    """The bigram vectors of a configuration; None where it has none."""
    if not config.ngram_buckets:
        return None
    return HashedBigrams(config) if config.ngrams == "hashed" else FrequentBigrams(config, vocab_size)


class Phrases(nn.Module):
    """Votes for the classes from known phrases of one to a few tokens: a linear model beside the deep one.

    What a rare phrase says ("one of the worst") is there to be counted, and a Transformer that has to fit it between
    all other words learns it by heart instead of learning from it. Here every known phrase has one number for each
    class; the numbers of those that stand in a text are added up, and their sum to the deep model's logits (Cheng et
    al. 2016, "Wide & Deep Learning", https://arxiv.org/abs/1606.07792). Which phrases are known, and how they vote, is
    fitted when the rest is trained (`txcls.training.phrases`); until then none is.

    Raises:
        ValueError: the vocabulary is too large for every phrase to have a key of 63 bits.
    """

    known: Tensor
    fewest: Tensor

    def __init__(self, config: ModelConfig, *, vocab_size: int, n_classes: int) -> None:
        super().__init__()
        self.vocab_size, self.longest = vocab_size, config.phrase_length
        if vocab_size**self.longest >= NO_KEY:
            raise ValueError(
                f"got {vocab_size:,} tokens; phrases of {self.longest} need a vocabulary of at most "
                f"{int((NO_KEY - 1) ** (1 / self.longest)):,}"
            )
        # The keys of the known phrases, sorted: a buffer, since they are counted. So is what few phrases of a text are.
        self.register_buffer("known", torch.full((config.phrases,), NO_KEY))  # P
        self.register_buffer("fewest", torch.tensor(1))
        # Fitted by themselves: trained along with the rest, each learns to rely on what the other has by heart.
        self.table = nn.Parameter(torch.zeros(config.phrases, n_classes), requires_grad=False)  # P C
        self.bias = nn.Parameter(torch.zeros(n_classes), requires_grad=False)  # C: what every text gets
        self.votes, self.out = Tap(), Tap()

    def learn(self, phrases: Tensor, votes: Tensor, *, bias: Tensor | None = None, fewest: int = 1) -> None:
        """From now on these phrases, (n, longest) ids with padding on the left of shorter ones, vote so, (n, C).

        Every text gets `bias` (C,) on top; what less than `fewest` known phrases say is divided by its root.

        Raises:
            ValueError: there are more of them than rows.
        """
        if len(phrases) > len(self.known):
            raise ValueError(f"got {len(phrases):,} phrases for {len(self.known):,} rows")
        powers = self.vocab_size ** torch.arange(self.longest - 1, -1, -1)  # longest
        keys, order = (phrases * powers).sum(-1).sort()  # n
        self.known.fill_(NO_KEY)[: len(keys)] = keys
        self.table.data.zero_()[: len(keys)] = votes[order]
        self.bias.data.copy_(torch.zeros_like(self.bias) if bias is None else bias)
        self.fewest.fill_(fewest)

    def rows(self, ids: Tensor) -> Tensor:
        """The row of the phrase of 1, 2, … tokens that ends at each place of ids (B, T): (B, T, longest); -1 for none.

        A phrase's key is its ids read as digits to the base V, as 407 is four hundreds, no tens and seven.
        """
        found = []
        keys = torch.zeros_like(ids)  # B T
        for n in range(self.longest):  # the phrase of n + 1 tokens: one more on the left
            earlier = F.pad(ids, (n, 0), value=PAD)[:, : ids.shape[1]]  # B T
            keys = keys + earlier * self.vocab_size**n  # B T
            rows = torch.searchsorted(self.known, keys).clamp(max=len(self.known) - 1)  # B T: where each would stand
            # Before the text's first token there is nothing: a phrase that would begin there is none.
            begins = torch.arange(ids.shape[1], device=ids.device) >= n  # T
            found.append(torch.where((self.known[rows] == keys) & begins, rows, -1))  # B T
        return torch.stack(found, dim=-1)  # B T longest

    def forward(self, ids: Tensor) -> Tensor:
        """What the phrases of ids (B, T) add to the logits, (B, C)."""
        votes = self.votes(self.by_token(ids))  # B T C
        out: Tensor = self.out(votes.sum(dim=1) + self.bias)  # B C
        return out

    def by_token(self, ids: Tensor) -> Tensor:
        """Votes (B, T, C) of the phrases that end at each token of ids (B, T); padding votes for nothing.

        Divided by the square root of how many known phrases the text holds, so that long texts are not sure of
        everything: of n votes that point here and there at random the sum grows as sqrt(n). A few words alone are
        divided as a short training text is: two strong ones must not sound like a hundred.
        """
        rows = self.rows(ids)  # B T longest
        is_known = rows >= 0  # B T longest
        voted = (self.table[rows.clamp(min=0)] * is_known.unsqueeze(-1)).sum(dim=2)  # B T C
        n_known = torch.maximum(is_known.sum(dim=(1, 2)), self.fewest)  # B
        votes: Tensor = voted / n_known.to(voted.dtype).sqrt()[:, None, None]  # B T C
        return votes
