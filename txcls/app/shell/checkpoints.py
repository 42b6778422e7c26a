"""The checkpoints that pages can choose from; each is loaded once for all sessions."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import torch

from txcls.app.shell.cache import Source, cached, is_cached
from txcls.app.shell.limits import limits, on_idle
from txcls.checkpoint.folders import checkpoint_root, fingerprint
from txcls.checkpoint.listing import Listing, Summary, list_checkpoints
from txcls.data.datasets import Example, examples_for
from txcls.data.generated.who_won import reports_by_split
from txcls.errors import CheckpointError
from txcls.inference.generation import TextModel
from txcls.inference.predictor import Predictor
from txcls.inspection.language_model import token_names
from txcls.web.export import pack, single_page

on_idle(reports_by_split.cache_clear)

_listed: tuple[float, Path, Listing] | None = None


def listing() -> Listing:
    """All checkpoints, and those that cannot be read; cached for half a second, since a page asks many times."""
    global _listed
    now, root = time.monotonic(), checkpoint_root()
    if _listed is not None and _listed[1] == root and now - _listed[0] < 0.5:
        return _listed[2]
    new = list_checkpoints(recover=False)  # the app writes nothing
    _listed = (now, root, new)
    return new


def names() -> tuple[str, ...]:
    """Names of all classifiers, `ag_news` first."""
    classifiers = (summary.name for summary in listing().classifiers)
    return tuple(sorted(classifiers, key=lambda name: (name != "ag_news", name)))


Objective = Literal["masked", "causal"]


def language_model_names(objective: Objective) -> tuple[str, ...]:
    """Names of all language models with this objective; published GPT-2 folders count as causal."""
    return tuple(summary.name for summary in listing().language_models if summary.objective == objective)


def summary(name: str) -> Summary:
    """A checkpoint's title, data set and metrics, without loading it; blank if it cannot be read."""
    summaries = (*listing().classifiers, *listing().language_models)
    return next((known for known in summaries if known.name == name), Summary(name))


def title(name: str) -> str:
    """A checkpoint's title as it is shown, or its name if it has none.

    If several share a title, the rest of the name after the shortest of their names is added: "… · learned".
    """
    own = summary(name).title
    if not own:
        return name
    alike = [known.name for known in (*listing().classifiers, *listing().language_models) if known.title == own]
    stem = min(alike, key=len)
    stem = stem if all(other.startswith(stem) for other in alike) else ""
    rest = name.removeprefix(stem).strip("_").replace("_", " ") if len(alike) > 1 else ""
    return " · ".join(filter(None, (own[0].upper() + own[1:], rest)))


def examples(name: str) -> tuple[Example, ...]:
    """Texts to try with a checkpoint."""
    return examples_for(summary(name).dataset)


def source(name: str) -> Source:
    """The cache key of a checkpoint; CheckpointError if there is none with this name."""
    if Path(name).name != name:
        raise CheckpointError(f"no checkpoint {name!r:.200}; expected the name of a folder in {checkpoint_root()}")
    folder = checkpoint_root().absolute() / name
    return Source(name, fingerprint(folder), folder)


def _size_of_model(n_parameters: int, n_tokens: int) -> int:
    """Bytes of the float32 weights, and of the vocabulary's strings and dictionary.

    A model larger than the cache counts as 60 % of it, so that one stays in memory.
    """
    return min(4 * n_parameters + 300 * n_tokens, 600_000 * limits().cache_megabytes)


def _size_of_classifier(loaded: Predictor) -> int:
    snapshots = loaded.checkpoint.snapshots
    snapshot_bytes = 0 if snapshots is None else 2 * len(snapshots) * loaded.n_parameters
    return snapshot_bytes + _size_of_model(loaded.n_parameters, len(loaded.tokenizer.vocabulary.tokens))


@cached(size=_size_of_classifier)
def classifier(source: Source) -> Predictor:
    """Load a classifier."""
    loaded = Predictor.load(source.folder)
    loaded.predict(["warm up"])  # the first prediction in a process is slow
    return loaded


@cached(heavy=True)
def exported_page(source: Source) -> bytes:
    """The classifier as a page that needs no server; CheckpointError if a page does not support its settings."""
    return single_page(source.folder)


@cached(heavy=True)
def packed_classifier(source: Source) -> bytes:
    """The classifier for the browser (`txcls.web.export.pack`); CheckpointError if a page does not support it."""
    return pack(source.folder)


def is_loaded(source: Source) -> bool:
    """Whether the checkpoint is in the cache."""
    objectives = get_args(Objective)
    return is_cached(classifier, source) or any(
        is_cached(language_model, source, objective) for objective in objectives
    )


@dataclass(frozen=True, slots=True)
class LoadedLanguageModel:
    """A loaded language model, and its V tokens in printable form (`names`)."""

    model: TextModel
    names: tuple[str, ...]


@cached(size=lambda loaded: _size_of_model(loaded.model.model.n_parameters, len(loaded.names)))
def language_model(source: Source, objective: Objective) -> LoadedLanguageModel:
    """Load a language model; CheckpointError if it is damaged."""
    loaded = TextModel.load(source.folder, objective=objective)
    if loaded.start:
        with torch.inference_mode():  # the first forward pass in a process is slow
            loaded.model(torch.tensor([[token.id for token in loaded.start]]))
    return LoadedLanguageModel(loaded, token_names(loaded))
