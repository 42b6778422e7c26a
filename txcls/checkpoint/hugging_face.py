"""Read a folder with a published model: a BERT or DistilBERT text classifier, or a GPT-2.

BERT (Devlin et al. 2019) is a post-norm encoder with learned positions and a hidden layer before the class head; GPT-2
(Radford et al. 2019) is a causal pre-norm Transformer with tied output. `txcls.model` computes both; the names of their
settings and weights are in hugging_face.yaml. Every other setting that could change a logit is refused by name.
"""

import shlex
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import yaml
from torch import Tensor

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.json_files import read_json, read_limited
from txcls.checkpoint.schema import FORMAT_VERSION, check_labels, parse_config
from txcls.checkpoint.weights import load_model
from txcls.config import ModelConfig, RunConfig
from txcls.errors import CheckpointError
from txcls.model import LanguageModel
from txcls.text.subwords import Normalizer, WordPieces
from txcls.text.tokenizer import Tokenizer
from txcls.text.vocabulary import BERT_TOKENS

if TYPE_CHECKING:
    from tokenizers import Tokenizer as PublishedTokenizer

Weights = dict[str, Tensor]


@cache
def _rules() -> dict[str, Any]:
    return yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))  # type: ignore[no-any-return]


def _check(path: Path, values: Mapping[Any, Any], rules: Mapping[Any, Any], *, part: str = "") -> None:
    """CheckpointError if a value is not one that the rules allow; a missing value counts as the first allowed one."""
    for name, allowed in rules.items():
        value = values.get(name, allowed[0])
        value = value.get("content", value) if isinstance(value, dict) else value  # a token with its options
        if value not in allowed:
            expected = " or ".join(map(repr, allowed))
            raise CheckpointError(
                f"{path}: {part}{name} is {value!r:.100}, which is not supported; expected {expected}"
            )


def _read_config(path: Path, *kinds: str) -> tuple[dict[str, Any], dict[str, Any], RunConfig]:
    """The values of a config.json of one of these kinds, the kind's entry in hugging_face.yaml, and our settings."""
    values = {"model_type": None, **read_json(path, dict)}
    _check(path, values, {"model_type": kinds})
    kind: dict[str, Any] = _rules()[values["model_type"]]
    _check(path, values, kind["supported"])
    settings = kind["model"] | {ours: values[theirs] for ours, theirs in kind["settings"].items() if theirs in values}
    settings["activation"] = _rules()["activations"][settings["activation"]]
    if settings["d_ff"] is None and isinstance(settings["d_model"], int):
        settings["d_ff"] = 4 * settings["d_model"]
    text = kind["text"] | ({"max_vocabulary": values["vocab_size"]} if "vocab_size" in values else {})
    run = {"format_version": FORMAT_VERSION, "calibration": {}, **kind["run"], "text": text, "model": settings}
    return values, kind, parse_config(run, source=str(path))[0]


def _rename(stored: Weights, kind: Mapping[str, Any], *, n_layers: int) -> Weights:
    """The modules' weights and biases under our names, removed from `stored`; KeyError if one is missing."""
    modules = dict(kind["outside_layers"])
    for layer in range(n_layers):
        modules |= {
            f"layers.{layer}.{ours}": f"{kind['layer']}{layer}.{name}" for ours, name in kind["in_layers"].items()
        }
    return {
        f"{ours}.{part}": stored.pop(f"{name}.{part}") for ours, name in modules.items() for part in ("weight", "bias")
    }


def load_bert(folder: Path) -> Checkpoint:
    """Read a folder with config.json, model.safetensors and tokenizer.json or vocab.txt in the published format.

    BERT adds the token-type vector of the first text to every token; here it is part of the position vectors. The
    special tokens swap ids with the tokens that have the lowest ids. The checkpoint has the logits of the published
    model in float32, and no metrics.

    Raises:
        CheckpointError: a file is missing or damaged, or has a setting that is not supported; the message names it.
    """
    weights, path = folder / "model.safetensors", folder / "config.json"
    if not weights.is_file():
        code = (
            f"from transformers import AutoModelForSequenceClassification as M; M.from_pretrained({str(folder)!r})"
            f".save_pretrained({str(folder)!r}, max_shard_size='100GB')"
        )
        raise CheckpointError(
            f"{folder} lacks model.safetensors; expected the whole folder of a published model. pytorch_model.bin is "
            "refused, since it can run code when it is read; if you trust it, or the weights are in several files, "
            f"convert the folder with: {shlex.join(['python', '-c', code])}"
        )
    values, kind, config = _read_config(path, "bert", "distilbert")
    if unknown := sorted(values.keys() - {*kind["supported"], *kind["without_effect"], *kind["settings"].values()}):
        raise CheckpointError(
            f"{path}: {unknown[0]!r:.100} is not a setting of {config.imported} that txcls knows; remove it if it does "
            "not change the model's logits"
        )
    labels = values.get("id2label", {"0": "LABEL_0", "1": "LABEL_1"})
    names = [labels.get(str(index)) for index in range(len(labels))] if isinstance(labels, dict) else [labels]
    classes = check_labels(names, where=f"{path}: id2label")
    tokens, normalizer, max_tokens = _read_word_pieces(folder)
    model = config.model.model_copy(update={"max_length": min(config.model.max_length, max_tokens)})
    config = config.model_copy(update={"model": model})
    order = list(range(len(tokens)))  # the published id for each of ours
    for place, token in enumerate(BERT_TOKENS):
        now = order.index(tokens.index(token))
        order[place], order[now] = order[now], order[place]
    rename = partial(_rename_bert, kind=kind, order=order, model=model)
    network = load_model(weights, config, vocab_size=len(tokens), n_classes=len(classes), rename=rename)
    pieces = WordPieces([tokens[index] for index in order], normalizer)
    tokenizer = Tokenizer(pieces, config.text, max_length=model.max_length, class_token=True)
    return Checkpoint(None, config, tokenizer, classes, network)


