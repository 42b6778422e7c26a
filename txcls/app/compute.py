"""What the pages load and compute, in one cache for all sessions. Cached values are shared and must not be changed.

Keys are the checkpoint and the arguments, such as the text. Heavy computations of different sessions take turns, and
are cancelled when their visitor leaves or types on (`turns`, `txcls.pause`). Torch is imported by the first
computation, so that a page can draw its outline before.
"""

import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from streamlit.runtime.scriptrunner import get_script_run_ctx

from txcls.app import own
from txcls.app.cache import Cache
from txcls.app.jobs.desks import on_removal
from txcls.app.limits import limits
from txcls.app.turns import Turns
from txcls.checkpoint import find_checkpoint
from txcls.data.examples import Example, examples_for
from txcls.folders import checkpoint_root, fingerprint
from txcls.listing import Listing, Summary, list_checkpoints
from txcls.pause import may_pause, pausing
from txcls.text.encoder import Token

if TYPE_CHECKING:
    from txcls.data.datasets import Dataset, LabelledTexts
    from txcls.generation import Sampling, TextModel
    from txcls.inspection.ablation import Ablation, Change, How, Off, PartEffects
    from txcls.inspection.attention import HeadStatistics, QueryKey
    from txcls.inspection.attribution import Baseline, DeletionCurves, Explanation, ExplanationAverages, Target
    from txcls.inspection.counterfactuals import Comparison, FlipSearch
    from txcls.inspection.language_model import MaskedAttention, NextTokens, RankedTokens, Surprisal
    from txcls.inspection.lens import ClassLens
    from txcls.inspection.positions import PositionEncoding, ShuffledPredictions
    from txcls.inspection.principal_components import Plane, PooledTexts, TextPlane, TokenPlane
    from txcls.inspection.random_texts import ClassifiedText
    from txcls.inspection.training_film import TrainingFilm
    from txcls.inspection.vocabulary import Tokenizers, VocabularySearch
    from txcls.inspection.walk import Walk
    from txcls.lessons import Solved
    from txcls.predictor import Prediction, Predictor

Asked = ParamSpec("Asked")
Found = TypeVar("Found")


# The cache and the queue


@cache
def kept() -> Cache:
    """The cache."""
    made = Cache(1_000_000 * limits().cache_megabytes, seconds=limits().cache_seconds)
    on_removal(lambda desk: made.drop(lambda key: _is_on(desk, key)))
    return made


def _is_on(desk: Path, key: Hashable) -> bool:
    """Whether a key is of a checkpoint on a visitor's desk."""
    args = key[1] if isinstance(key, tuple) and len(key) == 3 and isinstance(key[1], tuple) else ()
    return any(isinstance(one, Source) and desk in one.folder.parents for one in args)


@cache
def turns() -> Turns:
    """The queue of heavy computations."""
    return Turns(most_waiting=limits().waiting)


_has_turn: ContextVar[bool] = ContextVar("txcls_has_turn", default=False)
_importing = threading.Lock()


def import_what_computes() -> None:
    """Import torch and what uses it under a lock: no other thread may see a half-imported module."""
    with _importing:
        import txcls.generation
        import txcls.inspection
        import txcls.inspection.stories
        import txcls.model
        import txcls.predictor
        import txcls.web.page  # noqa: F401


def _shared(
    *, heavy: bool = False, size: Callable[[Any], int] | None = None
) -> Callable[[Callable[Asked, Found]], Callable[Asked, Found]]:
    """Cache a function's results by its arguments; a heavy function waits for its turn."""

    def decorate(function: Callable[Asked, Found]) -> Callable[Asked, Found]:
        @wraps(function)
        def ask(*args: Asked.args, **named: Asked.kwargs) -> Found:
            def make() -> Found:
                if not heavy:
                    return function(*args, **named)
                with _my_turn():
                    return function(*args, **named)

            found: Found = kept().get(_key(function, args, named), make, size=size, wait=_wait_for_another)
            return found

        return ask

    return decorate


shared = _shared
"""The same for the modules that hold a page's own computations."""


@contextmanager
def my_turn() -> Iterator[None]:
    """Run a block that is not cached, such as one on a visitor's own rows, when it is this computation's turn."""
    import_what_computes()
    with _my_turn():
        yield


