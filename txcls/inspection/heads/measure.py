"""Measure what each head is worth, and which table can replace it, on test texts."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from txcls.data.batches import TokenisedTexts, batches_by_length, pad_batch
from txcls.data.datasets import open_dataset
from txcls.data.splits import training_and_validation
from txcls.errors import DataError
from txcls.evaluation.metrics import Z, accuracy_difference
from txcls.evaluation.predict_logits import classifier_of, tokenised_for
from txcls.inference.predictor import Predictor
from txcls.inspection.ablation import Means, measure_means
from txcls.inspection.heads.records import (
    PIECE,
    Effect,
    HeadMeasurements,
    HeadRecord,
    HeadsRecord,
    Restored,
    Worth,
)
from txcls.inspection.heads.replacing import Batch, HeadGroup
from txcls.inspection.heads.tables import KINDS, FittedTables, TableKind, Tables, fit_tables
from txcls.text.vocabulary import SPECIAL_TOKENS

TRAINING = (1500, 40_000)
"""Maximum number of training texts, and of their tokens, from which tables are learned."""
TEST = (2000, 40_000)
"""Maximum number of test texts, and of their tokens, on which everything is measured."""
MAX_PAIRS = 8_000_000
"""Maximum number of query-key pairs in the sampled texts, since their attention is computed some two hundred times."""
MEAN_TEXTS = 1000
"""Number of validation texts over which outputs are averaged."""
CONTROL_DRAWS = 2
"""Number of shuffles of a table, over which the control is averaged."""
N_WORDS = 12
"""Number of words stored for each head."""
MIN_COUNT = 5
"""Minimum number of occurrences, in the training texts, of a stored word."""

Floats = NDArray[np.float64]
Results = Mapping[str, tuple[Floats, NDArray[np.bool_]]]
"""For each replacement, the KL divergence of each text's output and whether the text is classified correctly, (N,)."""


def measure_heads(
    classifier: Predictor,
    *,
    data_path: Path | None = None,
    on_stage: Callable[[str], None] | None = None,
    on_text: Callable[[int, int], None] | None = None,
) -> tuple[Means, HeadMeasurements]:
    """Measure all heads: means from validation texts, tables from training texts, everything else on test texts.

    Args:
        data_path: folder or file in the data set's published format; None for the default location of `open_dataset`.
        on_stage: called with a description of each stage.
        on_text: called with the number of test texts measured so far, and their total number.

    Raises:
        DataError: the data are missing, have no test split or too few rows, or classes unknown to the checkpoint.
    """
    report = on_stage or (lambda message: None)
    checkpoint = classifier.checkpoint
    dataset = open_dataset(checkpoint.config.data, path=data_path)
    training, validation = training_and_validation(dataset, checkpoint.config.data)
    test = _sample(tokenised_for(dataset.load("test"), checkpoint), TEST)
    report("averaging the output of each part over validation texts")
    means = measure_means(classifier, random_texts(validation.texts, n=MEAN_TEXTS), split="validation")
    learned_from = training.subset(np.random.default_rng(0).permutation(len(training))[: TRAINING[0]].tolist())
    learned_from_texts = _sample(tokenised_for(learned_from, checkpoint), TRAINING)
    report(f"learning tables from {len(learned_from_texts):,} training texts")
    fitted = fit_tables(classifier, learned_from_texts)
    report(f"replacing parts on {len(test):,} test texts")
    return means, measure(classifier, test, fitted, means, on_text=on_text)


def measure(
    classifier: Predictor,
    texts: TokenisedTexts,
    fitted: FittedTables,
    means: Means,
    *,
    on_text: Callable[[int, int], None] | None = None,
    seed: int = 0,
) -> HeadMeasurements:
    """Measure each part on these labelled texts; a batch of one text is left out, since resampling needs another."""
    model = classifier_of(classifier.checkpoint).eval()
    config = model.config
    layers = range(config.n_layers)
    every_head = range(config.n_heads)
    singles: list[HeadGroup] = [{layer: [head]} for layer in layers for head in every_head]
    groups: list[HeadGroup] = [*singles, *({layer: every_head} for layer in layers), dict.fromkeys(layers, every_head)]
    random = np.random.default_rng(seed)
    tables = _variants(fitted, random)
    found: dict[tuple[int, str], list[tuple[Tensor, Tensor]]] = defaultdict(list)
    original: list[Tensor] = []
    done = 0
    for rows in batches_by_length(texts.lengths, batch_size=64):
        done += len(rows)
        if len(rows) < 2:
            continue
        ids, labels = map(torch.from_numpy, pad_batch(texts, rows))
        batch = Batch(model, ids, labels, random)
        original.append(batch.is_correct)
        for index, group in enumerate(groups):
            found[index, "mean"].append(batch.with_means(means, group))
            found[index, "resampled"].append(batch.with_resampled(group))
            for name, table in tables.items():
                found[index, name].append(batch.with_tables(table, group, n_heads=config.n_heads))
        for layer in layers:
            found[-1 - layer, "mean"].append(batch.with_feed_forward_replaced(layer, means))
            found[-1 - layer, "resampled"].append(batch.with_feed_forward_replaced(layer, None))
        if on_text is not None:
            on_text(done, len(texts))
    if not original:
        raise DataError(f"got {len(texts)} test texts; expected at least two of similar length")
    is_correct = torch.cat(original).numpy()

    def results(index: int) -> Results:
        return {
            name: (torch.cat([kl for kl, _ in parts]).numpy(), torch.cat([right for _, right in parts]).numpy())
            for (of_index, name), parts in found.items()
            if of_index == index
        }

    of_groups = [_record(results(index), is_correct, n_tests=len(KINDS) * len(singles)) for index in range(len(groups))]
    return HeadMeasurements(
        split="test",
        n=len(is_correct),
        n_training=fitted.n,
        accuracy=float(is_correct.mean()),
        heads=tuple(
            HeadRecord(**vars(record), **_strongest_weights(classifier, fitted, number, both=record.best == "both"))
            for number, record in enumerate(of_groups[: len(singles)])
        ),
        feed_forward=tuple(
            Worth(**{name: _effect(*result, is_correct) for name, result in results(-1 - layer).items()})
            for layer in layers
        ),
        layers=tuple(of_groups[len(singles) : -1]),
        all_heads=of_groups[-1],
    )


