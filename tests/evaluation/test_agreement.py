"""Measurements of agreement models: groups, and the verb that a masked-token model predicts."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.conftest import make_checkpoint, make_language_model
from txcls.errors import DataError
from txcls.evaluation import agreement
from txcls.evaluation.agreement import _by_group, measure_agreement, plural_share
from txcls.language.generation import TextModel
from txcls.predictor import Predictor


def test_the_share_of_plural_verbs_is_that_of_the_softmax_over_all_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verbs = {"bank": 0, "rates": 1, "shares": 1}
    monkeypatch.setattr(agreement, "VERBS", verbs)
    make_language_model(tmp_path / "encoder", objective="masked")
    model = TextModel.load(tmp_path / "encoder", objective="masked")
    ids = model.encode("the bank raised rates")
    masked = torch.tensor([[*ids[:2], model.tokens.index("<mask>"), *ids[3:]]])
    with torch.no_grad():
        probabilities = torch.softmax(model.model(masked)[0, 2], dim=-1)
    singular, *plural = (float(probabilities[model.tokens.index(verb)]) for verb in verbs)
    assert plural_share(model, ids, 2) == pytest.approx(sum(plural) / (singular + sum(plural)), abs=1e-5)


def test_accuracies_are_of_the_rows_of_each_group() -> None:
    right = {"a": np.array([True, False, True]), "b": np.array([False, False, True])}
    one, two = _by_group(["x", "x", "y"], right)
    assert (one.name, one.n, one.accuracy) == ("x", 2, {"a": 0.5, "b": 0.0})
    assert (two.name, two.n, two.accuracy) == ("y", 1, {"a": 1.0, "b": 1.0})


def test_a_model_of_other_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not a model of agreement"):
        measure_agreement(Predictor(make_checkpoint(tmp_path / "other")))
