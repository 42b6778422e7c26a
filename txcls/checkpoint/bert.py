"""Read a folder with a published BERT or DistilBERT text classifier as a checkpoint of `txcls.model.TextClassifier`.

BERT (Devlin et al. 2019) is a post-norm encoder with learned positions and a hidden layer before the class head. The
stored names differ (bert.yaml), and the vector of the first text, which BERT adds to every token (its token type), is
added to the positions. The special tokens get our lowest ids, and the tokens that had these get theirs.
"""

import shlex
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from torch import Tensor

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.json_files import read_json, read_text
from txcls.checkpoint.published import activation, load_published, model_config
from txcls.checkpoint.schema import labels_problem
from txcls.checkpoint.weights import read_header, shapes_only
from txcls.config import DataConfig, RunConfig, TextConfig
from txcls.errors import CheckpointError
from txcls.model import TextClassifier
from txcls.text.tokenizer import Tokenizer
from txcls.text.vocabulary import BERT_TOKENS
from txcls.text.wordpiece import Normalizer, WordPieces


@cache
def _rules() -> dict[str, Any]:
    return yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))  # type: ignore[no-any-return]


def is_bert(folder: Path) -> bool:
    """Whether this folder's config.json is that of a kind that can be imported."""
    path = folder / "config.json"
    return path.is_file() and read_json(path, dict).get("model_type") in _rules()["kinds"]


def load_bert(folder: Path, *, name: str = "imported") -> Checkpoint:
    """Read a folder with config.json, model.safetensors and tokenizer.json or vocab.txt in the published format.

    The checkpoint has the logits of the published model in float32, and no metrics.

    Raises:
        CheckpointError: a file is missing or damaged, or has a setting that is not supported; the message names it.
    """
    _check_files(folder)
    path, weights = folder / "config.json", folder / "model.safetensors"
    values = read_json(path, dict)
    kind = _checked_kind(path, values)
    tokens, normalizer, max_tokens = _read_tokenizer(folder)
    model = model_config(path, _settings(path, values, kind, max_tokens))
    classes = _labels(path, values, read_header(weights)[0].get("classifier.bias"))
    with shapes_only():
        network = TextClassifier(model, vocab_size=len(tokens), n_classes=len(classes))
    order = _special_first(tokens)
    load_published(weights, network, lambda stored: _renamed(stored, kind, order, model.n_layers, model.max_length))
    text = TextConfig(tokenizer="wordpiece", cleaning=("as_typed",), max_vocabulary=len(tokens))
    config = RunConfig(
        name=name,
        title=f"{folder.resolve().name[:80]} (imported)",
        imported=kind["name"],
        data=DataConfig(dataset="table"),
        text=text,
        model=model,
    )
    pieces = WordPieces([tokens[index] for index in order], normalizer)
    tokenizer = Tokenizer(pieces, text, max_length=model.max_length, class_token=True)
    return Checkpoint(None, config, tokenizer, classes, network.eval(), float32=True)


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


def _check(path: Path, values: Mapping[str, Any], rules: Mapping[str, Any], *, part: str = "") -> None:
    """CheckpointError if a value is not among those that the rules allow; missing values are the first of these."""
    for name, allowed in rules.items():
        value = values.get(name, allowed[0])
        value = value.get("content", value) if isinstance(value, dict) else value  # a token with its options
        if value not in allowed:
            expected = "BERT's" if isinstance(allowed[0], list) else repr(allowed[0])
            raise CheckpointError(
                f"{path}: {part}{name} is {value!r:.100}, which is not supported; expected {expected}"
            )


def _checked_kind(path: Path, values: dict[str, Any]) -> dict[str, Any]:
    """The kind of model; CheckpointError if config.json has a setting that would change its logits."""
    rules = _rules()
    names = " and ".join(kind["name"] for kind in rules["kinds"].values())
    kind: dict[str, Any] | None = rules["kinds"].get(str(values.get("model_type")))
    if kind is None:
        raise CheckpointError(f"{path}: model_type is {values.get('model_type')!r:.100}; {names} can be imported")
    if values.get("architectures") not in (None, [kind["name"]]):
        raise CheckpointError(
            f"{path}: architectures is {values['architectures']!r:.100}; {names} can be imported, so train this model "
            "as a text classifier first"
        )
    _check(path, values, rules["config.json"])
    if unknown := sorted(values.keys() - {*rules["config.json"], *rules["without_effect"], *kind["settings"].values()}):
        raise CheckpointError(
            f"{path}: {unknown[0]!r:.100} is not a setting of {kind['name']} that txcls knows; remove it if it does "
            "not change the model's logits"
        )
    return kind


def _settings(path: Path, values: dict[str, Any], kind: dict[str, Any], max_tokens: int) -> dict[str, Any]:
    """The settings of our model, which reads at most `max_tokens` tokens."""
    names = kind["settings"]
    settings = {"norm_epsilon": 1e-12} | {ours: values[theirs] for ours, theirs in names.items() if theirs in values}
    required = ("d_model", "n_heads", "n_layers", "d_ff", "max_length")
    if missing := [names[name] for name in required if name not in settings]:
        raise CheckpointError(f"{path}: lacks {', '.join(missing)}")
    if type(settings["max_length"]) is int:
        settings["max_length"] = min(settings["max_length"], max_tokens)
    return settings | {
        "activation": activation(path, values, names["activation"], "gelu"),
        "positions": "learned",
        "norm": "post",
        "embedding_norm": True,
        "pooling": "class_token",
        "pooler": kind["pooler"],
    }


