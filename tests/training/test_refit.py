"""Refit: the same settings on all rows, with nothing left to choose and no row of validation called unseen."""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
import torch

from tests.conftest import make_language_model
from txcls.checkpoint import Checkpoint
from txcls.config import load_preset
from txcls.data.datasets import open_dataset
from txcls.errors import DataError, TrainingError
from txcls.model import TextClassifier
from txcls.training import calibrate, evaluate, fit, refit, train, with_evaluation
from txcls.training.phrases import fit_votes_again
from txcls.training.prepare import prepare

SMALL = ["train.epochs=3", "model.d_model=16", "model.n_layers=1", "model.d_ff=16", "train.validations_per_epoch=2"]
FIELDS = ["model.phrases=300", "stored_tables=int8", "train.ema_decay=0.9"]


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    """What `train` made, best before its last step."""
    folder = tmp_path_factory.mktemp("refit") / "chosen"
    made = train(load_preset("sample").with_settings([*SMALL, *FIELDS]), out=folder)
    history = [{**row, "best": row["best"] and n < 4} for n, row in enumerate(made.history)]
    assert any(row["best"] for row in history)
    return replace(made, history=history)


@pytest.fixture(scope="module")
def made(chosen: Checkpoint) -> Checkpoint:
    return refit(chosen, out=chosen.path.with_name("made"))


