"""A Transformer text classifier from first principles, from top to bottom: ids, embeddings, blocks, pooling, logits.

Letters in the shape comments at the ends of lines:

    B batch   T tokens   D d_model   H heads   E head width (D / H)   F d_ff   C classes   V vocabulary   L layers

It implements the encoder of "Attention Is All You Need" (Vaswani et al. 2017, https://arxiv.org/abs/1706.03762), with
the options of `txcls.config.ModelConfig`. Tensors worth inspecting pass through a `Tap` (txcls/tap.py), which does
nothing unless a trace is open; a tap's name is its attribute path, for example `layers.0.attn.pattern`.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from txcls.config import ModelConfig
from txcls.tap import Tap, name_taps
from txcls.text.vocabulary import PAD

MAX_EXPLICIT_LENGTH = 400
"""Maximum number of tokens for which explicit attention trains faster than fused attention, in bfloat16 on a CPU; it is
five times as fast at 64 tokens."""


def implemented(setting: str, value: str, *values: str) -> str:
    """Return the value of a setting, after checking that it is one of `values`, which model.py computes.

    Raises:
        ValueError: it is not one of them.
    """
    if value not in values:
        raise ValueError(f"{setting}: {value!r} is not implemented; expected {', '.join(values)}")
    return value


def sinusoidal_encoding(length: int, d_model: int) -> Tensor:
    """Fixed positional encoding, (T, D): PE[t, 2i] = sin(t / 10000^(2i/D)), PE[t, 2i+1] = cos(t / 10000^(2i/D)).

    Frequencies decrease from one radian per token to about 1/10,000 radian. So every position has a different vector,
    and a shift by k tokens is the same rotation at every position (section 3.5).
    """
    with torch.device("cpu"):  # not on the meta device, which checkpoint/weights.py uses
        position = torch.arange(length, dtype=torch.float64).unsqueeze(1)  # T 1
        frequency = torch.exp(torch.arange(0, d_model, 2, dtype=torch.float64) * (-math.log(10_000.0) / d_model))  # D/2
        encoding = torch.empty(length, d_model, dtype=torch.float64)  # T D
    encoding[:, 0::2] = torch.sin(position * frequency)  # T D/2
    encoding[:, 1::2] = torch.cos(position * frequency)  # T D/2
    return encoding.float()  # T D


class Embeddings(nn.Module):
    """Maps token ids to the start of the residual stream: token vector plus position vector."""

    positional: Tensor

    def __init__(self, config: ModelConfig, vocab_size: int) -> None:
        super().__init__()
        self.kind = implemented("positions", config.positions, "sinusoidal", "learned", "none")
        self.scale = math.sqrt(config.d_model) if config.scale_embeddings else 1.0
        width = config.d_embedding or config.d_model
        self.token = nn.Embedding(vocab_size, width, padding_idx=PAD)
        self.widen = nn.Identity() if width == config.d_model else nn.Linear(width, config.d_model, bias=False)
        if config.positions == "sinusoidal":
            # A buffer, because it is not trained; not saved, because it follows from the config.
            encoding = sinusoidal_encoding(config.max_length, config.d_model)
            self.register_buffer("positional", encoding, persistent=False)
        elif config.positions == "learned":
            self.positional = nn.Parameter(torch.zeros(config.max_length, config.d_model))
        self.norm = LayerNorm(config.d_model, config.norm_epsilon) if config.embedding_norm else nn.Identity()
        self.dropout = Dropout(config.dropout)
        self.tokens, self.positions, self.out = Tap(), Tap(), Tap()

    def forward(self, ids: Tensor, start: int = 0) -> Tensor:
        """Ids (B, T) to (B, T, D); `start` is the position of the first id, nonzero if a cache holds earlier tokens."""
        x = self.tokens(self.widen(self.token(ids)) * self.scale)  # B T D
        if self.kind != "none":
            # Expanded to the batch, so that a trace can edit the positions of a single text.
            x = x + self.positions(self.positional[start : start + ids.shape[1]].expand(x.shape))  # B T D
        out: Tensor = self.dropout(self.out(self.norm(x)))  # B T D
        return out


class KeyValueCache:
    """The keys and values of one layer, (B, H, T, E) each, for the T tokens read so far.

    In causal attention a token never attends to later tokens, so its keys and values remain valid as the text grows.
    """

    def __init__(self) -> None:
        self.k: Tensor | None = None
        self.v: Tensor | None = None

    @property
    def length(self) -> int:
        """T: number of tokens read so far."""
        return 0 if self.k is None else self.k.shape[2]

    def extend(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Append the new tokens' keys and values, and return the keys and values of all tokens."""
        self.k = k if self.k is None else torch.cat([self.k, k], dim=2)
        self.v = v if self.v is None else torch.cat([self.v, v], dim=2)
        return self.k, self.v


