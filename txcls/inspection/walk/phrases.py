"""Votes of phrases, added to the logits."""

import math
from dataclasses import replace

import numpy as np

from txcls.bigrams_and_phrases import Phrases
from txcls.inspection.phrases import phrases_of
from txcls.inspection.walk.arithmetic import Arithmetic, equals, number, total
from txcls.inspection.walk.forward_pass import ForwardPass, to_numpy
from txcls.inspection.walk.source_code import snippet
from txcls.inspection.walk.step import Step
from txcls.model import TextClassifier


def phrase_votes(run: ForwardPass) -> Step:
    """The votes of the phrases that end at each token."""
    phrases = _phrases(run)
    votes = run.value("phrases.votes")  # T C
    found = phrases_of(phrases, run.ids)
    n = max(len(found), int(phrases.fewest))
    root = math.sqrt(n)
    longest, n_known = phrases.longest, len(phrases.known)

    def explain(_: int, i: int, c: int) -> Arithmetic:
        ending = [one for one in found if one.last == i]
        own = np.array([float(one.votes[c]) for one in ending])
        summed = float(own.sum())
        symbol = f"v_{{{i + 1},{c + 1}}}"
        if not ending:
            return Arithmetic(equals(symbol, number(0.0)), 0.0)
        written = " + ".join(map(number, own)).replace("+ -", "- ")
        lines = equals(
            symbol,
            rf"\tfrac{{1}}{{\sqrt n}} \textstyle\sum_p u_{{p,{c + 1}}}",
            rf"\frac{{{written}}}{{\sqrt{{{n}}}}}",
            rf"\frac{{{number(summed)}}}{{{number(root)}}}",
            number(summed / root),
        )
        labels = tuple(" ".join(run.names[one.first : one.last + 1]) for one in ending)
        return Arithmetic(lines, summed / root, ("u",), labels, own[:, None])

    best = int(np.argmax(votes.sum(axis=0)))
    return Step(
        "phrases",
        "Votes of phrases",
        f"Beside the Transformer stands a linear model: {n_known:,} phrases of up to {longest} tokens that are "
        "frequent in the training texts have a number u for each class. The numbers of those that end at a token "
        f"are added up, and divided by the root of n, which is {n:,} here: how many the text holds"
        + (f", {len(found):,}, or what a short training text holds" if n > len(found) else "")
        + ". They were fitted by themselves; no layer has a part in this.",
        r"v_{i,c} = \frac{1}{\sqrt n} \sum_{p \text{ ends at } i} u_{p,c}",
        (snippet(Phrases.rows, "for n in range", "found.append"), snippet(Phrases.by_token, "rows = ", "votes: ")),
        symbol="v",
        rows=run.tokens,
        columns=run.classes,
        values=votes[None],
        reads=("Ids",),
        _explain=explain,
        _ask=lambda _: run.ask_token(
            f"At which token do the phrases end that vote the most for {run.classes.names[best]}?",
            votes[:, best].tolist(),
            lambda n: f"Their votes come to {votes[n, best]:.4f}.",
        ),
    )


def with_votes(logits: Step, run: ForwardPass) -> Step:
    """The logits of the head with the votes of phrases added."""
    votes = run.value("phrases.votes").sum(axis=0, dtype=np.float64)  # C
    offset = to_numpy(_phrases(run).bias)  # C

    def explain(_: int, c: int, __: int) -> Arithmetic:
        made = logits.explain(c, 0)
        said = total(f"s_{{{c + 1}}}", [rf"\sum_i v_{{i,{c + 1}}}", f"b'_{{{c + 1}}}"], [votes[c], float(offset[c])])
        both = total("", ["", ""], [made.value, said.value])
        formula = made.lines[0] + f" + s_{{{c + 1}}}"
        lines = (*said.lines, formula, *made.lines[1:-1], *both.lines[1:])
        return replace(made, lines=lines, value=both.value)

    return replace(
        logits,
        says=logits.says + " What phrases say of it, s, is added: the votes of all tokens and a bias.",
        formula=logits.formula + r" + s_c, \quad s_c = \sum_i v_{i,c} + b'_c",
        code=(
            *logits.code,
            snippet(Phrases.forward, "votes = ", "out: "),
            snippet(TextClassifier.forward, "logits = logits + self.phrases"),
        ),
        reads=(*logits.reads, "Votes of phrases"),
        _explain=explain,
    )


def _phrases(run: ForwardPass) -> Phrases:
    assert run.model.phrases is not None
    return run.model.phrases