def _key(function: Callable[..., Any], args: Sequence[Any], named: dict[str, Any]) -> Hashable:
    return function.__name__, tuple(args), tuple(sorted(named.items()))


def _wait_for_another() -> None:
    """Called while another thread computes the value that this one needs."""
    _end_if_left()
    may_pause()  # yields the turn: the other thread may be waiting for it


def _end_if_left() -> None:
    """End this run if its visitor has left or typed on: Streamlit raises when the session state is read."""
    if get_script_run_ctx(suppress_warning=True) is not None:
        st.session_state.get("_anything")


@contextmanager
def _my_turn() -> Iterator[None]:
    """Run the block when it is this computation's turn, and show its place in the queue until then."""
    if _has_turn.get():
        yield
        return
    said = _Queue()
    token = _has_turn.set(True)
    try:
        with turns().turn(said.wait) as between, pausing(between):
            yield
    finally:
        said.clear()
        _has_turn.reset(token)


class _Queue:
    """A line on the page with the number of computations ahead, shown after a second of waiting."""

    def __init__(self) -> None:
        self._place: Any = None
        self._ahead = 0
        self._since = time.monotonic()

    def wait(self, ahead: int) -> None:
        """Update the line; ends the run if its visitor has left."""
        if get_script_run_ctx(suppress_warning=True) is None:
            return
        _end_if_left()
        if ahead and ahead != self._ahead and (self._place or time.monotonic() - self._since > 1):
            self._place = self._place or st.empty()
            others = "1 computation of another visitor" if ahead == 1 else f"{ahead} computations of other visitors"
            self._place.info(f"In the queue: {others} ahead of this one.")
            self._ahead = ahead

    def clear(self) -> None:
        """Remove the line."""
        if self._place is not None:
            self._place.empty()


# Checkpoints


@dataclass(frozen=True, slots=True)
class Source:
    """A checkpoint by name, a fingerprint of its files, and its folder: part of every key of the cache.

    The folder tells the checkpoints of different visitors apart, whatever their names are.
    """

    name: str
    state: str
    folder: Path


_listed: tuple[float, Path, Listing] | None = None


def listing() -> Listing:
    """All checkpoints, and those that cannot be read; cached for half a second: a run of a page asks often."""
    global _listed
    now, root, known = time.monotonic(), checkpoint_root(), _listed
    if known is not None and known[1] == root and now - known[0] < 0.5:
        return known[2]
    found = list_checkpoints()
    _listed = (now, root, found)
    return found


def names() -> tuple[str, ...]:
    """Names of all classifiers, `ag_news` first, and last those of this session's visitor alone."""
    shipped = sorted((one.name for one in listing().classifiers), key=lambda name: (name != "ag_news", name))
    return (*shipped, *own_names())


def own_names() -> tuple[str, ...]:
    """Names of this session's visitor's own classifiers."""
    root = own.root()
    return () if root is None else tuple(own.PREFIX + one.name for one in list_checkpoints(root).classifiers)


Objective = Literal["masked", "causal"]


def language_names(objective: Objective) -> tuple[str, ...]:
    """Names of all language models with this objective; published GPT-2 folders are causal."""
    return tuple(one.name for one in listing().language_models if one.objective == objective)


def summary(name: str) -> Summary:
    """A checkpoint's title, data set and figures, without loading it; blank if it cannot be read."""
    if (folder := own.folder_of(name)) is not None:
        found = list_checkpoints(folder.parent)
        return next((replace(one, name=name) for one in found.classifiers if one.name == folder.name), Summary(name))
    found = listing()
    return next((one for one in (*found.classifiers, *found.language_models) if one.name == name), Summary(name))


def examples(name: str) -> tuple[Example, ...]:
    """Texts to try with a checkpoint; for one trained here some of its test rows."""
    return own.examples(name) or examples_for(summary(name).dataset)


def source(name: str) -> Source:
    """The cache key of a checkpoint; CheckpointError if there is none of that name."""
    folder = own.folder_of(name) or find_checkpoint(name).absolute()
    return Source(name, fingerprint(folder), folder)


def _size_of_classifier(loaded: "Predictor") -> int:
    snapshots = loaded.checkpoint.snapshots
    stored = 0 if snapshots is None else 2 * len(snapshots) * loaded.n_parameters
    return stored + _size_of_model(loaded.n_parameters, len(loaded.encoder.vocabulary.tokens))