class SelfAttention(nn.Module):
    """Multi-head self-attention: softmax(Q K^T / sqrt(E)) V in each of H heads (Vaswani et al. 2017, 3.2).

    Each token's query is compared with the keys of all tokens. Softmax turns these scores into weights, and the output
    for the token is the sum of all values with these weights.
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

    def forward(self, x: Tensor, mask: Tensor | None, cache: KeyValueCache | None = None) -> Tensor:
        """The output of attention, (B, T, D), for x (B, T, D).

        Args:
            x: input to queries, keys and values; with a `cache`, the new tokens only.
            mask: True where a query may attend to a key, broadcast to (B, H, T, T); None if all pairs are allowed.
            cache: keys and values of the tokens before x; the keys and values of x are added to it.
        """
        q = self.q(self._split_heads(self.query(x)))  # B H T E
        k = self.k(self._split_heads(self.key(x)))  # B H T E
        v = self.v(self._split_heads(self.value(x)))  # B H T E
        if cache is not None:
            k, v = cache.extend(k, v)  # B H (earlier + T) E
        is_traced = self.scores.is_watched or self.pattern.is_watched
        if is_traced or is_explicit_faster(q, training=self.training, dropout=self.dropout.p):
            # Dividing by sqrt(E) keeps the variance of the scores near 1; a sum of E products of unit variance has
            # variance E, which would saturate softmax. For speed, q is divided, not the larger T x T scores, and the
            # mask is added.
            scores = (q / math.sqrt(self.d_head)) @ k.mT  # B H T T
            if mask is not None:
                scores += torch.zeros_like(mask, dtype=scores.dtype).masked_fill_(~mask, -math.inf)  # B H T T
            pattern = self.pattern(F.softmax(self.scores(scores), dim=-1))  # B H T T, each row sums to 1
            z = self.z(self.dropout(pattern) @ v)  # B H T E
        else:
            # The same computation in one fused kernel, which never stores the T x T pattern.
            dropout = self.dropout.p if self.training else 0.0
            z = self.z(F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout))  # B H T E
        concatenated = z.transpose(1, 2).flatten(2)  # B T D
        output: Tensor = self.output(concatenated)  # B T D
        return output

    def _split_heads(self, x: Tensor) -> Tensor:
        heads: Tensor = x.unflatten(-1, (self.n_heads, self.d_head))  # B T H E
        return heads.transpose(1, 2)  # B H T E


class LayerNorm(nn.Module):
    """Normalises the D numbers of each token to mean 0 and variance 1, then applies a trained scale and shift.

    Mean and variance are computed for each token separately (Ba et al. 2016, https://arxiv.org/abs/1607.06450,
    equations 3 and 4).
    """

    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.epsilon = epsilon
        self.out = Tap()

    def forward(self, x: Tensor) -> Tensor:
        if not self.out.is_watched:
            # The code below in one fused kernel.
            return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.epsilon)
        centred = x - x.mean(dim=-1, keepdim=True)  # B T D
        variance = centred.square().mean(dim=-1, keepdim=True)  # B T 1
        # Epsilon avoids a division by zero if all D numbers are equal.
        normed: Tensor = self.out(centred / torch.sqrt(variance + self.epsilon) * self.weight + self.bias)  # B T D
        return normed


class FeedForward(nn.Module):
    """Two linear maps with a non-linearity between them, the same at every position (Vaswani et al. 2017, 3.3)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.expand = nn.Linear(config.d_model, config.d_ff)
        self.contract = nn.Linear(config.d_ff, config.d_model)
        self.kind = implemented("activation", config.activation, "relu", "gelu", "gelu_tanh")
        self.dropout = Dropout(config.dropout)
        self.hidden = Tap()

    def forward(self, x: Tensor) -> Tensor:
        expanded = self.expand(x)  # B T F
        if self.kind == "relu":
            expanded = F.relu(expanded)
        else:
            expanded = F.gelu(expanded, approximate="tanh" if self.kind == "gelu_tanh" else "none")
        hidden = self.hidden(expanded)  # B T F
        output: Tensor = self.contract(self.dropout(hidden))  # B T D
        return output


