"""From the typed text to the start of the residual stream: tokens, ids, token vectors, position vectors, their sum."""

import math
from dataclasses import replace
from inspect import getmodule

import numpy as np
from torch import nn

from txcls.inspection.walk.arithmetic import Arithmetic, dot_product, equals, lookup, number, total
from txcls.inspection.walk.forward_pass import ForwardPass, dimensions, to_numpy
from txcls.inspection.walk.step import Explain, Operand, Question, SourceLines, WalkStep, ask_largest, source_of
from txcls.model import Embeddings, sinusoidal_encoding
from txcls.text.encoder import TextEncoder
from txcls.text.subwords import BytePairs
from txcls.text.vocabulary import SPECIAL_TOKENS


def text_steps(run: ForwardPass) -> list[WalkStep]:
    """Text, tokens, ids."""
    return [_text(run), _tokens(run), _ids(run)]


def _text(run: ForwardPass) -> WalkStep:
    steps = [step.replace("_", " ") for step in run.classifier.encoder.config.cleaning]
    cleaning = f"It is cleaned in this order: {', '.join(steps)}." if steps else "This classifier does not clean it."
    return WalkStep(
        "text",
        "Text",
        f"The text as it was typed: a string of characters. {cleaning}",
        "",
        (source_of(TextEncoder, "cleaned = clean_aligned"),),
    )


def _tokens(run: ForwardPass) -> WalkStep:
    encoder, n = run.classifier.encoder, len(run.names)
    kind = "subwords, by byte-pair encoding" if encoder.byte_pairs else "words and punctuation marks"
    return WalkStep(
        "tokens",
        "Tokens",
        f"The cleaned text is split into T tokens: {kind}. At most {encoder.max_length} are read."
        + (" A class token is put in front of them." if encoder.class_token else "")
        + (" Padding fills the text up to that length." if run.config.fixed_length else ""),
        "",
        (source_of(TextEncoder, "for first, last", "tokens.append"),),
        reads=("Text",),
        _ask=lambda _: _ask_number_of_tokens(n, with_pieces=encoder.byte_pairs is not None),
    )


