"""The pages' computations, cached for all sessions (`txcls.app.shell.cache`); do not modify cached values."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from txcls import inspection
from txcls.app.shell import checkpoints
from txcls.app.shell.cache import Source, cached
from txcls.app.shell.compute_queue import my_turn
from txcls.data.datasets import sentences
from txcls.evaluation.compare import CheckpointComparison, compare_checkpoints
from txcls.evaluation.predict_logits import classifier_of
from txcls.inference.generation import Sampling
from txcls.inference.predictor import Prediction, Predictor
from txcls.inspection import (
    counterfactuals,
    language_model,
    patching,
    positions,
    vocabulary,
)
from txcls.inspection.ablation import Ablation, AblationMethod, AblationResult, Means, OutputAblation, PartEffects
from txcls.inspection.attention import QueryKey
from txcls.inspection.attribution import Deletion, Explanation
from txcls.inspection.counterfactuals import FlipSearch, search_flips
from txcls.inspection.heads.replacing import measure_worth
from txcls.inspection.language_model import NextTokens, RankedTokens, Surprisal
from txcls.inspection.steps import Walk
from txcls.inspection.tracing import trace_text
from txcls.inspection.training_film import TrainingFilm
from txcls.inspection.vocabulary import Tokenizers, compare_tokenizers
from txcls.lessons import SolvedStep, find_lesson, solve
from txcls.text.tokens import Token

Result = TypeVar("Result")
Args = ParamSpec("Args")


def cached_for_checkpoint(
    function: Callable[Concatenate[Predictor, Args], Result],
    *,
    heavy: bool = False,
    size: Callable[[Any], int] | None = None,
) -> Callable[Concatenate[Source, Args], Result]:
    """Cache the function's results, and make it take a checkpoint's `Source` instead of the classifier."""

    @cached(heavy=heavy, size=size)
    @wraps(function)
    def compute(source: Source, /, *args: Args.args, **kwargs: Args.kwargs) -> Result:
        return function(checkpoints.classifier(source), *args, **kwargs)

    return compute


# Classify, Tokens, Attention, Positions


@cached()
def predict(source: Source, text: str) -> Prediction:
    """All classes ranked for a text."""
    return checkpoints.classifier(source).predict([text])[0]


@cached()
def seconds_per_token(source: Source) -> float:
    """Seconds per token to classify a text if nothing else runs, measured on the longest shipped sentence."""
    classifier, text = checkpoints.classifier(source), max(sentences(), key=len)
    started = time.thread_time()
    classifier.predict([text])
    return (time.thread_time() - started) / len(classifier.encode(text).tokens)


@dataclass(frozen=True, slots=True)
class Patterns:
    """The attention patterns of a text: `attention` L H T T, `pooling` T or None, over `tokens`."""

    tokens: tuple[Token, ...]
    attention: NDArray[np.float32]
    pooling: NDArray[np.float32] | None


@cached()
def patterns(source: Source, text: str) -> Patterns:
    """The attention patterns of all heads on a text; TraceError if the text has no tokens."""
    traced = trace_text(checkpoints.classifier(source), text, record=["layers.*.attn.pattern", "pool.pattern"])
    return Patterns(traced.tokens, traced.attention, traced.pooling)


@cached()
def query_key(source: Source, text: str, *, layer: int, head: int, query: int, key: int) -> QueryKey:
    """The score of one query and one key in a head, dimension by dimension."""
    traced = trace_text(checkpoints.classifier(source), text, record=[f"layers.{layer}.attn.*"])
    return inspection.attention.query_key(traced, layer=layer, head=head, query=query, key=key)


predict_shuffled = cached_for_checkpoint(positions.predict_shuffled, heavy=True)


@cached(heavy=True)
def tokenizers(source: Source) -> Tokenizers:
    """The checkpoint's tokenizer and one of the other kind."""
    with st.spinner("learning subwords …"):
        return compare_tokenizers(checkpoints.classifier(source).tokenizer)


@cached()
def token_strings(source: Source) -> tuple[str, ...]:
    """The checkpoint's vocabulary in printable form, by id."""
    return vocabulary.token_strings(checkpoints.classifier(source).tokenizer)


nearest_tokens = cached_for_checkpoint(vocabulary.nearest_tokens)


@cached(heavy=True)
def same_rows(first: Source, second: Source) -> CheckpointComparison:
    """Two checkpoints compared on at most 2,000 test rows; CheckpointError or DataError if that is not possible."""
    return compare_checkpoints(*(checkpoints.classifier(source).checkpoint for source in (first, second)), limit=2000)


# Heads, Explanation, Training film


