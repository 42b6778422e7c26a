"""What the pages load and compute, cached for all sessions. Cached objects are shared: nothing may change them.

Computed things are keyed by (checkpoint, text); `stamp` changes when a checkpoint is trained anew. Torch is imported
when something is first computed, so that a page can draw its outline before.
"""

import json
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from txcls.checkpoint import checkpoint_names, find_checkpoint
from txcls.errors import TxclsError
from txcls.text.encoder import Token

if TYPE_CHECKING:
    from txcls.data.datasets import Dataset, LabelledTexts
    from txcls.inspection import DrawnText, PositionEncoding, ShuffledPredictions, Tokenizers, VocabularySearch
    from txcls.predict import Classifier, Prediction

one_at_a_time = threading.Lock()
"""Held while many texts are computed for one visitor, so that the others' predictions are not starved."""


@dataclass(frozen=True, slots=True)
class Source:
    """A checkpoint by name, and the state of its files: the key of everything cached."""

    name: str
    stamp: float


@dataclass(frozen=True, slots=True)
class Timed:
    """A prediction, and the milliseconds from text to ranked classes when it was computed."""

    prediction: "Prediction"
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Looks:
    """Where the heads look in one text: `attention` L H T T, `pooling` T or None, over `tokens`."""

    tokens: tuple[Token, ...]
    attention: NDArray[np.float32]
    pooling: NDArray[np.float32] | None


def names() -> tuple[str, ...]:
    """The checkpoints there are; the shipped one first."""
    return tuple(sorted(checkpoint_names(), key=lambda name: (name != "ag_news", name)))


def source(name: str) -> Source:
    """The cache key of a checkpoint; CheckpointError where there is none of that name."""
    path = find_checkpoint(name)
    return Source(name, max((file.stat().st_mtime for file in path.iterdir()), default=0.0))


@dataclass(frozen=True, slots=True)
class Summary:
    """What a checkpoint is for, as far as its small files tell: `accuracy` is of the test texts, else of the validation
    texts, None where neither was measured."""

    name: str
    title: str
    dataset: str
    n_classes: int
    accuracy: float | None


@st.cache_data(max_entries=64, show_spinner=False)
def _summary(name: str, stamp: float) -> Summary:
    path = find_checkpoint(name)
    config, metrics = (_fields(path / file) for file in ("config.json", "metrics.json"))
    data, figures = config.get("data"), metrics.get("test") or metrics.get("validation")
    accuracy = figures.get("accuracy") if isinstance(figures, dict) else None
    labels = _json(path / "labels.json")
    return Summary(
        name=name,
        title=str(config.get("title", "")),
        dataset=str(data.get("dataset", "")) if isinstance(data, dict) else "",
        n_classes=len(labels) if isinstance(labels, list) else 0,
        accuracy=float(accuracy) if isinstance(accuracy, int | float) else None,
    )


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):  # what is wrong is said when the checkpoint is loaded
        return None


def _fields(path: Path) -> dict[str, Any]:
    found = _json(path)
    return found if isinstance(found, dict) else {}


def summary(name: str) -> Summary:
    """What a checkpoint is for, without loading it; blank where its files are damaged."""
    try:
        return _summary(name, source(name).stamp)
    except TxclsError:
        return Summary(name, "", "", 0, None)


_loaded: set[Source] = set()


def is_loaded(source: Source) -> bool:
    """Whether the checkpoint was loaded before, so that nobody has to wait for it."""
    return source in _loaded


@st.cache_resource(max_entries=4, show_spinner=False)
def _load(name: str, stamp: float) -> "Classifier":
    from txcls.predict import Classifier

    loaded = Classifier.load(name)
    loaded.predict(["warm up"])  # the first prediction of a process is slow: not the visitor's
    _loaded.add(Source(name, stamp))
    return loaded


def classifier(source: Source) -> "Classifier":
    """The loaded checkpoint, shared by all sessions."""
    return _load(source.name, source.stamp)


@st.cache_data(max_entries=128, show_spinner=False)
def _predict(name: str, stamp: float, text: str) -> Timed:
    ready = _load(name, stamp)
    start = time.perf_counter()
    prediction = ready.predict([text])[0]
    return Timed(prediction, 1000 * (time.perf_counter() - start))


def predict(source: Source, text: str) -> Timed:
    """All classes of a text, ranked, and how long that took when it was computed."""
    return _predict(source.name, source.stamp, text)


@st.cache_data(max_entries=64, show_spinner=False)
def _look(name: str, stamp: float, text: str) -> Looks:
    from txcls.inspection import trace_text

    traced = trace_text(_load(name, stamp), text)
    return Looks(traced.tokens, traced.attention, traced.pooling)


def look(source: Source, text: str) -> Looks:
    """The attention of every head on a text; TraceError where the text holds no token."""
    return _look(source.name, source.stamp, text)


