"""A classifier of one's own: parts that share no text, a plan that fits the budget, a fair comparison, and resuming."""

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.conftest import make_checkpoint
from txcls.checkpoint.checkpoint import load_checkpoint
from txcls.data.hashes import normalised
from txcls.data.types import LabelledTexts
from txcls.errors import DataError, TrainingError
from txcls.training import TrainingInterruptedError, speed
from txcls.training.auto import OwnPlan, OwnProgress, plan_own, recipe, resumed_plan, train_own
from txcls.training.auto import plan as own_plan
from txcls.training.run_folder import state_file

CLASSES = ("food", "rail", "rain")
WORDS = {
    "food": ["soup", "bread", "cheese", "dinner", "lunch", "kitchen", "plate"],
    "rail": ["train", "station", "platform", "ticket", "carriage", "track", "signal"],
    "rain": ["cloud", "storm", "drizzle", "umbrella", "thunder", "wet", "forecast"],
}


def rows(n: int, *, seed: int = 0) -> LabelledTexts:
    """n texts of three classes, each told by some of its words among common ones."""
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for number in range(n):
        label = number % len(CLASSES)
        told = rng.choice(WORDS[CLASSES[label]], 3)
        texts.append(f"the {told[0]} and a {told[1]} with {told[2]} number {rng.integers(10_000)}")
        labels.append(label)
    return LabelledTexts(texts, labels, CLASSES)


@pytest.fixture(autouse=True)
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measuring and training in a moment; caches and relative paths in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TXCLS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(speed, "SECONDS", 0.05)


def planned(**changes: object) -> OwnPlan:
    """A plan of two epochs on 150 rows, the same however fast the machine is."""
    plan = plan_own(rows(150), minutes=1, name="mine", source="mine.csv", columns=("text", "label"))
    config = plan.config.with_settings(["train.epochs=2", "train.runs=1"])
    return replace(plan, **{"config": config, "epochs": 2, **changes})  # type: ignore[arg-type]


def test_parts_are_disjoint_and_share_no_text() -> None:
    data = rows(200)
    doubled = LabelledTexts(
        [*data.texts, *(text.upper() for text in data.texts[:50])], [*data.labels, *data.labels[:50]], CLASSES
    )
    plan = plan_own(doubled, minutes=1)
    indices = [*plan.training_rows, *plan.validation_rows, *plan.test_rows]
    assert sorted(indices) == list(range(250)) and 40 <= plan.n_test <= 55 and 10 <= plan.n_validation <= 25
    seen = [{normalised(text) for text in part.texts} for part in (plan.training, plan.validation, plan.test)]
    assert not (seen[0] & seen[1] or seen[0] & seen[2] or seen[1] & seen[2])
    assert any("50 rows repeat the text of another" in note for note in plan.notes)
    for part, which in ((plan.training, plan.training_rows), (plan.test, plan.test_rows)):
        assert list(part.texts) == [doubled.texts[row] for row in which]


def test_a_class_of_a_single_row_is_learned_and_refuses_nothing() -> None:
    data = rows(90)
    rare = LabelledTexts([*data.texts, "one of a kind"], [*data.labels, 3], (*CLASSES, "rare"))
    plan = plan_own(rare, minutes=1)
    assert "one of a kind" in plan.training.texts and plan.classes == (*CLASSES, "rare")
    assert any(
        "1 class with a single row ('rare'): it is learned, but cannot be measured." in one for one in plan.notes
    )


def test_given_test_rows_are_used_and_their_oddities_said() -> None:
    data = rows(90)
    given = LabelledTexts([data.texts[0], "a new soup", "a bird"], [0, 0, 1], ("food", "bird"))
    plan = plan_own(data, test=given, minutes=1)
    assert plan.test.texts == [data.texts[0], "a new soup"] and plan.test.classes == CLASSES and plan.given_test
    assert not len(plan.test_rows) and plan.n_training + plan.n_validation == 90
    said = " ".join(plan.notes)
    assert "1 test rows have labels that no training row has ('bird')" in said
    assert "1 test rows repeat the text of a training row" in said
    with pytest.raises(DataError, match="no test rows are left"):
        plan_own(data, test=LabelledTexts(["a bird"], [0], ("bird",)), minutes=1)


@pytest.mark.parametrize(
    "data, options, message",
    [
        (LabelledTexts(["a"] * 20, [0] * 20, ("x",)), {}, "all 20 rows have the label 'x'; wanted at least two"),
        (LabelledTexts(["a", "b"], [0, 1], ("x", "y")), {}, "2 rows with text and label; wanted at least 4"),
        (
            LabelledTexts([f"t{n}" for n in range(20)], list(range(20)), tuple(f"c{n}" for n in range(20))),
            {},
            "hardly any repeats; is it the right label column, or are the two columns swapped",
        ),
        (rows(30), {"minutes": 0}, "got a budget of 0 minutes; wanted 0.05 to 1440"),
    ],
)
def test_what_cannot_be_learned_is_refused(data: LabelledTexts, options: dict[str, float], message: str) -> None:
    with pytest.raises(DataError, match=message):
        plan_own(data, **options)  # type: ignore[arg-type]


