"""Read a folder with a published BERT or DistilBERT text classifier as a checkpoint of `txcls.model.TextClassifier`.

BERT (Devlin et al. 2019) is a post-norm encoder with learned positions and a hidden layer before the class head. The
stored names differ, and the vector of the first text, which BERT adds to every token (its token type), is added to the
positions. The special tokens get our lowest ids, and the tokens that had these get theirs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
from txcls.text.wordpiece import MAX_WORD, PREFIX, Normalizer, WordPieces


@dataclass(frozen=True)
class _Kind:
    """A published class: its name, the prefix of its encoder and of its layers, and its names for our settings and
    modules."""

    name: str
    encoder: str
    layers: str
    settings: Mapping[str, str]
    modules: Mapping[str, str]
    pooler: str
    dense: str


KINDS = {
    "bert": _Kind(
        "BertForSequenceClassification",
        "bert.",
        "encoder.layer.",
        {
            "d_model": "hidden_size", "n_heads": "num_attention_heads", "n_layers": "num_hidden_layers",
            "d_ff": "intermediate_size", "max_length": "max_position_embeddings", "activation": "hidden_act",
            "dropout": "hidden_dropout_prob", "attention_dropout": "attention_probs_dropout_prob",
            "norm_epsilon": "layer_norm_eps",
        },
        {
            "attn.query": "attention.self.query", "attn.key": "attention.self.key",
            "attn.value": "attention.self.value", "attn.output": "attention.output.dense",
            "norm_attn": "attention.output.LayerNorm", "ff.expand": "intermediate.dense", "ff.contract": "output.dense",
            "norm_ff": "output.LayerNorm",
        },
        "tanh",
        "bert.pooler.dense",
    ),
    "distilbert": _Kind(
        "DistilBertForSequenceClassification",
        "distilbert.",
        "transformer.layer.",
        {
            "d_model": "dim", "n_heads": "n_heads", "n_layers": "n_layers", "d_ff": "hidden_dim",
            "max_length": "max_position_embeddings", "activation": "activation", "dropout": "dropout",
            "attention_dropout": "attention_dropout",
        },
        {
            "attn.query": "attention.q_lin", "attn.key": "attention.k_lin", "attn.value": "attention.v_lin",
            "attn.output": "attention.out_lin", "norm_attn": "sa_layer_norm", "ff.expand": "ffn.lin1",
            "ff.contract": "ffn.lin2", "norm_ff": "output_layer_norm",
        },
        "relu",
        "pre_classifier",
    ),
}  # fmt: skip
"""The kinds that can be imported, by the `model_type` of config.json."""
FILES = ("config.json", "model.safetensors")
_ONLY: Mapping[str, tuple[object, ...]] = {
    "problem_type": (None, "single_label_classification"),
    "position_embedding_type": ("absolute",),
    "is_decoder": (False,),
    "is_encoder_decoder": (False,),
    "add_cross_attention": (False,),
    "cross_attention_hidden_size": (None,),
    "pruned_heads": ({}, None),
    "quantization_config": (None,),
    "pad_token_id": (0, None),
}
"""The values of config.json that are supported, of settings with a single meaning here."""
_WITHOUT_EFFECT = {
    "_name_or_path", "_num_labels", "architectures", "attn_implementation", "bos_token_id", "chunk_size_feed_forward",
    "classifier_dropout", "cls_token_id", "directionality", "dtype", "eos_token_id", "finetuning_task",
    "gradient_checkpointing", "id2label", "initializer_range", "label2id", "language", "layer_norm_eps", "model_type",
    "name", "num_labels", "output_attentions", "output_hidden_states", "output_past", "pooler_fc_size",
    "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type", "qa_dropout",
    "return_dict", "seq_classif_dropout", "sep_token_id", "sinusoidal_pos_embds", "task_specific_params",
    "tie_weights_", "tie_word_embeddings", "tokenizer_class", "torch_dtype", "torchscript", "transformers_version",
    "type_vocab_size", "use_bfloat16", "use_cache", "vocab_size",
}  # fmt: skip
"""Settings of config.json that change no logit, or are checked with the weights."""


def is_bert(folder: Path) -> bool:
    """Whether this folder's config.json is that of a kind that can be imported."""
    path = folder / "config.json"
    return path.is_file() and read_json(path, dict).get("model_type") in KINDS