def random_texts(texts: Sequence[str], *, n: int, seed: int = 0) -> list[str]:
    """`n` texts in random order, drawn without replacement, or all texts if there are fewer."""
    return [texts[int(index)] for index in np.random.default_rng(seed).permutation(len(texts))[:n]]


def _sample(texts: TokenisedTexts, limit: tuple[int, int]) -> TokenisedTexts:
    """Random texts, the same in every run: at least two, and within `limit` = (texts, tokens) and `MAX_PAIRS`."""
    order = np.random.default_rng(0).permutation(len(texts))[: limit[0]]
    lengths = texts.lengths[order]
    within = int(((np.cumsum(lengths) <= limit[1]) & (np.cumsum(lengths**2) <= MAX_PAIRS)).sum())
    return texts.subset(order[: max(2, within)])


def _variants(fitted: FittedTables, random: np.random.Generator) -> dict[str, Tables]:
    """Uniform attention, the fitted tables, and the shuffled controls, by name."""
    variants = {"uniform": Tables.zeros(*fitted.of_kind["both"].words.shape)}
    for kind, tables in fitted.of_kind.items():
        variants[kind] = tables
        for draw in range(CONTROL_DRAWS):
            variants[f"{kind} control {draw}"] = tables.shuffle(fitted.counts, random)
    return variants


def _record(results: Results, is_correct: NDArray[np.bool_], *, n_tests: int) -> HeadsRecord:
    """The record of heads that were replaced together."""
    uniform = results["uniform"][0]
    tables = {}
    for kind in KINDS:
        control = np.mean([results[f"{kind} control {draw}"][0] for draw in range(CONTROL_DRAWS)], axis=0)
        lost = float(is_correct.mean() - results[kind][1].mean())
        tables[kind] = measure_restored(uniform, results[kind][0], control, n_tests=n_tests, lost=lost)
    return HeadsRecord(
        **{name: _effect(*results[name], is_correct) for name in ("mean", "resampled", "uniform")}, tables=tables
    )


def measure_restored(uniform: Floats, table: Floats, control: Floats, *, n_tests: int, lost: float) -> Restored:
    """How much of the effect of uniform attention a table undoes, from the KL divergence of each text's output, (N,).

    The intervals are those of a ratio of two means (the delta method), corrected for `n_tests` (Bonferroni).
    """
    from scipy.special import ndtri

    corrected = float(ndtri(1 - 0.025 / n_tests))
    share, error = _ratio(uniform - table, uniform)
    gain, error_of_gain = _ratio(control - table, uniform)
    return Restored(
        share=share,
        low=share - Z * error,
        high=share + Z * error,
        least=share - corrected * error,
        control=_ratio(uniform - control, uniform)[0],
        gain=gain - corrected * error_of_gain,
        lost=lost,
    )


def _ratio(numerator: Floats, denominator: Floats) -> tuple[float, float]:
    """The ratio of the means of two arrays (N,), and its standard error; both are 0 if the second mean is."""
    mean = float(denominator.mean())
    if mean < 1e-9:
        return 0.0, 0.0
    ratio = float(numerator.mean()) / mean
    spread = float((numerator - ratio * denominator).std(ddof=1)) if len(numerator) > 1 else 0.0
    return ratio, spread / mean / float(np.sqrt(len(numerator)))


def _effect(kl: Floats, right: NDArray[np.bool_], is_correct: NDArray[np.bool_]) -> Effect:
    error = Z * float(kl.std(ddof=1)) / float(np.sqrt(len(kl)))
    lost = accuracy_difference(is_correct, right)
    mean = float(kl.mean())
    return Effect(mean, max(0.0, mean - error), mean + error, lost.value, lost.low, lost.high)


def _strongest_weights(classifier: Predictor, fitted: FittedTables, number: int, *, both: bool) -> dict[str, Any]:
    """The fields `distances` and `words` of a head's record, from its "both" table or from the two other tables."""
    kinds: tuple[TableKind, TableKind] = ("both", "both") if both else ("distance", "word")
    of_pairs = fitted.of_kind[kinds[0]].distances[number].exp() * fitted.pairs  # 2 MAX_DISTANCE + 1
    words = fitted.of_kind[kinds[1]].words[number].exp()  # V
    moved = (words - 1) * fitted.counts / fitted.counts.sum()  # V: weight beyond that of as many average words
    moved[fitted.counts < MIN_COUNT] = -1.0
    best = [int(token) for token in moved.argsort(descending=True)[:N_WORDS] if moved[token] > 0]
    names = tuple((word_name(classifier, token), float(words[token])) for token in best)
    return {"distances": tuple(map(float, of_pairs / of_pairs.sum())), "words": names}


def word_name(classifier: Predictor, token: int) -> str:
    """The name of a token in a sentence, prefixed with `PIECE` if the token is only ever part of a word."""
    if token < len(SPECIAL_TOKENS):
        return SPECIAL_TOKENS[token]
    name = classifier.tokenizer.decode([token]).strip() or "space"
    read = [part for part in classifier.tokenizer.encode(name).tokens if not part.is_special]
    return PIECE + name if name.isalpha() and name != "space" and len(read) > 1 else name
