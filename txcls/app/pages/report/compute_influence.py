"""What the Report page computes of training rows: nearest ones, influential ones, and training again without them."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from txcls.app.pages.report import compute as compute_report
from txcls.app.shell import compute, loading, sharing
from txcls.app.shell.sharing import Source, shared
from txcls.evaluation.report import some_rows
from txcls.inspection.influence import influential_rows, row_effects
from txcls.inspection.principal_components import PooledTexts, pool_texts
from txcls.inspection.retraining import Lesson, class_probabilities, random_others
from txcls.model import TextClassifier

N_TRAININGS = 3
"""Trainings whose answers are averaged."""
N_ROWS = 20
"""Rows named, and left out; as many as the check left out."""
MOST_ROWS = 1_000
"""Training rows among which the nearest are sought."""
PAUSE_SECONDS = 0.3
"""Between two updates of the progress."""
OnStep = Callable[[float], object]


@dataclass(frozen=True, slots=True)
class NearRow:
    """A training row, and the cosine of its pooled vector with that of the text."""

    text: str
    label: str
    cosine: float


@dataclass(frozen=True, eq=False)
class _TrainingTexts:
    texts: tuple[str, ...]
    labels: tuple[str, ...]
    total: int


@shared(heavy=True, size=lambda found: sum(4 * len(text) + 160 for text in found.texts))
def _some_training_texts(source: Source) -> _TrainingTexts:
    rows = compute_report.training_rows(source)
    few, encoder = some_rows(rows, most=MOST_ROWS), loading.classifier(source).encoder
    kept = [n for n, text in enumerate(few.texts) if encoder.encode(text).has_words]
    names = tuple(few.classes[few.labels[n]] for n in kept)
    return _TrainingTexts(tuple(few.texts[n] for n in kept), names, len(rows))


@shared(heavy=True, size=lambda found: found.vectors.nbytes + 100 * len(found.labels))
def _pooled_training_texts(source: Source) -> PooledTexts:
    return pool_texts(loading.classifier(source), _some_training_texts(source).texts)


def nearest(source: Source, text: str, *, n: int = N_ROWS) -> tuple[list[NearRow], int, int]:
    """The n training rows nearest to a text by the cosine of their pooled vectors, of how many, and how many there are.

    Raises:
        DataError: the training rows are not on this machine.
        TraceError: the text has no tokens.
    """
    rows, vectors = _some_training_texts(source), _pooled_training_texts(source).vectors  # M D
    own = compute.pooled(source, (text,)).vectors[0]  # D
    cosines = vectors @ own / np.maximum(np.linalg.norm(vectors, axis=1) * np.linalg.norm(own), 1e-12)  # M
    order = np.argsort(-cosines, kind="stable")[:n]
    found = [NearRow(rows.texts[k], rows.labels[k], round(float(cosines[k]), 4)) for k in order]
    return found, len(rows.texts), rows.total


@dataclass(frozen=True, eq=False)
class Taught:
    """The sample set, and models trained on all its rows with different seeds."""

    lesson: Lesson
    models: tuple[TextClassifier, ...]


def _size_of_taught(found: Taught) -> int:
    return sum(4 * one.numel() for model in found.models for one in model.parameters()) + 1_000_000


def taught(*, on_share: OnStep) -> Taught:
    """The models trained on all rows of the sample set; takes seconds for the first visitor who asks."""

    @shared(heavy=True, size=_size_of_taught)
    def models_of_the_sample(n: int) -> Taught:
        lesson = Lesson.of_sample()
        return Taught(lesson, _learned(lesson, (), on_share=on_share))

    return models_of_the_sample(N_TRAININGS)


def is_taught() -> bool:
    """Whether these models are in the cache."""
    return ("models_of_the_sample", (N_TRAININGS,), ()) in sharing.kept()


def _learned(lesson: Lesson, without: tuple[int, ...], *, on_share: OnStep) -> tuple[TextClassifier, ...]:
    shown = 0.0

    def step(seed: int, done: int, total: int) -> None:
        nonlocal shown
        if time.monotonic() - shown > PAUSE_SECONDS:  # each line sent to the browser takes time
            shown = time.monotonic()
            on_share((seed + done / total) / N_TRAININGS)

    return tuple(
        lesson.learn(seed, without=without, on_step=lambda done, total, seed=seed: step(seed, done, total))  # type: ignore[misc]
        for seed in range(N_TRAININGS)
    )


@dataclass(frozen=True, eq=False)
class TaughtAnswer:
    """The answer to a text by the models of the sample set, and the rows that carry it most.

    Attributes:
        classes: of the sample set.
        probabilities: mean over the models (C,).
        answer: the most probable class.
        named: the rows of that class with the largest effects, largest first.
        effects: of these.
        control: as many other rows of the class at random.
        texts: of the named rows.
    """

    classes: tuple[str, ...]
    probabilities: NDArray[np.float64]
    answer: int
    named: tuple[int, ...]
    effects: tuple[float, ...]
    control: tuple[int, ...]
    texts: tuple[str, ...]


@shared(heavy=True)
def taught_answer(text: str) -> TaughtAnswer:
    """What the models of the sample set answer, and which of their training rows carry it."""
    found = taught(on_share=lambda share: None)
    lesson = found.lesson
    asked = lesson.read(text)
    probabilities = class_probabilities(found.models, asked)
    c = int(probabilities.argmax())
    effects = row_effects(found.models, lesson.texts, asked, c)
    labels = lesson.texts.labels
    named = influential_rows(effects, labels, c, n=N_ROWS)
    control = random_others(labels, named, seed=0)
    return TaughtAnswer(
        classes=lesson.rows.classes,
        probabilities=probabilities,
        answer=c,
        named=tuple(named.tolist()),
        effects=tuple(effects[named].tolist()),
        control=tuple(control.tolist()),
        texts=tuple(lesson.rows.texts[n] for n in named),
    )


def answer_without(text: str, without: tuple[int, ...], *, on_share: OnStep) -> NDArray[np.float64]:
    """The class probabilities (C,) of a text after training again without some rows, mean over as many trainings."""

    @shared(heavy=True)
    def taught_without(text: str, without: tuple[int, ...]) -> NDArray[np.float64]:
        lesson = taught(on_share=lambda share: None).lesson
        found: NDArray[np.float64] = class_probabilities(
            _learned(lesson, without, on_share=on_share), lesson.read(text)
        )
        return found

    return taught_without(text, without)
