"""A Transformer text classifier from first principles, top to bottom: ids, embeddings, blocks, pooling, class logits.

Letters in the shape comments at line ends:

    B batch   T tokens   D d_model   H heads   E head width (D / H)   F d_ff   C classes   V vocabulary   L layers

The computation is that of "Attention Is All You Need" (Vaswani et al. 2017, https://arxiv.org/abs/1706.03762), encoder
only, with the choices of `txcls.config.ModelConfig`. Each tensor worth looking at passes a `Tap` (txcls/tap.py), which
is an identity unless somebody opened a trace; a tap's name is its attribute path, for example `layers.0.attn.pattern`.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from txcls.config import ModelConfig
from txcls.tap import Tap, name_taps
from txcls.text.vocabulary import PAD


def sinusoidal_encoding(length: int, d_model: int) -> Tensor:
    """Fixed positional encoding, (T, D): PE[t, 2i] = sin(t / 10000^(2i/D)), PE[t, 2i+1] = cos of the same angle.

    Each pair of columns is a clock hand that turns at its own speed, from one radian per token to one in 10,000, so
    that every position has its own reading and a shift by k tokens is the same rotation everywhere (section 3.5).
    """
    exact: dict[str, Any] = {"dtype": torch.float64, "device": "cpu"}
    position = torch.arange(length, **exact).unsqueeze(1)  # T 1
    frequency = torch.exp(torch.arange(0, d_model, 2, **exact) * (-math.log(10_000.0) / d_model))  # D/2
    encoding = torch.empty(length, d_model, **exact)  # T D
    encoding[:, 0::2] = torch.sin(position * frequency)  # T D/2
    encoding[:, 1::2] = torch.cos(position * frequency)  # T D/2
    return encoding.float()  # T D


class Dropout(nn.Module):
    """Zeros, each with a given chance, while training; the rest is scaled up to keep the mean (Srivastava et al. 2014).

    On a CPU torch draws a number of its own for every value, which takes a fifth of a training step of these small
    models. 16 random bits for each do as well: they hit the chance to within 1 / 131,072.
    """

    def __init__(self, chance: float) -> None:
        super().__init__()
        self.chance = chance

    def forward(self, x: Tensor) -> Tensor:
        """A tensor like x, of any shape."""
        if not self.training or not self.chance or x.device.type != "cpu":
            return F.dropout(x, self.chance, self.training)
        drawn = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)  # all 64 bits of each
        bits = drawn.view(torch.int16)[: x.numel()].view(x.shape)  # uniform from -32,768 to 32,767
        kept = bits.ge_(round(self.chance * 65_536) - 32_768)  # 1 or 0; by way of bool it takes ten times as long
        if x.dtype.itemsize == 2:  # a number of 16 bits times 1 or 0 is its bits times 1 or 0: no turning into floats
            scale = torch.tensor(1.0 / (1.0 - self.chance), dtype=x.dtype).view(torch.int16)
            return x * kept.mul_(scale).view(x.dtype)
        return x * kept.to(x.dtype).div_(1.0 - self.chance)

    def extra_repr(self) -> str:
        return f"chance={self.chance}"


class Embeddings(nn.Module):
    """Token ids to the first state of the residual stream: token vector + bigram vector + position vector."""

    positional: Tensor

    def __init__(self, config: ModelConfig, vocab_size: int) -> None:
        super().__init__()
        self.kind = config.positions
        self.scale = math.sqrt(config.d_model) if config.scale_embeddings else 1.0
        width = config.d_embedding or config.d_model
        self.token = nn.Embedding(vocab_size, width, padding_idx=PAD)
        self.widen = nn.Identity() if width == config.d_model else nn.Linear(width, config.d_model, bias=False)
        self.ngram: Bigrams | None = None
        if config.ngram_buckets:
            self.ngram = HashedBigrams(config) if config.ngrams == "hashed" else FrequentBigrams(config, vocab_size)
        if config.positions == "sinusoidal":
            # A buffer, not a parameter: never trained. Not saved either, since it follows from the config.
            encoding = sinusoidal_encoding(config.max_length, config.d_model)
            self.register_buffer("positional", encoding, persistent=False)
        elif config.positions == "learned":
            self.positional = nn.Parameter(torch.zeros(config.max_length, config.d_model))
        self.dropout = Dropout(config.dropout)
        self.tokens, self.ngrams, self.positions, self.out = Tap(), Tap(), Tap(), Tap()

    def forward(self, ids: Tensor, start: int = 0) -> Tensor:
        """Ids (B, T) to (B, T, D); `start` is the place of the first one, where earlier ones are in a cache."""
        x = self.tokens(self.widen(self.token(ids)) * self.scale)  # B T D
        if self.ngram is not None:
            x = x + self.ngrams(self.ngram(ids))  # B T D
        if self.kind != "none":
            # expand: the same positions for each text, though a trace may edit them text by text
            x = x + self.positions(self.positional[start : start + ids.shape[1]].expand(x.shape))  # B T D
        out: Tensor = self.dropout(self.out(x))  # B T D
        return out


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


NO_KEY = 2**63 - 1
"""Stands where no phrase is known: larger than any key."""
SHORT = 400
"""Up to so many tokens the gradient of the fused attention kernel takes a CPU longer in bfloat16 than the written-out
one, at 64 tokens five times as long; in float32 it never does."""


class SelfAttention(nn.Module):
    """Multi-head self-attention: softmax(Q K^T / sqrt(E)) V in each of H heads (Vaswani et al. 2017, 3.2).

    Each token asks a question (query), offers a heading (key) and a content (value). A token's new content is the mean
    of all contents, weighted by how well their headings answer its question.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.n_heads, self.d_head = config.n_heads, config.d_head
        self.query = nn.Linear(config.d_model, config.d_model, bias=config.qkv_bias)
        self.key = nn.Linear(config.d_model, config.d_model, bias=config.qkv_bias)
        self.value = nn.Linear(config.d_model, config.d_model, bias=config.qkv_bias)
        self.output = nn.Linear(config.d_model, config.d_model, bias=config.output_bias)
        self.dropout = Dropout(config.attention_dropout)
        self.q, self.k, self.v = Tap(), Tap(), Tap()
        self.scores, self.pattern, self.z = Tap(), Tap(), Tap()

    def forward(self, x: Tensor, allowed: Tensor | None, cache: "LayerCache | None" = None) -> Tensor:
        """What attention writes, (B, T, D), given x (B, T, D); `allowed` is True where a row may look at a column.

        With a `cache`, x holds only the new tokens, and the columns are those read before followed by the new ones.
        """
        q = self.q(self._split_heads(self.query(x)))  # B H T E
        k = self.k(self._split_heads(self.key(x)))  # B H T E
        v = self.v(self._split_heads(self.value(x)))  # B H T E
        if cache is not None:
            k, v = cache.extend(k, v)  # B H (earlier + T) E
        trains_in_bfloat16 = self.training and q.device.type == "cpu" and q.dtype == torch.bfloat16
        is_watched = self.scores.is_watched or self.pattern.is_watched
        if is_watched or (trains_in_bfloat16 and (self.dropout.chance or x.shape[1] <= SHORT)):
            # Written out where somebody looks, and where that trains faster. Divided by sqrt(E): a sum of E products of
            # unit variance has variance E, and softmax would saturate. The queries are what is divided, and minus
            # infinity is added, since T x T numbers take longer to go through than any others, forward and backward.
            scores = (q / math.sqrt(self.d_head)) @ k.mT  # B H T T
            if allowed is not None:
                scores += torch.zeros_like(allowed, dtype=scores.dtype).masked_fill_(~allowed, -math.inf)  # B H T T
            pattern = self.pattern(F.softmax(self.scores(scores), dim=-1))  # B H T T, each row sums to 1
            z = self.z(self.dropout(pattern) @ v)  # B H T E
        else:
            # The same arithmetic in one fused kernel, which never stores the T x T pattern: nobody is looking.
            drop = self.dropout.chance if self.training else 0.0
            z = self.z(F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, dropout_p=drop))  # B H T E
        concatenated = z.transpose(1, 2).flatten(2)  # B T D: the heads side by side again
        written: Tensor = self.output(concatenated)  # B T D
        return written

    def _split_heads(self, x: Tensor) -> Tensor:
        heads: Tensor = x.unflatten(-1, (self.n_heads, self.d_head))  # B T H E
        return heads.transpose(1, 2)  # B H T E


