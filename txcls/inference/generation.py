"""Text generation: next-token probabilities of a causal language model, and sampling from them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from txcls.checkpoint.hugging_face import load_gpt2
from txcls.checkpoint.load import find_checkpoint, load_checkpoint
from txcls.errors import CheckpointError
from txcls.model import LanguageModel
from txcls.text.tokens import Encoding, Token

END_OF_TEXT = "<|endoftext|>"
"""Separates the texts in the training data of the published GPT-2 models."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is chosen.

    Attributes:
        temperature: divisor of the logits; below 1 sharpens the distribution, above 1 flattens it, 0 always takes the
            most probable token.
        top_k: sample from the k most probable tokens; None for all (Fan et al. 2018).
        top_p: sample from the smallest set of tokens that together reach this probability (Holtzman et al. 2020).
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
                "expected at least 0, at least 1 (or None), and above 0 up to 1"
            )


@dataclass(frozen=True)
class TextModel:
    """A language model with its tokenizer.

    Attributes:
        title: what the model predicts, in a few words.
        read: encodes a text, truncated to the model's maximum length.
        decode: turns ids into text, without special tokens.
        tokens: the V tokens, in the order of their ids.
        kind: the kind of tokens, as in `text.tokenizer`; "bpe" for published GPT-2 models.
        start: the tokens at the start of every text, even an empty one.
        perplexity: on validation texts; None if it was not measured.
    """

    name: str
    title: str
    model: LanguageModel
    read: Callable[[str], Encoding]
    decode: Callable[[Sequence[int]], str]
    tokens: Sequence[str]
    kind: str
    start: tuple[Token, ...]
    perplexity: float | None = None

    @classmethod
    def load(cls, path_or_name: str | Path, *, objective: Literal["masked", "causal"] = "causal") -> "TextModel":
        """Load a checkpoint made by `pretrain`, or (causal) a folder with a published GPT-2.

        Raises:
            CheckpointError: it is missing or damaged, or not a language model with this objective.
        """
        folder = find_checkpoint(path_or_name)
        if objective == "causal" and (folder / "merges.txt").is_file():
            return _load_published(folder)
        checkpoint = load_checkpoint(folder)
        model, tokenizer = checkpoint.model, checkpoint.tokenizer
        if checkpoint.config.objective != objective:
            cannot = "continue a text" if objective == "causal" else "fill in a masked token"
            raise CheckpointError(
                f"{checkpoint.name} cannot {cannot}: its objective is {checkpoint.config.objective}, "
                f"expected {objective}"
            )
        assert isinstance(model, LanguageModel)
        return cls(
            name=checkpoint.name,
            title=checkpoint.config.title,
            model=model,
            read=tokenizer.encode,
            decode=tokenizer.decode,
            tokens=tokenizer.vocabulary.tokens,
            kind=tokenizer.config.tokenizer,
            start=tokenizer.encode("").tokens,
            perplexity=checkpoint.metrics.get("language", {}).get("perplexity"),
        )

    def encode(self, text: str) -> list[int]:
        """The ids of a text; for an empty text, the ids of the start tokens."""
        return self.read(text).ids or [token.id for token in self.start]

    def appended_text(self, ids: Sequence[int], new_ids: Sequence[int]) -> str:
        """The text that `new_ids` append to the text of `ids`, including a space between them if there is one."""
        if self.kind != "bpe":
            return "".join(f" {self.tokens[index]}" for index in new_ids)
        # Decode both together: a character's bytes may be split between them, and a space belongs to the next word.
        before, whole = self.decode(ids), self.decode([*ids, *new_ids])
        return whole[len(before) :] if whole.startswith(before) else self.decode(new_ids)


