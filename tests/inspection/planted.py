"""A classifier with hand-set weights, in which the behaviour of both heads is known.

A text is the token `start` and seven other tokens, each at its own position. In both heads, every query attends to the
same fixed positions. The value of a word is the class it names,
strongly or weakly. The class is read at `start`, from the first head's output; the second head's output is multiplied
by zero.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from tests.conftest import tiny_config
from txcls.checkpoint.checkpoint import Checkpoint
from txcls.inference.predictor import Predictor
from txcls.model import LayerNorm, TextClassifier
from txcls.text.tokenizer import Tokenizer

CLASSES = ("up", "down")
WORDS = {"start": (0, 0), "rise": (4, 0), "gain": (1, 0), "fall": (0, 4), "dip": (0, 1), ";": (0, 0)}
"""How strongly each word supports each class."""
LENGTH = 8
D, E = 32, 16


def planted(reads: Mapping[int, float], idle: Mapping[int, float]) -> Predictor:
    """Two heads: one that determines the class, and one whose output is multiplied by zero.

    Args:
        reads: position to the weight that every query gives to its token, in the first head.
        idle: the same for the second head.
    """
    config = tiny_config(
        d_model=D, n_heads=2, n_layers=1, d_ff=8, max_length=LENGTH, positions="learned", pooling="first"
    )
    tokenizer = Tokenizer.fit([" ".join(WORDS)], config.text, max_length=LENGTH, class_token=False)
    model = TextClassifier(config.model, vocab_size=tokenizer.vocab_size, n_classes=len(CLASSES)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        for module in model.modules():
            if isinstance(module, LayerNorm):
                module.weight.fill_(1.0)
        # Every vector sums to zero and has the same length, so that the LayerNorm before attention only scales it.
        # Words use dimensions 0 to 11 with opposite signs, positions 12 to 27; the last dimensions are free for the
        # classes.
        for number, word in enumerate(WORDS):
            [token_id] = tokenizer.encode(word).ids
            model.embeddings.token.weight[token_id, 2 * number] = 1.0
            model.embeddings.token.weight[token_id, 2 * number + 1] = -1.0
        for position in range(LENGTH):
            model.embeddings.positional[position, 12 + 2 * position] = 1.0
            model.embeddings.positional[position, 13 + 2 * position] = -1.0
        scale = model.layers[0].norm_attn(model.embeddings(torch.tensor([tokenizer.encode("start").ids])))[0, 0].max()
        attention = model.layers[0].attn
        for head, weights in enumerate((reads, idle)):
            first = head * E
            attention.query.bias[first] = np.sqrt(E)  # the same query everywhere, so scores depend only on the key
            for position in range(LENGTH):
                # log of the weight; positions that are not listed get almost none
                score = np.log(weights.get(position, 1e-9))
                attention.key.weight[first, 12 + 2 * position] = score / (2 * scale)
                attention.key.weight[first, 13 + 2 * position] = -score / (2 * scale)
            for number, strengths in enumerate(WORDS.values()):
                for c, strength in enumerate(strengths):
                    attention.value.weight[first + c, 2 * number] = strength / (2 * scale)
                    attention.value.weight[first + c, 2 * number + 1] = -strength / (2 * scale)
        # Only the first head is read: the support for each class, minus the mean, is written to a separate dimension.
        attention.output.weight[28:30, :2] = torch.eye(2) - 0.5
        model.head.weight[:, 28:30] = torch.eye(2)
    return Predictor(Checkpoint(Path("planted"), config, tokenizer, CLASSES, model))


def random_texts(n: int, *, seed: int, semicolon_at: Sequence[int] = ()) -> list[list[str]]:
    """Random words, with `;` at the given positions."""
    random = np.random.default_rng(seed)
    words = [word for word in WORDS if word not in ("start", ";")]
    texts = [["start", *random.choice(words, size=LENGTH - 1)] for _ in range(n)]
    return [[";" if place in semicolon_at else word for place, word in enumerate(text)] for text in texts]