def test_a_classifier_to_start_from_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="it is a classifier"):
        plan_own(rows(30), init=make_checkpoint(tmp_path / "classifier"))


def test_more_time_gives_more_epochs_and_the_forecast_stays_within_it() -> None:
    data = rows(600)
    plans = [plan_own(data, minutes=minutes) for minutes in (0.05, 5)]
    assert plans[0].epochs < plans[1].epochs and plans[1].forecast <= 300
    train = plans[1].config.train
    assert plans[1].steps == train.runs * train.epochs * -(-plans[1].n_training // train.batch_size)


def chosen(lengths: list[int], *, n: int, minutes: float = 5, speed: float = 10_000) -> recipe.Recipe:
    words = n * sum(lengths) / len(lengths)
    measured = recipe.Measured(np.array(lengths), n=n, n_classes=4, characters=6 * words, tokens_per_second=speed)
    return recipe.recipe_for(measured, minutes=minutes)


def test_texts_and_time_decide_how_much_of_them_is_read() -> None:
    assert chosen([5, 9, 12] * 50, n=1000).max_length == 16
    assert chosen([300] * 150, n=500).max_length == 384
    hurried = chosen([300] * 150, n=20_000)
    assert recipe.LEAST_LENGTH <= hurried.max_length < 384 and hurried.rows == 20_000


@pytest.mark.parametrize("n", [400, 5_000, 80_000])
@pytest.mark.parametrize("length", [10, 60, 600])
@pytest.mark.parametrize("minutes", [0.5, 5, 60])
def test_the_forecast_stays_within_the_budget(n: int, length: int, minutes: float) -> None:
    found = chosen([length] * 100, n=n, minutes=minutes)
    assert found.epochs >= 1 and 0 < found.rows <= n
    assert found.seconds + min(found.overhead, 0.6 * 60 * minutes) <= 60 * minutes
    assert found.rows == n or found.epochs <= recipe.ENOUGH_EPOCHS, "rows are left out only where few epochs fit"
    assert found.rows == n or found.runs == 1


def test_rows_that_do_not_fit_are_left_to_the_linear_baseline_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_plan, "measure_speed", lambda *_: speed.Speed(1, 100.0, ((1, 100.0),)))
    plan = plan_own(rows(400), minutes=0.2)
    assert len(plan.unused) > 0 and plan.n_training == len(plan.training_rows) and plan.epochs == 1
    assert plan.n_training + len(plan.unused) + plan.n_validation + plan.n_test == 400
    assert any(f"Only {plan.n_training:,} of {plan.n_training + len(plan.unused):,} rows" in one for one in plan.notes)
    result = train_own(plan, out=None)
    assert result.comparison.n_training == 400 - plan.n_test


def test_a_speed_that_is_known_is_not_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_plan, "measure_speed", lambda *_: pytest.fail("measured"))
    known = speed.Speed(2, 1000.0, ((2, 1000.0),))
    plans = [plan_own(rows(400), minutes=minutes, speed=known) for minutes in (0.2, 5)]
    assert {(one.threads, one.tokens_per_second) for one in plans} == {(2, 1000.0)}
    assert plans[0].steps < plans[1].steps


def test_the_result_is_compared_on_rows_it_never_saw_and_saved(tmp_path: Path) -> None:
    plan = planned()
    seen: list[OwnProgress] = []
    epochs: list[int] = []
    result = train_own(
        plan, out=tmp_path / "mine", on_progress=seen.append, on_epoch=lambda row: epochs.append(row.epoch)
    )
    truth = np.array(plan.test.labels)
    assert result.comparison.transformer.accuracy.value == pytest.approx((result.answers == truth).mean())
    assert result.comparison.linear.accuracy.value == pytest.approx((result.linear_answers == truth).mean())
    assert result.evaluation.metrics.accuracy == pytest.approx(result.comparison.transformer.accuracy.value)
    assert result.comparison.n_training == plan.n_training + plan.n_validation and result.comparison.n == plan.n_test
    shares = [one.share for one in seen]
    assert shares[0] == 0.0 and shares[-1] == 1.0 and all(0 <= share <= 1 for share in shares)
    assert shares == sorted(shares) and epochs == [1, 2]
    loaded = load_checkpoint(tmp_path / "mine")
    assert loaded.metrics["comparison"] == result.comparison.to_dict()
    assert loaded.metrics["test"]["n"] == plan.n_test and loaded.config.title == "mine.csv"
    assert (loaded.config.data.text_column, loaded.config.data.label_column) == ("text", "label")
    card = (tmp_path / "mine" / "README.md").read_text("utf-8")
    assert f"| this Transformer | {result.comparison.table[2][1]} |" in card and "read once, after training" in card
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "mine"]