def _size_of_language(loaded: "Language") -> int:
    return _size_of_model(loaded.model.n_parameters, len(loaded.names))


def _size_of_model(n_parameters: int, n_tokens: int) -> int:
    """Bytes of the weights as float32, and of the vocabulary's strings and dictionary."""
    return 4 * n_parameters + 300 * n_tokens


@_shared(size=_size_of_classifier)
def classifier(source: Source) -> "Predictor":
    """Load a classifier."""
    from txcls.predictor import Predictor

    loaded = Predictor.load(source.folder)
    loaded.predict(["warm up"])  # the first prediction of a process is slow
    return loaded


@_shared(heavy=True, size=len)
def exported_page(source: Source) -> bytes:
    """The classifier as a page that needs no server; CheckpointError if it has settings that a page lacks."""
    from txcls.web.page import single_page

    return single_page(source.folder)


@_shared(heavy=True, size=len)
def packed_classifier(source: Source) -> bytes:
    """The classifier for the browser (`txcls.web.page.packed`); CheckpointError if a page cannot have it."""
    from txcls.web.page import packed

    return packed(source.folder)


def is_loaded(source: Source) -> bool:
    """Whether the checkpoint is in the cache."""
    return any(_key(load, args, {}) in kept() for load, args in _loads(source))


def _loads(source: Source) -> Iterator[tuple[Callable[..., Any], tuple[Any, ...]]]:
    yield classifier, (source,)
    yield language, (source, "masked")
    yield language, (source, "causal")


@dataclass(frozen=True, slots=True)
class Language:
    """A loaded language model, and its V tokens in printable form."""

    model: "TextModel"
    names: tuple[str, ...]


@_shared(size=_size_of_language)
def language(source: Source, objective: Objective) -> Language:
    """Load a language model; CheckpointError if it is damaged."""
    from txcls.generation import TextModel
    from txcls.inspection.language_model import token_names

    loaded = TextModel.load(source.folder, objective=objective)
    if loaded.start:
        _warm_up(loaded)
    return Language(loaded, token_names(loaded))


def _warm_up(model: "TextModel") -> None:
    import torch

    with torch.inference_mode():  # the first forward pass of a process is slow
        model.model(torch.tensor([[token.id for token in model.start]]))


@dataclass(frozen=True, slots=True)
class TestTexts:
    """The test rows of a checkpoint's data set, and its out-of-scope texts if it has any."""

    __test__ = False  # the name is not pytest's

    dataset: "Dataset"
    rows: "LabelledTexts"
    outside: Sequence[str]


def has_kept_rows(source: Source) -> bool:
    """Whether the test rows of a classifier that was trained here are still there."""
    return bool(own.kept(source.name))


def _size_of_texts(found: TestTexts) -> int:
    return sum(4 * len(text) + 80 for texts in (found.rows.texts, found.outside) for text in texts)


@_shared(size=_size_of_texts)
def test_texts(source: Source) -> TestTexts:
    """The test rows of the data set that the checkpoint was trained on; DataError if they cannot be read."""
    from txcls.data.datasets import open_dataset

    if rows := own.kept(source.name):
        return _own_test_texts(source, rows)
    with st.spinner("reading the test texts …"):
        dataset = open_dataset(classifier(source).checkpoint.config.data)
        outside = dataset.load("oos_test").texts if "oos_test" in dataset.splits else ()
        return TestTexts(dataset, dataset.load("test"), outside)


def _own_test_texts(source: Source, rows: dict[str, Any]) -> TestTexts:
    """The test rows that were held out when a visitor trained the checkpoint."""
    from txcls.data.datasets import Dataset, LabelledTexts
    from txcls.data.types import DatasetInfo

    classes = classifier(source).classes
    labels = [classes.index(label) for label in rows["labels"]]
    held_out = LabelledTexts(rows["texts"], labels, classes)
    info = DatasetInfo(name="table", title="your own rows", terms="your own")
    dataset = Dataset(info, classes, source.name, ("test",), readers={"test": lambda: held_out})
    return TestTexts(dataset, held_out, ())


# Classify, Tokens, Attention, Positions


@dataclass(frozen=True, slots=True)
class Timed:
    """A prediction, and how many milliseconds it took from text to ranked classes."""

    prediction: "Prediction"
    milliseconds: float


