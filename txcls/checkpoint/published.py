"""Read a folder with a published model: a BERT or DistilBERT text classifier, or a GPT-2.

BERT (Devlin et al. 2019) is a post-norm encoder with learned positions and a hidden layer before the class head; GPT-2
(Radford et al. 2019) is a causal pre-norm Transformer with tied output. `txcls.model` computes both; the names of their
settings and weights are in published.yaml. Every other setting that could change a logit is refused by name.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from torch import Tensor

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.folders import GPT2_FILES
from txcls.checkpoint.json_files import read_json, read_limited
from txcls.checkpoint.schema import labels_problem
from txcls.checkpoint.weights import load_weights, read_header, shapes_only
from txcls.config import DataConfig, ModelConfig, RunConfig, TextConfig
from txcls.errors import CheckpointError, ConfigError
from txcls.model import Encoder, LanguageModel, TextClassifier
from txcls.text.subwords import Normalizer, WordPieces
from txcls.text.tokenizer import Tokenizer
from txcls.text.vocabulary import BERT_TOKENS

if TYPE_CHECKING:
    from tokenizers import Tokenizer as PublishedTokenizer

ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu", "relu": "relu"}
"""The non-linearities of feed-forward by their published names."""
CLASSIFIERS = ("bert", "distilbert")
"""The values of `model_type` of the classifiers that can be read."""
_REQUIRED = ("d_model", "n_heads", "n_layers", "max_length")
_OPTIONS = {
    "lowercase": "do_lower_case",
    "strip_accents": "strip_accents",
    "handle_chinese_chars": "tokenize_chinese_chars",
}
"""The fields of `Normalizer` by their names in tokenizer.json, with those in tokenizer_config.json."""

Weights = dict[str, Tensor]


@cache
def _rules() -> dict[str, Any]:
    return yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))  # type: ignore[no-any-return]


def _check(path: Path, values: Mapping[str, Any], rules: Mapping[str, Any], *, part: str = "") -> None:
    """CheckpointError if a value is not one that the rules allow; a missing value counts as the first allowed one."""
    for name, allowed in rules.items():
        value = values.get(name, allowed[0])
        value = value.get("content", value) if isinstance(value, dict) else value  # a token with its options
        if value not in allowed:
            expected = "BERT's" if isinstance(allowed[0], list) else repr(allowed[0])
            raise CheckpointError(
                f"{path}: {part}{name} is {value!r:.100}, which is not supported; expected {expected}"
            )


def _read_config(path: Path, *kinds: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values of a config.json, and the entry of published.yaml for its kind, which must be one of `kinds`."""
    values = read_json(path, dict)
    if values.get("model_type") not in kinds:
        raise CheckpointError(
            f"{path}: model_type is {values.get('model_type')!r:.100}; expected {' or '.join(map(repr, kinds))}"
        )
    kind: dict[str, Any] = _rules()[values["model_type"]]
    _check(path, values, kind["supported"])
    return values, kind


def _read_settings(path: Path, values: Mapping[str, Any], kind: Mapping[str, Any]) -> ModelConfig:
    """The settings of a config.json as our `ModelConfig`."""
    names: dict[str, str] = kind["settings"]
    if missing := [names[name] for name in _REQUIRED if names[name] not in values]:
        raise CheckpointError(f"{path}: lacks {', '.join(missing)}")
    settings = kind["fixed"] | {ours: values[theirs] for ours, theirs in names.items() if theirs in values}
    activation, width = settings["activation"], settings["d_model"]
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise CheckpointError(
            f"{path}: {names['activation']} is {activation!r:.100}; expected {', '.join(ACTIVATIONS)}"
        )
    settings["activation"] = ACTIVATIONS[activation]
    if settings.get("d_ff") is None and type(width) is int:
        settings["d_ff"] = 4 * width
    try:
        return RunConfig.from_mapping({"name": "published", "model": settings}, source=str(path)).model
    except ConfigError as error:
        raise CheckpointError(str(error)) from None


def _rename(stored: Weights, kind: Mapping[str, Any], *, n_layers: int) -> Weights:
    """The modules' weights and biases by our names, taken out of `stored`; KeyError if one is missing."""
    modules = dict(kind["outside_layers"])
    for layer in range(n_layers):
        modules |= {
            f"layers.{layer}.{ours}": f"{kind['layer']}{layer}.{name}" for ours, name in kind["in_layers"].items()
        }
    return {
        f"{ours}.{part}": stored.pop(f"{name}.{part}") for ours, name in modules.items() for part in ("weight", "bias")
    }


