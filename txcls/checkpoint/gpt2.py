"""Load a published GPT-2 folder as a `txcls.model.LanguageModel`.

GPT-2 (Radford et al. 2019) is a causal pre-norm Transformer with learned positions, tied output and tanh GELU, all of
which `txcls.model` supports. Only the stored weights differ: their names, transposed matrices, and a single matrix for
Q, K and V.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from txcls.checkpoint.folders import GPT2_FILES as FILES
from txcls.checkpoint.json_files import read_json, read_text
from txcls.checkpoint.published import activation, load_published, model_config
from txcls.checkpoint.weights import read_header, shapes_only
from txcls.config import ModelConfig
from txcls.errors import CheckpointError
from txcls.model import LanguageModel

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_UNSUPPORTED = {"scale_attn_by_inverse_layer_idx": True, "scale_attn_weights": False, "add_cross_attention": True}


@dataclass(frozen=True)
class ImportedDecoder:
    """A language model with its own byte-level BPE tokenizer."""

    model: LanguageModel
    tokenizer: "Tokenizer"


def fetch_gpt2(source: str) -> Path:
    """The folder at this path, or a model from the Hugging Face Hub (`gpt2`, `owner/name`), downloaded once.

    Raises:
        CheckpointError: there is no such folder, and the Hub has no such model or cannot be reached.
    """
    folder = Path(source)
    if folder.is_dir():
        return folder
    from huggingface_hub import hf_hub_download

    for name in FILES:
        try:
            folder = Path(hf_hub_download(source, name)).parent
        except Exception as error:  # noqa: BLE001  # the hub client and its transport raise many kinds of errors
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise CheckpointError(
                f"cannot get {name} of {source!r}: there is no such folder, and the Hugging Face Hub did not provide "
                f"the file ({reason}); a GPT-2 folder contains {', '.join(FILES)}"
            ) from None
    return folder


def load_gpt2(folder: Path) -> ImportedDecoder:
    """Read a folder with config.json, model.safetensors, vocab.json and merges.txt in the published format.

    Raises:
        CheckpointError: a file is missing or damaged, or the model is not a GPT-2 or is an unsupported variant.
    """
    if missing := [name for name in FILES if not (folder / name).is_file()]:
        raise CheckpointError(
            f"{folder} lacks {', '.join(missing)}; a GPT-2 folder holds {', '.join(FILES)}, as published at "
            "huggingface.co/openai-community/gpt2"
        )
    config = _model_config(folder / "config.json", _read_config(folder / "config.json"))
    path = folder / "model.safetensors"
    shapes = read_header(path)[0]
    embeddings = shapes.get("transformer.wte.weight", shapes.get("wte.weight"))
    if embeddings is None or embeddings.dim() != 2:
        raise CheckpointError(f"{path}: lacks wte.weight, the token embeddings of a GPT-2")
    with shapes_only():
        model = LanguageModel(config, vocab_size=embeddings.shape[0])
    tokenizer = _read_tokenizer(folder, vocab_size=embeddings.shape[0])
    load_published(path, model, lambda stored: _renamed(stored, n_layers=config.n_layers))
    return ImportedDecoder(model.eval(), tokenizer)


def _read_config(path: Path) -> dict[str, Any]:
    values = read_json(path, dict)
    if values.get("model_type") != "gpt2":
        raise CheckpointError(f"{path}: model_type is {values.get('model_type')!r:.100}; expected 'gpt2'")
    if unsupported := [name for name, value in _UNSUPPORTED.items() if values.get(name) is value]:
        raise CheckpointError(f"{path}: {', '.join(unsupported)} has an unsupported value")
    return values


def _read_tokenizer(folder: Path, *, vocab_size: int) -> "Tokenizer":
    from tokenizers import ByteLevelBPETokenizer

    path = folder / "vocab.json"
    ids = read_json(path, dict)
    if invalid := [token for token, index in ids.items() if type(index) is not int or not 0 <= index < vocab_size]:
        raise CheckpointError(
            f"{path}: {invalid[0]!r:.100} is {ids[invalid[0]]!r:.100}; expected an id from 0 to {vocab_size - 1:,}"
        )
    read_text(folder / "merges.txt")  # to check its size
    try:
        wrapper = ByteLevelBPETokenizer.from_file(str(path), str(folder / "merges.txt"))
    except Exception as error:  # noqa: BLE001  # the library raises a bare Exception for any damage
        raise CheckpointError(f"{folder}: vocab.json and merges.txt do not make a tokenizer ({error!s:.200})") from None
    tokenizer: Tokenizer = wrapper._tokenizer
    return tokenizer


def _model_config(path: Path, published: dict[str, Any]) -> ModelConfig:
    try:
        width = published["n_embd"]
        inner = published.get("n_inner")
        model = {
            "d_model": width,
            "n_heads": published["n_head"],
            "n_layers": published["n_layer"],
            "d_ff": 4 * width if inner is None and type(width) is int else inner,
            "max_length": published["n_positions"],
            "positions": "learned",
            "norm": "pre",
            "norm_epsilon": published.get("layer_norm_epsilon", 1e-5),
            "activation": activation(path, published, "activation_function", "gelu_new"),
            "causal": True,
            "mask_padding": False,
            "tie_output": True,
            "dropout": published.get("resid_pdrop", 0.1),
            "attention_dropout": published.get("attn_pdrop", 0.1),
        }
    except KeyError as error:
        raise CheckpointError(f"{path}: lacks {error.args[0]}") from None
    return model_config(path, model)


def _renamed(stored: dict[str, Tensor], *, n_layers: int) -> dict[str, Tensor]:
    """Rename GPT-2's tensors, transpose matrices (GPT-2 multiplies from the other side), and split Q, K and V."""
    stored = {name.removeprefix("transformer."): tensor for name, tensor in stored.items()}
    weights = {"embeddings.token.weight": stored["wte.weight"], "embeddings.positional": stored["wpe.weight"]}
    weights |= {f"norm.{part}": stored[f"ln_f.{part}"] for part in ("weight", "bias")}
    gpt2_names = {"attn.output": "attn.c_proj", "ff.expand": "mlp.c_fc", "ff.contract": "mlp.c_proj"}
    for layer in range(n_layers):
        gpt2_prefix, prefix = f"h.{layer}", f"layers.{layer}"
        for part in ("weight", "bias"):
            linear = {name: stored[f"{gpt2_prefix}.{name}.{part}"] for name in ("attn.c_attn", *gpt2_names.values())}
            if part == "weight":
                linear = {name: matrix.mT.contiguous() for name, matrix in linear.items()}
            weights[f"{prefix}.norm_attn.{part}"] = stored[f"{gpt2_prefix}.ln_1.{part}"]
            weights[f"{prefix}.norm_ff.{part}"] = stored[f"{gpt2_prefix}.ln_2.{part}"]
            combined = linear["attn.c_attn"]  # 3D D, or 3D
            if len(combined) % 3:
                raise ValueError("its attention matrix does not combine Q, K and V")
            for name, piece in zip(("query", "key", "value"), combined.chunk(3), strict=True):
                weights[f"{prefix}.attn.{name}.{part}"] = piece
            for name, gpt2_name in gpt2_names.items():
                weights[f"{prefix}.{name}.{part}"] = linear[gpt2_name]
    return weights