@_shared()
def predict(source: Source, text: str) -> Timed:
    """All classes of a text, ranked, and how long that took."""
    ready = classifier(source)
    start = time.perf_counter()
    prediction = ready.predict([text])[0]
    return Timed(prediction, 1000 * (time.perf_counter() - start))


@_shared(heavy=True)
def draw(source: Source, *, n: int, seed: int, with_outside: bool) -> "list[ClassifiedText]":
    """Random test texts with their predictions; DataError if they cannot be read or have other classes."""
    from txcls.inspection.random_texts import classify_random_texts

    found = test_texts(source)
    with st.spinner("classifying …"):
        return classify_random_texts(
            classifier(source), found.rows, found.outside if with_outside else (), n=n, seed=seed
        )


@dataclass(frozen=True, slots=True)
class Patterns:
    """The attention patterns of a text: `attention` L H T T, `pooling` T or None, over `tokens`."""

    tokens: tuple[Token, ...]
    attention: NDArray[np.float32]
    pooling: NDArray[np.float32] | None


@_shared()
def patterns(source: Source, text: str) -> Patterns:
    """The attention patterns of all heads on a text; TraceError if the text has no tokens."""
    from txcls.inspection.tracing import trace_text

    traced = trace_text(classifier(source), text)
    return Patterns(traced.tokens, traced.attention, traced.pooling)


@dataclass(frozen=True)
class Paths:
    """Summaries of all patterns of a text: `rollout` (T, T), and entropy and distance of each head."""

    rollout: NDArray[np.floating]
    heads: "HeadStatistics"


@_shared()
def paths(source: Source, text: str) -> Paths:
    """Rollout through all layers, and entropy and distance of each head."""
    from txcls.inspection.attention import attention_rollout, head_statistics

    attention = patterns(source, text).attention
    return Paths(attention_rollout(attention), head_statistics(attention))


@_shared()
def query_key(source: Source, text: str, *, layer: int, head: int, query: int, key: int) -> "QueryKey":
    """The score of one query and one key in a head, dimension by dimension."""
    from txcls.inspection.attention import query_key
    from txcls.inspection.tracing import trace_text

    traced = trace_text(classifier(source), text)
    return query_key(traced, layer=layer, head=head, query=query, key=key)


@_shared(heavy=True)
def shuffle(source: Source, text: str, *, n: int) -> "ShuffledPredictions":
    """The predictions for n random orders of the text's words; TraceError if the text has no tokens."""
    from txcls.inspection.positions import shuffle_words

    return shuffle_words(classifier(source), text, n=n, seed=0)


@_shared()
def positions(source: Source, *, length: int) -> "PositionEncoding":
    """The first `length` positions of the checkpoint's own position encoding."""
    from txcls.inspection.positions import position_encoding

    return position_encoding(classifier(source), length)


@_shared()
def sinusoids(length: int, d_model: int) -> NDArray[np.float32]:
    """The sinusoidal encoding (length, d_model)."""
    from txcls.inspection.positions import sinusoids as encoding

    values: NDArray[np.float32] = encoding(length, d_model)
    return values


@_shared(heavy=True)
def tokenizers(source: Source, *, size: int) -> "Tokenizers":
    """The checkpoint's tokenizer beside one of the other kind; `size` is that of a learned sub-word vocabulary."""
    from txcls.inspection.vocabulary import compare_tokenizers

    with st.spinner("learning sub-words …"):
        return compare_tokenizers(classifier(source).encoder, size=size)


@_shared()
def spellings(source: Source) -> tuple[str, ...]:
    """The checkpoint's vocabulary in printable form, by id."""
    from txcls.inspection.vocabulary import spellings

    return spellings(classifier(source).encoder)


@_shared()
def search(source: Source, query: str) -> "VocabularySearch":
    """Entries of the checkpoint's vocabulary that match the query."""
    from txcls.inspection.vocabulary import search_vocabulary

    return search_vocabulary(spellings(source), query)


@_shared()
def neighbours(source: Source, index: int) -> list[tuple[int, float]]:
    """The tokens with the nearest embeddings: (id, cosine)."""
    from txcls.inspection.vocabulary import nearest_tokens

    return nearest_tokens(classifier(source), index)


# Head atlas, Switchboard, Explanation, Class lens, Training film


N_REPORTS = 64
"""Test sentences of `who_won` among which the clearest for each head are sought."""