def _read_weights(network: Encoder, path: Path, rename: Any) -> None:
    """Read the weights as float32 into a model on the meta device."""
    shapes = {name: tensor.shape for name, tensor in network.state_dict().items()}
    weights = load_weights(path, shapes, rename=rename)
    network.load_state_dict({name: weight.float() for name, weight in weights.items()}, assign=True)
    network.eval()


def load_bert(folder: Path) -> Checkpoint:
    """Read a folder with config.json, model.safetensors and tokenizer.json or vocab.txt in the published format.

    BERT adds the token-type vector of the first text to every token; here it is part of the position vectors. The
    special tokens swap ids with the tokens that hold our lowest ids. The checkpoint has the logits of the published
    model in float32, and no metrics.

    Raises:
        CheckpointError: a file is missing or damaged, or has a setting that is not supported; the message names it.
    """
    _check_files(folder)
    path = folder / "config.json"
    values, kind = _read_config(path, *CLASSIFIERS)
    if values.get("architectures") not in (None, [kind["name"]]):
        raise CheckpointError(
            f"{path}: architectures is {values['architectures']!r:.100}; expected {kind['name']}, so train this model "
            "as a text classifier first"
        )
    if unknown := sorted(values.keys() - {*kind["supported"], *kind["without_effect"], *kind["settings"].values()}):
        raise CheckpointError(
            f"{path}: {unknown[0]!r:.100} is not a setting of {kind['name']} that txcls knows; remove it if it does "
            "not change the model's logits"
        )
    model = _read_settings(path, values, kind)
    tokens, normalizer, max_tokens = _read_word_pieces(folder)
    model = model.model_copy(update={"max_length": min(model.max_length, max_tokens)})
    bias = read_header(folder / "model.safetensors")[0].get("classifier.bias")
    classes = _read_labels(path, values, n=0 if bias is None else bias.numel())
    with shapes_only():
        network = TextClassifier(model, vocab_size=len(tokens), n_classes=len(classes))
    order = _special_first(tokens)
    _read_weights(network, folder / "model.safetensors", partial(_rename_bert, kind=kind, order=order, model=model))
    text = TextConfig(tokenizer="wordpiece", cleaning=("as_typed",), max_vocabulary=len(tokens))
    title = "/".join(folder.resolve().parts[-2:])[-80:]  # with the owner, since folder names repeat
    config = RunConfig(
        name="imported",
        title=f"{title} (imported)",
        imported=kind["name"],
        data=DataConfig(dataset="table"),
        text=text,
        model=model,
    )
    pieces = WordPieces([tokens[index] for index in order], normalizer)
    tokenizer = Tokenizer(pieces, text, max_length=model.max_length, class_token=True)
    return Checkpoint(None, config, tokenizer, classes, network, float32=True)


def _check_files(folder: Path) -> None:
    """CheckpointError if a file is missing, or the weights are not a single safetensors file."""
    code = (
        f"from transformers import AutoModelForSequenceClassification as M; M.from_pretrained({str(folder)!r})"
        f".save_pretrained({str(folder)!r}, max_shard_size='100GB')"
    )
    convert = f"convert it with: {shlex.join(['python', '-c', code])}"
    if (folder / "model.safetensors.index.json").is_file():
        raise CheckpointError(f"{folder}: its weights are in several files; {convert}")
    if not (folder / "model.safetensors").is_file() and (folder / "pytorch_model.bin").is_file():
        raise CheckpointError(
            f"{folder}/pytorch_model.bin is a pickle, which can run code when it is read, so it is refused; if you "
            f"trust it, {convert}"
        )
    missing = [name for name in ("config.json", "model.safetensors") if not (folder / name).is_file()]
    if not any((folder / name).is_file() for name in ("tokenizer.json", "vocab.txt")):
        missing.append("tokenizer.json (or vocab.txt)")
    if missing:
        raise CheckpointError(f"{folder} lacks {', '.join(missing)}; copy the whole folder of the published model")


