from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from captum.attr import InputXGradient, IntegratedGradients

from tests.conftest import TEXTS, Untrained, make_checkpoint
from tests.inspection.test_ablation import MODELS, SOME, altered
from txcls.config import Calibration
from txcls.inference.predictor import Predictor
from txcls.inspection.attention import attention_rollout
from txcls.inspection.attribution import (
    MAX_LEFT_OUT,
    METHODS,
    SIGNED,
    ExplanationAverages,
    TargetFunction,
    best_other,
    delete_until_changed,
    explain,
    gradient_x_input,
    measure_deletion,
    measure_explanations,
    share_interval,
)
from txcls.inspection.tracing import trace_text
from txcls.text.vocabulary import MASK, UNK


def after_embeddings(classifier: Predictor, states: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """Logits for inputs of the first layer, `states` (B, T, D), computed without taps or traces."""
    model = classifier.checkpoint.model
    ids = model.pad(ids)
    mask = model.attention_mask(ids)
    for layer in model.layers:
        states = layer(states, mask)
    real = None if model.config.pool_padding else model.real(ids)
    return model.head(model.pool(model.norm(states), real))


def captum_scores(classifier: Predictor, text: str, target: str, baseline: str):  # type: ignore[no-untyped-def]
    """(gradient × input, integrated gradients, completeness error) from Captum, for all tokens."""
    model = classifier.checkpoint.model
    ids = torch.tensor([classifier.tokenizer.encode(text).ids])
    blank = UNK if classifier.checkpoint.config.text.tokenizer == "word" else MASK
    blanks = torch.where(ids < 4, ids, blank) if baseline == "blank" else ids
    states, start = (model.embeddings(model.pad(row)).detach() for row in (ids, blanks))
    if baseline == "zero":
        start = torch.zeros_like(states)
    predicted = classifier.classes.index(str(classifier.predict([text])[0].label))

    def forward(x: torch.Tensor) -> torch.Tensor:
        logits = after_embeddings(classifier, x, ids.expand(len(x), -1))
        if target == "logit":
            return logits[:, predicted]
        calibration = classifier.checkpoint.calibration
        surprisal = -torch.softmax(logits.double(), -1).log()
        return torch.softmax(-((surprisal / calibration.temperature) ** calibration.power), -1)[:, predicted]

    products = InputXGradient(forward).attribute(states.clone().requires_grad_())
    integrated, delta = IntegratedGradients(forward).attribute(
        states, start, n_steps=32, method="gausslegendre", return_convergence_delta=True
    )
    return products[0].sum(-1), integrated[0].sum(-1), float(delta)


@pytest.mark.parametrize("model", [*MODELS, {"text": {"tokenizer": "bpe", "max_vocabulary": 320}}])
@pytest.mark.parametrize("target, baseline", [("probability", "blank"), ("logit", "zero")])
def test_gradients_agree_with_captum(
    untrained: Untrained, model: dict[str, object], target: str, baseline: str
) -> None:
    classifier = untrained(**model)
    for text in SOME:
        products, integrated, delta = captum_scores(classifier, text, target, baseline)
        ours = explain(classifier, text, target=target, baseline=baseline, methods=["integrated"], steps=32).integrated  # type: ignore[arg-type]
        np.testing.assert_allclose(ours.scores, integrated.detach(), atol=1e-4)
        assert ours.completeness_error == pytest.approx(abs(delta), abs=1e-4)
        scores = gradient_x_input(TargetFunction(classifier, trace_text(classifier, text), target))  # type: ignore[arg-type]
        np.testing.assert_allclose(scores, products.detach(), atol=1e-4)


def test_gradients_do_not_change_the_shared_model(classifier: Predictor) -> None:
    before = {name: tensor.clone() for name, tensor in classifier.checkpoint.model.state_dict().items()}
    explain(classifier, TEXTS[0])
    assert all(parameter.grad is None for parameter in classifier.checkpoint.model.parameters())
    for name, tensor in classifier.checkpoint.model.state_dict().items():
        assert torch.equal(tensor, before[name]), name


def probability_of(classifier: Predictor, text: str, label: str) -> float:
    [prediction] = classifier.predict([text])
    return next(ranked.probability for ranked in prediction.ranked if ranked.label == label)


@pytest.mark.parametrize("model", MODELS)
def test_leave_one_out_equals_a_loop_over_shorter_texts(untrained: Untrained, model: dict[str, object]) -> None:
    classifier = untrained(**model)
    for text in TEXTS[:3]:
        words = text.split()
        label = classifier.predict([text])[0].label
        by_target = [
            explain(classifier, text, target=target, methods=["leave_one_out"]).scores["leave_one_out"]  # type: ignore[arg-type]
            for target in ("probability", "logit")
        ]
        shorter = [" ".join(words[:place] + words[place + 1 :]) for place in range(len(words))]
        original = probability_of(classifier, text, label)
        expected = [original - probability_of(classifier, rest, label) for rest in shorter]
        np.testing.assert_allclose(by_target[0], expected, atol=1e-6)
        attends_only_to_itself = classifier.checkpoint.config.model.causal  # the class token, which comes first
        assert (np.abs(by_target[1] - by_target[0]).max() < 1e-6) == attends_only_to_itself


def test_in_a_long_text_neighbours_are_left_out_together_and_share_the_fall(untrained: Untrained) -> None:
    classifier = untrained(max_length=120)
    text = " ".join(TEXTS * 4)
    scores = explain(classifier, text, methods=["leave_one_out"]).scores["leave_one_out"]
    words = text.split()[: len(scores)]
    assert len(words) > MAX_LEFT_OUT
    shorter, label = " ".join(words[2:]), classifier.predict([text])[0].label
    index = classifier.classes.index(str(label))
    logits = [classifier.logits(torch.tensor([classifier.encode(one).ids]))[0, index] for one in (text, shorter)]
    assert scores[0] == scores[1] == pytest.approx(float(logits[0] - logits[1]) / 2, abs=1e-5)


def test_rollout_scores_are_weighted_by_pooling(untrained: Untrained) -> None:
    averaged = untrained(pooling="mean")
    expected = attention_rollout(trace_text(averaged, TEXTS[0]).attention).mean(axis=0)
    np.testing.assert_allclose(explain(averaged, TEXTS[0]).scores["rollout"], expected, atol=1e-6)
    first = untrained(pooling="class_token")
    row = attention_rollout(trace_text(first, TEXTS[0]).attention)[0]
    explained = explain(first, TEXTS[0])
    np.testing.assert_allclose(explained.scores["rollout"], row[1:], atol=1e-6)


def test_words_are_deleted_until_the_class_changes(untrained: Untrained) -> None:
    classifier, text = untrained(), "the bank raised its rates after the report"
    words, order = text.split(), [4, 0, 6, 2, 1, 5, 3, 7]
    kept = [" ".join(word for index, word in enumerate(words) if index not in order[:n]) for n in range(len(words))]
    logits = torch.stack([classifier.logits(torch.tensor([classifier.encode(shorter).ids]))[0] for shorter in kept])
    shift = (logits[0] + logits[-1]) / 2  # the class changes somewhere between the whole text and the last word
    classifier = altered(classifier, lambda model: model.head.bias.sub_(shift))
    classes = [prediction.label for prediction in classifier.predict(kept)]
    expected = next(n for n, name in enumerate(classes) if name != classes[0])
    found = delete_until_changed(classifier, text, {"mine": -np.argsort(order).astype(float)})
    assert (found.n_words, found.counts) == (8, {"mine": expected}) and 1 <= found.random <= 9


@pytest.mark.parametrize("model", [{}, {"pooling": "class_token"}])
def test_areas_of_deletion_equal_a_loop_over_texts(untrained: Untrained, model: dict[str, object]) -> None:
    classifier = untrained(**model)
    text = "the bank raised rates"
    label = classifier.predict([text])[0].label
    areas = measure_deletion(classifier, text, {"mine": np.array([0.1, 3.0, -1.0, 3.0])})
    remaining = ["the bank raised rates", "the raised rates", "the raised", "raised"]  # equal scores from left to right
    blank = torch.tensor([classifier.encode("").ids or [classifier.tokenizer.blank]])
    last = classifier.calibrate(classifier.logits(blank), n_tokens=len(classifier.encode(text).ids))[0]
    expected = [
        *(probability_of(classifier, one, label) for one in remaining),
        float(last[classifier.classes.index(label)]),
    ]
    assert areas.by_score["mine"] == pytest.approx(sum((a + b) / 2 for a, b in pairwise(expected)) / 4, abs=1e-6)
    unsigned = measure_deletion(classifier, text, {"mine": np.array([0.1, 3.0, 1.0, 3.0])})
    assert areas.by_magnitude == unsigned.by_score == unsigned.by_magnitude != areas.by_score
    assert areas.random == pytest.approx(unsigned.random), "the same orders"


def test_averages_are_means_over_texts_and_survive_the_checkpoint(classifier: Predictor) -> None:
    texts = [TEXTS[0], TEXTS[1], "bank", " "]  # the last has no word
    averages = measure_explanations(classifier, texts)
    for name in METHODS:
        areas = [
            measure_deletion(classifier, text, explain(classifier, text).scores).by_score[name] for text in texts[:3]
        ]
        assert averages.areas[name] == pytest.approx(np.mean(areas))
    assert averages.areas_by_magnitude["rollout"] == averages.areas["rollout"]
    assert averages.areas_by_magnitude["integrated"] != averages.areas["integrated"]
    assert averages.n == 3
    stored = averages.to_dict()

    def read(metrics: dict[str, object]) -> ExplanationAverages | None:
        return ExplanationAverages.of(Predictor(replace(classifier.checkpoint, metrics=metrics)))

    loaded = read({"explanations": stored})
    assert loaded is not None and loaded.n == 3 and loaded.areas == pytest.approx(averages.areas, abs=1e-6)
    assert loaded.intervals.keys() == averages.intervals.keys()
    for name, ends in averages.intervals.items():
        assert loaded.intervals[name] == pytest.approx(ends, abs=1e-4)
    for incomplete in ({}, {"explanations": {**stored, "areas": {}}}):
        assert read(incomplete) is None
    with pytest.raises(ValueError, match="at least one"):
        measure_explanations(classifier, [" "])


def test_the_interval_of_the_share_is_that_of_paired_texts() -> None:
    random_areas = np.random.default_rng(1).uniform(0.5, 0.9, 200)
    areas = [{"rollout": r - 0.2, "integrated": r - 0.4, "gradient": r, "leave_one_out": r} for r in random_areas]
    assert best_other(areas[0]) == "integrated"
    assert share_interval(areas, random_areas.tolist()) == pytest.approx((0.5, 0.5))  # the texts' own areas cancel
    noise = np.random.default_rng(2).normal(0, 0.1, 200)
    noisy = [{**of_text, "rollout": of_text["rollout"] - error} for of_text, error in zip(areas, noise, strict=True)]
    low, high = share_interval(noisy, random_areas.tolist()) or (0.0, 0.0)
    half = 1.96 * noise.std() / np.sqrt(200) / 0.4  # the gain of integrated gradients is always 0.4
    assert (low, high) == pytest.approx((0.5 + noise.mean() / 0.4 - half, 0.5 + noise.mean() / 0.4 + half), abs=0.005)
    worthless = [{**of_text, **dict.fromkeys(SIGNED, 1.0)} for of_text in areas]
    assert share_interval(worthless, random_areas.tolist()) is None


def test_steps_are_doubled_until_integrated_gradients_are_complete(tmp_path: Path) -> None:
    fitted = replace(make_checkpoint(tmp_path / "tiny"), calibration=Calibration(temperature=0.02))
    for text in TEXTS[:4]:
        rough, enough = (
            explain(Predictor(fitted), text, target="probability", steps=steps, methods=["integrated"]).integrated
            for steps in (4, None)
        )
        assert enough.completeness_error < 0.01 * abs(enough.value - enough.baseline_value)
        assert rough.steps == 4 and enough.steps in (16, 32, 64, 128, 256, 512, 1024)
