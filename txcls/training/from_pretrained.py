"""Initialise a classifier from a pre-trained model: which settings and weights it takes, and which rows are leaks.

python -m txcls train ag_news --init encoder
"""

from collections.abc import Iterable

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.config import RunConfig
from txcls.data.types import Dataset
from txcls.errors import TrainingError
from txcls.model import Encoder
from txcls.text.encoder import TextEncoder

OWN_SETTINGS = ("max_length", "pooling", "dropout", "attention_dropout")
"""Model settings that the classifier keeps. Learned positions beyond the pre-trained ones start at zero."""


def settings_from(init: Checkpoint, config: RunConfig, *, assignments: Iterable[str] = ()) -> RunConfig:
    """The classifier's configuration with the text and model settings of its pre-trained model.

    Args:
        init: a pre-trained model.
        config: the classifier's; `OWN_SETTINGS`, data and training settings are kept.
        assignments: its explicit `section.key=value` settings, which must not be overridden silently.

    Raises:
        TrainingError: `init` is a classifier, or an assignment conflicts with it.
    """
    if init.config.objective == "classify":
        raise TrainingError(f"--init {init.name}: it is a classifier; wanted a model made by `pretrain`")
    kept = {name: getattr(config.model, name) for name in OWN_SETTINGS}
    model = {**init.config.model.model_dump(mode="json"), **kept}
    values = {**config.model_dump(mode="json"), "text": init.config.text.model_dump(mode="json"), "model": model}
    taken = RunConfig.from_mapping(values, source=f"--init {init.name}")
    for assignment in assignments:
        key = assignment.partition("=")[0].strip()
        section, _, name = key.partition(".")
        if section not in ("text", "model"):
            continue
        asked, got = (getattr(getattr(one, section), name) for one in (config, taken))
        if asked != got:
            raise TrainingError(
                f"--set {assignment}: {key} is {got} in {init.name}, from which the run starts; drop --set or --init"
            )
    return taken


def check_unread(init: Checkpoint, dataset: Dataset, config: RunConfig) -> None:
    """Refuse a model that was pre-trained on rows that this run validates or tests on.

    Raises:
        TrainingError: it was pre-trained on the same data set with a different split.
    """
    ours, theirs = config.data, init.config.data
    if ours.dataset not in (theirs.sources or (theirs.dataset,)) or ours.dataset in ("table", "text"):
        return
    differs = ours.split != theirs.split
    if not dataset.has_validation:
        differs |= ours.split == "standard" and (
            ours.split_seed != theirs.split_seed or ours.validation_fraction > theirs.validation_fraction
        )
    if differs:
        raise TrainingError(
            f"--init {init.name}: it was pre-trained on rows of {ours.dataset} that this run holds out; wanted "
            f"data.split={theirs.split}, data.split_seed={theirs.split_seed} and data.validation_fraction of at most "
            f"{theirs.validation_fraction:g}, or another model to start from"
        )


def encoder_from(init: Checkpoint, config: RunConfig) -> TextEncoder:
    """The pre-trained model's text encoder, with the classifier's max_length."""
    changes = {"max_length": config.model.max_length, "class_token": config.reads_class_token}
    return TextEncoder.from_dict({**init.encoder.to_dict(), **changes})


def start_from(model: Encoder, init: Checkpoint) -> None:
    """Copy embeddings, blocks and the last norm of a pre-trained model, and the positions that both have.

    Raises:
        TrainingError: their shapes differ; the message names them.
    """
    ours, theirs = model.state_dict(), init.model.state_dict()
    shared = [name for name in ours if name.startswith(("embeddings.", "layers.", "norm."))]
    problems = [name for name in shared if name not in theirs]
    for name in (name for name in shared if name in theirs):
        if name == "embeddings.positional":
            n = min(len(ours[name]), len(theirs[name]))
            if ours[name].shape[1] == theirs[name].shape[1]:
                ours[name][:n] = theirs[name][:n]
                continue
        if ours[name].shape == theirs[name].shape:
            ours[name].copy_(theirs[name])
        else:
            problems.append(f"{name} {tuple(theirs[name].shape)}, wanted {tuple(ours[name].shape)}")
    if problems:
        raise TrainingError(f"--init {init.name}: its model has a different shape: {'; '.join(problems[:5])}")