def _ask_number_of_tokens(n: int, *, with_pieces: bool) -> Question:
    guesses = sorted({max(n // 2, 1), n, n + max(n // 3, 2), 2 * n + 3})
    counted = "Punctuation marks and pieces of words" if with_pieces else "Punctuation marks"
    return Question(
        "How many tokens is this text split into?",
        tuple(map(str, guesses)),
        guesses.index(n),
        f"T = {n}. {counted} count as tokens.",
    )


def _ids(run: ForwardPass) -> WalkStep:
    order = (
        "Ids are in order of frequency in the training texts; only the four special tokens come before all others."
        if run.classifier.encoder.byte_pairs is None
        else "Ids are in the order of learning: the four special tokens, single bytes, then merged pairs."
    )
    return WalkStep(
        "ids",
        "Ids",
        "Each token is replaced by its index in the vocabulary of V tokens. A token that is not in the vocabulary "
        f"becomes {SPECIAL_TOKENS[1]}, id 1. From here on the model works with numbers only.",
        r"id_i = \mathrm{index}(\mathrm{token}_i), \qquad 0 \le id_i < V",
        (_lookup_code(run.classifier.encoder),),
        symbol="id",
        reads=("Tokens",),
        _ask=lambda _: run.ask_token(
            "Which of these tokens has the lowest id?",
            [-float(index) for index in run.ids],
            lambda n: f"Its id is {run.ids[n]}. {order}",
        ),
    )


def _lookup_code(encoder: TextEncoder) -> SourceLines:
    if encoder.byte_pairs is not None:
        return source_of(BytePairs.tokenize, "index +")
    module = getmodule(TextEncoder)
    assert module is not None
    return source_of(module, "self._ids.get(token, UNK)) for start")


TOKEN, POSITION = r"x^{\mathrm{tok}}", r"x^{\mathrm{pos}}"


def embedding_steps(run: ForwardPass) -> list[WalkStep]:
    """The vectors that are added up, and their sum."""
    parts = [_token_vectors(run)]
    if run.config.positions == "learned":
        parts.append(_learned_positions(run))
    elif run.config.positions == "sinusoidal":
        parts.append(_sinusoidal_positions(run))
    return [*parts, _sum(run, parts)]


def _token_vectors(run: ForwardPass) -> WalkStep:
    embeddings = run.model.embeddings
    n_tokens, width = embeddings.token.weight.shape
    is_widened, is_scaled = width != run.config.d_model, embeddings.scale != 1.0
    vector = r"W^{\mathrm{wide}}\,W^{\mathrm{tok}}_{id_i}" if is_widened else r"W^{\mathrm{tok}}_{id_i}"
    return WalkStep(
        "embeddings",
        "Token vectors",
        f"Each id picks its row of a trained table with one row for each of the {n_tokens:,} tokens."
        + (" A projection widens it to D numbers." if is_widened else "")
        + (" It is multiplied by √D, as in the 2017 paper." if is_scaled else "")
        + (" Equal ids give equal rows: positions come later." if len(set(run.ids)) < len(run.ids) else ""),
        rf"{TOKEN}_i = {vector}" + (r" \cdot \sqrt{D}" if is_scaled else ""),
        (source_of(Embeddings.forward, "x = self.tokens"),),
        symbol=TOKEN,
        rows=run.tokens,
        columns=run.model_dims,
        values=run.value("embeddings.tokens")[None],
        reads=("Ids",),
        operands=_picked_rows(run),
        _explain=lambda _, i, d: _token_number(run, i, d),
        _ask=lambda _: Question(
            "The same word occurs twice in a text. Do its two rows differ here?",
            ("They differ", "They are the same"),
            1,
            "A row depends on the id alone. Position and context come in later steps.",
        ),
    )


def _picked_rows(run: ForwardPass) -> tuple[Operand, ...]:
    """The rows of the table that the ids pick, and the matrix that widens them, if there is one."""
    embeddings = run.model.embeddings
    rows, widen = to_numpy(embeddings.token.weight[run.ids])[None], embeddings.widen
    if not isinstance(widen, nn.Linear):
        return (Operand("rows of the table", rows, "cell"),)
    return (
        Operand("rows of the table", rows, "row"),
        Operand("weights that widen them", to_numpy(widen.weight).T[None], "column"),
    )


def _token_number(run: ForwardPass, i: int, d: int) -> Arithmetic:
    embeddings, index = run.model.embeddings, run.ids[i]
    row = to_numpy(embeddings.token.weight[index])
    symbol, table = f"{TOKEN}_{{{i + 1},{d}}}", r"W^{\mathrm{tok}}"
    root = (r"\sqrt{D}", float(embeddings.scale)) if embeddings.scale != 1.0 else None
    if not isinstance(embeddings.widen, nn.Linear):
        return lookup(symbol, f"{table}_{{{index},{d}}}", float(row[d]), times=root)
    product = dot_product(
        symbol,
        rf"\sum_e {table}_{{{index},e}}\,W^{{\mathrm{{wide}}}}_{{{d},e}}",
        row,
        to_numpy(embeddings.widen.weight[d]),
        headers=("W^tok", "W^wide"),
        labels=dimensions(len(row)),
    )
    if root is None:
        return product
    value = product.value * root[1]
    return replace(
        product, lines=(*product.lines, rf"&\to {number(product.value)} \cdot {root[0]} = {number(value)}"), value=value
    )


def _learned_positions(run: ForwardPass) -> WalkStep:
    table = to_numpy(run.model.embeddings.positional)
    return _position_vectors(
        run,
        "learned in training",
        rf"{POSITION}_i = W^{{\mathrm{{pos}}}}_{{i-1}}",
        lambda _, i, d: lookup(f"{POSITION}_{{{i + 1},{d}}}", rf"W^{{\mathrm{{pos}}}}_{{{i},{d}}}", float(table[i, d])),
        (),
    )


def _sinusoidal_positions(run: ForwardPass) -> WalkStep:
    d_model = run.config.d_model

    def explain(_: int, i: int, d: int) -> Arithmetic:
        even = d // 2 * 2
        angle = i / 10_000.0 ** (even / d_model)
        name, value = (r"\sin", math.sin(angle)) if d == even else (r"\cos", math.cos(angle))
        formula = rf"{name}\left({i} / 10000^{{{even}/{d_model}}}\right)"
        steps = (rf"{name}({number(angle)})", number(value))
        return Arithmetic(equals(f"{POSITION}_{{{i + 1},{d}}}", formula, *steps), value)

    return _position_vectors(
        run,
        "made of sines and cosines of ever lower frequency",
        rf"{POSITION}_{{i,2m}} = \sin\frac{{i-1}}{{10000^{{2m/D}}}}, \quad "
        rf"{POSITION}_{{i,2m+1}} = \cos\frac{{i-1}}{{10000^{{2m/D}}}}",
        explain,
        (source_of(sinusoidal_encoding, "position =", "encoding[:, 1::2]"),),
    )


def _position_vectors(
    run: ForwardPass, kind: str, formula: str, explain: Explain, code: tuple[SourceLines, ...]
) -> WalkStep:
    return WalkStep(
        "positions",
        "Position vectors",
        "Attention by itself does not depend on the order of the tokens. So each position has a vector, "
        f"{kind}; row i is the same in every text, whatever the token.",
        formula,
        (*code, source_of(Embeddings.forward, "x = x + self.positions")),
        symbol=POSITION,
        rows=run.tokens,
        columns=run.model_dims,
        values=run.value("embeddings.positions")[None],
        reads=("Ids",),
        _explain=explain,
        _ask=lambda _: Question(
            "If two words of the text were swapped, would this matrix change?",
            ("Yes, their two rows", "Yes, all rows", "No"),
            2,
            "It depends on positions alone.",
        ),
    )


def _sum(run: ForwardPass, parts: list[WalkStep]) -> WalkStep:
    norms = [float(np.linalg.norm(part.cells(), axis=1).mean()) for part in parts]
    names = [part.title.lower() for part in parts]
    return WalkStep(
        "sum",
        "Start of the residual stream",
        "The vectors of each token are added. The sum is the residual stream, which every later step reads from and "
        "adds to."
        if len(parts) > 1
        else "The token vectors are the start of the residual stream: this classifier adds no position vectors.",
        f"x_i = {' + '.join(f'{part.symbol}_i' for part in parts)}",
        (source_of(Embeddings.forward, "x = self.tokens", "out: Tensor"),),
        symbol="x",
        rows=run.tokens,
        columns=run.model_dims,
        values=run.value("embeddings.out")[None],
        reads=tuple(part.title for part in parts),
        operands=tuple(Operand(part.means, part.cells()[None], "cell") for part in parts),
        _explain=lambda _, i, d: total(
            f"x_{{{i + 1},{d}}}",
            [f"{part.symbol}_{{{i + 1},{d}}}" for part in parts],
            [float(part.cells()[i, d]) for part in parts],
        ),
        _ask=lambda _: ask_largest(
            "Which of these vectors has the largest norm, averaged over the tokens?",
            names,
            norms,
            lambda n: ", ".join(f"{name} {norm:.2f}" for name, norm in zip(names, norms, strict=True)),
        ),
    )
