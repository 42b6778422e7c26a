"""Train again without some rows: the only test of whether they taught a model an answer.

Small data alone, here the sample set: a training takes seconds. All trainings share the vocabulary, so that nothing but
the rows differs. Where a row set is left out, several seeds are trained and their answers averaged.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray

from txcls.config import RunConfig, load_preset
from txcls.data.batches import TokenisedTexts
from txcls.data.datasets import open_dataset
from txcls.data.splits import training_and_validation
from txcls.data.types import LabelledTexts
from txcls.evaluation.evaluate import predict_logits
from txcls.inspection.influence import answer_margin
from txcls.model import TextClassifier
from txcls.runtime.pause import may_pause
from txcls.text.encoder import TextEncoder
from txcls.training.loop import Progress, fit

__all__ = ["Lesson", "class_probabilities", "log_odds", "random_others"]

SETTINGS = ("train.monitor=last", "train.patience=0", "train.batch_size=32", "train.epochs=20")
"""What differs from the preset: always the last weights, since choosing among them would add noise, and fewer steps."""


@dataclass(frozen=True, eq=False)
class Lesson:
    """Rows to train on, and how.

    Attributes:
        rows: the N training rows.
        texts: their tokens and labels.
        held_out: validation rows, which are only measured.
        encoder: text to ids, from all rows.
        config: all settings but the seed.
    """

    rows: LabelledTexts
    texts: TokenisedTexts
    held_out: TokenisedTexts
    encoder: TextEncoder
    config: RunConfig

    @classmethod
    def of_sample(cls) -> Self:
        """The sample set's training rows, with its preset's model."""
        config = load_preset("sample").with_settings(SETTINGS)
        rows, held_out = training_and_validation(open_dataset(config.data), config.data)
        encoder = TextEncoder.fit(
            rows.texts, config.text, max_length=config.model.max_length, class_token=config.reads_class_token
        )
        texts, others = (TokenisedTexts.encode(encoder, one) for one in (rows, held_out))
        return cls(rows, texts, others, encoder, config)

    def learn(
        self,
        seed: int,
        *,
        without: Collection[int] = (),
        on_step: Callable[[int, int], None] | None = None,
    ) -> TextClassifier:
        """A model trained on all rows but some.

        Args:
            seed: of the initial weights, the batches and dropout.
            without: rows to leave out, from 0.
            on_step: called with steps done and steps in all.
        """

        def step(progress: Progress) -> None:
            may_pause()
            if on_step is not None:
                on_step(progress.step, progress.total_steps)

        config = self.config.with_settings([f"train.seed={seed}"])
        torch.manual_seed(seed)
        model = TextClassifier(config.model, vocab_size=self.encoder.vocab_size, n_classes=len(self.rows.classes))
        kept = np.setdiff1d(np.arange(len(self.texts)), np.fromiter(without, dtype=np.int64))
        fit(model, self.texts.subset(kept), self.held_out, config.train, on_step=step)
        return model

    def read(self, text: str, c: int = 0) -> TokenisedTexts:
        """One text, with class c."""
        return TokenisedTexts.encode(self.encoder, LabelledTexts([text], [c], self.rows.classes))


def class_probabilities(models: Sequence[TextClassifier], text: TokenisedTexts) -> NDArray[np.float64]:
    """Uncalibrated class probabilities (C,) of one text, mean over models."""
    found = [predict_logits(model, text)[0].double().softmax(-1).numpy() for model in models]
    mean: NDArray[np.float64] = np.mean(found, axis=0)
    return mean


def log_odds(models: Sequence[TextClassifier], text: TokenisedTexts, c: int) -> NDArray[np.float64]:
    """The log odds of class c for one text by each of M models, (M,)."""
    return np.array([float(answer_margin(predict_logits(model, text)[0].double(), c)) for model in models])


def random_others(labels: NDArray[np.int64], named: NDArray[np.intp], *, seed: int) -> NDArray[np.intp]:
    """As many random rows of each class as `named` has, none of which is named unless a class has too few others."""
    random = np.random.default_rng(seed)
    chosen = []
    for c, n in zip(*np.unique(labels[named], return_counts=True), strict=True):
        others = np.setdiff1d(np.flatnonzero(labels == c), named)
        if len(others) < n:
            others = np.flatnonzero(labels == c)
        chosen.append(random.choice(others, n, replace=False))
    return np.concatenate(chosen)