def load_bert(folder: Path, *, name: str = "imported") -> Checkpoint:
    """Read a folder with config.json, model.safetensors and tokenizer.json or vocab.txt in the published format.

    The checkpoint has the logits of the published model in float32, and no metrics.

    Raises:
        CheckpointError: a file is missing or damaged, or has a setting that is not supported; the message names it.
    """
    _check_files(folder)
    path = folder / "config.json"
    values = read_json(path, dict)
    kind = _checked_kind(path, values)
    weights = folder / "model.safetensors"
    header = read_header(weights)[0]
    tokens, normalizer, max_tokens = _read_tokenizer(folder)
    order = _special_first(tokens)
    settings = _settings(path, values, kind)
    if type(settings["max_length"]) is int:
        settings["max_length"] = min(settings["max_length"], max_tokens)
    model = model_config(path, settings)
    classes = _labels(path, values, header)
    with shapes_only():
        network = TextClassifier(model, vocab_size=len(tokens), n_classes=len(classes))
    load_published(weights, network, lambda stored: _renamed(stored, kind, order, model.n_layers, model.max_length))
    text = TextConfig(tokenizer="wordpiece", cleaning=("as_typed",), max_vocabulary=max(len(tokens), 5))
    config = RunConfig(
        name=name,
        title=f"{folder.resolve().name[:80]} (imported)",
        imported=kind.name,
        data=DataConfig(dataset="table"),
        text=text,
        model=model,
    )
    pieces = WordPieces([tokens[index] for index in order], normalizer)
    tokenizer = Tokenizer(pieces, text, max_length=model.max_length, class_token=True)
    return Checkpoint(None, config, tokenizer, classes, network.eval(), float32=True)


def _check_files(folder: Path) -> None:
    if (folder / "model.safetensors.index.json").is_file():
        raise CheckpointError(f"{folder}: its weights are in several files; {_saved_again(folder)}")
    if not (folder / "model.safetensors").is_file() and (folder / "pytorch_model.bin").is_file():
        raise CheckpointError(
            f"{folder}/pytorch_model.bin is a pickle, which can run code when it is read, so it is refused; if you "
            f"trust it, {_saved_again(folder)}"
        )
    missing = [name for name in FILES if not (folder / name).is_file()]
    if not any((folder / name).is_file() for name in ("tokenizer.json", "vocab.txt")):
        missing.append("tokenizer.json (or vocab.txt)")
    if missing:
        raise CheckpointError(f"{folder} lacks {', '.join(missing)}; copy the whole folder of the published model")


def _saved_again(folder: Path) -> str:
    code = (
        f"from transformers import AutoModelForSequenceClassification as M; M.from_pretrained({str(folder)!r})"
        f".save_pretrained({str(folder)!r}, max_shard_size='100GB')"
    )
    return f'convert it with: python -c "{code}"'


def _checked_kind(path: Path, values: dict[str, Any]) -> _Kind:
    """The kind of model; CheckpointError if config.json has a setting that would change its logits."""
    kind = KINDS.get(str(values.get("model_type")))
    names = " and ".join(each.name for each in KINDS.values())
    if kind is None:
        raise CheckpointError(f"{path}: model_type is {values.get('model_type')!r:.100}; {names} can be imported")
    if values.get("architectures") not in (None, [kind.name]):
        raise CheckpointError(
            f"{path}: architectures is {values['architectures']!r:.100}; {names} can be imported, so train this model "
            "as a text classifier first"
        )
    for name, allowed in _ONLY.items():
        if values.get(name, allowed[0]) not in allowed:
            raise CheckpointError(
                f"{path}: {name} is {values[name]!r:.100}, which is not supported; expected {allowed[0]!r}"
            )
    known = {*_ONLY, *_WITHOUT_EFFECT, *kind.settings.values()}
    if unknown := sorted(values.keys() - known):
        raise CheckpointError(
            f"{path}: {unknown[0]!r:.100} is not a setting of {kind.name} that txcls knows; remove it if it does not "
            "change the model's logits"
        )
    return kind


