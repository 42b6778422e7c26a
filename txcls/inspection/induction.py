"""Does a language model continue repeated tokens? Loss and induction scores on random tokens, repeated once.

In the second half, an induction head attends to the token after the earlier occurrence of the current token, and
predicts that token again (Olsson et al. 2022, https://arxiv.org/abs/2209.11895).
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional as F

from txcls.checkpoint.json_files import checked
from txcls.errors import CheckpointError
from txcls.model import LanguageModel
from txcls.tap import trace
from txcls.text.vocabulary import SPECIAL_TOKENS

N_TEXTS = 200


@dataclass(frozen=True)
class Induction:
    """Measurements on `n` texts, each `length` random tokens repeated once.

    Attributes:
        first, second: mean loss in nats per token on the first half and on the repetition, without their first tokens.
        heads: induction score by layer and head: the mean weight from tokens of the repetition to the token after
            their earlier occurrence.
        even: the score of uniform attention.
    """

    n: int
    length: int
    first: float
    second: float
    heads: tuple[tuple[float, ...], ...]
    even: float

    @classmethod
    def of(cls, values: object, model: LanguageModel) -> "Induction | None":
        """The measurement from the output of `to_dict`; None if `values` are invalid or do not fit the model."""
        try:
            induction = checked(cls, values, where="induction")
        except CheckpointError:
            return None
        shape = [len(row) for row in induction.heads]
        return induction if shape == [model.config.n_heads] * model.config.n_layers else None

    def to_dict(self) -> Mapping[str, Any]:
        """Plain JSON values, for `metrics["induction"]`."""
        return {**asdict(self), "heads": [list(row) for row in self.heads]}


def measure_induction(model: LanguageModel, *, n: int = N_TEXTS) -> Induction:
    """Measure a causal language model on random tokens of its vocabulary, at its maximum length.

    Raises:
        CheckpointError: the model is not causal.
    """
    config = model.config
    if not config.causal:
        raise CheckpointError("got a masked language model; induction can only be measured on a causal one")
    length = config.max_length // 2
    vocab_size = model.embeddings.token.num_embeddings
    random = torch.Generator().manual_seed(0)
    half = torch.randint(len(SPECIAL_TOKENS), vocab_size, (n, length), generator=random)  # N T/2
    ids = torch.cat([half, half], dim=1)  # N T
    names = [f"layers.{layer}.attn.pattern" for layer in range(config.n_layers)]
    model.eval()
    with trace(record=names) as activations, torch.inference_mode():
        logits = model(ids)  # N T V
    losses = F.cross_entropy(logits[:, :-1].transpose(1, 2), ids[:, 1:], reduction="none")  # N T-1
    queries = torch.arange(length, 2 * length - 1)  # the last token has no next token to predict
    patterns = torch.stack([activations[name] for name in names])  # L N H T T
    weights = patterns[:, :, :, queries, queries - length + 1].mean(dim=(1, 3))  # L H
    return Induction(
        n=n,
        length=length,
        first=float(losses[:, : length - 1].mean()),
        second=float(losses[:, length:].mean()),
        heads=tuple(tuple(round(weight, 4) for weight in row) for row in weights.tolist()),
        even=float((1 / (queries + 1)).mean()),
    )