def _read_word_pieces(folder: Path) -> tuple[list[str], Normalizer, int]:
    """The tokens in order of their published ids, the normaliser, and the maximum number of tokens in a text."""
    path, rules = folder / "tokenizer_config.json", _rules()
    extra = read_json(path, dict) if path.is_file() else {}
    _check(path, extra, rules["tokenizer_config.json"])
    options = {ours: extra.get(theirs) for ours, theirs in rules["normalizer"].items()}
    if (folder / "tokenizer.json").is_file():
        tokens, stated = _read_tokenizer_json(folder / "tokenizer.json")
        _check(path, options, {name: (None, value) for name, value in stated.items()}, part="unlike tokenizer.json, ")
        options = stated
    else:
        tokens = read_limited(folder / "vocab.txt").replace("\r\n", "\n").removesuffix("\n").split("\n")
    if len(set(tokens)) < len(tokens) or not set(BERT_TOKENS) <= set(tokens):
        raise CheckpointError(f"{folder}: its vocabulary has a token twice, or lacks one of {', '.join(BERT_TOKENS)}")
    given = {name: value for name, value in options.items() if value is not None}
    # By default, accents are stripped exactly if capitals are.
    normalizer = Normalizer.model_validate({"strip_accents": given.get("lowercase", True)} | given)
    longest = extra.get("model_max_length")
    return tokens, normalizer, longest if isinstance(longest, int) and longest > 2 else 10**9


def _read_tokenizer_json(path: Path) -> tuple[list[str], dict[str, bool | None]]:
    """The tokens in order of id, and the normaliser's options."""
    values = read_json(path, dict)
    for part, rules in _rules()["tokenizer.json"].items():
        inner = values.get(part)
        _check(path, inner if isinstance(inner, dict) else {"type": inner}, rules, part=f"{part}.")
    added = dict(enumerate(values.get("added_tokens") or ()))
    _check(path, added, dict.fromkeys(added, BERT_TOKENS), part="added token ")
    ids = values["model"].get("vocab")
    if not isinstance(ids, dict) or {*map(repr, ids.values())} != {*map(repr, range(len(ids)))}:
        raise CheckpointError(f"{path}: model.vocab: expected tokens with the ids 0, 1, 2 and so on, each once")
    return sorted(ids, key=ids.__getitem__), {name: values["normalizer"].get(name) for name in _rules()["normalizer"]}


def _rename_bert(stored: Weights, kind: Mapping[str, Any], order: list[int], model: ModelConfig) -> Weights:
    """BERT's weights under our names, tokens in our `order`; weights with no place in our model keep their names."""
    # Old files call the weight and the bias of a norm gamma and beta.
    rest = {
        name.replace("Norm.gamma", "Norm.weight").replace("Norm.beta", "Norm.bias"): w for name, w in stored.items()
    }
    words, positions = (rest.pop(f"{kind['embeddings']}{name}_embeddings.weight") for name in ("word", "position"))
    if len(words) < len(order):
        raise ValueError(f"it has vectors for {len(words):,} tokens; the vocabulary has {len(order):,}")
    token_types = rest.pop(f"{kind['embeddings']}token_type_embeddings.weight", torch.zeros(1))  # DistilBERT has none
    rest.pop(f"{kind['embeddings']}position_ids", None)  # 0, 1, 2 and so on
    renamed = _rename(rest, kind, n_layers=model.n_layers)
    renamed["embeddings.token.weight"] = words[order]
    renamed["embeddings.positional"] = (positions + token_types[0])[: model.max_length]
    return rest | renamed


def load_gpt2(folder: Path) -> tuple[LanguageModel, "PublishedTokenizer"]:
    """Read a GPT-2 and its tokenizer from config.json, model.safetensors, vocab.json and merges.txt as published.

    Raises:
        CheckpointError: a file is missing or damaged, or the model is not a GPT-2 or is an unsupported variant.
    """
    _, kind, config = _read_config(folder / "config.json", "gpt2")
    vocab_size = config.text.max_vocabulary
    tokenizer = _read_byte_pairs(folder, vocab_size=vocab_size)
    rename = partial(_rename_gpt2, kind=kind, n_layers=config.model.n_layers)
    model = load_model(folder / "model.safetensors", config, vocab_size=vocab_size, n_classes=0, rename=rename)
    assert isinstance(model, LanguageModel)
    return model, tokenizer


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
    """GPT-2's weights under our names: matrices transposed (it multiplies from the other side), Q, K and V split."""
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
