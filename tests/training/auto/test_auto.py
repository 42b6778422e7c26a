"""Training on a user's rows: splits that share no text, a plan within the budget, a fair comparison, and resuming."""

import itertools
import json
import os
import re
import signal
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from txcls.checkpoint.load import load_checkpoint
from txcls.config import DataConfig, TrainConfig
from txcls.data.batches import TokenisedTexts
from txcls.data.hashes import normalised
from txcls.data.types import LabelledTexts
from txcls.errors import DataError, TrainingError
from txcls.model import TextClassifier
from txcls.text.cleaning import clean
from txcls.text.vocabulary import SPECIAL_TOKENS
from txcls.training import TrainingInterruptedError, speed
from txcls.training.auto import plan as planning
from txcls.training.auto import run as running
from txcls.training.auto.choose_settings import (
    CONSISTENCY_WEIGHT,
    ENOUGH_EPOCHS,
    Recipe,
    RecipeInputs,
    choose_recipe,
    epochs_for,
    minutes_needed,
)
from txcls.training.auto.plan import (
    TrainingPlan,
    choice_notes,
    overrun,
    plan_training,
    shipped_encoder,
    shortage,
    spare_time,
)
from txcls.training.auto.run import RunProgress, run_plan
from txcls.training.auto.split_rows import split_rows
from txcls.training.run_folder import state_file

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


SPEED = speed.Speed(threads=1, tokens_per_second=3000.0, by_threads=((1, 3000.0),))


def planned(**changes: Any) -> TrainingPlan:
    """A plan of two epochs on 150 rows, independent of the machine's speed."""
    options = {
        "minutes": 0.05,
        "speed": SPEED,
        "name": "mine",
        "source": "mine.csv",
        "data": DataConfig(dataset="table", text_column="text", label_column="label"),
    }
    return plan_training(rows(150), **{**options, **changes})


def test_splits_are_disjoint_and_share_no_text() -> None:
    data = rows(200)
    doubled = LabelledTexts(
        [*data.texts, *(text.upper() for text in data.texts[:50])], [*data.labels, *data.labels[:50]], CLASSES
    )
    splits = split_rows(doubled, None, seed=0)
    assert splits.test_rows is not None
    indices = [*splits.training_rows, *splits.validation_rows, *splits.test_rows]
    assert sorted(indices) == list(range(250)) and 40 <= len(splits.test) <= 55 and 10 <= len(splits.validation) <= 25
    texts = [{normalised(text) for text in split.texts} for split in (splits.training, splits.validation, splits.test)]
    assert not (texts[0] & texts[1] or texts[0] & texts[2] or texts[1] & texts[2])
    assert any("Of the rows, 50 repeat the text of another" in note for note in splits.notes)
    for split, indices_of_split in ((splits.training, splits.training_rows), (splits.test, splits.test_rows)):
        assert list(split.texts) == [doubled.texts[row] for row in indices_of_split]


def test_nearly_the_same_texts_are_in_the_same_split() -> None:
    """150 articles that were published twice, each time with another headline, and 150 others."""
    rng = np.random.default_rng(0)
    articles = [" ".join(f"word{n}" for n in rng.integers(5000, size=40)) for _ in range(300)]
    texts = [f"{headline} {text}" for headline in ("monday", "tuesday") for text in articles]
    texts = [*texts[:450], *(text.upper() for text in texts[:10])]
    splits = split_rows(LabelledTexts(texts, [n % 3 for n in range(460)], CLASSES), None, seed=0)
    in_split = [
        {normalised(text).split(" ", 1)[1] for text in split.texts}
        for split in (splits.training, splits.validation, splits.test)
    ]
    assert not (in_split[0] & in_split[1] or in_split[0] & in_split[2] or in_split[1] & in_split[2])
    assert 85 <= len(splits.test) <= 95
    assert any(
        "Of the rows, 10 repeat the text of another, and 150 are nearly the same as another" in note
        for note in splits.notes
    )


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


