import math
import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch

from txcls.config import ModelConfig, TrainConfig
from txcls.data.batches import TokenisedTexts
from txcls.errors import TrainingError
from txcls.evaluation.predict_logits import predict_logits
from txcls.model import TextClassifier
from txcls.text.vocabulary import MASK, UNK
from txcls.training import FitResult, Progress, TrainingInterruptedError, fit, loop
from txcls.training.objectives import Classify, drop_tokens
from txcls.training.optimizer import AveragedWeights, learning_rate, make_optimizer, set_learning_rate

VOCAB = 40


def rows(n: int, *, seed: int) -> TokenisedTexts:
    """Texts of noise, each with one informative token (10, 11 or 12) that determines its class."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 3, size=n)
    texts = [random.integers(13, VOCAB, size=random.integers(2, 9)) for _ in labels]
    for text, label in zip(texts, labels, strict=True):
        text[random.integers(len(text))] = 10 + label
    offsets = np.concatenate([[0], np.cumsum([len(text) for text in texts])])
    return TokenisedTexts(np.concatenate(texts).astype(np.int32), offsets.astype(np.int64), labels.astype(np.int64))


TRAIN, VALIDATION = rows(300, seed=0), rows(90, seed=1)


def model(**changes: object) -> TextClassifier:
    torch.manual_seed(5)
    config = ModelConfig.model_validate(
        {"d_model": 16, "n_heads": 2, "n_layers": 1, "d_ff": 32, "max_length": 16, **changes}
    )
    return TextClassifier(config, vocab_size=VOCAB, n_classes=3)


def config(**changes: object) -> TrainConfig:
    plain: dict[str, object] = {
        "epochs": 3,
        "batch_size": 32,
        "learning_rate": 1e-2,
        "ema_decay": 0.9,
        "token_dropout": 0.1,
        "label_smoothing": 0.05,
        "save_every_seconds": 0.0,
    }
    return TrainConfig.model_validate({**plain, **changes})


def state(network: TextClassifier) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in network.state_dict().items()}


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(first[name], second[name]) for name in first)


def curves(result: FitResult) -> list[tuple[float, ...]]:
    """The history without times."""
    return [
        (r.epoch, r.step, r.train_loss, r.train_accuracy, r.validation_loss, r.validation_accuracy)
        for r in result.history
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"epochs": 8},
        {"optimizer": "adam", "epochs": 8},
        {"class_weights": "inverse", "epochs": 8},
        {"precision": "bfloat16", "epochs": 8},
    ],
)
def test_it_learns_a_simple_rule(changes: dict[str, object]) -> None:
    network = model()
    result = fit(network, TRAIN, VALIDATION, config(**changes))
    assert result.best.validation_accuracy > 0.95
    accuracy = (predict_logits(network, VALIDATION).argmax(-1).numpy() == VALIDATION.labels).mean()
    assert accuracy == pytest.approx(result.best.validation_accuracy), "the model is left with its best weights"
    assert not network.training


def test_the_same_seed_gives_the_same_result_twice_and_another_seed_another() -> None:
    networks = [model(), model(), model()]
    results = [fit(one, TRAIN, VALIDATION, config(seed=seed)) for one, seed in zip(networks, (1, 1, 2), strict=True)]
    assert curves(results[0]) == curves(results[1]) and same(state(networks[0]), state(networks[1]))
    assert not same(state(networks[0]), state(networks[2]))


def test_a_step_in_parts_with_rounded_lengths_equals_a_step_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    networks = []
    for n_tokens, multiple in ((10_000, 1), (50, 2)):
        monkeypatch.setattr(loop, "MAX_PART_TOKENS", n_tokens)
        monkeypatch.setattr(loop, "FEW_WIDTHS", multiple)
        networks.append(model(dropout=0.0))
        fit(networks[-1], TRAIN, VALIDATION, config(epochs=1, token_dropout=0.0))
    for name, expected in state(networks[0]).items():
        if name.endswith("key.bias"):  # its gradient is zero but for rounding, to which Adam gives full steps
            continue
        torch.testing.assert_close(state(networks[1])[name], expected, atol=1e-4, rtol=1e-3, msg=name)


@pytest.mark.parametrize(
    "stop_after, end, changes",
    [
        (1, "interrupted", {}),
        (10, "killed", {}),  # at the end of an epoch
        (14, "killed", {"snapshots": 8}),
        (29, "interrupted", {"snapshots": 8}),
        (15, "interrupted", {"optimizer": "muon", "batch_tokens": 150}),
    ],
)
def test_a_resumed_run_ends_like_an_uninterrupted_one(
    tmp_path: Path, stop_after: int, end: str, changes: dict[str, object]
) -> None:
    class Killed(BaseException):
        """An exception that the loop does not handle, so that only the file on disk remains."""

    def stop(progress: Progress) -> None:
        if progress.step == stop_after:
            if end == "killed":
                raise Killed
            os.kill(os.getpid(), signal.SIGINT)

    uninterrupted, resumed, path = model(), model(), tmp_path / "state.pt"
    expected = fit(uninterrupted, TRAIN, VALIDATION, config(**changes))
    with pytest.raises((Killed, TrainingInterruptedError), match=None if end == "killed" else "its state is in"):
        fit(model(), TRAIN, VALIDATION, config(**changes), state_path=path, on_step=stop)
    torch.manual_seed(99)  # resuming does not depend on the present random state
    result = fit(resumed, TRAIN, VALIDATION, config(**changes), state_path=path, resume=True)
    assert curves(result) == curves(expected) and same(state(resumed), state(uninterrupted))
    assert not list(tmp_path.glob("*.tmp"))
    if changes.get("snapshots"):
        assert result.snapshots is not None and expected.snapshots is not None
        assert result.snapshots.rows == expected.snapshots.rows
        assert same(dict(result.snapshots.weights), dict(expected.snapshots.weights))


@pytest.mark.parametrize("ema_decay", [0.0, 0.9])
def test_snapshots_are_the_weights_of_their_steps_and_change_nothing(ema_decay: float) -> None:
    plain, watched = model(), model()
    settings = {"ema_decay": ema_decay, "monitor": "last"}
    expected = fit(plain, TRAIN, VALIDATION, config(**settings))
    weights = {0: state(watched)}
    average = AveragedWeights(watched, ema_decay)

    def keep(progress: Progress) -> None:
        average.update(watched)
        validated = average.weights if ema_decay else watched.state_dict()
        weights[progress.step] = {name: tensor.clone() for name, tensor in validated.items()}

    result = fit(watched, TRAIN, VALIDATION, config(**settings, snapshots=6), on_step=keep)
    assert curves(result) == curves(expected) and same(state(watched), state(plain)), "they change nothing"
    snapshots = result.snapshots
    assert expected.snapshots is None and snapshots is not None
    steps = [row.step for row in snapshots.rows]
    assert len(set(steps)) == 6 and (steps[0], steps[-1]) == (0, 30)
    labels = torch.from_numpy(VALIDATION.labels)
    for n, row in enumerate(snapshots.rows):
        for name, tensor in weights[row.step].items():
            assert torch.equal(snapshots.weights[name][n], tensor.half())
        network = model()
        network.load_state_dict(weights[row.step])
        logits = predict_logits(network, VALIDATION)
        assert row.validation_loss == pytest.approx(float(torch.nn.functional.cross_entropy(logits, labels)), abs=1e-5)
        assert row.validation_accuracy == pytest.approx(float((logits.argmax(-1) == labels).float().mean()))
    assert snapshots.rows[0].train_loss is None
    assert all(row.train_loss is not None and 0 < row.train_loss < 2 for row in snapshots.rows[1:])


def test_resuming_with_other_settings_data_or_nothing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.pt"
    with pytest.raises(TrainingError, match=r"nothing to resume: there is no .*state\.pt"):
        fit(model(), TRAIN, VALIDATION, config(), state_path=path, resume=True)
    fit(model(), TRAIN, VALIDATION, config(epochs=1), state_path=path)
    with pytest.raises(TrainingError, match="is from a run with different training settings and cannot be resumed"):
        fit(model(), TRAIN, VALIDATION, config(epochs=2), state_path=path, resume=True)
    with pytest.raises(TrainingError, match="is from a run with different model shapes and cannot be resumed"):
        fit(model(d_ff=64), TRAIN, VALIDATION, config(epochs=1), state_path=path, resume=True)
    with pytest.raises(TrainingError, match="is from a run with different row counts and cannot be resumed"):
        fit(model(), VALIDATION, VALIDATION, config(epochs=1), state_path=path, resume=True)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(TrainingError, match="is damaged"):
        fit(model(), TRAIN, VALIDATION, config(epochs=1), state_path=path, resume=True)


def test_early_stopping_keeps_the_best_weights() -> None:
    network = model()
    result = fit(network, TRAIN, VALIDATION, config(epochs=40, patience=3, monitor="loss", validations_per_epoch=2))
    assert len(result.history) < 80
    losses = [row.validation_loss for row in result.history]
    assert result.best.validation_loss == min(losses) and losses.index(min(losses)) == len(losses) - 4
    loss = torch.nn.functional.cross_entropy(predict_logits(network, VALIDATION), torch.from_numpy(VALIDATION.labels))
    assert loss.item() == pytest.approx(min(losses), rel=1e-5)


def test_a_loss_that_is_not_a_number_stops_with_an_explanation() -> None:
    network = model()
    with torch.no_grad():
        network.head.weight.fill_(math.inf)
    with pytest.raises(
        TrainingError, match=r"the loss became nan in epoch 1, step 1 .*try a lower train.learning_rate"
    ):
        fit(network, TRAIN, VALIDATION, config())


def test_time_that_runs_out_ends_the_schedule_and_the_training() -> None:
    settings = config(epochs=1000)
    left: list[float] = []
    result = fit(
        model(), TRAIN, VALIDATION, settings, max_seconds=0.3, on_step=lambda step: left.append(step.seconds_left)
    )
    assert result.seconds < 5
    assert min(left) >= 0 and max(left) < 0.3, "no more time than there is"
    steps = result.history[-1].step
    assert result.done.startswith(f"{steps / 10:.1f} of 1000 epochs ({steps:,} of 10,000 steps), ")
    assert result.history[-1].learning_rate < 0.1 * settings.learning_rate


def test_muon_makes_updates_of_layer_matrices_orthogonal_and_adamw_updates_the_rest() -> None:
    network, other = model(n_layers=2), model(n_layers=2)
    muon, adamw = (
        make_optimizer(trained, config(optimizer=name, weight_decay=0.0))
        for trained, name in ((network, "muon"), (other, "adamw"))
    )
    before = state(network)
    for trained, optimizer in ((network, muon), (other, adamw)):
        set_learning_rate(optimizer, 1e-2)
        torch.manual_seed(0)
        for parameter in trained.parameters():
            parameter.grad = torch.randn_like(parameter)
        optimizer.step()
    for name, tensor in network.state_dict().items():
        change = tensor - before[name]
        if name.startswith("layers.") and tensor.ndim == 2:
            strengths = torch.linalg.svdvals(change)
            assert strengths.min() > 0.4 * strengths.max(), name
            assert change.square().mean().sqrt().item() == pytest.approx(0.2e-2, rel=0.3), "the size of AdamW's"
        else:
            assert torch.equal(tensor, other.state_dict()[name]), name


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_weight_decay_spares_norms_biases_and_positions(optimizer: str) -> None:
    network = model(positions="learned")
    before = state(network)
    torch_optimizer = make_optimizer(network, config(weight_decay=0.3, optimizer=optimizer))
    set_learning_rate(torch_optimizer, 0.1)
    for parameter in network.parameters():
        parameter.grad = torch.zeros_like(parameter)
    torch_optimizer.step()
    unchanged = {name for name, tensor in state(network).items() if torch.equal(tensor, before[name])}
    zero = {name for name, tensor in before.items() if not tensor.any()}
    assert {"norm.weight", "embeddings.positional"} <= unchanged
    for name in unchanged - zero:
        assert name.endswith(("bias", "positional")) or "norm" in name, name
    for name in before.keys() - unchanged:
        torch.testing.assert_close(network.state_dict()[name], 0.97 * before[name], msg=name)


@pytest.mark.parametrize("optimizer", ["adamw", "adam"])
def test_layer_decay_lowers_the_learning_rate_layer_by_layer(optimizer: str) -> None:
    network = model(n_layers=2, positions="learned")
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    torch_optimizer = make_optimizer(network, config(optimizer=optimizer, layer_decay=0.5, weight_decay=0.0))
    set_learning_rate(torch_optimizer, 1e-3)
    for parameter in network.parameters():
        parameter.grad = torch.ones_like(parameter)
    torch_optimizer.step()
    steps = {name: float((tensor - before[name]).abs().mean()) for name, tensor in network.state_dict().items()}
    for part, share in (("head", 1), ("norm", 1), ("pool", 1), ("layers.1", 0.5), ("layers.0", 0.25)):
        names = [name for name in steps if name.startswith(part)]
        assert names and [steps[name] for name in names] == pytest.approx([share * 1e-3] * len(names), rel=1e-2), part
    assert steps["embeddings.positional"] == pytest.approx(0.125e-3, rel=1e-2)


def test_the_learning_rate_rises_and_falls() -> None:
    settings = config(learning_rate=1.0, warmup_fraction=0.1)
    rates = [learning_rate(step, total=100, config=settings) for step in range(100)]
    assert rates[:10] == pytest.approx([n / 10 for n in range(1, 11)])
    assert rates[10] == pytest.approx(1.0) and rates[55] == pytest.approx(0.5) and rates[99] < 0.001
    flat = config(learning_rate=1.0, warmup_fraction=0.0, schedule="constant")
    assert {learning_rate(step, total=100, config=flat) for step in range(100)} == {1.0}


def test_averaged_weights_forget_the_initial_ones_early_and_later_ones_by_the_decay() -> None:
    network = model()
    bias = network.head.bias

    def averages(value: float, *, n: int) -> list[float]:
        with torch.no_grad():
            bias.fill_(value)
        means = []
        for _ in range(n):
            average.update(network)
            means.append(float(average.weights["head.bias"].mean()))
        return means

    torch.nn.init.zeros_(bias)
    average = AveragedWeights(network, 0.5)
    reached = averages(1.0, n=30)
    assert reached[0] > 0.8 and reached[-1] == pytest.approx(1.0)
    assert averages(0.0, n=4) == pytest.approx([1 / 2, 1 / 4, 1 / 8, 1 / 16])


def test_token_dropout_spares_special_tokens() -> None:
    torch.manual_seed(0)
    ids = torch.arange(20).repeat(500, 1)
    for token_id in (UNK, MASK):
        dropped = drop_tokens(ids, 0.3, dropped=token_id)
        assert torch.equal(dropped[:, :4], ids[:, :4])
        changed = dropped[:, 4:] != ids[:, 4:]
        assert (
            changed.float().mean().item() == pytest.approx(0.3, abs=0.02)
            and (dropped[:, 4:][changed] == token_id).all()
        )


def test_consistency_adds_the_divergence_between_two_passes_with_different_dropout() -> None:
    network, labels = model(), torch.tensor([0, 1, 1])
    ids = torch.randint(4, 20, (3, 6))
    n_classes = network.head.out_features
    plain, twice = (
        Classify(config(token_dropout=0.0, consistency=weight), torch.ones(n_classes)) for weight in (0.0, 2.0)
    )
    in_evaluation = twice.batch_loss(network.eval(), ids, labels)
    torch.testing.assert_close(in_evaluation.loss, plain.batch_loss(network, ids, labels).loss)

    network.train()
    torch.manual_seed(3)
    outcome = twice.batch_loss(network, ids, labels)
    torch.manual_seed(3)
    logits = network(ids.repeat(2, 1))
    first, second = (torch.distributions.Categorical(logits=half) for half in logits.chunk(2))
    divergence = torch.distributions.kl_divergence
    between = (divergence(first, second) + divergence(second, first)).mean() / 2
    loss = torch.nn.functional.cross_entropy(logits, labels.repeat(2), label_smoothing=0.05)
    assert between > 1e-4
    torch.testing.assert_close(outcome.loss, loss + 2.0 * between)
    assert outcome.n == 3 and int(outcome.right) == int((logits[:3].argmax(-1) == labels).sum())


def test_a_full_disk_is_reported_and_leaves_the_previous_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state.pt"
    fit(model(), TRAIN, VALIDATION, config(epochs=1), state_path=path)
    before = path.read_bytes()

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("torch.save", full)
    with pytest.raises(TrainingError, match="cannot save the training state"):
        fit(model(), TRAIN, VALIDATION, config(epochs=1), state_path=path)
    assert path.read_bytes() == before and not list(tmp_path.glob("*.tmp"))


@pytest.mark.parametrize("min_steps", [0, 60])
def test_learning_rate_schedule_ends_at_the_last_step_with_token_batches(min_steps: int) -> None:
    history = fit(model(), TRAIN, VALIDATION, config(batch_tokens=150, min_steps=min_steps)).history
    assert [row.epoch for row in history] == list(range(1, len(history) + 1))
    assert len(history) == 3 if not min_steps else history[-2].step < min_steps <= history[-1].step
    assert history[-1].learning_rate < 1e-4 < history[-2].learning_rate
