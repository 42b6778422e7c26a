"""Continue a text: the ranked next tokens of a causal language model, and sampling from them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from txcls.checkpoint import find_checkpoint, load_checkpoint
from txcls.errors import CheckpointError
from txcls.gpt2 import load_gpt2
from txcls.model import LanguageModel


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is chosen.

    Attributes:
        temperature: logits are divided by it; below 1 sharper, above 1 flatter, 0 always takes the most probable.
        top_k: only the k most probable tokens take part; None for all (Fan et al. 2018).
        top_p: only the fewest tokens that together reach this probability take part (Holtzman et al. 2020).
        seed: the same seed gives the same continuation.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.temperature < 0 or (self.top_k is not None and self.top_k < 1) or not 0 < self.top_p <= 1:
            raise ValueError(
                f"got temperature {self.temperature}, top_k {self.top_k}, top_p {self.top_p}; "
                "wanted at least 0, at least 1 (or None), and above 0 up to 1"
            )


@dataclass(frozen=True)
class TextModel:
    """A causal language model with what turns text into its ids and back.

    `spaced` says that its tokens are words, to be written with a space between them.
    """

    model: LanguageModel
    encode: Callable[[str], list[int]]
    decode: Callable[[Sequence[int]], str]
    spaced: bool

    @classmethod
    def load(cls, path_or_name: str | Path) -> "TextModel":
        """A checkpoint made by `pretrain`, or a folder with a published GPT-2.

        Raises:
            CheckpointError: it is missing or damaged, or no causal language model.
        """
        folder = find_checkpoint(path_or_name)
        if (folder / "merges.txt").is_file():
            decoder = load_gpt2(folder)
            tokenizer = decoder.tokenizer
            return cls(decoder.model, lambda text: list(tokenizer.encode(text).ids), tokenizer.decode, spaced=False)
        checkpoint = load_checkpoint(folder)
        model = checkpoint.model
        if checkpoint.config.objective != "causal":
            raise CheckpointError(
                f"{checkpoint.name} cannot continue a text: its objective is {checkpoint.config.objective}, "
                "wanted causal"
            )
        assert isinstance(model, LanguageModel)
        encoder = checkpoint.encoder
        return cls(model, lambda text: encoder.encode(text).ids, encoder.decode, spaced=True)


@dataclass(frozen=True)
class Step:
    """One new token: its id, its probability after filtering, and the unfiltered probabilities (V,) it came from."""

    id: int
    probability: float
    probabilities: Tensor


def next_token_probabilities(logits: Tensor, sampling: Sampling) -> Tensor:
    """Probabilities (V,) of the next token from its logits (V,): temperature first, then top-k, then top-p."""
    if sampling.temperature == 0:
        return torch.nn.functional.one_hot(logits.argmax(), len(logits)).to(logits.dtype)  # V
    probabilities = torch.softmax(logits / sampling.temperature, dim=-1)  # V
    ranked, order = probabilities.sort(descending=True, stable=True)  # V
    kept = torch.ones_like(ranked, dtype=torch.bool)  # V
    if sampling.top_k is not None:
        kept[sampling.top_k :] = False
        ranked = ranked * kept / (ranked * kept).sum()
    # A token stays while those before it have not yet reached top_p, so that the first always does.
    kept &= ranked.cumsum(-1) - ranked < sampling.top_p
    filtered = torch.zeros_like(probabilities)  # V
    filtered[order[kept]] = ranked[kept]
    return filtered / filtered.sum()


def generate(
    model: LanguageModel,
    ids: Sequence[int],
    *,
    n: int,
    sampling: Sampling | None = None,
    use_cache: bool = True,
    stop_id: int | None = None,
) -> Iterator[Step]:
    """Continue `ids` token by token, at most `n` of them; what would pass the model's max_length ends it.

    Args:
        model: a causal language model.
        ids: the prompt, at least one token.
        n: how many tokens to add.
        sampling: how to choose; None samples from the plain softmax.
        use_cache: keep keys and values of earlier tokens; without, all are read again for each new token, to the same
            effect.
        stop_id: end after this token.

    Raises:
        ValueError: the prompt is empty or longer than the model reads, or the model is not causal.
    """
    chosen = sampling or Sampling()
    if not 1 <= len(ids) <= model.config.max_length:
        raise ValueError(f"got a prompt of {len(ids)} tokens; wanted 1 to {model.config.max_length}")
    cache = model.new_cache()
    random = torch.Generator().manual_seed(chosen.seed)
    text = list(ids)
    for _ in range(min(n, model.config.max_length - len(ids) + 1)):
        with torch.inference_mode():
            new = text[cache[0].length :] if use_cache else text
            logits = model(torch.tensor([new]), cache if use_cache else None)[0, -1].float()  # V
            filtered = next_token_probabilities(logits, chosen)  # V
            token = int(torch.multinomial(filtered, 1, generator=random))
        yield Step(token, float(filtered[token]), torch.softmax(logits, dim=-1))
        text.append(token)
        if token == stop_id:
            return
