"""From the text to the start of the residual stream: tokens, ids, token vectors, position vectors, their sum."""

import math
from dataclasses import replace

import numpy as np
from torch import nn

from txcls.inspection.steps.arithmetic import Arithmetic, dot_product, equation_lines, fill_in, lookup, number
from txcls.inspection.steps.layer import norm_step
from txcls.inspection.steps.step import (
    ForwardPass,
    Operand,
    SourceLines,
    WalkStep,
    addition,
    source_of,
    to_numpy,
)
from txcls.model import Embeddings, LayerNorm, sinusoidal_encoding
from txcls.text import tokenizer as tokenizer_module
from txcls.text.cleaning import clean_aligned
from txcls.text.subwords import BytePairs, WordPieces
from txcls.text.tokenizer import Tokenizer
from txcls.text.vocabulary import UNK

TOKEN, POSITION = r"x^{\mathrm{tok}}", r"x^{\mathrm{pos}}"


def text_steps(run: ForwardPass) -> list[WalkStep]:
    """The steps for text, tokens and ids."""
    return [_text(run), _tokens(run), _ids_step(run)]


def _text(run: ForwardPass) -> WalkStep:
    is_cleaned = bool(set(run.classifier.tokenizer.config.cleaning) - {"as_typed"})
    cleaning = "shown after cleaning, with its changes marked" if is_cleaned else "which this classifier does not clean"
    if run.classifier.tokenizer.word_pieces is not None:
        cleaning = "shown as typed; WordPiece removes control characters and, in an uncased model, capitals and accents"
    return WalkStep(
        "text",
        "Text",
        f"A string of characters, {cleaning}. The next steps turn it into numbers, and these into a class.",
        "",
        (source_of(clean_aligned, "for name in steps", "STEPS[name]"),),
    )


def _tokens(run: ForwardPass) -> WalkStep:
    tokenizer = run.classifier.tokenizer
    kind = "words and punctuation marks"
    if tokenizer.byte_pairs:
        kind = "subwords, by byte-pair encoding"
    elif tokenizer.word_pieces:
        kind = "subwords, by WordPiece: the longest known start of a word, then of the rest, marked with ##"
    return WalkStep(
        "tokens",
        "Tokens",
        f"The cleaned text is split into T tokens: {kind}. The model reads at most {tokenizer.max_length} tokens."
        + (" A class token is added at the start." if tokenizer.class_token else "")
        + (" [SEP] is added at the end." if tokenizer.word_pieces else "")
        + (" Padding extends the text to that length." if run.config.fixed_length else ""),
        "",
        (source_of(Tokenizer, "for first, last", "tokens.append"),),
        follows="Text",
    )


def _ids_step(run: ForwardPass) -> WalkStep:
    return WalkStep(
        "ids",
        "Ids",
        "Each token is replaced by its index in the vocabulary of V tokens. A token that is not in the vocabulary "
        f"becomes {run.classifier.tokenizer.vocabulary.token_of(UNK)}, id 1. All further steps use only numbers.",
        r"id_i = \mathrm{index}(\mathrm{token}_i), \qquad 0 \le id_i < V",
        (_lookup_code(run.classifier.tokenizer),),
        symbol="id",
        follows="Tokens",
    )


def _lookup_code(tokenizer: Tokenizer) -> SourceLines:
    if tokenizer.byte_pairs is not None:
        return source_of(BytePairs.tokenize, "index +")
    if tokenizer.word_pieces is not None:
        return source_of(WordPieces.tokenize, "encoding =")
    return source_of(tokenizer_module, "self._ids.get(token, UNK)) for start")


def embedding_steps(run: ForwardPass) -> list[WalkStep]:
    """The steps for the vectors that are added, and for their sum."""
    parts = [_token_vectors(run)]
    if run.config.positions != "none":
        parts.append(_position_vectors(run))
    total, norm = _sum(run, parts), run.model.embeddings.norm
    if not isinstance(norm, LayerNorm):
        return [*parts, total]
    return [*parts, total, norm_step(run, "embeddings.norm", "Norm of the embeddings", norm, total, None)]


