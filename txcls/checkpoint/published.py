"""What the readers of published models share: their config, and weights that are read only if they fit the model."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from txcls.checkpoint.weights import finite, read_header
from txcls.config import ModelConfig, RunConfig
from txcls.errors import CheckpointError, ConfigError

ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu", "relu": "relu"}
"""The non-linearities of feed-forward by their published names."""

Renamed = Callable[[dict[str, Tensor]], dict[str, Tensor]]
"""A function from published weights to ours, which also works on meta tensors; KeyError if it lacks one."""


def activation(path: Path, values: Mapping[str, Any], name: str, default: str) -> str:
    """Our name for the activation function under `name`; CheckpointError if it is not supported."""
    published = values.get(name, default)
    if not isinstance(published, str) or published not in ACTIVATIONS:
        raise CheckpointError(f"{path}: {name} is {published!r:.100}; expected {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[published]


def model_config(path: Path, model: Mapping[str, Any]) -> ModelConfig:
    """The settings of a model; CheckpointError, which names `path` and the field, if one is not valid."""
    try:
        return RunConfig.from_mapping({"name": "published", "model": dict(model)}, source=str(path)).model
    except ConfigError as error:
        raise CheckpointError(str(error)) from None


def load_published(path: Path, model: nn.Module, renamed: Renamed) -> None:
    """Read float32 weights into a model on the meta device, after a check of their names and shapes.

    Raises:
        CheckpointError: the file is damaged, or does not fit the model; nothing was read.
    """
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    header, _ = read_header(path)
    try:
        actual = {name: tuple(tensor.shape) for name, tensor in renamed(header).items()}
    except KeyError as error:
        raise CheckpointError(f"{path}: lacks {error.args[0]}") from None
    except (ValueError, RuntimeError, IndexError) as error:
        raise CheckpointError(f"{path} does not fit config.json: {error!s:.200}") from None
    if misfits := [
        f"{name} is {shape}, expected {expected.get(name, 'no such matrix')}"
        for name, shape in actual.items()
        if shape != expected.get(name)
    ]:
        raise CheckpointError(f"{path} does not fit config.json: {'; '.join(misfits[:5])}")
    if missing := sorted(expected.keys() - actual.keys()):
        raise CheckpointError(f"{path}: lacks {', '.join(missing[:5])}")
    try:
        weights = renamed({name: tensor.float() for name, tensor in load_file(path).items()})
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(f"{path}: not a complete safetensors file ({error!s:.200})") from None
    model.load_state_dict(finite(weights, where=str(path)), assign=True)
