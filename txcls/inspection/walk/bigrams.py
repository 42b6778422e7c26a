"""Bigram vectors, added to the token vectors."""

from dataclasses import replace

import torch

from txcls.bigrams_and_phrases import HashedBigrams
from txcls.inspection.walk.arithmetic import Arithmetic, dot_product
from txcls.inspection.walk.forward_pass import ForwardPass, dimensions, to_numpy
from txcls.inspection.walk.questions import Question
from txcls.inspection.walk.source_code import snippet
from txcls.inspection.walk.step import Step
from txcls.text.vocabulary import PAD


def bigram_vectors(run: ForwardPass) -> Step:
    """A vector for each token and its left neighbour."""
    ngram = run.model.embeddings.ngram
    assert ngram is not None
    table, project = to_numpy(ngram.table.weight), to_numpy(ngram.project.weight)
    rows = [int(row) for row in ngram.rows(torch.tensor([run.ids]))[0]]
    forward = type(ngram).forward
    hashed = isinstance(ngram, HashedBigrams)
    pick = "h" if hashed else "k"

    def explain(_: int, i: int, d: int) -> Arithmetic:
        pair = (run.ids[i - 1] if i else PAD, run.ids[i])
        made = dot_product(
            f"b_{{{i + 1},{d}}}",
            rf"\sum_n G_{{{rows[i]},n}}\,P_{{{d},n}}",
            table[rows[i]],
            project[d],
            headers=("G", "P"),
            labels=dimensions(table.shape[1]),
        )
        lead = rf"{pick}({pair[0]},\,{pair[1]}) &= {rows[i]}"
        return replace(made, lines=(lead, *made.lines))

    if hashed:
        chosen = f"A hash picks one of {len(table):,} rows of a table, which a projection widens to D numbers."
        question = Question(
            f"The first token, “{run.names[0]}”, has no left neighbour. What is its row?",
            ("Zeros", "A row for the pair of padding and itself", "The same as its token vector"),
            1,
            "The hash is given the id of padding, 0, as the left neighbour: beginning a text is a pair like any other.",
        )
    else:
        unknown = sum(row == len(table) - 1 for row in rows)
        chosen = (
            f"The {len(table) - 1:,} pairs that are most frequent in the training texts have a table row each, and "
            "k says which; a projection widens it to D numbers. All others share the last row, of zeros: "
            f"{unknown or 'none'} of the {len(rows):,} here."
        )
        question = Question(
            "A pair of words that no training text had side by side: what is its vector?",
            ("Zeros", "The sum of both token vectors", "The vector of the most similar pair"),
            0,
            "All pairs that are not known share the last row, which stays at zero: they add nothing to the token.",
        )
    return Step(
        "bigrams",
        "Bigram vectors",
        "Each token with its left neighbour is a pair, and pairs have vectors too: “new york” is more than “new” "
        f"and “york”. {chosen}",
        rf"b_i = P\,G_{{{pick}(id_{{i-1}},\,id_i)}}",
        (snippet(type(ngram).rows, "previous =", "return"), snippet(forward, "vectors = ", "vectors = "),
         snippet(forward, "projected")),
        symbol="b",
        rows=run.tokens,
        columns=run.model_dims,
        values=run.value("embeddings.ngrams")[None],
        reads=("Ids",),
        _explain=explain,
        _ask=lambda _: question,
    )  # fmt: skip