def _settings(path: Path, values: dict[str, Any], kind: _Kind) -> dict[str, Any]:
    """The settings of our model."""
    settings = {ours: values[theirs] for ours, theirs in kind.settings.items() if theirs in values}
    required = ("d_model", "n_heads", "n_layers", "d_ff", "max_length")
    if missing := [kind.settings[name] for name in required if name not in settings]:
        raise CheckpointError(f"{path}: lacks {', '.join(missing)}")
    return {"norm_epsilon": 1e-12} | settings | {
        "activation": activation(path, values, kind.settings["activation"], "gelu"),
        "positions": "learned", "norm": "post", "embedding_norm": True, "pooling": "class_token", "pooler": kind.pooler,
    }  # fmt: skip


def _labels(path: Path, values: dict[str, Any], header: Mapping[str, Tensor]) -> tuple[str, ...]:
    """The class names in the order of the logits; LABEL_0 and so on if config.json has none, as in transformers."""
    bias = header.get("classifier.bias")
    n = 0 if bias is None or bias.dim() != 1 else len(bias)
    if n < 2:
        raise CheckpointError(
            f"{path.parent}: its head has {n} outputs; a classifier with at least 2 classes can be imported"
        )
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
    extra_file = folder / "tokenizer_config.json"
    extra = read_json(extra_file, dict) if extra_file.is_file() else {}
    names = dict(zip(("pad_token", "unk_token", "mask_token", "cls_token", "sep_token"), BERT_TOKENS, strict=True))
    allowed: dict[str, tuple[object, ...]] = {"do_basic_tokenize": (True,), "never_split": (None, [])}
    allowed |= {"truncation_side": ("right",), "extra_special_tokens": ({}, [], None)}
    allowed |= {"additional_special_tokens": ([], None), "split_special_tokens": (False,)}
    allowed |= {key: (token,) for key, token in names.items()}
    for key, values in allowed.items():
        value = extra.get(key, values[0])
        value = value.get("content") if key in names and isinstance(value, dict) else value
        if value not in values:
            raise CheckpointError(
                f"{extra_file}: {key} is {value!r:.100}, which is not supported; expected {values[0]!r}"
            )
    lower, accents = extra.get("do_lower_case"), extra.get("strip_accents")
    options = {
        "lowercase": lower,
        "strip_accents": accents,
        "handle_chinese_chars": extra.get("tokenize_chinese_chars"),
    }
    if (folder / "tokenizer.json").is_file():
        tokens, stated = _read_tokenizer_json(folder / "tokenizer.json")
        for key, value in options.items():
            if value is not None and key in stated and stated[key] != value and (stated[key], value) != (None, False):
                raise CheckpointError(
                    f"{extra_file} and tokenizer.json disagree on {key}: {value!r:.50} and {stated[key]!r:.50}; "
                    "correct the one that is wrong"
                )
        options |= {key: value for key, value in stated.items() if value is not None}
    else:
        tokens = read_text(folder / "vocab.txt").removesuffix("\n").split("\n")
        tokens = [token.removesuffix("\r") for token in tokens]
    options = {key: True if value is None and key != "strip_accents" else value for key, value in options.items()}
    if options["strip_accents"] is None:
        options["strip_accents"] = options["lowercase"]
    if invalid := [key for key, value in options.items() if not isinstance(value, bool)]:
        raise CheckpointError(f"{extra_file}: {invalid[0]} is {options[invalid[0]]!r:.50}; expected true or false")
    if len(set(tokens)) < len(tokens) or not set(BERT_TOKENS) <= set(tokens):
        raise CheckpointError(f"{folder}: its vocabulary has a token twice, or lacks one of {', '.join(BERT_TOKENS)}")
    longest = extra.get("model_max_length", 10**9)
    return tokens, Normalizer(**options), int(longest) if isinstance(longest, int | float) and longest >= 3 else 10**9


_TOKENIZER_JSON: Mapping[str, Mapping[str, tuple[object, ...]]] = {
    "model": {
        "type": ("WordPiece", None), "unk_token": ("[UNK]",), "continuing_subword_prefix": (PREFIX,),
        "max_input_chars_per_word": (MAX_WORD,),
    },
    "normalizer": {"type": ("BertNormalizer",), "clean_text": (True,)},
    "pre_tokenizer": {"type": ("BertPreTokenizer",)},
    "post_processor": {"type": ("TemplateProcessing", "BertProcessing")},
}  # fmt: skip
"""The parts of a tokenizer.json, with the values that WordPieces implements."""