def _read_labels(path: Path, values: Mapping[str, Any], *, n: int) -> tuple[str, ...]:
    """The names of the n classes in the order of the logits; LABEL_0 and so on if config.json has none."""
    if n < 2:
        raise CheckpointError(f"{path.parent}: its head has {n} outputs; expected a classifier with at least 2 classes")
    labels = values.get("id2label", {str(index): f"LABEL_{index}" for index in range(n)})
    if not isinstance(labels, dict) or set(labels) != {str(index) for index in range(n)}:
        raise CheckpointError(f"{path}: id2label is {labels!r:.100}; expected a name for each id from 0 to {n - 1}")
    names = tuple(labels[str(index)] for index in range(n))
    problem = labels_problem(names) if all(isinstance(name, str) and name for name in names) else "expected names"
    if problem:
        raise CheckpointError(f"{path}: id2label: {problem}, got {names!r:.100}")
    return names


def _read_word_pieces(folder: Path) -> tuple[list[str], Normalizer, int]:
    """The tokens in order of their published ids, what is done to a text first, and the maximum number of tokens."""
    path = folder / "tokenizer_config.json"
    extra = read_json(path, dict) if path.is_file() else {}
    _check(path, extra, _rules()["tokenizer_config.json"])
    options = {ours: extra[theirs] for ours, theirs in _OPTIONS.items() if extra.get(theirs) is not None}
    if (folder / "tokenizer.json").is_file():
        tokens, stated = _read_tokenizer_json(folder / "tokenizer.json")
        normalizer, other = _normalizer(stated), _normalizer(stated | options)
        if differing := [name for name in _OPTIONS if getattr(normalizer, name) is not getattr(other, name)]:
            raise CheckpointError(
                f"{path} and tokenizer.json disagree on {differing[0]}; correct the one that is wrong"
            )
    else:
        tokens = [
            token.removesuffix("\r") for token in read_limited(folder / "vocab.txt").removesuffix("\n").split("\n")
        ]
        normalizer = _normalizer(options)
    if len(set(tokens)) < len(tokens) or not set(BERT_TOKENS) <= set(tokens):
        raise CheckpointError(f"{folder}: its vocabulary has a token twice, or lacks one of {', '.join(BERT_TOKENS)}")
    longest = extra.get("model_max_length")
    return tokens, normalizer, longest if isinstance(longest, int) and longest > 2 else 10**9


def _normalizer(options: Mapping[str, bool | None]) -> Normalizer:
    """BERT's normaliser with these options; by default, accents are stripped exactly if capitals are."""
    given = {name: value for name, value in options.items() if value is not None}
    return Normalizer.model_validate({"strip_accents": given.get("lowercase", True)} | given)


def _read_tokenizer_json(path: Path) -> tuple[list[str], dict[str, bool | None]]:
    """The tokens in order of id, and the normaliser's options."""
    values = read_json(path, dict)
    for part, rules in _rules()["tokenizer.json"].items():
        if not isinstance(values.get(part), dict):
            raise CheckpointError(f"{path}: {part} is {values.get(part)!r:.100}, which is not supported")
        _check(path, values[part], rules, part=f"{part}.")
    contents = [item.get("content") if isinstance(item, dict) else item for item in values.get("added_tokens") or ()]
    if others := [content for content in contents if content not in BERT_TOKENS]:
        raise CheckpointError(
            f"{path}: added_tokens: {others[0]!r:.100} is not supported; expected only {', '.join(BERT_TOKENS)}"
        )
    ids = values["model"].get("vocab")
    if not isinstance(ids, dict) or {*map(repr, ids.values())} != {*map(repr, range(len(ids)))}:
        raise CheckpointError(f"{path}: model.vocab: expected tokens with the ids 0, 1, 2 and so on, each once")
    return sorted(ids, key=ids.__getitem__), {name: values["normalizer"].get(name) for name in _OPTIONS}


def _special_first(tokens: list[str]) -> list[int]:
    """The published id for each of ours: the special tokens swap ids with the tokens that hold our lowest ids."""
    order = list(range(len(tokens)))
    for place, token in enumerate(BERT_TOKENS):
        now = order.index(tokens.index(token))
        order[place], order[now] = order[now], order[place]
    return order


