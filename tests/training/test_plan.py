import math
import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from txcls.checkpoint.comparison import Comparison
from txcls.checkpoint.load import load_checkpoint
from txcls.config import DataConfig
from txcls.data.hashes import normalise_text
from txcls.data.splits import split_rows
from txcls.data.types import LabelledTexts
from txcls.errors import DataError
from txcls.evaluation.linear import LinearModel, load_linear
from txcls.inference.predictor import Predictor
from txcls.training import TrainingInterruptedError, probe, speed
from txcls.training import plan as planning
from txcls.training.loop import Progress
from txcls.training.plan import Schedule, TrainingPlan, choose_schedule, epochs_for, plan_training, shipped_encoder
from txcls.training.run_plan import run_plan, train_as_planned

CLASSES = ("food", "rail", "rain")
WORDS = {
    "food": ["soup", "bread", "cheese", "dinner", "lunch", "kitchen", "plate"],
    "rail": ["train", "station", "platform", "ticket", "carriage", "track", "signal"],
    "rain": ["cloud", "storm", "drizzle", "umbrella", "thunder", "wet", "forecast"],
}


def rows(n: int, *, seed: int = 0) -> LabelledTexts:
    """n texts of three classes, each with three words of its class among common words."""
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for number in range(n):
        label = number % len(CLASSES)
        first, second, third = rng.choice(WORDS[CLASSES[label]], 3)
        texts.append(f"the {first} and a {second} with {third} number {rng.integers(10_000)}")
        labels.append(label)
    return LabelledTexts(texts, labels, CLASSES)


@pytest.fixture(autouse=True)
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure briefly; keep caches and relative paths in `tmp_path`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TXCLS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(speed, "SECONDS", 0.05)


def planned(**changes: Any) -> TrainingPlan:
    """A plan of a few epochs on 150 rows, for which time plays no part."""
    data = DataConfig(dataset="table", text_column="text", label_column="label")
    options = {"minutes": None, "name": "mine", "source": "mine.csv", "data": data}
    return plan_training(rows(150), **{**options, **changes})


def short(plan: TrainingPlan, epochs: int = 2) -> TrainingPlan:
    """The plan with few epochs, without a probe."""
    config = plan.config.with_settings([f"train.epochs={epochs}"])
    return replace(plan, config=config, from_probe=False)


def test_exact_copies_are_in_one_split_and_held_out_once_however_frequent() -> None:
    """800 of 962 rows are copies, some of one text under two labels."""
    texts = [f"text {n}" for n in range(162)] + [f"Text  {n % 20}" for n in range(800)]
    labels = [n % 3 for n in range(162)] + [n % 20 % 3 if n % 7 else 2 for n in range(800)]
    splits = split_rows(LabelledTexts(texts, labels, CLASSES), None, seed=0)
    training, validation, test = (
        [normalise_text(text) for text in split.texts] for split in (splits.training, splits.validation, splits.test)
    )
    assert not (set(training) & set(test) or set(validation) & set(test) or set(training) & set(validation))
    pairs = [*zip(test, splits.test.labels, strict=True), *zip(validation, splits.validation.labels, strict=True)]
    assert len(pairs) == len(set(pairs)) and 30 <= len(test) <= 40 and set(splits.test.labels) == {0, 1, 2}
    assert splits.test_rows is not None and list(splits.test.texts) == [texts[row] for row in splits.test_rows]
    n_left_out = 962 - len(training) - len(validation) - len(test)
    assert n_left_out > 0 and splits.notes[-1].endswith(f"test, {n_left_out} copies dropped.")


def test_nearly_the_same_texts_are_in_the_same_split() -> None:
    """150 articles that were published twice, each time with another headline, and 150 others."""
    rng = np.random.default_rng(0)
    articles = [" ".join(f"word{n}" for n in rng.integers(5000, size=40)) for _ in range(300)]
    texts = [f"{headline} {text}" for headline in ("monday", "tuesday") for text in articles]
    texts = [*texts[:450], *(text.upper() for text in texts[:10])]
    splits = split_rows(LabelledTexts(texts, [n % 3 for n in range(460)], CLASSES), None, seed=0)
    in_split = [
        {normalise_text(text).split(" ", 1)[1] for text in split.texts}
        for split in (splits.training, splits.validation, splits.test)
    ]
    assert not (in_split[0] & in_split[1] or in_split[0] & in_split[2] or in_split[1] & in_split[2])
    assert 85 <= len(splits.test) <= 95
    assert any("10 repeated texts, 150 nearly the same" in note for note in splits.notes)


