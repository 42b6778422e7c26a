"""Tiny objects shared by many tests: a few texts, an untrained checkpoint on disk, its classifier."""

import io
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

# One thread: the models here are tiny, and threads waiting for a busy core cost more than they gain. Set before torch
# is imported, and inherited by the processes that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import hypothesis
import pytest
import torch

from txcls.checkpoint.checkpoint import Checkpoint, save_checkpoint
from txcls.checkpoint.load import load_checkpoint
from txcls.checkpoint.snapshots import SnapshotRow, Snapshots
from txcls.checkpoint.weights import as_stored
from txcls.config import Calibration, ModelConfig, RunConfig, ScopeRule
from txcls.data.batches import TokenisedTexts
from txcls.data.types import LabelledTexts
from txcls.evaluation.evaluate import evaluate_rows, with_evaluation
from txcls.evaluation.fit_calibration import fit_token_counts
from txcls.inference.predictor import Predictor
from txcls.model import LanguageModel, TextClassifier
from txcls.text.tokenizer import Tokenizer

# The first example may import a library, and the machine may be busy.
hypothesis.settings.register_profile("no deadline", deadline=None)
hypothesis.settings.load_profile("no deadline")

TEXTS = (
    "the striker scored twice before half time",
    "the bank raised its rates again",
    "a probe sent pictures of the comet",
    "ministers met to end the border dispute",
    "the goalkeeper saved a late penalty",
    "shares fell after the report",
    "a new chip doubles the speed of phones",
    "voters went to the polls on sunday",
)
CLASSES = ("World", "Sports", "Business", "Sci/Tech")
SNAPSHOT_ROWS = (SnapshotRow(0, 1.4, 0.25), SnapshotRow(3, 1.0, 0.5, 1.2, 0.375), SnapshotRow(9, 0.5, 0.75, 0.8, 0.625))
FITTED = Calibration(temperature=1.5, power=1.25)
Untrained = Callable[..., Predictor]
FULL_SIZE = os.environ.get("TXCLS_FULL_SIZE", "0") != "0"
"""Whether tests marked `attack` run with all their inputs, sessions and repeats, as in `make attack`."""


def slow_but(quick: Iterable[str], values: Iterable[str]) -> list[object]:
    """The values for `pytest.mark.parametrize`, all marked slow except the quick ones."""
    quick = set(quick)
    return [value if value in quick else pytest.param(value, marks=pytest.mark.slow) for value in values]


def tiny_config(*, text: Mapping[str, object] | None = None, **model: object) -> RunConfig:
    """A configuration whose model can be initialised in milliseconds."""
    settings: dict[str, object] = {"d_model": 16, "n_heads": 2, "n_layers": 2, "d_ff": 32, "max_length": 12}
    return RunConfig.model_validate(
        {
            "name": "tiny",
            "title": "a test",
            "text": {"min_frequency": 1, **(text or {})},
            "model": {**settings, **model},
        }
    )


def add_noise(model: torch.nn.Module, scale: float) -> None:
    """Add noise to all weights: biases and positions start at zero, which would hide errors in their use."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * scale)


def pack(folder: Path) -> bytes:
    """A checkpoint's folder as a zip archive that contains a folder with the same name."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.iterdir()):
            archive.write(path, f"{folder.name}/{path.name}")
    return out.getvalue()


def make_checkpoint(
    path: Path,
    *,
    text: Mapping[str, object] | None = None,
    classes: tuple[str, ...] = CLASSES,
    scope: ScopeRule | None = None,
    **model: object,
) -> Checkpoint:
    """Save and return an untrained checkpoint with noise added to its weights."""
    config = tiny_config(text=text, **model)
    tokenizer = Tokenizer.fit(
        TEXTS, config.text, max_length=config.model.max_length, class_token=config.model.pooling == "class_token"
    )
    torch.manual_seed(0)
    network = TextClassifier(
        ModelConfig.model_validate(config.model), vocab_size=tokenizer.vocab_size, n_classes=len(classes)
    )
    add_noise(network, 0.1)
    record = {"training": {"seed": 0}}
    save_checkpoint(Checkpoint(path, config, tokenizer, classes, network, FITTED, record, [{"epoch": 1}], scope))
    return load_checkpoint(path)