def _rename_bert(stored: Weights, kind: Mapping[str, Any], order: list[int], model: ModelConfig) -> Weights:
    """BERT's weights by our names, its tokens in our `order`; ValueError if one is left over."""
    # Old files call the weight and the bias of a norm gamma and beta.
    rest = {
        name.replace("Norm.gamma", "Norm.weight").replace("Norm.beta", "Norm.bias"): w for name, w in stored.items()
    }
    words, positions = (rest.pop(f"{kind['embeddings']}{name}_embeddings.weight") for name in ("word", "position"))
    if len(words) < len(order):
        raise ValueError(f"it has vectors for {len(words):,} tokens; the vocabulary has {len(order):,}")
    token_types = rest.pop(f"{kind['embeddings']}token_type_embeddings.weight", None)  # DistilBERT has none
    positions = (
        positions[: model.max_length].clone() if token_types is None else positions[: model.max_length] + token_types[0]
    )
    weights = _rename(rest, kind, n_layers=model.n_layers)
    rest.pop(f"{kind['embeddings']}position_ids", None)  # 0, 1, 2 and so on
    if rest:
        raise ValueError(f"it holds {min(rest)}, for which {kind['name']} has no place")
    return {"embeddings.token.weight": words[order], "embeddings.positional": positions, **weights}


@dataclass(frozen=True)
class PublishedDecoder:
    """A published language model with its own byte-level BPE tokenizer."""

    model: LanguageModel
    tokenizer: "PublishedTokenizer"


def load_gpt2(folder: Path) -> PublishedDecoder:
    """Read a folder with config.json, model.safetensors, vocab.json and merges.txt in the published format.

    Raises:
        CheckpointError: a file is missing or damaged, or the model is not a GPT-2 or is an unsupported variant.
    """
    if missing := [name for name in GPT2_FILES if not (folder / name).is_file()]:
        raise CheckpointError(
            f"{folder} lacks {', '.join(missing)}; a GPT-2 folder holds {', '.join(GPT2_FILES)}, as published at "
            "huggingface.co/openai-community/gpt2"
        )
    path = folder / "config.json"
    values, kind = _read_config(path, "gpt2")
    config = _read_settings(path, values, kind)
    path = folder / "model.safetensors"
    shapes = read_header(path)[0]
    embeddings = shapes.get("transformer.wte.weight", shapes.get("wte.weight"))
    if embeddings is None or embeddings.dim() != 2:
        raise CheckpointError(f"{path}: lacks wte.weight, the token embeddings of a GPT-2")
    with shapes_only():
        model = LanguageModel(config, vocab_size=embeddings.shape[0])
    tokenizer = _read_byte_pairs(folder, vocab_size=embeddings.shape[0])
    _read_weights(model, path, partial(_rename_gpt2, kind=kind, n_layers=config.n_layers))
    return PublishedDecoder(model, tokenizer)


def _read_byte_pairs(folder: Path, *, vocab_size: int) -> "PublishedTokenizer":
    from tokenizers import ByteLevelBPETokenizer

    path = folder / "vocab.json"
    ids = read_json(path, dict)
    if invalid := [token for token, index in ids.items() if type(index) is not int or not 0 <= index < vocab_size]:
        raise CheckpointError(
            f"{path}: {invalid[0]!r:.100} is {ids[invalid[0]]!r:.100}; expected an id from 0 to {vocab_size - 1:,}"
        )
    read_limited(folder / "merges.txt")  # to check its size
    try:
        wrapper = ByteLevelBPETokenizer.from_file(str(path), str(folder / "merges.txt"))
    except Exception as error:  # noqa: BLE001  # the library raises a bare Exception for any damage
        raise CheckpointError(f"{folder}: vocab.json and merges.txt do not make a tokenizer ({error!s:.200})") from None
    tokenizer: PublishedTokenizer = wrapper._tokenizer
    return tokenizer


def _rename_gpt2(stored: Weights, kind: Mapping[str, Any], n_layers: int) -> Weights:
    """GPT-2's weights by our names: matrices transposed (it multiplies from the other side), and Q, K and V split."""
    weights: Weights = {}
    for full_name, tensor in stored.items():
        name = full_name.removeprefix("transformer.")
        if name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
            tensor = tensor.mT.contiguous()
        if ".c_attn." not in name:
            weights[name] = tensor
            continue
        if tensor.shape[0] % 3:
            raise ValueError("its attention matrix does not combine Q, K and V")
        for part, piece in zip(("query", "key", "value"), tensor.chunk(3), strict=True):  # D D, or D
            weights[name.replace("c_attn", part)] = piece
    embeddings = {"embeddings.token.weight": weights["wte.weight"], "embeddings.positional": weights["wpe.weight"]}
    return embeddings | _rename(weights, kind, n_layers=n_layers)