@cached(heavy=True)
def ablate_each(source: Source, text: str, *, heads: AblationMethod, feed_forward: OutputAblation) -> PartEffects:
    """The effect of ablating each head or feed-forward block on the predicted class; TraceError without tokens."""
    classifier = checkpoints.classifier(source)
    return inspection.ablation.ablate_each(
        classifier, text, heads=heads, feed_forward=feed_forward, means=Means.of(classifier)
    )


@cached()
def ablate(source: Source, text: str, changes: tuple[Ablation, ...]) -> AblationResult:
    """The text's class probabilities with all these changes at once, in the only row of `changed`."""
    classifier = checkpoints.classifier(source)
    return inspection.ablation.ablate(classifier, text, [changes], means=Means.of(classifier))


@cached(heavy=True)
def head_worths(source: Source, layer: int) -> NDArray[np.float64]:
    """What each head of a layer is worth on the sentences that ship with txcls (`measure_worth`), H 2."""
    classifier = checkpoints.classifier(source)
    means = Means.of(classifier)
    assert means is not None  # since they are measured when a model is imported
    rows = [classifier.encode(text).ids for text in sentences()]
    return measure_worth(classifier_of(classifier.checkpoint), rows, means, layer)


explain = cached_for_checkpoint(inspection.attribution.explain, heavy=True)
FIRST, ON_DEMAND = ("rollout", "integrated", "leave_one_out"), ("gradient",)
"""The methods that Explanation shows at first, and the one that it computes on demand."""


def delete_until_changed(source: Source, text: str, explanation: Explanation) -> Deletion:
    """How many words must be deleted in each method's order until the predicted class changes."""
    scores = tuple((name, tuple(values.tolist())) for name, values in explanation.scores.items())
    return _delete_until_changed(source, text, scores)


@cached(heavy=True)
def _delete_until_changed(source: Source, text: str, scores: tuple[tuple[str, tuple[float, ...]], ...]) -> Deletion:
    arrays = {name: np.array(values) for name, values in scores}
    return inspection.attribution.delete_until_changed(checkpoints.classifier(source), text, arrays)


@cached(heavy=True)
def solved_step(name: str, language: str, index: int, version: str, sources: tuple[Source, ...]) -> SolvedStep:
    """A lesson's step with all its values measured; `version` and `sources` change when the files change."""
    lesson = find_lesson(name, language)
    return solve(
        lesson.steps[index],
        lambda checkpoint: checkpoints.classifier(checkpoints.source(checkpoint)),
        language=lesson.language,
    )


@cached(heavy=True)
def training_film(source: Source, text: str, *, first: int, last: int) -> TrainingFilm:
    """A text classified by all training snapshots, with the attention among its tokens from `first` to before `last`.

    TraceError if the checkpoint has no snapshots, or the text no tokens.
    """
    return inspection.training_film.training_film(checkpoints.classifier(source), text, shown=slice(first, last))


# Step by step, What if


def _size_of_walk(walk: Walk) -> int:
    """Bytes of the arrays; the steps hold functions, which cannot be pickled."""
    arrays = [*walk.traced.values.values(), *(step.values for step in walk.steps if step.values is not None)]
    return sum(array.nbytes for array in arrays) + 100_000


walk_through = cached_for_checkpoint(inspection.steps.walk_through, size=_size_of_walk)
compare_texts = cached_for_checkpoint(counterfactuals.compare_texts, heavy=True)
patch_grid = cached_for_checkpoint(patching.patch_grid, heavy=True)
patch_route = cached_for_checkpoint(patching.patch_route, heavy=True)


def flips(source: Source, text: str) -> Iterator[FlipSearch]:
    """The search for the smallest change that flips the class, batch by batch; not cached."""
    search = search_flips(checkpoints.classifier(source), text)
    while True:
        with my_turn():
            progress = next(search, None)
        if progress is None:
            return
        yield progress


# Language model

Ids = tuple[int, ...]


@cached()
def fill_blank(source: Source, ids: Ids, position: int) -> RankedTokens:
    """The masked language model's predictions for a masked position."""
    return language_model.fill_blank(checkpoints.language_model(source, "masked").model, ids, position)


@cached()
def next_tokens(source: Source, ids: Ids, sampling: Sampling, truth: int | None) -> NextTokens:
    """The ranked next tokens, the candidates for sampling, and the rank of the true token."""
    return language_model.next_tokens(
        checkpoints.language_model(source, "causal").model, ids, sampling=sampling, truth=truth
    )


@cached()
def surprisal(source: Source, ids: Ids) -> Surprisal:
    """The surprisal of each token under the causal model."""
    return language_model.measure_surprisal(checkpoints.language_model(source, "causal").model, ids)
