"""Prediction speed: a headline beside its forward pass, many texts beside a linear SVM, a file beside texts in memory.

    python -m benchmarks.prediction_speed [--headlines 200] [--texts 7600] [--rounds 5] [--rows 100000]

Both sides of a ratio are measured in turn. AG News must be on this machine (`txcls data list`); the linear model is
fitted to at most `--rows` of its training texts, and both models classify `--texts` of its test texts.
"""

import argparse
import csv
import statistics
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from benchmarks._measure import alternate, machine, median_ratio, seconds
from txcls.config import DataConfig
from txcls.data.datasets import open_dataset
from txcls.errors import DataError
from txcls.evaluation.predict_file import predict_file
from txcls.inference.predictor import Predictor

GOAL_ONE, GOAL_MANY, GOAL_PER_SECOND, GOAL_FILE = 1.5, 2.0, 5000, 0.9


def one_headline(classifier: Predictor, texts: list[str]) -> None:
    """Print the median time from text to ranked classes, and the median time of the forward pass."""
    pairs = []
    for text in [texts[0], *texts]:  # the first one is a warm-up
        ids = torch.tensor([classifier.tokenizer.encode(text).ids])
        end_to_end = seconds(lambda text=text: classifier.predict([text]))  # type: ignore[misc]
        forward = seconds(lambda ids=ids: classifier.logits(ids))  # type: ignore[misc]
        pairs.append((end_to_end, forward))
    end_to_end, forward = (statistics.median(times) * 1000 for times in zip(*pairs[1:], strict=True))
    print(
        f"\n{f'one headline, ms (medians of {len(texts)})':<50}{'end to end':>11}{'forward':>9}{'ratio':>7}{'goal':>6}"
    )
    print(f"{classifier.name:<50}{end_to_end:>11.2f}{forward:>9.2f}{end_to_end / forward:>7.2f}{GOAL_ONE:>6g}")


def many_texts(classifier: Predictor, texts: list[str], linear: object, *, rounds: int) -> None:
    """Print the speed of classifying all texts, measured in turn with the linear model."""
    measures = {
        "txcls": lambda: seconds(lambda: classifier.probabilities(texts)),
        "txcls, float32": lambda: seconds(lambda: classifier.probabilities(texts, precision="float32")),
        "txcls, predict": lambda: seconds(lambda: classifier.predict(texts, top_k=1)),
        "linear": lambda: seconds(lambda: linear.predict(texts)),  # type: ignore[attr-defined]
    }
    times = alternate(measures, rounds=rounds)
    title = f"{len(texts):,} texts, per second (medians of {rounds})"
    print(f"\n{title:<50}{'texts/s':>11}{'time relative to the linear model':>38}")
    for name, label in (
        ("linear", "TF-IDF of 1- and 2-grams + LinearSVC"),
        ("txcls", f"Predictor.probabilities (goal {GOAL_PER_SECOND:,}, {GOAL_MANY:g})"),
        ("txcls, float32", 'the same with precision="float32"'),
        ("txcls, predict", "Predictor.predict, with tokens and offsets"),
    ):
        rate = len(texts) / statistics.median(times[name])
        print(f"{label:<50}{rate:>11,.0f}{median_ratio(times[name], times['linear']):>38.2f}")


def a_file(classifier: Predictor, texts: list[str], *, rounds: int) -> None:
    """Print the speed of classifying a CSV file, relative to computing the same probabilities in memory."""
    with TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.csv", Path(folder) / "out.csv"
        with source.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([["id", "text"], *enumerate(texts)])
        times = alternate(
            {
                "file": lambda: seconds(lambda: predict_file(classifier, source, target, precision="auto")),
                "memory": lambda: seconds(lambda: classifier.probabilities(texts)),
            },
            rounds=rounds,
        )
    ratio = median_ratio(times["memory"], times["file"])
    print(f"\na CSV file of {len(texts):,} rows: {ratio:.2f} of the speed in memory (goal {GOAL_FILE:g})")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--headlines", type=int, default=200)
    parser.add_argument("--texts", type=int, default=7600, help="number of test texts to classify")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=100_000, help="number of training texts of the linear model")
    options = parser.parse_args()
    classifier = Predictor.load("ag_news")
    try:
        dataset = open_dataset(DataConfig(dataset="ag_news"))
        training, texts = dataset.load("train"), list(dataset.load("test").texts)[: options.texts]
    except DataError as error:
        print(error)
        return 2
    print(machine())
    one_headline(classifier, texts[: options.headlines])
    exact, rounded = (classifier.probabilities(texts, precision=precision) for precision in ("float32", "auto"))
    linear = make_pipeline(TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), LinearSVC(C=0.5))
    step = max(1, len(training) // options.rows)
    linear.fit(training.texts[::step], training.labels[::step])
    many_texts(classifier, texts, linear, rounds=options.rounds)
    a_file(classifier, texts, rounds=options.rounds)
    changes, same_class = np.abs(exact - rounded), (exact.argmax(1) == rounded.argmax(1)).mean()
    print(f"\nbfloat16 compared with float32: maximum change of a probability {changes.max():.4f}, ", end="")
    print(f"mean {changes.mean():.5f}, same class for {same_class:.2%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