def chosen(lengths: list[int], *, n: int, minutes: float = 5, speed: float = 10_000) -> Recipe:
    characters = 6 * n * sum(lengths) // len(lengths)
    inputs = RecipeInputs(np.array(lengths), n, n_classes=4, characters=characters, tokens_per_second=speed)
    return choose_recipe(inputs, minutes=minutes)


@pytest.mark.parametrize("n", [400, 80_000])
@pytest.mark.parametrize("length", [10, 600])
@pytest.mark.parametrize("minutes", [0.5, 60])
def test_the_forecast_stays_within_the_budget(n: int, length: int, minutes: float) -> None:
    choice = chosen([length] * 100, n=n, minutes=minutes)
    assert choice.epochs >= 1 and 0 < choice.rows <= n
    assert choice.seconds + min(choice.baseline + choice.measuring, 0.6 * 60 * minutes) <= 60 * minutes
    assert choice.rows == n or choice.epochs <= ENOUGH_EPOCHS, "rows are left out only where few epochs fit"
    assert choice.rows == n or not choice.consistency


def test_the_minutes_that_a_budget_lacks_are_enough() -> None:
    inputs = RecipeInputs(np.array([300] * 100), n=100_000, n_classes=4, characters=10**8, tokens_per_second=5000)
    assert choose_recipe(inputs, minutes=1).forecast > 60
    enough = minutes_needed(inputs)
    assert choose_recipe(inputs, minutes=enough).forecast <= 60 * enough
    assert choose_recipe(inputs, minutes=enough - 1).forecast > 60 * (enough - 1)
    for_all = minutes_needed(inputs, all_rows=True)
    assert for_all > enough and choose_recipe(inputs, minutes=for_all).rows == 100_000


def test_texts_are_read_twice_per_step_where_time_allows_and_the_time_for_it_is_planned() -> None:
    useful = epochs_for(2000, 4)
    epoch = 2000 * 20 / 10_000  # seconds
    once, twice, long = (chosen([20] * 100, n=2000, minutes=minutes) for minutes in (0.5, 1.5, 60))
    assert (once.consistency, twice.consistency, long.consistency) == (False, True, True)
    assert useful <= twice.epochs < long.epochs == 2 * useful and once.epochs <= useful
    assert once.seconds == pytest.approx(once.epochs * epoch) and long.seconds == pytest.approx(2 * long.epochs * epoch)
    assert f"train.consistency={CONSISTENCY_WEIGHT}" in long.settings and "train.consistency=0" in once.settings


def test_texts_too_long_for_the_encoder_in_the_budget_are_read_by_a_one_layer_model_of_their_words() -> None:
    short, long = (chosen([300] * 100, n=10_000, minutes=minutes) for minutes in (5, 30))
    assert (short.one_layer, long.one_layer) == (True, False) and "model.n_layers=1" in short.settings
    assert short.read == 1.0 == long.read and "text.max_vocabulary" not in str(long.settings)
    assert not chosen([40] * 100, n=10_000, minutes=0.5).one_layer, "short texts are read whole by the encoder"
    data = LabelledTexts([f"{text} " * 40 for text in rows(300).texts], rows(300).labels, rows(300).classes)
    plan = plan_training(data, minutes=0.3, speed=speed.Speed(1, 1500.0, ((1, 1500.0),)))
    assert plan.speed.tokens_per_second == 1500.0 and plan.speed.one_layer is not None, (
        "both are measured, none is lost"
    )
    assert plan.inputs.one_layer == plan.speed.one_layer.tokens_per_second > 1500.0
    assert speed.Speed.from_dict(json.loads(json.dumps(asdict(plan.speed)))) == plan.speed
    assert plan.init is None and plan.config.model.n_layers == 1 and plan.config.text.tokenizer == "basic_english"
    assert any("A one-layer model with a vocabulary learned from" in note for note in plan.notes)
    result = run_plan(plan, out=None)
    assert result.checkpoint.tokenizer.vocab_size < 300 and result.comparison.transformer.accuracy.value > 0.9


