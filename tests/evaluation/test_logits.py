"""Logits of many texts in batches, and labels in the class order of a checkpoint."""

from dataclasses import replace

import torch

from tests.conftest import TEXTS
from txcls.data.batches import TokenisedTexts
from txcls.data.types import LabelledTexts
from txcls.evaluation.evaluate import in_classes_of, predict_logits
from txcls.predictor import Predictor

ROWS = LabelledTexts(["goal", "rain", "goal again"], [0, 1, 0], ("Sport", "Weather"))


def test_logits_of_many_texts_equal_single_texts_in_order(classifier: Predictor) -> None:
    rows = LabelledTexts([*TEXTS, "bank " * 20, "rain"], [0] * (len(TEXTS) + 2), classifier.classes)
    texts = TokenisedTexts.encode(classifier.encoder, rows)
    found = predict_logits(classifier.checkpoint.model, texts, batch_size=2)
    alone = [classifier.logits(torch.tensor([classifier.encoder.encode(text).ids])) for text in rows.texts]
    torch.testing.assert_close(found, torch.cat(alone), atol=1e-5, rtol=1e-5)


def test_labels_become_indices_into_the_checkpoints_classes(classifier: Predictor) -> None:
    checkpoint = replace(classifier.checkpoint, classes=("Weather", "Politics", "Sport"))
    found = in_classes_of(ROWS, checkpoint)
    assert found == LabelledTexts(ROWS.texts, [2, 0, 2], checkpoint.classes)
    assert in_classes_of(ROWS, replace(checkpoint, classes=ROWS.classes)) is ROWS