def test_many_nearly_equal_texts_are_split_like_others() -> None:
    """A form letter of which only the number changes: keeping all copies together would leave nothing to test on."""
    form = "your order with the number {} has been sent to the address that you gave us when you registered in our shop"
    texts = [form.format(n) for n in range(100)] + [f"text {n} of another kind" for n in range(100)]
    splits = split_rows(LabelledTexts(texts, [n // 100 for n in range(200)], ("form", "other")), None, seed=0)
    assert 15 <= splits.test.labels.count(0) <= 25


@pytest.mark.parametrize(
    "data, options, message",
    [
        (LabelledTexts(["a"] * 20, [0] * 20, ("x",)), {}, "all 20 rows have the label 'x'; expected at least two"),
        (LabelledTexts(["a", "b"], [0, 1], ("x", "y")), {}, "2 rows with text and label; expected at least 4"),
        (
            LabelledTexts([f"t{n}" for n in range(20)], list(range(20)), tuple(f"c{n}" for n in range(20))),
            {},
            "almost no label occurs twice; is it the right label column, or are the two columns swapped",
        ),
        (rows(30), {"minutes": 0}, "got a budget of 0 minutes; expected 0.05 to 1440"),
    ],
)
def test_rows_that_cannot_be_trained_on_are_refused(
    data: LabelledTexts, options: dict[str, float], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        plan_training(data, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("seconds, read", [(1, 1), (40, 1), (79, 1), (81, 2), (1000, 2)])
def test_epochs_and_passes_follow_from_the_rows_and_the_time(seconds: float, read: int) -> None:
    useful, epoch = epochs_for(2000, 4), 2000 * 20 / 10_000  # seconds
    schedule = choose_schedule(
        np.full(100, 20), n=2000, inference=0.0, useful=10, max_passes=2, tokens_per_second=10_000, seconds=seconds
    )
    assert schedule.passes == read and schedule.max_length == 32 and schedule.epoch_seconds == epoch
    assert schedule.epochs == min(max(1, int(seconds / epoch / read)), 10 * read)
    assert schedule.is_short == (schedule.epochs < 10)
    assert useful > epochs_for(20_000, 4) >= 3, "more rows need fewer epochs"


def test_without_a_time_the_epochs_depend_on_the_rows_alone() -> None:
    schedule = choose_schedule(
        np.full(100, 700), n=10**6, inference=0.0, useful=5, max_passes=2, tokens_per_second=math.inf, seconds=None
    )
    assert schedule == Schedule(512, 5, 1, 0.0, is_short=False)
    first, second = planned(), planned()
    assert first.config == second.config and first.threads is None


def test_long_texts_are_cut_until_there_is_time_for_three_epochs() -> None:
    def length_for(seconds: float, inference: float = 0.0) -> int:
        arguments = {"n": 1000, "useful": 8, "max_passes": 1, "tokens_per_second": 10_000.0, "inference": inference}
        return choose_schedule(np.full(100, 600), seconds=seconds, **arguments).max_length  # type: ignore[arg-type]

    assert [length_for(seconds) for seconds in (10, 80, 150, 1000)] == [96, 256, 384, 512]
    assert length_for(80, inference=1.0) == 192, "the time to classify the held-out rows is kept"


def test_texts_too_long_for_the_encoder_in_the_time_are_read_by_a_one_layer_model_of_their_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(planning, "measure_speed", lambda *_: speed.Speed(1, 1500.0))
    data = LabelledTexts([f"{text} " * 40 for text in rows(300).texts], rows(300).labels, rows(300).classes)
    plan = plan_training(data, minutes=0.3)
    assert plan.init is None and plan.config.model.n_layers == 1 and plan.config.text.tokenizer == "basic_english"
    assert "The pre-trained encoder is not used: there is no time for it" in plan.sentences[1]
    assert plan_training(data, minutes=None).init is not None
    plan = plan_training(data, minutes=60)
    assert plan.init is not None and plan.config.model.max_length == 512, "the encoder's own limit is 256"


@pytest.mark.parametrize(
    "text, why",
    [("die Rechnung Nummer {} ist falsch, bitte schicken Sie mir eine neue " * 10, "only English"),
     ("这个酒店的服务非常好下次还会再来{}", "byte by byte")],
)  # fmt: skip
def test_texts_that_the_encoder_would_read_badly_get_a_one_layer_model_of_their_pieces(text: str, why: str) -> None:
    texts = [text.format(*[n] * 10) for n in range(120)]
    foreign = LabelledTexts(texts, [n % 2 for n in range(120)], ("good", "bad"))
    plan = plan_training(foreign, minutes=None)
    assert plan.init is None and plan.config.text.tokenizer == "bpe" and plan.config.train.embeddings_from_texts
    assert (plan.config.model.n_layers, plan.config.model.positions) == (1, "learned")
    assert why in " ".join(plan.sentences) and not plan.from_probe
    asked_for = shipped_encoder()
    assert plan_training(foreign, minutes=None, init=asked_for).init is asked_for


def test_the_shipped_encoder_is_found_if_checkpoints_are_saved_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(tmp_path / "elsewhere"))
    assert shipped_encoder() is not None


def test_a_run_ends_with_its_time_on_a_slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "measure_speed", lambda *_: speed.Speed(1, 10.0**6))  # far too fast
    plan = replace(plan_training(rows(600), minutes=0.05), linear_seconds=0.1, measuring_seconds=0.5)
    config = plan.config.with_settings(["train.epochs=10000", "train.schedule=cosine"])
    plan = replace(plan, config=config, started=time.monotonic())
    result = run_plan(plan, out=None)
    assert result.comparison.is_hardly_trained and "of 10000 epochs" in result.checkpoint.metrics["training"]["done"]
    assert result.checkpoint.history[-1]["learning_rate"] < 0.05 * plan.config.train.learning_rate, "it came to its end"


def test_a_model_that_was_hardly_trained_is_not_the_one_to_use_and_the_linear_one_is_saved(tmp_path: Path) -> None:
    stops = iter(range(10))
    plan = short(planned(), epochs=40)
    result = run_plan(plan, out=tmp_path / "mine", should_stop=lambda: next(stops) >= 2)
    assert result.comparison.is_hardly_trained and result.comparison.to_use == "linear"
    assert result.comparison.verdict.startswith("Use the linear model: ")
    assert "the Transformer had time for only 3 of " in result.comparison.verdict
    loaded = load_checkpoint(tmp_path / "mine")
    assert loaded.linear == tmp_path / "mine" / "linear.skops"
    model = load_linear(loaded.linear)
    truth = np.array(plan.splits.test.labels)
    right = (model.predict(plan.splits.test.texts) == truth).mean()
    assert model.classes == CLASSES and right == pytest.approx(result.comparison.linear.accuracy.value)


def test_the_result_is_compared_on_rows_it_never_saw_and_saved(tmp_path: Path) -> None:
    plan = short(planned())
    stages: list[str] = []
    steps: list[Progress] = []
    result = run_plan(plan, out=tmp_path / "mine", on_stage=stages.append, on_step=steps.append)
    truth, n_test = np.array(plan.splits.test.labels), len(plan.splits.test)
    predicted = Predictor(result.checkpoint).probabilities(plan.splits.test.texts, precision="float32").argmax(axis=1)
    assert result.comparison.transformer.accuracy.value == pytest.approx((predicted == truth).mean())
    assert result.comparison.n == n_test and result.comparison.n_training == 150 - n_test
    assert stages[0] == "fitting the linear model" and stages[-1] == "saving" and len(steps) == plan.steps
    loaded = load_checkpoint(tmp_path / "mine")
    assert loaded.metrics["comparison"] == result.comparison.to_dict()
    assert loaded.metrics["test"]["accuracy"] == pytest.approx((predicted == truth).mean(), abs=1e-4)
    assert sum(loaded.metrics["data"]["train_rows_by_class"]) == loaded.metrics["data"]["train_rows"] > 0
    assert loaded.metrics["test"]["n"] == n_test and loaded.config.title == "mine.csv"
    assert (loaded.config.data.text_column, loaded.config.data.label_column) == ("text", "label")
    card = (tmp_path / "mine" / "README.md").read_text("utf-8")
    row = f"| this Transformer | {result.comparison.table[2][1]} |".replace("\u00a0", " ")
    assert row in card and "read once, after training" in card
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine"]


def test_classes_that_the_model_to_use_never_recognises_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Comparison, "to_use", "linear")
    monkeypatch.setattr(LinearModel, "predict", lambda self, texts, classes: np.zeros(len(texts), dtype=np.int64))
    result = run_plan(short(planned(), epochs=1), out=None)
    assert tuple(result.never_found) == CLASSES[1:] and 1 <= min(result.never_found.values()) <= 30


def test_an_interrupted_run_writes_nothing(tmp_path: Path) -> None:
    def interrupt(progress: Progress) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(TrainingInterruptedError, match="stopped in epoch 1 after step 1"):
        run_plan(short(planned()), out=tmp_path / "mine", on_step=interrupt)
    assert not list(tmp_path.iterdir())


# Few rows


def test_the_probe_is_a_logistic_regression_on_standardised_features() -> None:
    rng = np.random.default_rng(0)
    for n_classes in (2, 4):
        labels = rng.integers(0, n_classes, 80)
        features = rng.normal(size=(80, 6)) * [1, 2, 3, 4, 5, 0] + labels[:, None]
        head = probe._probe(features, labels, n_classes + 1, decay=10.0)
        scaler = StandardScaler().fit(features)
        theirs = LogisticRegression(C=0.1, max_iter=300).fit(scaler.transform(features), labels)
        logits = features @ head.weight.T + head.bias
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(shares[:, :n_classes], theirs.predict_proba(scaler.transform(features)), atol=1e-6)
        assert shares[:, n_classes].max() < 1e-6, "a class without rows"


@pytest.mark.parametrize("tuned_is_better", [True, False])
def test_training_starts_from_the_probe_and_is_left_out_where_it_does_not_improve_on_it(
    monkeypatch: pytest.MonkeyPatch, tuned_is_better: bool
) -> None:
    plan = planned()
    assert plan.from_probe and plan.config.model.pooling == "mean"
    assert plan.config.train.learning_rate == pytest.approx(1e-3 / 3, rel=1e-2)
    plan = replace(plan, config=plan.config.with_settings(["train.epochs=1"]))
    if not tuned_is_better:  # all texts of a fold get its first class
        monkeypatch.setattr(probe, "predict_logits", lambda _, texts: torch.eye(3)[:1].expand(len(texts), 3))
    checkpoint = train_as_planned(plan)
    n_steps = checkpoint.metrics["training"]["steps"]
    assert n_steps == (plan.steps if tuned_is_better else 0)
    predictor = Predictor(checkpoint)
    predicted = [CLASSES.index(one.label or "") for one in predictor.predict(list(plan.splits.test.texts))]
    assert (np.array(predicted) == plan.splits.test.labels).mean() > 0.8, "the probe alone knows the words"


def test_given_test_rows_are_used_with_notes_on_those_left_out_or_repeated() -> None:
    data = rows(90)
    test_rows = LabelledTexts([data.texts[0], "a new soup", "a bird"], [0, 0, 1], ("food", "bird"))
    splits = split_rows(data, test_rows, seed=0)
    assert splits.test.texts == [data.texts[0], "a new soup"] and splits.test.classes == CLASSES
    assert splits.test_rows is None and len(splits.training) + len(splits.validation) == 90
    notes = " ".join(splits.notes)
    assert "1 test rows have labels that no training row has ('bird')" in notes
    assert "1 test rows (50\u00a0%) repeat the text of a training row" in notes
    copies = LabelledTexts([*data.texts[:2], "a new soup"], [0, 0, 0], ("food",))
    with pytest.raises(DataError, match=r"2 of 3 test rows .* repeat the text of a training row.*give other test rows"):
        split_rows(data, copies, seed=0)
    with pytest.raises(DataError, match="no test rows are left"):
        split_rows(data, LabelledTexts(["a bird"], [0], ("bird",)), seed=0)


@pytest.mark.parametrize("n", [6, 12])
def test_a_handful_of_rows_is_trained_on_without_folds(n: int) -> None:
    plan = plan_training(rows(n), minutes=None)
    checkpoint = train_as_planned(replace(plan, config=plan.config.with_settings(["train.epochs=1"])))
    assert len(checkpoint.classes) == 3 and checkpoint.metrics["training"]["steps"] >= 0