def test_long_or_many_texts_that_are_not_english_are_read_by_a_one_layer_model_even_if_there_is_time() -> None:
    lengths = {"short": np.full(100, 40), "long": np.full(100, 400)}
    for pretrained, not_english, length, n in itertools.product((True, False), (0.1, 0.9), lengths, (900, 8000)):
        inputs = RecipeInputs(
            lengths[length],
            n,
            n_classes=4,
            characters=10**6,
            tokens_per_second=10_000,
            pretrained=pretrained,
            not_english=not_english,
        )
        recipe = choose_recipe(inputs, minutes=30)
        assert recipe.one_layer == (pretrained and not_english > 0.5 and (length == "long" or n == 8000))
        assert ("model.d_model=256" in recipe.settings) == recipe.one_layer, "a wider model at any number of rows"
        reason = " ".join(choice_notes(inputs, recipe, 30))
        assert ("do not look like English" in reason) == recipe.one_layer
        assert choose_recipe(replace(inputs, read_as_bytes=True), minutes=30).one_layer == pretrained


def test_a_forecast_far_below_the_budget_says_why_the_other_time_is_not_used() -> None:
    inputs = RecipeInputs(np.full(100, 20), 1000, n_classes=4, characters=10**5, tokens_per_second=2_000)
    unused = "At the planned speed, the other time is not used:"
    twice = "it is too short for reading each text twice per step, for which 3 minutes should be enough."
    for minutes, said in (
        (1, []),
        (2, [f"{unused} {twice}"]),
        (3, []),
        (30, [f"{unused} more epochs do not help with 1,000 rows."]),
    ):
        assert list(spare_time(inputs, choose_recipe(inputs, minutes=minutes), minutes)) == said
    random_start = replace(inputs, pretrained=False, tokens_per_second=20_000)
    [sentence] = spare_time(random_start, choose_recipe(random_start, minutes=30), 30)
    assert sentence == f"{unused} more epochs do not help with 1,000 rows.", "texts are never read twice"


