from pathlib import Path

import pytest
import torch

from tests.conftest import make_language_model
from txcls.evaluation.measure_agreement import plural_share
from txcls.inference.generation import TextModel


def test_the_share_of_plural_verbs_is_that_of_the_softmax_over_all_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verbs = {"bank": 0, "rates": 1, "shares": 1}
    monkeypatch.setattr("txcls.evaluation.measure_agreement.VERBS", verbs)
    make_language_model(tmp_path / "encoder", objective="masked")
    model = TextModel.load(tmp_path / "encoder", objective="masked")
    ids = model.encode("the bank raised rates")
    masked = torch.tensor([[*ids[:2], model.tokens.index("<mask>"), *ids[3:]]])
    with torch.no_grad():
        probabilities = torch.softmax(model.model(masked)[0, 2], dim=-1)
    singular, *plural = (float(probabilities[model.tokens.index(verb)]) for verb in verbs)
    assert plural_share(model, ids, 2) == pytest.approx(sum(plural) / (singular + sum(plural)), abs=1e-5)