@_shared(heavy=True)
def clearest_texts(source: Source) -> tuple[str, ...]:
    """For each head of the checkpoint's atlas, layer by layer, the text in which it follows its story most closely.

    For `who_won` a sentence of its test split, which is generated; for others one of the app's examples. Empty without
    an atlas.
    """
    from txcls.data.examples import examples_for
    from txcls.data.who_won import first_reports, roles_in
    from txcls.inspection.stories import HeadAtlas, clearest_texts

    ready = classifier(source)
    atlas = HeadAtlas.of(ready)
    if atlas is None:
        return ()
    dataset, roles = ready.checkpoint.config.data.dataset, None
    if dataset == "who_won":
        found = first_reports("test", N_REPORTS)
        texts, roles = [one.text for one in found], [roles_in(one) for one in found]
    else:
        texts = [one.text for one in examples_for(dataset)]
    places = clearest_texts(ready, [one.story.story for one in atlas.heads], texts, roles=roles)
    return tuple(texts[place] for place in places)


@_shared(heavy=True)
def ablate_each(source: Source, text: str, *, heads: "How", off: "Off") -> "PartEffects":
    """How much each head and feed-forward block alone moves the winner; TraceError if the text has no tokens."""
    from txcls.inspection.ablation import Means, ablate_each

    ready = classifier(source)
    return ablate_each(ready, text, heads=heads, off=off, means=Means.of(ready))


@_shared()
def ablate(source: Source, text: str, changes: "tuple[Change, ...]") -> "Ablation":
    """The text's class probabilities with all these changes at once, as the only row of `changed`."""
    from txcls.inspection.ablation import Means, ablate

    ready = classifier(source)
    return ablate(ready, text, [changes], means=Means.of(ready))


@dataclass(frozen=True)
class Explained:
    """Attributions of a text's words, and the overlaps of their strongest words."""

    explanation: "Explanation"
    overlaps: NDArray[np.float64]


@_shared(heavy=True)
def explain(source: Source, text: str, *, target: "Target", baseline: "Baseline") -> Explained:
    """All attribution methods on a text; TraceError if the text has no tokens."""
    from txcls.inspection.attribution import explain, top_overlaps

    explanation = explain(classifier(source), text, target=target, baseline=baseline)
    return Explained(explanation, top_overlaps(explanation.scores))


@_shared(heavy=True)
def deletion(source: Source, text: str, *, target: "Target", baseline: "Baseline") -> "DeletionCurves":
    """The deletion curves of `explain`'s scores. Apart from these, since a long text's words need not wait for them."""
    from txcls.inspection.attribution import deletion_curves

    found = explain(source, text, target=target, baseline=baseline)
    return deletion_curves(classifier(source), text, found.explanation.scores)


def averages(source: Source, *, n: int, on_text: Callable[[int, int], None]) -> "ExplanationAverages":
    """The methods evaluated on n random test texts, the same ones as `txcls evaluate --explanations`.

    Args:
        source: the checkpoint.
        n: number of texts.
        on_text: called after each text with the number done and the total.
    """

    @_shared(heavy=True)
    def average_on_test_texts(source: Source, n: int) -> "ExplanationAverages":
        from txcls.inspection.attribution import average_explanations, evaluate_explanation
        from txcls.inspection.random_texts import random_texts

        ready = classifier(source)
        texts = random_texts(test_texts(source).rows.texts, n=n)
        figures = []
        for place, text in enumerate(texts, start=1):
            if ready.encoder.encode(text).has_words:
                figures.append(evaluate_explanation(ready, text))
            on_text(place, len(texts))
        return average_explanations(figures, split="test")

    return average_on_test_texts(source, n)


@_shared()
def lens(source: Source, text: str) -> "ClassLens":
    """The class head applied to every state; TraceError if the text has no tokens."""
    from txcls.inspection.lens import class_lens

    return class_lens(classifier(source), text)


@_shared(heavy=True)
def solved_step(name: str, language: str, at: int, version: str, sources: tuple[Source, ...]) -> "Solved":
    """A lesson's step with everything measured; `version` and `sources` tell changed files from earlier ones."""
    from txcls.lessons import find_lesson, solve

    lesson = find_lesson(name, language)
    return solve(lesson.steps[at], lambda asked: classifier(source(asked)), language=lesson.language)