def test_the_encoder_is_not_measured_where_it_is_never_used(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[int] = []

    def record(model: TextClassifier, texts: TokenisedTexts, config: TrainConfig) -> speed.Speed:
        measured.append(len(model.layers))
        return SPEED

    monkeypatch.setattr(planning, "measure_speed", record)
    invoice = "die Rechnung Nummer {} ist falsch, bitte schicken Sie mir eine neue " * 10
    foreign = LabelledTexts([invoice.format(*[n] * 10) for n in range(60)], [n % 2 for n in range(60)], ("a", "b"))
    first = plan_training(foreign, planning=0.0)
    again = plan_training(
        foreign, planning=0.0, speed=speed.Speed.from_dict(json.loads(json.dumps(asdict(first.speed))))
    )
    assert measured == [1] and first.config.model.n_layers == 1 and first.measuring > 0
    assert (first.config.text.tokenizer, first.config.model.positions) == ("bpe", "learned")
    assert (again.recipe, again.notes, again.measuring) == (first.recipe, first.notes, 0.0)
    plan_training(rows(60))
    assert measured == [1, load_checkpoint("encoder").config.model.n_layers]


@pytest.mark.parametrize("n_classes, n, rate", [(3, 400, 100.0), (7, 1003, 250.0), (60, 301, 40.0), (2, 120, 3000.0)])
def test_the_numbers_of_rows_are_those_of_the_plan(n_classes: int, n: int, rate: float) -> None:
    """Uneven classes, and texts that repeat; at a low speed, some rows are left out."""
    random = np.random.default_rng(n)
    texts = [f"{text} {random.integers(n)}" for text in rows(n - n // 10).texts]
    labels = np.minimum(random.geometric(2 / n_classes, len(texts)), n_classes) - 1
    labels[: 2 * n_classes] = np.arange(2 * n_classes) % n_classes
    classes = tuple(f"class {k:02}" for k in range(n_classes))
    data = LabelledTexts([*texts, *texts[: n // 10]], [*labels.tolist(), *labels[: n // 10].tolist()], classes)
    plan = plan_training(data, minutes=0.2, speed=speed.Speed(1, rate, ((1, rate),)))
    result = run_plan(replace(plan, minutes=0.01), out=None)
    facts = result.checkpoint.metrics
    training, validation, test = map(len, (plan.splits.training, plan.splits.validation, plan.splits.test))
    n_unused = len(plan.splits.unused)
    assert (facts["data"]["train_rows"], facts["validation"]["n"], result.comparison.n) == (training, validation, test)
    assert training == plan.recipe.rows and training + n_unused + validation + test == n
    said = f"{training + n_unused:,} rows to train on, {validation:,} to fit the calibration, {test:,} to test on"
    assert any(said in note for note in plan.notes) and set(plan.splits.training.labels) == set(range(n_classes))
    assert any(f"only {training:,} of {training + n_unused:,} rows" in note for note in plan.notes) == (n_unused > 0)
    assert (f"; {n_unused:,} further rows were left out" in result.done) == (n_unused > 0)


def test_rows_that_do_not_fit_are_left_to_the_linear_baseline_with_a_note() -> None:
    slow = speed.Speed(1, 100.0, ((1, 100.0),))
    late = plan_training(rows(400), minutes=0.2, speed=slow, planning=4.0)
    assert any("Training and comparison may take" in note for note in late.notes) and late.recipe.forecast > 15
    plan = plan_training(rows(400), minutes=0.2, speed=slow, planning=0.0)
    n_training, n_unused = len(plan.splits.training), len(plan.splits.unused)
    assert not any("Training and comparison may take" in note for note in plan.notes) and plan.recipe.forecast < 12
    assert n_unused > 0 and n_training == len(plan.splits.training_rows) and plan.recipe.epochs == 1
    assert n_training + n_unused + len(plan.splits.validation) + len(plan.splits.test) == 400
    assert any(f"only {n_training:,} of {n_training + n_unused:,} rows" in note for note in plan.notes)
    assert any(re.search(r"for all rows, about \d+ minutes? should be enough", note) for note in plan.notes)
    all_rows = split_rows(rows(400), None, seed=0)
    assert not len(all_rows.unused)
    assert plan.splits.fitted == all_rows.fitted, "the linear baseline does not depend on the time for training"
    result = run_plan(plan, out=None)
    assert result.comparison.n_training == 400 - len(plan.splits.test)
    assert f"; {n_unused:,} further rows were left out" in result.done


def test_a_language_that_the_encoder_has_not_read_is_noted_where_the_encoder_is_used() -> None:
    measured = replace(SPEED, one_layer=speed.Speed(1, 9000.0, ((1, 9000.0),)))
    for n_repeats, is_used in ((10, False), (3, True)):
        invoice = "die Rechnung Nummer {} ist falsch, bitte schicken Sie mir eine neue " * n_repeats
        texts = [invoice.format(*[n] * n_repeats) for n in range(60)]
        foreign = LabelledTexts(texts, [n % 2 for n in range(60)], ("a", "b"))
        plan = plan_training(foreign, minutes=5, speed=measured)
        assert (plan.init is not None) == is_used
        assert any("It has read only English" in note for note in plan.notes) == is_used
    assert not any("only English" in note for note in planned().notes)
    english = "the invoice with number {} is wrong, please send me a new one"
    mixed = replace(foreign, texts=[text if n % 3 else english.format(n) for n, text in enumerate(texts)])
    [note] = [note for note in plan_training(mixed, minutes=5, speed=measured).notes if "only English" in note]
    assert re.search(r"about 6\d\s% of the texts do not look like English", note)


def test_a_budget_is_too_short_only_if_the_forecast_is_longer_in_whole_seconds() -> None:
    inputs = RecipeInputs(np.array([20] * 100), n=5000, n_classes=4, characters=10**6, tokens_per_second=5000)
    rest = choose_recipe(replace(inputs, planning=50.0), minutes=1).forecast - 50
    too_short = "Training and comparison may take 61 s, more than 1 minute; 2 minutes should be enough."
    for forecast, said in ((60.4, []), (60.6, [too_short])):
        slow = replace(inputs, planning=forecast - rest)
        recipe = choose_recipe(slow, minutes=1)
        assert recipe.forecast == pytest.approx(forecast)
        assert list(shortage(slow, recipe, 1, SPEED)) == said


def test_a_plan_longer_than_its_budget_says_so() -> None:
    for minutes, said in (
        (5, r"\d+ of 300 seconds for everything\."),
        (0.05, r"\d+ seconds .*, more than the 3 asked for"),
    ):
        notes = planned(minutes=minutes, started=time.monotonic() - 10).notes
        assert any(re.match(rf"Planned: .*; {said}", note) for note in notes), minutes


def test_a_machine_too_busy_for_half_of_the_steps_is_noted_before_training_with_the_minutes_that_all_take() -> None:
    inputs = RecipeInputs(np.array([20] * 100), n=2000, n_classes=4, characters=10**5, tokens_per_second=5000)
    recipe = choose_recipe(inputs, minutes=1)
    for mean, is_noted in ((4000.0, False), (500.0, True)):
        notes = list(shortage(inputs, recipe, 1, speed.Speed(1, 5000.0, ((1, mean),))))
        assert bool(notes) == is_noted
    share, minutes = map(int, re.findall(r"about (\d+)", notes[0]))
    assert 5 <= share <= 15 and 10 * recipe.seconds / 60 < minutes < 20 * recipe.seconds / 60


def test_a_run_that_took_a_fifth_longer_than_its_budget_says_so_and_whether_it_was_planned() -> None:
    recipe = planned().recipe
    minutes = 2 * recipe.forecast / 60
    assert overrun(recipe, minutes, seconds=1.1 * 60 * minutes) == ""
    said = overrun(recipe, minutes, seconds=1.3 * 60 * minutes)
    assert said.endswith(" was exceeded, as happens on a busy machine.")
    assert overrun(recipe, minutes / 3, seconds=recipe.forecast).endswith(" was exceeded, as planned.")


def test_training_that_the_time_ends_says_what_was_done_and_promises_no_later_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many more epochs are planned than the machine manages."""
    monkeypatch.setattr(running, "MIN_SECONDS", 0.5)
    plan = replace(planned(speed=replace(SPEED, tokens_per_second=1e6)), seconds=0.0)
    end = time.monotonic() + 60 * plan.minutes
    ends: list[float] = []
    comparing: list[float] = []

    def promise(report: RunProgress) -> None:
        if report.stage == "compare":
            comparing.append(report.seconds_left)
        else:
            ends.append(time.monotonic() + report.seconds_left if report.seconds_left else 0.0)

    result = run_plan(plan, out=tmp_path / "mine", on_progress=promise)
    assert max(ends) <= end + 0.5 and min(comparing) >= plan.recipe.measuring, "comparing is not cut short"
    (done, total), epochs = result.steps, plan.config.train.epochs
    extent = f"{epochs * done / total:.1f} of {epochs} epochs ({done} of {total} steps), "
    assert result.comparison.steps == (done, total)
    assert done < total and extent in result.done and "; ended early because the time was up." in result.done
    card = (tmp_path / "mine" / "README.md").read_text("utf-8")
    assert f"training done: {extent}" in card and "epochs run" not in card
    assert "Planned for 1,000,000 tokens per second, in case" in " ".join(plan.notes)
    assert f"Planned: {epochs} epochs" in " ".join(plan.notes)
    assert 2 * done < total and result.longer is not None
    minutes, slower = result.longer.minutes, result.longer.speed
    assert planned(minutes=minutes, speed=slower).steps >= 2 * done, "in the time offered, at the speed of this run"
    assert planned(minutes=minutes, speed=slower).recipe.forecast <= 60 * minutes


@pytest.mark.parametrize("minutes, expected", [(1, 2), (30, 35), (1440, None)])
def test_a_longer_run_is_offered_more_minutes_even_if_the_run_ended_early(minutes: int, expected: int | None) -> None:
    """All planned steps would have fitted into the budget, had the run not ended just before it."""
    plan = planned(minutes=minutes)
    longer = running._longer_run(plan, ended(75), 45.0)
    assert (longer and longer.minutes) == expected


def ended(n_steps: int) -> Any:
    """The result of a run with this many of 100 planned steps."""
    return SimpleNamespace(steps=(n_steps, 100), checkpoint=SimpleNamespace(metrics={"training": {"seconds": 40.0}}))


def test_a_longer_run_is_offered_only_for_rows_or_many_steps_that_were_missed_and_says_which() -> None:
    whole = planned(minutes=5)
    part = replace(whole, recipe=replace(whole.recipe, rows=whole.inputs.n - 1))
    assert running._longer_run(whole, ended(85), 45.0) is None, "a few steps more make no difference"
    rows, steps, both = (
        running._longer_run(*run, 45.0) for run in ((part, ended(100)), (whole, ended(75)), (part, ended(75)))
    )
    assert rows is not None and (rows.missed, rows.reason) == ("all rows", "The time was too short for all rows.")
    assert steps is not None and steps.missed == "all planned steps"
    assert steps.reason == "The machine was slower than planned for."
    late = running._longer_run(planned(), ended(75), 45.0)
    assert late is not None and late.reason == "The time was too short for all planned steps.", "this was planned"
    assert both is not None and both.missed == "all rows and planned steps"
    assert both.reason == "The time was too short for all rows and the machine was slower than planned for."


def test_training_gets_the_time_that_planning_the_baseline_and_measuring_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    """The baseline takes twice as long as planned, so that measuring is expected to as well."""
    now, plan, given = [100.0], replace(planned(minutes=5), seconds=20.0), []

    def fit(*_: object, **__: object) -> None:
        now[0] += 2 * plan.recipe.baseline
        raise MemoryError

    def train(*_: object, max_seconds: float, **__: object) -> None:
        given.append(max_seconds)
        raise TrainingError("enough")

    monkeypatch.setattr(running.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(running, "fit_linear_baseline", fit)
    monkeypatch.setattr(running, "train", train)
    with pytest.raises(TrainingError, match="enough"):
        run_plan(plan, out=None)
    assert given == [pytest.approx(300 - 20 - 2 * plan.recipe.baseline - 2 * plan.recipe.measuring)]


def test_the_shipped_encoder_is_found_if_checkpoints_are_saved_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(tmp_path / "elsewhere"))
    assert shipped_encoder() is not None


def test_the_bytes_in_a_token_are_counted_from_its_ids() -> None:
    start = shipped_encoder()
    assert start is not None
    data = rows(60)
    encoded = planning._encode_untruncated(start.tokenizer, data)
    n_bytes = sum(
        len(clean(text, start.config.text.cleaning).encode()) + 1 for text in data.texts
    )  # a space before each
    n_tokens = int((encoded.ids >= len(SPECIAL_TOKENS)).sum())
    in_all, in_each = planning._bytes_per_token(start.tokenizer, encoded)
    first = encoded.ids[: encoded.lengths[0]]
    n_in_first = int((first >= len(SPECIAL_TOKENS)).sum())
    assert in_all == pytest.approx(n_bytes / n_tokens) and len(in_each) == len(data)
    assert in_each[0] == pytest.approx(
        (len(clean(data.texts[0], start.config.text.cleaning).encode()) + 1) / n_in_first
    )


def test_the_result_is_compared_on_rows_it_never_saw_and_saved(tmp_path: Path) -> None:
    plan = planned()
    reports: list[RunProgress] = []
    epochs: list[int] = []
    result = run_plan(
        plan, out=tmp_path / "mine", on_progress=reports.append, on_epoch=lambda row: epochs.append(row.epoch)
    )
    truth, n_test = np.array(plan.splits.test.labels), len(plan.splits.test)
    assert result.comparison.transformer.accuracy.value == pytest.approx((result.predictions == truth).mean())
    assert result.comparison.linear.accuracy.value == pytest.approx((result.linear_predictions == truth).mean())
    assert result.comparison.n == n_test and result.comparison.n_training == 150 - n_test
    shares = [progress.share for progress in reports]
    assert shares[0] == 0.0 and shares[-1] == 1.0 and all(0 <= share <= 1 for share in shares)
    assert shares == sorted(shares) and epochs == [1, 2]
    assert result.steps == (plan.steps, plan.steps) and result.seconds > plan.seconds
    loaded = load_checkpoint(tmp_path / "mine")
    assert loaded.metrics["comparison"] == result.comparison.to_dict()
    assert loaded.metrics["test"]["accuracy"] == pytest.approx((result.predictions == truth).mean(), abs=1e-4)
    assert sum(loaded.metrics["data"]["train_rows_by_class"]) == loaded.metrics["data"]["train_rows"] > 0
    assert loaded.metrics["test"]["n"] == n_test and loaded.config.title == "mine.csv"
    assert (loaded.config.data.text_column, loaded.config.data.label_column) == ("text", "label")
    card = (tmp_path / "mine" / "README.md").read_text("utf-8")
    row = f"| this Transformer | {result.comparison.table[2][1]} |".replace("\u00a0", " ")
    assert row in card and "read once, after training" in card
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine"]


def test_training_from_random_weights_beats_the_majority_guess() -> None:
    plan = plan_training(rows(300), minutes=1, init=None)
    assert plan.init is None and any("random weights" in note for note in plan.notes)
    plan = replace(plan, config=plan.config.with_settings(["train.epochs=20"]))
    result = run_plan(plan, out=None)
    assert result.checkpoint.path is None
    assert result.comparison.transformer.accuracy.low > result.comparison.majority.accuracy.high


@pytest.mark.parametrize(
    "good, bad",
    [
        pytest.param("очень хороший номер, приедем ещё {}", "в номере {} грязно и холодно", marks=pytest.mark.slow),
        ("这个酒店的服务非常好下次还会再来{}", "房间{}太小而且不干净价格也贵"),
    ],
)
def test_texts_that_the_encoder_reads_byte_by_byte_are_read_by_a_one_layer_model_of_their_pieces(
    good: str, bad: str
) -> None:
    texts = tuple((good, bad)[n % 2].format(n) for n in range(120))
    foreign = LabelledTexts(texts, tuple(n % 2 for n in range(120)), ("good", "bad"))
    plan = plan_training(foreign, minutes=1, speed=SPEED)
    assert plan.init is None and plan.config.text.tokenizer == "bpe" and plan.config.train.embeddings_from_texts
    assert (plan.config.model.n_layers, plan.config.model.positions) == (1, "learned")
    [note] = [note for note in plan.notes if "byte by byte" in note]
    assert note.startswith("A one-layer model") and "instead of the pre-trained encoder" in note
    assert not any("only English" in note for note in plan.notes), "the encoder is not used"
    assert plan.inputs.lengths.mean() < 20
    result = run_plan(plan, out=None)
    assert result.comparison.transformer.accuracy.low > result.comparison.majority.accuracy.high
    asked_for = shipped_encoder()
    assert plan_training(foreign, minutes=1, speed=SPEED, init=asked_for).init is asked_for


def test_a_stopped_run_is_measured_and_saved(tmp_path: Path) -> None:
    steps = 0

    def stop() -> bool:
        nonlocal steps
        steps += 1
        return steps >= 3

    result = run_plan(planned(), out=tmp_path / "mine", should_stop=stop)
    assert result.stopped_early and result.checkpoint.metrics["training"]["steps"] <= 3 + planned().steps // 2
    assert load_checkpoint(tmp_path / "mine").metrics["comparison"]["n"] == result.comparison.n
    assert not state_file(tmp_path / "mine").parent.exists()


def interrupt_after(steps: int) -> Callable[[RunProgress], None]:
    def on_progress(progress: RunProgress) -> None:
        if progress.stage == "learn" and progress.step == steps:
            os.kill(os.getpid(), signal.SIGTERM)

    return on_progress


@pytest.mark.attack
def test_a_comparison_that_fails_leaves_the_trained_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("txcls.training.auto.run.fit_linear_baseline", fail)
    with pytest.raises(MemoryError):
        run_plan(planned(), out=tmp_path / "mine")
    assert load_checkpoint(tmp_path / "mine").metrics["training"]


def test_an_interrupted_run_is_not_overwritten_and_resumed_with_its_plan(tmp_path: Path) -> None:
    out = tmp_path / "mine"
    with pytest.raises(TrainingInterruptedError, match="--resume"):
        run_plan(planned(), out=out, on_progress=interrupt_after(3))
    state = state_file(out).read_bytes()
    with pytest.raises(TrainingError, match="holds the state of an interrupted run"):
        run_plan(planned(), out=out)
    assert state_file(out).read_bytes() == state
    plan = planned(minutes=7, speed=speed.Speed(2, 9000.0, ()), resume=out)
    assert (plan.config, plan.minutes, plan.speed) == (planned().config, planned().minutes, SPEED)
    resumed = run_plan(plan, out=out, resume=True)
    uninterrupted = run_plan(planned(), out=None)
    np.testing.assert_array_equal(resumed.predictions, uninterrupted.predictions)
    assert not state_file(out).parent.exists()


def test_only_a_run_of_the_same_rows_is_resumed(tmp_path: Path) -> None:
    out = tmp_path / "mine"
    with pytest.raises(TrainingError, match=r"nothing to resume: there is no .*plan\.json"):
        planned(resume=out)
    with pytest.raises(TrainingInterruptedError):
        run_plan(planned(), out=out, on_progress=interrupt_after(1))
    with pytest.raises(TrainingError, match="belongs to a run with other rows, --test, --seed or --init"):
        plan_training(rows(151), resume=out)
    (state_file(out).with_name("plan.json")).write_text("{")
    with pytest.raises(TrainingError, match="is damaged"):
        planned(resume=out)


def test_given_test_rows_are_used_with_notes_on_those_left_out_or_repeated() -> None:
    data = rows(90)
    test_rows = LabelledTexts([data.texts[0], "a new soup", "a bird"], [0, 0, 1], ("food", "bird"))
    splits = split_rows(data, test_rows, seed=0)
    assert splits.test.texts == [data.texts[0], "a new soup"] and splits.test.classes == CLASSES
    assert splits.test_rows is None and len(splits.training) + len(splits.validation) == 90
    notes = " ".join(splits.notes)
    assert "1 test rows have labels that no training row has ('bird')" in notes
    assert "1 test rows (50\u00a0%) repeat the text of a training row" in notes
    with pytest.raises(DataError, match="no test rows are left"):
        split_rows(data, LabelledTexts(["a bird"], [0], ("bird",)), seed=0)


def test_texts_are_said_to_be_read_whole_only_if_they_are() -> None:
    short = rows(60)
    long = LabelledTexts([f"{text} " + "and so on " * 400 for text in short.texts], short.labels, CLASSES)
    plan = plan_training(long, minutes=5, speed=SPEED)
    assert plan.inputs.lengths.min() > 1000
    assert any("100 % of the texts are longer" in note for note in plan.notes)
    assert any("read whole" in note for note in planned().notes)