def test_a_majority_of_classes_is_beaten_even_from_random_weights() -> None:
    plan = plan_own(rows(300), minutes=1, init=None)
    assert plan.init is None and any("random weights" in note for note in plan.notes)
    plan = replace(plan, config=plan.config.with_settings(["train.epochs=20"]))
    result = train_own(plan, out=None)
    assert result.checkpoint.path is None
    assert result.comparison.transformer.accuracy.low > result.comparison.majority.accuracy.high


def test_the_same_seed_gives_the_same_answers() -> None:
    first, again = (train_own(planned(), out=None) for _ in range(2))
    np.testing.assert_array_equal(first.answers, again.answers)
    for name, tensor in first.checkpoint.model.state_dict().items():
        assert torch.equal(tensor, again.checkpoint.model.state_dict()[name]), name


def test_asked_to_stop_it_measures_and_saves_what_there_is(tmp_path: Path) -> None:
    steps = 0

    def stop() -> bool:
        nonlocal steps
        steps += 1
        return steps >= 3

    result = train_own(planned(), out=tmp_path / "mine", should_stop=stop)
    assert result.stopped_early and result.checkpoint.metrics["training"]["steps"] <= 3 + planned().steps // 2
    assert load_checkpoint(tmp_path / "mine").metrics["comparison"]["n"] == result.comparison.n
    assert not state_file(tmp_path / "mine").parent.exists()


def interrupt_after(steps: int) -> Callable[[OwnProgress], None]:
    def on_progress(progress: OwnProgress) -> None:
        if progress.stage == "learn" and progress.step == steps:
            os.kill(os.getpid(), signal.SIGTERM)

    return on_progress


@pytest.mark.attack
def test_a_comparison_that_fails_loses_nothing_of_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("txcls.training.auto.run.fit_linear_baseline", fail)
    with pytest.raises(MemoryError):
        train_own(planned(), out=tmp_path / "mine")
    assert load_checkpoint(tmp_path / "mine").metrics["training"]


def test_an_interrupted_run_is_refused_unasked_and_resumed_with_its_plan(tmp_path: Path) -> None:
    out = tmp_path / "mine"
    with pytest.raises(TrainingInterruptedError, match="--resume"):
        train_own(planned(), out=out, on_progress=interrupt_after(3))
    state = state_file(out).read_bytes()
    with pytest.raises(TrainingError, match="holds the state of an interrupted run"):
        train_own(planned(), out=out)
    assert state_file(out).read_bytes() == state
    other = replace(planned(), config=planned().config.with_settings(["train.epochs=5"]), epochs=5)
    plan = resumed_plan(other, out)
    assert plan.epochs == 2 and plan.config == planned().config
    resumed = train_own(plan, out=out, resume=True)
    whole = train_own(planned(), out=None)
    np.testing.assert_array_equal(resumed.answers, whole.answers)
    assert not state_file(out).parent.exists()


def test_only_a_run_of_the_same_rows_is_resumed(tmp_path: Path) -> None:
    out = tmp_path / "mine"
    with pytest.raises(TrainingError, match=r"nothing to resume: there is no .*plan\.json"):
        resumed_plan(planned(), out)
    with pytest.raises(TrainingInterruptedError):
        train_own(planned(), out=out, on_progress=interrupt_after(1))
    with pytest.raises(TrainingError, match="is of a run with other rows, --test or --seed"):
        resumed_plan(plan_own(rows(151), minutes=1), out)
    (state_file(out).with_name("plan.json")).write_text("{")
    with pytest.raises(TrainingError, match="is damaged"):
        resumed_plan(planned(), out)


def test_lower_layers_learn_more_slowly_where_there_is_time_for_all_passes() -> None:
    measured = recipe.Measured(
        np.full(2000, 30), n=8000, n_classes=2, characters=1_440_000, tokens_per_second=20_000.0, pretrained=True
    )

    def decay(minutes: float, **changes: object) -> str:
        chosen = recipe.recipe_for(replace(measured, **changes), minutes=minutes)  # type: ignore[arg-type]
        [found] = [one for one in chosen.settings if one.startswith("train.layer_decay=")]
        return found.partition("=")[2]

    assert decay(5) == str(recipe.LAYER_DECAY)
    assert decay(0.3) == decay(5, pretrained=False) == "1.0"