def _read_tokenizer_json(path: Path) -> tuple[list[str], dict[str, Any]]:
    """The tokens in order of id, and the normaliser's options."""
    values = read_json(path, dict)
    for part, fields in _TOKENIZER_JSON.items():
        found = values.get(part)
        if not isinstance(found, dict):
            raise CheckpointError(f"{path}: {part} is {found!r:.100}, which is not supported; expected that of BERT")
        for key, allowed in fields.items():
            if found.get(key) not in allowed:
                raise CheckpointError(
                    f"{path}: {part}.{key} is {found.get(key)!r:.100}, which is not supported; expected {allowed[0]!r}"
                )
    template = values["post_processor"].get("single")
    ends = [("[CLS]", 0), ("A", 0), ("[SEP]", 0)]
    if template is not None and [_template_item(item) for item in template] != ends:
        raise CheckpointError(f"{path}: post_processor.single is not [CLS] A [SEP], which is not supported")
    added = values.get("added_tokens") or []
    for item in added:
        content = item.get("content") if isinstance(item, dict) else item
        if content not in BERT_TOKENS:
            raise CheckpointError(
                f"{path}: added_tokens: {content!r:.100} is not supported; expected only {', '.join(BERT_TOKENS)}"
            )
    vocabulary = values["model"].get("vocab")
    if not isinstance(vocabulary, dict) or sorted(map(str, vocabulary.values())) != sorted(
        map(str, range(len(vocabulary)))
    ):
        raise CheckpointError(f"{path}: model.vocab: expected tokens with the ids 0, 1, 2 and so on, each once")
    options = ("lowercase", "strip_accents", "handle_chinese_chars")
    return sorted(vocabulary, key=vocabulary.__getitem__), {key: values["normalizer"].get(key) for key in options}


def _template_item(item: Any) -> tuple[object, object]:
    inner = next(iter(item.values())) if isinstance(item, dict) and len(item) == 1 else None
    return (inner.get("id"), inner.get("type_id")) if isinstance(inner, dict) else (None, None)


def _special_first(tokens: list[str]) -> list[int]:
    """The published id for each of ours: the special tokens change places with the tokens that have our ids."""
    order = list(range(len(tokens)))
    for place, token in enumerate(BERT_TOKENS):
        now = order.index(tokens.index(token))
        order[place], order[now] = order[now], order[place]
    return order


def _renamed(
    stored: dict[str, Tensor], kind: _Kind, order: list[int], n_layers: int, max_length: int
) -> dict[str, Tensor]:
    """Published weights by our names; ValueError if one is left over."""
    rest = dict(stored)
    rest.pop(f"{kind.encoder}embeddings.position_ids", None)  # 0, 1, 2 and so on

    def take(name: str) -> dict[str, Tensor]:
        """The weight and the bias of a module, which old norms call gamma and beta."""
        old = {"weight": "gamma", "bias": "beta"} if f"{name}.gamma" in rest else {}
        return {part: rest.pop(f"{name}.{old.get(part, part)}") for part in ("weight", "bias")}

    embeddings = f"{kind.encoder}embeddings."
    words, positions = (rest.pop(f"{embeddings}{name}_embeddings.weight") for name in ("word", "position"))
    if len(words) < len(order):
        raise ValueError(f"it has vectors for {len(words):,} tokens; the vocabulary has {len(order):,}")
    if kind.name.startswith("Bert"):
        positions = positions + rest.pop(f"{embeddings}token_type_embeddings.weight")[0]
    weights = {"embeddings.token.weight": words[order], "embeddings.positional": positions[:max_length].clone()}
    modules = {"embeddings.norm": f"{embeddings}LayerNorm", "pool.dense": kind.dense, "head": "classifier"}
    for layer in range(n_layers):
        for ours, theirs in kind.modules.items():
            modules[f"layers.{layer}.{ours}"] = f"{kind.encoder}{kind.layers}{layer}.{theirs}"
    for ours, theirs in modules.items():
        weights |= {f"{ours}.{part}": tensor for part, tensor in take(theirs).items()}
    if rest:
        raise ValueError(f"it holds {min(rest)}, for which {kind.name} has no place")
    return weights