def measured_on_texts(checkpoint: Checkpoint) -> Checkpoint:
    """Save the checkpoint with validation metrics of TEXTS, and return it."""
    rows = LabelledTexts(TEXTS, [n % len(checkpoint.classes) for n in range(len(TEXTS))], checkpoint.classes)
    evaluation = evaluate_rows(checkpoint, rows, device="cpu", measure_without_order=False)
    save_checkpoint(with_evaluation(checkpoint, split="validation", evaluation=evaluation))
    return load_checkpoint(checkpoint.path)


def with_token_counts(checkpoint: Checkpoint) -> Checkpoint:
    """Save the checkpoint with the token counts of TEXTS, and return it."""
    rows = LabelledTexts(TEXTS, [0] * len(TEXTS), checkpoint.classes)
    texts = TokenisedTexts.encode(checkpoint.tokenizer, rows)
    save_checkpoint(replace(checkpoint, token_counts=fit_token_counts(texts, texts, checkpoint.tokenizer)))
    return load_checkpoint(checkpoint.path)


def with_snapshots(checkpoint: Checkpoint) -> Checkpoint:
    """Save the checkpoint with snapshots, the last of which has its weights, and return it."""
    end = as_stored(checkpoint.model.state_dict())
    states = [
        (row, {name: weights / (len(SNAPSHOT_ROWS) - n) for name, weights in end.items()})
        for n, row in enumerate(SNAPSHOT_ROWS)
    ]
    save_checkpoint(replace(checkpoint, snapshots=Snapshots.of(states)))
    return load_checkpoint(checkpoint.path)


def make_language_model(
    path: Path, *, objective: str = "causal", text: Mapping[str, object] | None = None, **model: object
) -> Checkpoint:
    """Save and return an untrained language model with noise added to its weights."""
    changes = {"objective": objective, "title": f"a test of {objective}"}
    settings = {"causal": objective == "causal", "positions": "learned", **model}
    config = RunConfig.model_validate({**tiny_config(text=text, **settings).model_dump(), **changes})
    tokenizer = Tokenizer.fit(TEXTS, config.text, max_length=config.model.max_length, class_token=True)
    torch.manual_seed(0)
    network = LanguageModel(config.model, vocab_size=tokenizer.vocab_size)
    add_noise(network, 0.2)
    record = {"training": {"seed": 0}, "language": {"loss": 3.0, "perplexity": 20.0855, "accuracy": 0.1}}
    save_checkpoint(Checkpoint(path, config, tokenizer, (), network, Calibration(), record, [{"epoch": 1}]))
    return load_checkpoint(path)


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Save files without fsync, which only matters in a power cut and would take longer than many a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    """An untrained checkpoint in its own folder."""
    return make_checkpoint(tmp_path / "tiny")


@pytest.fixture(scope="session")
def classifier(untrained: Untrained) -> Predictor:
    """A classifier with random weights; tests must not change it."""
    return untrained()


@pytest.fixture(scope="session")
def untrained(tmp_path_factory: pytest.TempPathFactory) -> Untrained:
    """A function from settings of `make_checkpoint` to a classifier, made once and shared: tests must not change it."""
    root, classifiers = tmp_path_factory.mktemp("untrained"), dict[str, Predictor]()

    def classifier_with(**settings: object) -> Predictor:
        key = repr(sorted(settings.items()))
        if key not in classifiers:
            classifiers[key] = Predictor(make_checkpoint(root / f"tiny{len(classifiers)}", **settings))  # type: ignore[arg-type]
        return classifiers[key]

    return classifier_with


@pytest.fixture
def published_data() -> Path:
    """The folder with the published data sets, if `.ci/run` provides one."""
    folder = os.environ.get("TXCLS_DATA")
    if not folder:
        pytest.skip("TXCLS_DATA names no folder with the published data sets")
    return Path(folder)