def _load_published(folder: Path) -> TextModel:
    """Load a published GPT-2 folder; texts start with `<|endoftext|>`, which separated its training texts."""
    model, tokenizer = load_gpt2(folder)
    max_length = model.config.max_length
    end = tokenizer.token_to_id(END_OF_TEXT)

    def read(text: str) -> Encoding:
        # Encode a prefix of a long text first, since it usually has enough tokens.
        for prefix in (text[: 32 * max_length], text):
            encoding = tokenizer.encode(prefix)
            if len(encoding.ids) > max_length or len(prefix) == len(text):
                break
        ids_and_offsets = list(zip(encoding.ids, encoding.offsets, strict=True))
        tokens = tuple(
            Token(text[start:end], index, start, end, is_unknown=False, is_special=False)
            for index, (start, end) in ids_and_offsets[:max_length]
        )
        truncated_at = ids_and_offsets[max_length][1][0] if len(ids_and_offsets) > max_length else None
        return Encoding(text, tokens, truncated_at)

    vocabulary = {index: token for token, index in tokenizer.get_vocab().items()}
    return TextModel(
        name=folder.name,
        title="next token (a published GPT-2)",
        model=model,
        read=read,
        decode=tokenizer.decode,
        tokens=[vocabulary.get(index, "") for index in range(model.embeddings.token.num_embeddings)],
        kind="bpe",
        start=() if end is None else (Token(END_OF_TEXT, end, 0, 0, is_unknown=False, is_special=True),),
    )


@dataclass(frozen=True)
class GeneratedToken:
    """One new token: its id, its probability after filtering, and the unfiltered probabilities (V,)."""

    id: int
    probability: float
    probabilities: Tensor


def next_token_probabilities(logits: Tensor, sampling: Sampling) -> Tensor:
    """Next-token probabilities (V,) from logits (V,): temperature first, then top-k, then top-p."""
    if sampling.temperature == 0:
        return torch.nn.functional.one_hot(logits.argmax(), len(logits)).to(logits.dtype)  # V
    probabilities = torch.softmax(logits / sampling.temperature, dim=-1)  # V
    ranked, order = probabilities.sort(descending=True, stable=True)  # V
    is_candidate = torch.ones_like(ranked, dtype=torch.bool)  # V
    if sampling.top_k is not None:
        is_candidate[sampling.top_k :] = False
        ranked = ranked * is_candidate / (ranked * is_candidate).sum()
    # A token is a candidate if the more probable tokens do not reach top_p together; so the first one always is.
    if sampling.top_p < 1:  # otherwise rounding would leave out the least probable
        is_candidate &= ranked.cumsum(-1) - ranked < sampling.top_p
    filtered = torch.zeros_like(probabilities)  # V
    filtered[order[is_candidate]] = ranked[is_candidate]
    return filtered / filtered.sum()


def generate(
    model: LanguageModel,
    ids: Sequence[int],
    *,
    n: int,
    sampling: Sampling | None = None,
    drawn: int = 0,
) -> Iterator[GeneratedToken]:
    """Continue `ids` token by token, by at most `n` tokens and up to the causal model's max_length.

    Args:
        sampling: how to choose tokens; None samples from the unchanged softmax.
        drawn: number of tokens at the end of `ids` that were drawn with the same seed. Their random numbers are
            skipped, so that generating one token at a time gives the same text as generating all at once.

    Raises:
        ValueError: the prompt is empty or longer than the model's maximum, or the model is not causal.
    """
    sampling = sampling or Sampling()
    if not 1 <= len(ids) <= model.config.max_length:
        raise ValueError(f"got a prompt of {len(ids)} tokens; expected 1 to {model.config.max_length}")
    cache = model.new_cache()
    random = torch.Generator().manual_seed(sampling.seed)
    for _ in range(drawn):  # a draw always uses V random numbers
        torch.multinomial(torch.ones(model.embeddings.token.num_embeddings), 1, generator=random)
    all_ids = list(ids)
    for _ in range(min(n, model.config.max_length - len(ids) + 1)):
        with torch.inference_mode():
            logits = model(torch.tensor([all_ids[cache[0].length :]]), cache)[0, -1].float()  # V
            filtered = next_token_probabilities(logits, sampling)  # V
            token = int(torch.multinomial(filtered, 1, generator=random))
        yield GeneratedToken(token, float(filtered[token]), torch.softmax(logits, dim=-1))
        all_ids.append(token)