@_shared(heavy=True)
def training_film(source: Source, text: str, *, first: int, last: int) -> "TrainingFilm":
    """A text in all states along the training, with the attention among its tokens from `first` to before `last`.

    TraceError if the checkpoint has no such states, or the text no tokens.
    """
    from txcls.inspection.training_film import training_film

    return training_film(classifier(source), text, shown=slice(first, last))


# Step by step, What if, Neighbourhood


def _size_of_walk(made: "Walk") -> int:
    """Bytes of its arrays; its steps hold functions, which cannot be pickled."""
    arrays = [*made.traced.values.values(), *(step.values for step in made.steps if step.values is not None)]
    return sum(one.nbytes for one in arrays) + 100_000


@_shared(size=_size_of_walk)
def walk(source: Source, text: str) -> "Walk":
    """The forward pass of a text, step by step; TraceError if the text has no tokens."""
    from txcls.inspection.walk import walk_through

    return walk_through(classifier(source), text)


@_shared(heavy=True)
def compare(source: Source, before: str, after: str) -> "Comparison":
    """Two versions of a text compared; TraceError if one has no tokens."""
    from txcls.inspection.counterfactuals import compare_texts

    return compare_texts(classifier(source), before, after)


def flips(source: Source, text: str) -> "Iterator[FlipSearch]":
    """The search for the smallest change that flips the class, batch by batch; not cached."""
    from txcls.inspection.counterfactuals import search_flips

    search = search_flips(classifier(source), text)
    while True:
        with _my_turn():
            found = next(search, None)
        if found is None:
            return
        yield found


@_shared(heavy=True)
def vocabulary_plane(source: Source) -> "Plane":
    """The first two principal components of the checkpoint's token embeddings."""
    from txcls.inspection.principal_components import vocabulary_plane

    return vocabulary_plane(classifier(source))


@_shared(heavy=True)
def token_plane(source: Source, text: str) -> "TokenPlane":
    """The vocabulary and the text's tokens in that plane; TraceError if the text has no tokens."""
    from txcls.inspection.principal_components import token_plane

    return token_plane(classifier(source), text, plane=vocabulary_plane(source))


@_shared(heavy=True)
def pooled(source: Source, texts: tuple[str, ...]) -> "PooledTexts":
    """The pooled vectors and predicted classes of texts."""
    from txcls.inspection.principal_components import pool_texts

    return pool_texts(classifier(source), texts)


@_shared(heavy=True)
def text_plane(source: Source, text: str, texts: tuple[str, ...]) -> "TextPlane":
    """A text among others in the plane of their principal components; TraceError if it has no tokens."""
    from txcls.inspection.principal_components import text_plane

    return text_plane(classifier(source), text, pooled(source, texts))


@_shared()
def some_test_texts(source: Source, n: int) -> tuple[str, ...]:
    """Up to n distinct random test texts that have tokens; DataError if they cannot be read."""
    rows = test_texts(source).rows.texts
    order = np.random.default_rng(0).permutation(len(rows))[: 2 * n]
    encoder = classifier(source).encoder
    texts = dict.fromkeys(rows[int(place)] for place in order)
    return tuple(text for text in texts if encoder.encode(text).has_words)[:n]


# Language model

Ids = tuple[int, ...]


@_shared()
def fill(source: Source, ids: Ids, place: int) -> "RankedTokens":
    """The masked-token model's predictions for a masked position."""
    from txcls.inspection.language_model import fill_blank

    return fill_blank(language(source, "masked").model, ids, place)


@_shared()
def expect(source: Source, ids: Ids, sampling: "Sampling", truth: int | None) -> "NextTokens":
    """The ranked next tokens, those that sampling may draw, and the rank of the true one."""
    from txcls.inspection.language_model import next_tokens

    return next_tokens(language(source, "causal").model, ids, sampling=sampling, truth=truth)


@_shared()
def surprisal(source: Source, ids: Ids) -> "Surprisal":
    """The surprisal of each token under the causal model."""
    from txcls.inspection import language_model

    return language_model.surprisal(language(source, "causal").model, ids)


@_shared()
def sight(source: Source, objective: Objective, ids: Ids) -> "MaskedAttention":
    """The attention mask and the attention patterns of all heads."""
    from txcls.inspection.language_model import masked_attention

    return masked_attention(language(source, objective).model, ids)
