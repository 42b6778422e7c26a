"""Small random BERT and DistilBERT folders, written by transformers."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from tests.conftest import add_noise

if TYPE_CHECKING:
    from transformers import PreTrainedModel

SPECIAL = ("[PAD]", *(f"[unused{n}]" for n in range(6)), "[UNK]", "[CLS]", "[SEP]", "[MASK]")
"""As in BERT's vocabulary, other tokens have the ids that ours give to the special ones."""
WORDS = (
    "the", "a", "cat", "sat", "on", "mat", "dog", "ran", "end", "of", "2nd", "day", "rover", "land", "comet", "bank",
    "they", "said", "won", "match", ",", ".", "!", "?", "'", "-", "play", "un", "happi", "##s", "##ing", "##ed",
    "##ness", "##er", "##able", "é", "ü", "café", "狗", "мир", "привет",
)  # fmt: skip
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789äßñøω한ᄒ"


def vocabulary() -> list[str]:
    """The tokens of the tests' models."""
    letters = [*LETTERS, *(f"##{letter}" for letter in LETTERS)]
    return list(dict.fromkeys((*SPECIAL, *WORDS, *letters)))


def write_bert(
    folder: Path, kind: str = "bert", *, tokenizer: dict[str, Any] | None = None, seed: int = 0, **config: Any
) -> "PreTrainedModel":
    """Write a random model of `model_type` bert or distilbert with its tokenizer, and return it."""
    from transformers import (
        BertConfig,
        BertForSequenceClassification,
        BertTokenizer,
        DistilBertConfig,
        DistilBertForSequenceClassification,
        DistilBertTokenizer,
    )

    folder.mkdir(parents=True, exist_ok=True)
    tokens = vocabulary()
    pieces: Any = BertTokenizer if kind == "bert" else DistilBertTokenizer
    options = {"model_max_length": 40} | (tokenizer or {})
    pieces(vocab={token: index for index, token in enumerate(tokens)}, **options).save_pretrained(folder)
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")
    torch.manual_seed(seed)
    labels = {"id2label": {0: "one", 1: "two", 2: "three"}, "label2id": {"one": 0, "two": 1, "three": 2}}
    shared = {"vocab_size": len(tokens), "max_position_embeddings": 48} | labels
    model: Any
    if kind == "bert":
        sizes = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40}
        model = BertForSequenceClassification(BertConfig(**{**shared, **sizes, **config}))
    else:
        sizes = {"dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 40}
        model = DistilBertForSequenceClassification(DistilBertConfig(**{**shared, **sizes, **config}))
    model = model.eval()
    add_noise(model, 0.2)
    model.save_pretrained(folder)
    return model  # type: ignore[no-any-return]
