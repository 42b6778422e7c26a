"""Replaced-token detection (ELECTRA, Clark et al. 2020, https://arxiv.org/abs/2003.10555).

A small masked language model, the generator, replaces masked tokens by plausible ones; the encoder learns to detect
them. It learns from every token, where masked-token training learns from 15 %. Only the encoder is kept.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from txcls.config import ModelConfig
from txcls.model import Encoder, LanguageModel, ReplacedTokenDetector
from txcls.text.vocabulary import MASK, SPECIAL_TOKENS
from txcls.training.objectives import LanguageObjective, Outcome

DETECTION_WEIGHT = 50.0
"""Weight of the detector's loss relative to the generator's (lambda in the paper)."""
GENERATOR_SHARE = 2
"""How many times narrower the generator is; a quarter to a half of the width works best in the paper."""


class DetectorWithGenerator(ReplacedTokenDetector):
    """The encoder together with its generator, which shares its token embeddings."""

    def __init__(self, config: ModelConfig, *, vocab_size: int) -> None:
        super().__init__(config, vocab_size=vocab_size)
        self.generator = LanguageModel(generator_config(config), vocab_size=vocab_size)
        self.generator.embeddings.token = self.embeddings.token

    def without_generator(self) -> ReplacedTokenDetector:
        """The trained encoder alone, on the CPU."""
        alone = ReplacedTokenDetector(self.config, vocab_size=self.embeddings.token.num_embeddings)
        weights = self.state_dict()
        alone.load_state_dict({name: weights[name].cpu() for name in alone.state_dict()})
        return alone


def generator_config(config: ModelConfig) -> ModelConfig:
    """The generator's config: the same depth and embedding width, `GENERATOR_SHARE` times narrower."""
    n_heads = max(1, config.n_heads // GENERATOR_SHARE)
    multiple = 2 * n_heads  # of heads, and even for sinusoidal positions
    d_model = max(1, config.d_model // GENERATOR_SHARE // multiple) * multiple
    changes = {
        "d_model": d_model,
        "n_heads": n_heads,
        "d_ff": max(1, config.d_ff // GENERATOR_SHARE),
        "d_embedding": config.d_embedding or config.d_model,
        "tie_output": True,
    }
    return ModelConfig.model_validate({**config.model_dump(), **changes})


class DetectReplaced(LanguageObjective):
    """Binary classification of all tokens as original or replaced, after the generator has filled in some of them.

    The loss is the generator's cross-entropy over the masked tokens plus `DETECTION_WEIGHT` times the detector's binary
    cross-entropy over all tokens; accuracy is the detector's. No gradient flows through the replacements.
    """

    def __init__(self, *, share: float) -> None:
        self.share = share

    def _outcome(self, model: Encoder, ids: Tensor, random: torch.Generator | None) -> Outcome:
        assert isinstance(model, DetectorWithGenerator)
        ordinary = ids >= len(SPECIAL_TOKENS)  # B T
        asked = (torch.rand(ids.shape, generator=random).to(ids.device) < self.share) & ordinary  # B T
        states = model.generator.read(ids.masked_fill(asked, MASK))  # B T width
        scores = model.generator.unembed(states[:, : ids.shape[1]][asked]).float()  # N V
        generated = F.cross_entropy(scores, ids[asked]) if len(scores) else scores.sum()
        changed = ids.masked_scatter(asked, sample_tokens(scores.detach(), random=random))  # B T
        replaced = (changed != ids)[ordinary]  # M: a correct guess counts as original
        logits = model(changed)[:, : ids.shape[1]][ordinary].float()  # M
        if not len(logits):
            return Outcome(generated + logits.sum(), torch.zeros(()), 0, 0)
        detected = F.binary_cross_entropy_with_logits(logits, replaced.float())
        right = ((logits.detach() > 0) == replaced).sum()
        return Outcome(generated + DETECTION_WEIGHT * detected, right, len(logits), len(logits))


def sample_tokens(scores: Tensor, *, random: torch.Generator | None = None) -> Tensor:
    """One ordinary token id for each row of scores (N, V), drawn from their softmax: (N,).

    Args:
        scores: of all V tokens; special ones are never drawn.
        random: random number generator; None for torch's own.
    """
    chance = torch.rand(len(scores), 1, generator=random).to(scores.device)  # N 1
    first = len(SPECIAL_TOKENS)
    cumulative = scores[:, first:].softmax(-1).cumsum(-1)  # N V-4
    drawn = torch.searchsorted(cumulative, chance * cumulative[:, -1:]).squeeze(-1)  # N
    return drawn.clamp(max=scores.shape[1] - first - 1) + first