@st.cache_data(max_entries=32, show_spinner=False)
def _shuffle(name: str, stamp: float, text: str, n: int) -> "ShuffledPredictions":
    from txcls.inspection import shuffle_words

    with one_at_a_time:
        return shuffle_words(_load(name, stamp), text, n=n, seed=0)


def shuffle(source: Source, text: str, *, n: int) -> "ShuffledPredictions":
    """The predictions for the text's words in n other orders; TraceError where the text holds no token."""
    return _shuffle(source.name, source.stamp, text, n)


@st.cache_data(max_entries=16, show_spinner=False)
def _positions(name: str, stamp: float, length: int) -> "PositionEncoding":
    from txcls.inspection import position_encoding

    return position_encoding(_load(name, stamp), length)


def positions(source: Source, *, length: int) -> "PositionEncoding":
    """The checkpoint's own position encoding, its first `length` positions."""
    return _positions(source.name, source.stamp, length)


@st.cache_data(max_entries=16, show_spinner=False)
def sinusoids(length: int, d_model: int) -> NDArray[np.float32]:
    """The sinusoidal encoding (length, d_model) of any size."""
    from txcls.inspection import sinusoids as encoding

    values: NDArray[np.float32] = encoding(length, d_model)
    return values


@st.cache_data(max_entries=16, show_spinner=False)
def products(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Dot products (T, T) between the positions of an encoding (T, D)."""
    from txcls.inspection import position_products

    result: NDArray[np.float32] = position_products(values)
    return result


@st.cache_resource(max_entries=8, show_spinner="learning sub-words …")
def _tokenizers(name: str, stamp: float, size: int) -> "Tokenizers":
    from txcls.inspection import compare_tokenizers

    with one_at_a_time:
        return compare_tokenizers(_load(name, stamp).encoder, size=size)


def tokenizers(source: Source, *, size: int) -> "Tokenizers":
    """The checkpoint's tokenizer and one of the other kind, where byte pairs are learned a vocabulary of this size."""
    return _tokenizers(source.name, source.stamp, size)


@st.cache_resource(max_entries=4, show_spinner=False)
def _spellings(name: str, stamp: float) -> tuple[str, ...]:
    from txcls.inspection import spellings

    return spellings(_load(name, stamp).encoder)


def spellings(source: Source) -> tuple[str, ...]:
    """The checkpoint's vocabulary as people read it, by id."""
    return _spellings(source.name, source.stamp)


@st.cache_data(max_entries=128, show_spinner=False)
def _search(name: str, stamp: float, query: str) -> "VocabularySearch":
    from txcls.inspection import search_vocabulary

    return search_vocabulary(_spellings(name, stamp), query)


def search(source: Source, query: str) -> "VocabularySearch":
    """What of the checkpoint's vocabulary is like the query."""
    return _search(source.name, source.stamp, query)


@st.cache_data(max_entries=128, show_spinner=False)
def _neighbours(name: str, stamp: float, index: int) -> list[tuple[int, float]]:
    from txcls.inspection import nearest_tokens

    return nearest_tokens(_load(name, stamp), index)


def neighbours(source: Source, index: int) -> list[tuple[int, float]]:
    """The tokens whose vectors are nearest to that of one: (id, cosine)."""
    return _neighbours(source.name, source.stamp, index)


@dataclass(frozen=True, slots=True)
class TestTexts:
    """The test rows of a checkpoint's data set, and those of no class where the set has some."""

    __test__ = False  # the name is not pytest's

    dataset: "Dataset"
    rows: "LabelledTexts"
    outside: Sequence[str]


@st.cache_resource(max_entries=2, show_spinner="reading the test texts …")
def _test_texts(name: str, stamp: float) -> TestTexts:
    from txcls.data.datasets import open_dataset

    dataset = open_dataset(_load(name, stamp).checkpoint.config.data)
    outside = dataset.load("oos_test").texts if "oos_test" in dataset.splits else ()
    return TestTexts(dataset, dataset.load("test"), outside)


def test_texts(source: Source) -> TestTexts:
    """The test rows of the data set that the checkpoint was trained on; DataError where they cannot be read."""
    return _test_texts(source.name, source.stamp)


@st.cache_data(max_entries=32, show_spinner="classifying …")
def _draw(name: str, stamp: float, n: int, seed: int, with_outside: bool) -> "list[DrawnText]":
    from txcls.inspection import draw_texts

    found = _test_texts(name, stamp)
    with one_at_a_time:
        return draw_texts(_load(name, stamp), found.rows, found.outside if with_outside else (), n=n, seed=seed)


def draw(source: Source, *, n: int, seed: int, with_outside: bool) -> "list[DrawnText]":
    """Random test texts with their predictions; DataError where they cannot be read or have other classes."""
    return _draw(source.name, source.stamp, n, seed, with_outside)


ICON = str(Path(__file__).parent / "icon.png")
"""The browser tab's picture: a local file, because a named icon would be fetched from the network."""
