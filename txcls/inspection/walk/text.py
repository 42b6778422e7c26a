"""From the typed text to token ids."""

from inspect import getmodule

from txcls.inspection.walk.forward_pass import ForwardPass
from txcls.inspection.walk.questions import Question
from txcls.inspection.walk.source_code import Source, snippet
from txcls.inspection.walk.step import Step
from txcls.text.encoder import TextEncoder
from txcls.text.subwords import BytePairs
from txcls.text.vocabulary import SPECIAL_TOKENS


def text_steps(run: ForwardPass) -> list[Step]:
    """Text, tokens, ids."""
    return [_text(run), _tokens(run), _ids(run)]


def _text(run: ForwardPass) -> Step:
    steps = [step.replace("_", " ") for step in run.classifier.encoder.config.cleaning]
    cleaning = f"It is cleaned in this order: {', '.join(steps)}." if steps else "This classifier does not clean it."
    return Step(
        "text",
        "Text",
        f"The text as it was typed: a string of characters. {cleaning}",
        "",
        (snippet(TextEncoder, "cleaned = clean_aligned"),),
    )


def _tokens(run: ForwardPass) -> Step:
    encoder, n = run.classifier.encoder, len(run.names)
    kind = "sub-words, by byte-pair encoding" if encoder.byte_pairs else "words and punctuation marks"
    return Step(
        "tokens",
        "Tokens",
        f"The cleaned text is split into T tokens: {kind}. At most {encoder.max_length} are read."
        + (" A class token is put in front of them." if encoder.class_token else "")
        + (" Padding fills the text up to that length." if run.config.fixed_length else ""),
        "",
        (snippet(TextEncoder, "for first, last", "tokens.append"),),
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


def _ids(run: ForwardPass) -> Step:
    order = (
        "Ids are in order of frequency in the training texts; only the four special tokens come before all others."
        if run.classifier.encoder.byte_pairs is None
        else "Ids are in the order of learning: the four special tokens, single bytes, then merged pairs."
    )
    return Step(
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


def _lookup_code(encoder: TextEncoder) -> Source:
    if encoder.byte_pairs is not None:
        return snippet(BytePairs.tokenize, "index +")
    module = getmodule(TextEncoder)
    assert module is not None
    return snippet(module, "self._ids.get(token, UNK)) for start")
