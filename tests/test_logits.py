"""Logits of many texts in batches."""

import torch

from tests.conftest import TEXTS
from txcls.data.batches import TokenisedTexts
from txcls.data.types import LabelledTexts
from txcls.logits import predict_logits
from txcls.predict import Classifier


def test_logits_of_many_texts_are_those_of_each_alone_in_their_order(classifier: Classifier) -> None:
    rows = LabelledTexts([*TEXTS, "bank " * 20, "rain"], [0] * (len(TEXTS) + 2), classifier.classes)
    texts = TokenisedTexts.encode(classifier.encoder, rows)
    found = predict_logits(classifier.checkpoint.model, texts, batch_size=2)
    alone = [classifier.logits(torch.tensor([classifier.encoder.encode(text).ids])) for text in rows.texts]
    torch.testing.assert_close(found, torch.cat(alone), atol=1e-5, rtol=1e-5)