def _labels(path: Path, values: dict[str, Any], bias: Tensor | None) -> tuple[str, ...]:
    """The class names in the order of the logits; LABEL_0 and so on if config.json has none, as in transformers."""
    n = 0 if bias is None else bias.numel()
    if n < 2:
        raise CheckpointError(f"{path.parent}: its head has {n} outputs; expected a classifier with at least 2 classes")
    labels = values.get("id2label", {str(index): f"LABEL_{index}" for index in range(n)})
    if not isinstance(labels, dict) or set(labels) != {str(index) for index in range(n)}:
        raise CheckpointError(f"{path}: id2label is {labels!r:.100}; expected a name for each id from 0 to {n - 1}")
    names = tuple(labels[str(index)] for index in range(n))
    if not all(isinstance(label, str) and label for label in names):
        raise CheckpointError(f"{path}: id2label: expected names, got {names!r:.100}")
    if problem := labels_problem(names):
        raise CheckpointError(f"{path}: id2label: {problem}")
    return names


def _read_tokenizer(folder: Path) -> tuple[list[str], Normalizer, int]:
    """The tokens in order of their published ids, what is done to a text first, and the maximum number of tokens."""
    path = folder / "tokenizer_config.json"
    extra = read_json(path, dict) if path.is_file() else {}
    _check(path, extra, _rules()["tokenizer_config.json"])
    names = {"lowercase": "do_lower_case", "strip_accents": "strip_accents"}
    names["handle_chinese_chars"] = "tokenize_chinese_chars"
    options = {ours: extra.get(theirs) for ours, theirs in names.items()}
    if (folder / "tokenizer.json").is_file():
        tokens, stated = _read_tokenizer_json(folder / "tokenizer.json")
        if differing := [key for key in options if options[key] not in (None, stated[key], stated[key] or False)]:
            raise CheckpointError(
                f"{path} and tokenizer.json disagree on {differing[0]}; correct the one that is wrong"
            )
        options = stated
    else:
        tokens = [token.removesuffix("\r") for token in read_text(folder / "vocab.txt").removesuffix("\n").split("\n")]
    options = {key: True if value is None and key != "strip_accents" else value for key, value in options.items()}
    if options["strip_accents"] is None:
        options["strip_accents"] = options["lowercase"]
    if len(set(tokens)) < len(tokens) or not set(BERT_TOKENS) <= set(tokens):
        raise CheckpointError(f"{folder}: its vocabulary has a token twice, or lacks one of {', '.join(BERT_TOKENS)}")
    longest = extra.get("model_max_length")
    return tokens, Normalizer.model_validate(options), longest if isinstance(longest, int) and longest > 2 else 10**9


def _read_tokenizer_json(path: Path) -> tuple[list[str], dict[str, Any]]:
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
    options = ("lowercase", "strip_accents", "handle_chinese_chars")
    return sorted(ids, key=ids.__getitem__), {key: values["normalizer"].get(key) for key in options}


def _special_first(tokens: list[str]) -> list[int]:
    """The published id for each of ours: the special tokens change places with the tokens that have our ids."""
    order = list(range(len(tokens)))
    for place, token in enumerate(BERT_TOKENS):
        now = order.index(tokens.index(token))
        order[place], order[now] = order[now], order[place]
    return order


def _renamed(
    stored: dict[str, Tensor], kind: dict[str, Any], order: list[int], n_layers: int, max_length: int
) -> dict[str, Tensor]:
    """Published weights by our names; KeyError if one is missing, ValueError if one is left over."""
    # Old files call the weight and the bias of a norm gamma and beta.
    rest = {
        name.replace("Norm.gamma", "Norm.weight").replace("Norm.beta", "Norm.bias"): w for name, w in stored.items()
    }
    embeddings = f"{kind['encoder']}embeddings."
    rest.pop(f"{embeddings}position_ids", None)  # 0, 1, 2 and so on
    words, positions = (rest.pop(f"{embeddings}{name}_embeddings.weight") for name in ("word", "position"))
    if len(words) < len(order):
        raise ValueError(f"it has vectors for {len(words):,} tokens; the vocabulary has {len(order):,}")
    if f"{embeddings}token_type_embeddings.weight" in rest:
        positions = positions + rest.pop(f"{embeddings}token_type_embeddings.weight")[0]
    weights = {"embeddings.token.weight": words[order], "embeddings.positional": positions[:max_length].clone()}
    modules = {"embeddings.norm": f"{embeddings}LayerNorm", "pool.dense": kind["dense"], "head": "classifier"}
    for layer in range(n_layers):
        for ours, theirs in kind["modules"].items():
            modules[f"layers.{layer}.{ours}"] = f"{kind['layer']}{layer}.{theirs}"
    for ours, theirs in modules.items():
        weights |= {f"{ours}.{part}": rest.pop(f"{theirs}.{part}") for part in ("weight", "bias")}
    if rest:
        raise ValueError(f"it holds {min(rest)}, for which {kind['name']} has no place")
    return weights