class Block(nn.Module):
    """One layer: attention moves information between tokens, then feed-forward processes each token separately.

    Both add their output to the residual stream. With norm "pre", each reads a normalised copy of the stream (Xiong et
    al. 2020, https://arxiv.org/abs/2002.04745); with "post", the stream itself is normalised after each addition
    (Vaswani et al. 2017).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.pre = implemented("norm", config.norm, "pre", "post") == "pre"
        self.norm_attn = LayerNorm(config.d_model, config.norm_epsilon)
        self.norm_ff = LayerNorm(config.d_model, config.norm_epsilon)
        self.attn, self.ff = SelfAttention(config), FeedForward(config)
        self.dropout = Dropout(config.dropout)
        self.attn_out, self.resid_mid, self.ff_out, self.resid_post = Tap(), Tap(), Tap(), Tap()

    def forward(self, x: Tensor, mask: Tensor | None, cache: KeyValueCache | None = None) -> Tensor:
        if self.pre:
            x = self.resid_mid(x + self.dropout(self.attn_out(self.attn(self.norm_attn(x), mask, cache))))  # B T D
            x = self.resid_post(x + self.dropout(self.ff_out(self.ff(self.norm_ff(x)))))  # B T D
        else:
            x = self.resid_mid(self.norm_attn(x + self.dropout(self.attn_out(self.attn(x, mask, cache)))))  # B T D
            x = self.resid_post(self.norm_ff(x + self.dropout(self.ff_out(self.ff(x)))))  # B T D
        return x


class Pooling(nn.Module):
    """Pools one vector per token into one vector for the text."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.kind = implemented("pooling", config.pooling, "first", "class_token", "mean", "attention")
        if self.kind == "attention":
            # No bias: a constant added to all scores would not change the softmax.
            self.score = nn.Linear(config.d_model, 1, bias=False)
        self.pooler = implemented("pooler", config.pooler, "none", "tanh", "relu")
        if self.pooler != "none":
            self.dense = nn.Linear(config.d_model, config.d_model)
        self.pattern = Tap()

    def forward(self, x: Tensor, real: Tensor | None) -> Tensor:
        """x (B, T, D) to (B, D); `real` (B, T) is True where a token is not padding; if None, padding is included."""
        pooled = self.pool(x, real)  # B D
        if self.pooler == "none":
            return pooled
        hidden = self.dense(pooled)  # B D
        return torch.tanh(hidden) if self.pooler == "tanh" else F.relu(hidden)  # B D

    def pool(self, x: Tensor, real: Tensor | None) -> Tensor:
        """The pooled vector, (B, D), before the pooler's hidden layer."""
        if self.kind in ("first", "class_token"):
            return x[:, 0]  # B D
        scores = self.score(x).squeeze(-1) if self.kind == "attention" else x.new_zeros(x.shape[:2])  # B T
        if real is not None:
            scores = scores.masked_fill(~real, -math.inf)  # B T
        # With equal scores, pooling is the mean.
        pattern = self.pattern(F.softmax(scores, dim=-1))  # B T, sums to 1
        pooled: Tensor = (pattern.unsqueeze(1) @ x).squeeze(1)  # B D
        return pooled