def _token_vectors(run: ForwardPass) -> WalkStep:
    embeddings = run.model.embeddings
    widen, is_scaled = embeddings.widen, embeddings.scale != 1.0
    is_widened = isinstance(widen, nn.Linear)
    vector = r"W^{\mathrm{wide}}\,W^{\mathrm{tok}}_{id_i}" if is_widened else r"W^{\mathrm{tok}}_{id_i}"
    rows = to_numpy(embeddings.token.weight[run.ids])[None]
    operands = [Operand("rows of the table", rows, "row" if is_widened else "cell", "Ids")]
    if isinstance(widen, nn.Linear):
        operands.append(Operand("weights that widen them", to_numpy(widen.weight).T[None], "column"))
    return WalkStep(
        "embeddings",
        "Token vectors",
        f"Each id selects its row of a trained table with one row for each of the {len(embeddings.token.weight):,} "
        "tokens of the vocabulary."
        + (" A projection widens it to D numbers." if is_widened else "")
        + (" It is multiplied by √D, as in the 2017 paper." if is_scaled else "")
        + (" Equal ids have equal rows: positions are added later." if len(set(run.ids)) < len(run.ids) else ""),
        rf"{TOKEN}_i = {vector}" + (r" \cdot \sqrt{D}" if is_scaled else ""),
        (source_of(Embeddings.forward, "x = self.tokens"),),
        **run.numbers(TOKEN, "TD", run.value("embeddings.tokens")),
        operands=tuple(operands),
        _explain=lambda _, i, d: _token_number(run, i, d),
    )


def _token_number(run: ForwardPass, i: int, d: int) -> Arithmetic:
    embeddings, index = run.model.embeddings, run.ids[i]
    row, scale = to_numpy(embeddings.token.weight[index]), float(embeddings.scale)
    if not isinstance(embeddings.widen, nn.Linear):
        equation = rf"{TOKEN}_{{i,d}} &= W^{{\mathrm{{tok}}}}_{{n,d}}" + (r" \cdot \sqrt{D}" if scale != 1.0 else "")
        return lookup(fill_in(equation, i=i, d=d, n=index), float(row[d]), factor=scale)
    widened = dot_product(
        fill_in(
            rf"{TOKEN}_{{i,d}} &= \sum_e W^{{\mathrm{{tok}}}}_{{n,e}}\,W^{{\mathrm{{wide}}}}_{{d,e}}", i=i, d=d, n=index
        ),
        row,
        to_numpy(embeddings.widen.weight[d]),
        headers=("W^tok", "W^wide"),
    )
    if scale == 1.0:
        return widened
    value = widened.value * scale
    scaled = rf"&\to {number(widened.value)} \cdot \sqrt{{D}} = {number(value)}"
    return replace(widened, lines=(*widened.lines, scaled), value=value)


def _position_vectors(run: ForwardPass) -> WalkStep:
    code = [source_of(Embeddings.forward, "x = x + self.positions")]
    if run.config.positions == "learned":
        origin = "learned in training"
        formula = rf"{POSITION}_i = W^{{\mathrm{{pos}}}}_{{i-1}}"
    else:
        origin = "made of sines and cosines of decreasing frequency"
        formula = (
            rf"{POSITION}_{{i,2m}} = \sin\frac{{i-1}}{{10000^{{2m/D}}}}, \quad "
            rf"{POSITION}_{{i,2m+1}} = \cos\frac{{i-1}}{{10000^{{2m/D}}}}"
        )
        code.insert(0, source_of(sinusoidal_encoding, "position =", "encoding[:, 1::2]"))
    return WalkStep(
        "positions",
        "Position vectors",
        "Attention by itself does not depend on the order of the tokens. Therefore each position has a vector, "
        f"{origin}; row i is the same in every text, whatever the token.",
        formula,
        tuple(code),
        **run.numbers(POSITION, "TD", run.value("embeddings.positions")),
        follows="Ids",
        _explain=lambda _, i, d: _position_number(run, i, d),
    )


def _position_number(run: ForwardPass, i: int, d: int) -> Arithmetic:
    symbol = f"{POSITION}_{{{i + 1},{d}}}"
    if run.config.positions == "learned":
        value = float(to_numpy(run.model.embeddings.positional)[i, d])
        return lookup(rf"{symbol} &= W^{{\mathrm{{pos}}}}_{{{i},{d}}}", value)
    even, d_model = d // 2 * 2, run.config.d_model
    angle = i / 10_000.0 ** (even / d_model)
    name, value = (r"\sin", math.sin(angle)) if d == even else (r"\cos", math.cos(angle))
    equation = rf"{symbol} &= {name}\left({i} / 10000^{{{even}/{d_model}}}\right)"
    return Arithmetic(equation_lines(equation, rf"{name}({number(angle)})", number(value)), value)


def _sum(run: ForwardPass, parts: list[WalkStep]) -> WalkStep:
    return WalkStep(
        "sum",
        "Start of the residual stream",
        "The vectors of each token are added. The sum is the start of the residual stream, which later steps read and "
        "add to."
        if len(parts) > 1
        else "The token vectors are the start of the residual stream: this classifier adds no position vectors.",
        f"x_i = {' + '.join(f'{part.symbol}_i' for part in parts)}",
        (source_of(Embeddings.forward, "x = self.tokens", "out: Tensor"),),
        **run.numbers("x", "TD", np.sum([part.cells() for part in parts], axis=0)),
        **addition(parts),
    )
