from dataclasses import replace
from pathlib import Path

import pytest

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.load import load_checkpoint
from txcls.config import DataConfig
from txcls.data.datasets import open_dataset
from txcls.data.splits import training_and_validation
from txcls.data.unlabelled_texts import open_texts
from txcls.errors import TrainingError
from txcls.training import pretrain, settings_from, train
from txcls.training.from_pretrained import check_unread

from .test_pretrain import run_config

OTHER_FORM = {"d_model": 24, "n_heads": 3, "n_layers": 2, "d_ff": 40, "max_length": 20, "norm": "post"}
OTHER_TEXT = {"tokenizer": "bpe", "max_vocabulary": 300, "cleaning": ["lowercase"], "min_frequency": 1}


@pytest.fixture
def other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkpoint:
    """A pre-trained model that shares almost no settings with `run_config`'s classifier or with a preset."""
    monkeypatch.setenv("TXCLS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(tmp_path))
    config = run_config("masked", model={**OTHER_FORM, "scale_embeddings": True}, text=OTHER_TEXT)
    return pretrain(config, out=tmp_path / "other", max_steps=2)


def test_a_classifier_takes_over_text_and_model_settings(tmp_path: Path, other: Checkpoint) -> None:
    config = run_config("classify").with_settings(["model.dropout=0.3", "model.pooling=mean", "model.max_length=33"])
    trained = train(config, out=tmp_path / "made", init=other, max_steps=2)
    assert load_checkpoint(tmp_path / "made").config == trained.config
    assert trained.config.text == other.config.text
    own_settings = {"dropout": 0.3, "pooling": "mean", "max_length": 33, "attention_dropout": 0.0}
    assert trained.config.model == other.config.model.model_copy(update=own_settings)
    assert (trained.config.train, trained.config.data) == (config.train, config.data)
    assert (
        trained.tokenizer.max_length == 33 and trained.tokenizer.vocabulary.tokens == other.tokenizer.vocabulary.tokens
    )


@pytest.mark.parametrize("assignment", ["model.d_model=64", "text.tokenizer=word", "model.positions=none"])
def test_an_explicit_setting_that_conflicts_is_refused(other: Checkpoint, assignment: str) -> None:
    key = assignment.partition("=")[0]
    config = run_config("classify").with_settings([assignment])
    with pytest.raises(TrainingError, match=rf"--set {assignment}: {key} is \w+ in other, the model to start from"):
        settings_from(other, config, assignments=["train.epochs=9", assignment])


@pytest.mark.parametrize(
    "own, read, is_refused",
    [
        ({}, {}, False),
        ({"validation_fraction": 0.05}, {}, False),  # its rows are among those that pre-training left out
        ({"validation_fraction": 0.2}, {}, True),
        ({"split_seed": 1}, {}, True),
        ({}, {"validation": "stratified"}, True),
        ({"validation": "stratified"}, {}, True),
        ({"validation": "stratified"}, {"validation": "stratified"}, False),
        ({"validation_fraction": 0.2}, {"dataset": "mixture", "sources": ["ag_news", "sample"]}, True),
        ({"validation_fraction": 0.2}, {"dataset": "mixture", "sources": ["ag_news"]}, False),
        ({"validation_fraction": 0.2}, {"dataset": "ag_news"}, False),
    ],
)
def test_a_model_that_has_read_held_out_rows_is_refused(
    other: Checkpoint, own: dict[str, object], read: dict[str, object], is_refused: bool
) -> None:
    pretrained = replace(other, config=other.config.model_copy(update={"data": DataConfig.model_validate(read)}))
    config = run_config("classify", data=own)
    if not is_refused:
        check_unread(pretrained, open_dataset(config.data), config)
        return
    with pytest.raises(TrainingError, match="pre-trained on rows of sample that this run holds out"):
        check_unread(pretrained, open_dataset(config.data), config)


def messages(n: int, *, first: int = 0) -> str:
    """Rows in the published form of AG News."""
    return "".join(f'"{i % 4 + 1}","message number {i}","of the day"\n' for i in range(first, first + n))


def pretrained_on(path: Path, other: Checkpoint, **data: object) -> Checkpoint:
    """A copy of `other` that claims to have been trained on these rows."""
    config = DataConfig.model_validate({"dataset": "ag_news", **data})
    facts = {"rows": dict(open_texts(config, path=path).rows)}
    return replace(other, config=other.config.model_copy(update={"data": config}), metrics={"data": facts})


def test_leaks_are_impossible_with_hash_splits_and_refused_with_random_splits(
    tmp_path: Path, other: Checkpoint
) -> None:
    """With a part of the rows, the random split is another one: rows read in pre-training were validated on."""
    for name, text in (("all", messages(900)), ("part", messages(600, first=200))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.csv").write_text(text, encoding="utf-8")
    data: dict[str, object]
    for rule in ("hash", "stratified"):
        data = {"validation": rule, "validation_fraction": 0.1}
        init = pretrained_on(tmp_path / "all", other, **data)
        read = {*open_texts(init.config.data, path=tmp_path / "all").training}
        run = run_config("classify", data={"dataset": "ag_news", **data, "validation_fraction": 0.08})
        dataset = open_dataset(run.data, path=tmp_path / "part")
        leaked = read & {*training_and_validation(dataset, run.data)[1].texts}
        if rule == "hash":
            assert not leaked
            check_unread(init, dataset, run)
        else:
            assert leaked
            with pytest.raises(TrainingError, match="pre-trained on 900 rows of ag_news, but now there are 600"):
                check_unread(init, dataset, run)


def test_rows_are_held_out_like_those_of_the_pretrained_model(other: Checkpoint) -> None:
    old = replace(other, config=other.config.model_copy(update={"data": DataConfig(validation="stratified")}))
    assert settings_from(old, run_config("classify")).data.validation == "stratified"
    elsewhere = run_config("classify", data={"dataset": "ag_news"})
    assert settings_from(old, elsewhere).data.validation == "hash", "it has read none of these rows"
    with pytest.raises(TrainingError, match=r"data\.validation is stratified in other, the model to start from"):
        settings_from(old, run_config("classify"), assignments=["data.validation=hash"])