class Encoder(nn.Module):
    """Embeddings, L blocks and the final norm, shared by the classifier and the language models."""

    def __init__(self, config: ModelConfig, *, vocab_size: int) -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config, vocab_size)
        self.layers = nn.ModuleList(Block(config) for _ in range(config.n_layers))
        self.norm = LayerNorm(config.d_model, config.norm_epsilon) if config.norm == "pre" else nn.Identity()

    @property
    def n_parameters(self) -> int:
        """Number of trained parameters, including those of the head."""
        return sum(parameter.numel() for parameter in self.parameters())

    def read(self, ids: Tensor, cache: list[KeyValueCache] | None = None) -> Tensor:
        """Ids (B, T) to the final state of each token, (B, T, D).

        With a `cache` (one `KeyValueCache` per layer, for causal models), the ids follow the cached tokens, and must
        not contain padding.

        Raises:
            ValueError: the rows are longer than the config's max_length.
        """
        start = cache[0].length if cache else 0
        if (n_tokens := start + ids.shape[1]) > self.config.max_length:
            raise ValueError(f"got {n_tokens} tokens per row; this model reads at most {self.config.max_length}")
        ids = self.pad(ids)
        mask = self.attention_mask(ids, start)
        x = self.embeddings(ids, start)  # B T D
        for number, layer in enumerate(self.layers):
            x = layer(x, mask, cache[number] if cache else None)  # B T D
        normed: Tensor = self.norm(x)  # B T D
        return normed

    def attention_mask(self, ids: Tensor, start: int = 0) -> Tensor | None:
        """True where a query may attend to a key: never to padding; in causal models never to a later token."""
        length = ids.shape[1]
        real = self.real(ids) if start == 0 else None  # B T
        mask = None if real is None else real[:, None, None, :]  # B 1 1 T
        if self.config.causal:
            earlier = torch.ones(length, start + length, dtype=torch.bool, device=ids.device).tril(start)  # T start+T
            mask = earlier if mask is None else mask & earlier  # B 1 T T
        return mask

    # Except in the reference systems and GPT-2, texts are padded only to the longest of a batch; padding is masked.

    def pad(self, ids: Tensor) -> Tensor:
        """Ids (B, T) padded to max_length if `fixed_length`, otherwise unchanged."""
        missing = self.config.max_length - ids.shape[1]
        return F.pad(ids, (0, missing), value=PAD) if self.config.fixed_length and missing > 0 else ids

    def real(self, ids: Tensor) -> Tensor | None:
        """True where ids (B, T) are not padding; None if `mask_padding` is off and padding is treated as text."""
        return (ids != PAD) if self.config.mask_padding else None  # B T

    def _initialise(self) -> None:
        """Name the taps and initialise the weights; called by subclasses after they have added their own modules."""
        self.tap_names = name_taps(self)
        if implemented("init", self.config.init, "xavier", "normal", "default") == "default":
            return
        # Matrices are random; biases, learned positions and the padding vector are zero; norms are the identity.
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


class TextClassifier(Encoder):
    """Token ids (B, T) to class logits (B, C), for `vocab_size` V and `n_classes` C; id 0 is padding."""

    def __init__(self, config: ModelConfig, *, vocab_size: int, n_classes: int) -> None:
        super().__init__(config, vocab_size=vocab_size)
        self.pool = Pooling(config)
        self.dropout = Dropout(config.dropout)
        self.head = nn.Linear(config.d_model, n_classes)
        self.pooled, self.logits = Tap(), Tap()
        self._initialise()

    def forward(self, ids: Tensor) -> Tensor:
        """Class logits (B, C) of token ids (B, T); every row needs at least one token that is not padding."""
        x = self.read(ids)  # B T D
        real = None if self.config.pool_padding else self.real(self.pad(ids))  # B T
        pooled = self.pooled(self.pool(x, real))  # B D
        logits: Tensor = self.logits(self.head(self.dropout(pooled)))  # B C
        return logits