def test_all_rows_are_learned_as_long_as_was_best(chosen: Checkpoint, made: Checkpoint) -> None:
    rows = len(open_dataset(chosen.config.data).load("train"))
    data = chosen.metrics["data"]
    assert made.metrics["refit"]["rows"] == rows == data["train_rows"] + data["validation_rows"]
    best = [row["step"] for row in chosen.history if row["best"]][-1]
    steps = [-(-n // chosen.config.train.batch_size) * 3 for n in (data["train_rows"], rows)]
    assert made.metrics["refit"]["steps"] == round(best / steps[0] * steps[1]) < steps[1]
    assert made.encoder.vocab_size > chosen.encoder.vocab_size, "words of the rows that were held out"


def test_weights_are_those_of_the_same_run_without_validation(chosen: Checkpoint, made: Checkpoint) -> None:
    config = chosen.config
    run = prepare(config, open_dataset(config.data).load("train"), None, init=None, tell=lambda message: None)
    fit(run.model, run.texts, None, config.train, objective=run.objective, max_steps=made.metrics["refit"]["steps"])
    votes = fit_votes_again(
        run.texts, n_classes=len(made.classes), n=300, longest=3, vocab_size=run.encoder.vocab_size,
        strength=chosen.metrics["phrases"]["strength"], scale=chosen.metrics["phrases"]["scale"],
    )  # fmt: skip
    votes.teach(run.model)
    ids = torch.randint(4, run.encoder.vocab_size, (5, 9))
    with torch.no_grad():
        torch.testing.assert_close(made.model(ids), run.model(ids), atol=0.05, rtol=0.02)  # stored in eight bits
    assert isinstance(made.model, TextClassifier) and made.model.phrases is not None
    torch.testing.assert_close(made.model.phrases.table, run.model.phrases.table, atol=1e-3, rtol=1e-3)
    assert made.model.phrases.table.any()


def test_what_validation_rows_chose_stays_and_says_of_which_model_it_is(chosen: Checkpoint, made: Checkpoint) -> None:
    assert (made.config, made.calibration, made.classes) == (chosen.config, chosen.calibration, chosen.classes)
    assert made.metrics["validation"] == chosen.metrics["validation"]
    assert made.metrics["phrases"] == chosen.metrics["phrases"] and list(made.history) == list(chosen.history)
    card = (made.path / "README.md").read_text(encoding="utf-8")
    for words in (
        "| validation, before refit |",
        f"trained anew on all {made.metrics['refit']['rows']:,} rows, those of validation among them",
        f"- trained anew, training time in seconds: {made.metrics['refit']['seconds']}",
        "The tables below are of the validation rows, and of the model before refit.",
    ):
        assert words in card, words
    assert "refit" not in (chosen.path / "README.md").read_text(encoding="utf-8")


def test_test_rows_measure_it_and_validation_rows_no_longer_do(made: Checkpoint) -> None:
    measured = with_evaluation(made, split="test", evaluation=evaluate(made, without_order=False))
    assert measured.metrics["test"]["n"] == measured.metrics["data"]["test_rows"] > 50
    for ask in (lambda: evaluate(made, split="validation"), lambda: calibrate(made)):
        with pytest.raises(TrainingError, match="made has learned its validation rows as well"):
            ask()


def test_figures_of_the_old_weights_do_not_outlive_them(chosen: Checkpoint, tmp_path: Path) -> None:
    record = {
        **chosen.metrics,
        "test": {"accuracy": 0.9},
        "heads": {"n": 1},
        "explanations": {"n": 1},
        "data": {**chosen.metrics["data"], "test_rows": 7},
    }
    again = refit(replace(chosen, metrics=record), out=tmp_path / "again")
    assert not {"test", "heads", "explanations"} & again.metrics.keys() and "test_rows" not in again.metrics["data"]


def test_a_stopped_refit_goes_on_to_the_same_weights(chosen: Checkpoint, made: Checkpoint, tmp_path: Path) -> None:
    def stop(progress: object) -> None:
        raise KeyboardInterrupt

    slow = replace(chosen, config=chosen.config.with_settings(["train.save_every_seconds=0.0"]))
    seen: list[int] = []

    def third(progress) -> None:  # type: ignore[no-untyped-def]
        seen.append(progress.total_steps)
        if progress.step == 20:
            stop(progress)

    with pytest.raises(KeyboardInterrupt):
        refit(slow, out=tmp_path / "cut", on_step=third)
    assert set(seen) == {made.metrics["refit"]["steps"]}, "the bar ends where it does"
    refit(slow, out=tmp_path / "cut", resume=True)
    weights = [(path / "model.safetensors").read_bytes() for path in (made.path, tmp_path / "cut")]
    assert weights[0] == weights[1] and not (tmp_path / "cut.training").exists()


def test_without_validation_rows_the_last_weights_are_kept() -> None:
    config = load_preset("sample").with_settings([*SMALL, "train.patience=1"])
    rows = open_dataset(config.data).load("train")
    run = prepare(config, rows, None, init=None, tell=lambda message: None)
    told = []
    result = fit(run.model, run.texts, None, config.train, objective=run.objective, on_validation=told.append)
    assert [row.step for row in told] == [row.step for row in result.history] and len(told) == 6
    assert all(row.best and row.validation_loss != row.validation_loss for row in told), "not a number"
    assert result.best == result.history[-1] and not result.stopped_early


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda one: replace(one, history=[]), "chosen does not say how it was trained"),
        (lambda one: replace(one, metrics={}), "chosen does not say how it was trained"),
        (
            lambda one: replace(one, metrics={name: one.metrics[name] for name in ("data", "training")}),
            "chosen does not say how it was trained",
        ),
        (
            lambda one: replace(one, metrics={**one.metrics, "data": {**one.metrics["data"], "train_rows": 77}}),
            "gives 408 training rows; chosen was trained on 77. Wanted the same data",
        ),
        (lambda one: replace(one, classes=("a", "b")), "has the classes cooking, .* was trained on a, b"),
    ],
)
def test_what_cannot_be_refitted_is_refused(
    chosen: Checkpoint, tmp_path: Path, change: Callable[[Checkpoint], Checkpoint], message: str
) -> None:
    with pytest.raises((DataError, TrainingError), match=message):
        refit(change(chosen), out=tmp_path / "none")
    assert not list(tmp_path.iterdir())


def test_a_language_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="tiny is a language model; refit is for classifiers"):
        refit(make_language_model(tmp_path / "tiny"), out=tmp_path / "none")


def test_published_validation_rows_are_not_learned(
    chosen: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = open_dataset(chosen.config.data)
    assert not opened.has_validation
    splits = (*opened.splits, "validation")
    module = import_module("txcls.training.refit")  # whose name in the package is the function's
    monkeypatch.setattr(module, "open_dataset", lambda *_, **__: replace(opened, splits=splits))
    with pytest.raises(DataError, match="the validation rows of sample are published by themselves"):
        refit(chosen, out=tmp_path / "none")
