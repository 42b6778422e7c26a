"""Initialise a classifier from a pre-trained model that was not pre-trained on the classifier's held-out rows.

python -m txcls train ag_news --init encoder
"""

from collections.abc import Iterable

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.config import RunConfig
from txcls.data.splits import split_hash, training_and_validation
from txcls.data.types import Dataset
from txcls.errors import TrainingError
from txcls.model import Encoder
from txcls.text.tokenizer import Tokenizer

OWN_SETTINGS = ("max_length", "pooling", "dropout", "attention_dropout")
"""Model settings taken from the classifier's configuration, not the pre-trained model. Learned positions beyond the
pre-trained ones start at zero."""


def settings_from(init: Checkpoint, config: RunConfig, *, assignments: Iterable[str] = ()) -> RunConfig:
    """The classifier's configuration with the text and model settings of the pre-trained model `init`.

    If `init` was pre-trained on the classifier's data set, its rule for holding out rows is used too. `assignments` are
    explicit `section.key=value` settings, which must not be overridden silently.

    Raises:
        TrainingError: `init` is a classifier, or an assignment conflicts with it.
    """
    if init.config.objective == "classify":
        raise TrainingError(f"--init {init.name}: it is a classifier; expected a model made by `pretrain`")
    model = init.config.model.model_dump(mode="json") | {name: getattr(config.model, name) for name in OWN_SETTINGS}
    values = {**config.model_dump(mode="json"), "text": init.config.text.model_dump(mode="json"), "model": model}
    init_data = init.config.data
    if config.data.dataset in (init_data.sources or (init_data.dataset,)):
        values["data"]["validation"] = init_data.validation
    combined = RunConfig.from_mapping(values, source=f"--init {init.name}")
    for assignment in assignments:
        key = assignment.partition("=")[0].strip()
        section, _, name = key.partition(".")
        if section not in ("text", "model") and key != "data.validation":
            continue
        assigned, inherited = (getattr(getattr(settings, section), name) for settings in (config, combined))
        if assigned != inherited:
            raise TrainingError(
                f"--set {assignment}: {key} is {inherited} in {init.name}, the model to start from; drop --set or "
                "--init"
            )
    return combined


def check_unread(init: Checkpoint, dataset: Dataset, config: RunConfig) -> None:
    """Refuse a model that was pre-trained on rows that this run holds out for validation or testing.

    With the hash rule, a row's split depends only on its text, so equal settings are enough. In two cases the number of
    rows must be the same too: with the stratified rule, a row's split depends on all rows; and if no text of a class
    has a low enough hash, one row of that class is held out anyway.

    Raises:
        TrainingError: pre-training used the same data set with a different split or, where that matters, a different
            number of rows.
    """
    data, init_data = config.data, init.config.data
    if data.dataset not in (init_data.sources or (init_data.dataset,)) or data.dataset in ("table", "text"):
        return
    if "validation" in dataset.splits:
        return
    differs = data.validation != init_data.validation or data.split_seed != init_data.split_seed
    if differs or data.validation_fraction > init_data.validation_fraction:
        raise TrainingError(
            f"--init {init.name}: it was pre-trained on rows of {data.dataset} that this run holds out; expected "
            f"data.validation={init_data.validation}, data.split_seed={init_data.split_seed} and "
            f"data.validation_fraction of at most {init_data.validation_fraction:g}, or another model to start from"
        )
    n_read = init.metrics.get("data", {}).get("rows", {}).get(data.dataset)
    n_rows = len(dataset.load("train"))
    if n_read not in (None, n_rows) and not _depends_only_on_texts(dataset, config):
        raise TrainingError(
            f"--init {init.name}: it was pre-trained on {n_read:,} rows of {data.dataset}, but now there are "
            f"{n_rows:,}: it may have read rows that this run holds out; give the same rows, or another model to start "
            "from"
        )


def _depends_only_on_texts(dataset: Dataset, config: RunConfig) -> bool:
    """Whether every validation row is held out because of the hash of its text, regardless of other rows."""
    data = config.data
    return data.validation == "hash" and all(
        split_hash(text, seed=data.split_seed) < data.validation_fraction
        for text in training_and_validation(dataset, data)[1].texts
    )


def tokenizer_from(init: Checkpoint, config: RunConfig) -> Tokenizer:
    """The pre-trained model's tokenizer, with the classifier's max_length."""
    changes = {"max_length": config.model.max_length, "class_token": config.reads_class_token}
    return Tokenizer.from_dict({**init.tokenizer.to_dict(), **changes})


def copy_pretrained_weights(model: Encoder, init: Checkpoint) -> None:
    """Copy a pre-trained model's embeddings, blocks, final norm, and the positions that both models have.

    Raises:
        TrainingError: some weights have different shapes; the message names them.
    """
    weights, pretrained = model.state_dict(), init.model.state_dict()
    shared = [name for name in weights if name.startswith(("embeddings.", "layers.", "norm."))]
    problems = [name for name in shared if name not in pretrained]
    for name in (name for name in shared if name in pretrained):
        if name == "embeddings.positional":
            n = min(len(weights[name]), len(pretrained[name]))
            if weights[name].shape[1] == pretrained[name].shape[1]:
                weights[name][:n] = pretrained[name][:n]
                continue
        if weights[name].shape == pretrained[name].shape:
            weights[name].copy_(pretrained[name])
        else:
            problems.append(f"{name} {tuple(pretrained[name].shape)}, expected {tuple(weights[name].shape)}")
    if problems:
        raise TrainingError(f"--init {init.name}: its model has a different shape: {'; '.join(problems[:5])}")