class LayerCache:
    """Keys and values of the tokens that one layer has read, (B, H, T, E) each.

    In causal attention earlier tokens never see later ones, so that theirs stay as they are while a text is continued.
    """

    def __init__(self) -> None:
        self.k: Tensor | None = None
        self.v: Tensor | None = None

    @property
    def length(self) -> int:
        """Tokens read so far."""
        return 0 if self.k is None else self.k.shape[2]

    def extend(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Keep the new keys and values; returns all there are by now."""
        self.k = k if self.k is None else torch.cat([self.k, k], dim=2)
        self.v = v if self.v is None else torch.cat([self.v, v], dim=2)
        return self.k, self.v


class LayerNorm(nn.Module):
    """Each token's D numbers moved to mean 0 and variance 1, then stretched and shifted (Ba et al. 2016).

    https://arxiv.org/abs/1607.06450, equations 3 and 4; over the numbers of one token, never over tokens or texts.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.out = Tap()

    def forward(self, x: Tensor) -> Tensor:
        if not self.out.is_watched:
            return F.layer_norm(x, self.weight.shape, self.weight, self.bias)  # the same in one fused kernel
        centred = x - x.mean(dim=-1, keepdim=True)  # B T D
        variance = centred.square().mean(dim=-1, keepdim=True)  # B T 1
        # A little is added, so that a token whose numbers are all alike does not divide by zero.
        normed: Tensor = self.out(centred / torch.sqrt(variance + 1e-5) * self.weight + self.bias)  # B T D
        return normed


class FeedForward(nn.Module):
    """Two linear maps with a non-linearity between them, the same at every position (Vaswani et al. 2017, 3.3)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.expand = nn.Linear(config.d_model, config.d_ff)
        self.contract = nn.Linear(config.d_ff, config.d_model)
        self.kind = config.activation
        self.dropout = Dropout(config.dropout)
        self.hidden = Tap()

    def forward(self, x: Tensor) -> Tensor:
        expanded = self.expand(x)  # B T F
        if self.kind == "relu":
            expanded = F.relu(expanded)
        else:
            expanded = F.gelu(expanded, approximate="tanh" if self.kind == "gelu_tanh" else "none")
        hidden = self.hidden(expanded)  # B T F
        written: Tensor = self.contract(self.dropout(hidden))  # B T D
        return written


class Block(nn.Module):
    """One layer: attention moves information between tokens, then feed-forward works on each token alone.

    Both add what they write to the residual stream. With norm "pre" each reads a normalised copy and the stream itself
    is left alone (Xiong et al. 2020, https://arxiv.org/abs/2002.04745); with "post" the sum is normalised (2017).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.pre = config.norm == "pre"
        self.norm_attn, self.norm_ff = LayerNorm(config.d_model), LayerNorm(config.d_model)
        self.attn, self.ff = SelfAttention(config), FeedForward(config)
        self.dropout = Dropout(config.dropout)
        self.attn_out, self.resid_mid, self.ff_out, self.resid_post = Tap(), Tap(), Tap(), Tap()

    def forward(self, x: Tensor, allowed: Tensor | None, cache: LayerCache | None = None) -> Tensor:
        if self.pre:
            x = self.resid_mid(x + self.dropout(self.attn_out(self.attn(self.norm_attn(x), allowed, cache))))  # B T D
            x = self.resid_post(x + self.dropout(self.ff_out(self.ff(self.norm_ff(x)))))  # B T D
        else:
            x = self.resid_mid(self.norm_attn(x + self.dropout(self.attn_out(self.attn(x, allowed, cache)))))  # B T D
            x = self.resid_post(self.norm_ff(x + self.dropout(self.ff_out(self.ff(x)))))  # B T D
        return x


class Pooling(nn.Module):
    """All token vectors of a text to one vector."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.kind = config.pooling
        if self.kind == "attention":
            # No bias: it would add the same to all scores and cancel in softmax.
            self.score = nn.Linear(config.d_model, 1, bias=False)
        self.pattern = Tap()

    def forward(self, x: Tensor, real: Tensor | None) -> Tensor:
        """x (B, T, D) to (B, D); `real` (B, T) is True where a token is not padding, None to treat padding as text."""
        if self.kind in ("first", "class_token"):
            return x[:, 0]  # B D
        weights = self.score(x).squeeze(-1) if self.kind == "attention" else x.new_zeros(x.shape[:2])  # B T
        if real is not None:
            weights = weights.masked_fill(~real, -math.inf)  # B T
        # The mean is the case where all scores are equal.
        pattern = self.pattern(F.softmax(weights, dim=-1))  # B T, sums to 1
        mean: Tensor = (pattern.unsqueeze(1) @ x).squeeze(1)  # B D
        return mean


class Encoder(nn.Module):
    """Embeddings, L blocks and the last norm: what the classifier and the language model have in common."""

    def __init__(self, config: ModelConfig, *, vocab_size: int) -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config, vocab_size)
        self.layers = nn.ModuleList(Block(config) for _ in range(config.n_layers))
        self.norm = LayerNorm(config.d_model) if config.norm == "pre" else nn.Identity()

    def read(self, ids: Tensor, cache: list[LayerCache] | None = None) -> Tensor:
        """The state of each token after the last block, (B, T, D), of ids (B, T).

        With a `cache` (one `LayerCache` per layer, for causal models), ids are the tokens after those it holds, and
        there is no padding.

        Raises:
            ValueError: the rows are longer than the config's max_length.
        """
        start = cache[0].length if cache else 0
        if start + ids.shape[1] > self.config.max_length:
            raise ValueError(
                f"got {start + ids.shape[1]} tokens a row; this model reads at most {self.config.max_length}"
            )
        ids = self.pad(ids)
        allowed = self._allowed(ids, start)
        x = self.embeddings(ids, start)  # B T D
        for number, layer in enumerate(self.layers):
            x = layer(x, allowed, None if cache is None else cache[number])  # B T D
        normed: Tensor = self.norm(x)  # B T D
        return normed

    def pad(self, ids: Tensor) -> Tensor:
        """Ids (B, T) padded to max_length where the config wants all texts that long, else as they are."""
        missing = self.config.max_length - ids.shape[1]
        return F.pad(ids, (0, missing), value=PAD) if self.config.fixed_length and missing > 0 else ids

    def real(self, ids: Tensor) -> Tensor | None:
        """True where ids (B, T) are not padding; None where the config lets padding take part."""
        return (ids != PAD) if self.config.mask_padding else None  # B T

    def _allowed(self, ids: Tensor, start: int) -> Tensor | None:
        """Which columns each row of the attention pattern may use: no padding; if causal, no later token."""
        length = ids.shape[1]
        real = self.real(ids) if start == 0 else None  # B T
        allowed = None if real is None else real[:, None, None, :]  # B 1 1 T
        if self.config.causal:
            earlier = torch.ones(length, start + length, dtype=torch.bool, device=ids.device).tril(start)  # T start+T
            allowed = earlier if allowed is None else allowed & earlier  # B 1 T T
        return allowed

    def _finish(self) -> None:
        """Called once all parts are there: name the taps and draw the initial weights."""
        self.tap_names = name_taps(self)
        if self.config.init == "default":
            return
        # All matrices anew; biases, learned positions and the padding vector start at zero, norms at identity.
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                if self.config.init == "xavier":
                    nn.init.xavier_uniform_(module.weight)
                else:
                    nn.init.normal_(module.weight, std=0.02)
                if isinstance(module, nn.Embedding) and module.padding_idx is not None:
                    nn.init.zeros_(module.weight.data[module.padding_idx])
                if isinstance(module, nn.Linear) and module.bias is not None:
                    nn.init.zeros_(module.bias)


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


class TextClassifier(Encoder):
    """Token ids (B, T) to class logits (B, C).

    Args:
        config: sizes and choices.
        vocab_size: V, rows of the token embedding; id 0 is padding.
        n_classes: C, width of the logits.
    """

    def __init__(self, config: ModelConfig, *, vocab_size: int, n_classes: int) -> None:
        super().__init__(config, vocab_size=vocab_size)
        self.pool = Pooling(config)
        self.dropout = Dropout(config.dropout)
        self.head = nn.Linear(config.d_model, n_classes)
        self.phrases = Phrases(config, vocab_size=vocab_size, n_classes=n_classes) if config.phrases else None
        self.pooled, self.logits = Tap(), Tap()
        self._finish()

    def forward(self, ids: Tensor) -> Tensor:
        """Class logits (B, C) of token ids (B, T); every row needs at least one token that is not padding.

        Raises:
            ValueError: the rows are longer than the config's max_length.
        """
        x = self.read(ids)  # B T D
        real = None if self.config.pool_padding else self.real(self.pad(ids))  # B T
        pooled = self.pooled(self.pool(x, real))  # B D
        scores = self.head(self.dropout(pooled))  # B C
        if self.phrases is not None:
            scores = scores + self.phrases(self.pad(ids))  # B C
        logits: Tensor = self.logits(scores)  # B C
        return logits


class ReplacedTokenDetector(Encoder):
    """Token ids (B, T) to a logit for each token, (B, T): was it replaced by a plausible other one? (ELECTRA)

    What makes the replacements, and how it is trained, is in txcls/training/replaced_tokens.py.

    Args:
        config: sizes and choices; the pooling settings are not used.
        vocab_size: V.
    """

    def __init__(self, config: ModelConfig, *, vocab_size: int) -> None:
        super().__init__(config, vocab_size=vocab_size)
        self.replaced = nn.Linear(config.d_model, 1)
        self.logits = Tap()
        self._finish()

    def forward(self, ids: Tensor) -> Tensor:
        """Logits (B, T) of ids (B, T), above zero where a token is more likely replaced than original.

        Raises:
            ValueError: the rows are longer than the config's max_length.
        """
        logits: Tensor = self.logits(self.replaced(self.read(ids)).squeeze(-1))  # B T
        return logits


class LanguageModel(Encoder):
    """Token ids (B, T) to a score for every token of the vocabulary at every place, (B, T, V).

    With `causal` attention the place's scores are for the next token (GPT); without, for the token that stands there,
    which is worth asking where it was masked (BERT). Pooling settings play no part.

    Args:
        config: sizes and choices.
        vocab_size: V.
    """

    def __init__(self, config: ModelConfig, *, vocab_size: int) -> None:
        super().__init__(config, vocab_size=vocab_size)
        width = config.d_embedding or config.d_model
        self.narrow = nn.Identity() if width == config.d_model else nn.Linear(config.d_model, width, bias=False)
        self.output = None if config.tie_output else nn.Linear(width, vocab_size, bias=False)
        self.logits = Tap()
        self._finish()

    def forward(self, ids: Tensor, cache: list[LayerCache] | None = None) -> Tensor:
        """Scores (B, T, V) of ids (B, T), which with a `cache` are the tokens after those it holds.

        Raises:
            ValueError: the rows are longer than the config's max_length.
        """
        return self.score(self.read(ids, cache))  # B T V

    def score(self, states: Tensor) -> Tensor:
        """Scores (…, V) of final states (…, D): of all places, or only of those that matter, since V is large."""
        matrix = self.embeddings.token.weight if self.output is None else self.output.weight  # V width
        scores: Tensor = self.logits(F.linear(self.narrow(states), matrix))  # … V
        return scores

    def new_cache(self) -> list[LayerCache]:
        """An empty cache, one entry per layer.

        Raises:
            ValueError: attention is not causal, so that earlier tokens would have to be read anew.
        """
        if not self.config.causal:
            raise ValueError(
                "this model's attention is not causal; only a causal model can continue a text from a cache"
            )
        return [LayerCache() for _ in range(self.config.n_layers)]