class LanguageModel(Encoder):
    """Token ids (B, T) to logits over the vocabulary at every position, (B, T, V).

    With `causal` attention, the logits predict the next token (GPT); otherwise they predict the token at the same
    position, which may be masked (BERT).
    """

    def __init__(self, config: ModelConfig, *, vocab_size: int) -> None:
        super().__init__(config, vocab_size=vocab_size)
        width = config.d_embedding or config.d_model
        self.narrow = nn.Identity() if width == config.d_model else nn.Linear(config.d_model, width, bias=False)
        self.output = None if config.tie_output else nn.Linear(width, vocab_size, bias=False)
        self.bias = nn.Parameter(torch.zeros(vocab_size)) if config.token_bias else None
        self.logits = Tap()
        self._initialise()

    def forward(self, ids: Tensor, cache: list[KeyValueCache] | None = None) -> Tensor:
        """Logits (B, T, V) of ids (B, T); with a `cache`, the ids follow the cached tokens."""
        return self.unembed(self.read(ids, cache))  # B T V

    def unembed(self, states: Tensor) -> Tensor:
        """Logits (…, V) of final states (…, D); since V is large, pass only the positions that are needed."""
        logits: Tensor = self.logits(F.linear(self.narrow(states), self.output_matrix, self.bias))  # … V
        return logits

    @property
    def output_matrix(self) -> Tensor:
        """The output weights, (V, width of the token embeddings): the embeddings themselves if they are tied."""
        return self.embeddings.token.weight if self.output is None else self.output.weight

    def new_cache(self) -> list[KeyValueCache]:
        """An empty cache, one entry per layer.

        Raises:
            ValueError: attention is not causal: new tokens would change the states of earlier tokens.
        """
        if not self.config.causal:
            raise ValueError("attention is not causal; only a causal model can continue a text from a cache")
        return [KeyValueCache() for _ in range(self.config.n_layers)]


class Dropout(nn.Module):
    """In training, sets each value to zero with probability `p` and scales up the others (Srivastava et al. 2014).

    On a CPU, torch draws one random number per value, which takes a fifth of a training step of these small models.
    Here four values share one draw of 64 random bits, 16 bits each; the probability is exact to 1 / 131,072.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Dropout of x, of any shape; x itself in evaluation mode or if p is 0."""
        if not self.training or not self.p or x.device.type != "cpu":
            return F.dropout(x, self.p, self.training)
        draws = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)  # all 64 bits are random
        bits = draws.view(torch.int16)[: x.numel()].view(x.shape)  # uniform from -32,768 to 32,767
        mask = bits.ge_(round(self.p * 65_536) - 32_768)  # 1 or 0 as int16: converting from bool is ten times slower
        if x.dtype.itemsize == 2:
            # The scale's bits, multiplied by 1 or 0, are those of the scale or of zero: no conversion to x's type.
            scale = torch.tensor(1.0 / (1.0 - self.p), dtype=x.dtype).view(torch.int16)
            return x * mask.mul_(scale).view(x.dtype)
        return x * mask.to(x.dtype).div_(1.0 - self.p)


def is_explicit_faster(q: Tensor, *, training: bool, dropout: float) -> bool:
    """Whether explicit attention is faster than the fused kernel, for queries q (B, H, T, E).

    It is faster in training on a CPU in bfloat16, where the fused kernel's gradient is slow, if there is dropout or
    there are at most `MAX_EXPLICIT_LENGTH` tokens. In float32, the fused kernel is always faster.
    """
    if not training or q.device.type != "cpu" or q.dtype != torch.bfloat16:
        return False
    return dropout > 0 or q.shape[2] <= MAX_EXPLICIT_LENGTH
