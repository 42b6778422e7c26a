"""The probe and the linear baseline of the playground equal scikit-learn's, in a real Chromium."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page
from scipy.sparse import csr_array, hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from tests.browser.conftest import page_with
from txcls.data.datasets import examples_for
from txcls.evaluation.linear import WORD

IN_THE_PAGE = """
const result = (steps) => {
  let step = steps.next(), nParts = 0, longest = 0, began = performance.now();
  for (; !step.done; nParts++) {
    step = steps.next();
    longest = Math.max(longest, performance.now() - began);
    began = performance.now();
  }
  return {value: step.value, nParts, longest};
};
const plain = ({weight, bias}) => ({weight: [...weight.data], shape: weight.shape, bias: [...bias.data]});
globalThis.choose = (features, labels, C, folds) => {
  const {value} = result(chooseProbe(Float32Array.from(features.flat()), labels, C, folds));
  const {decay, answers, ofFolds} = value;
  return {probe: plain(value), decay, answers, ofFolds: ofFolds.map(plain)};
};
globalThis.scores = (texts, labels, C, others) => {
  const classOf = result(fitLinearSteps(texts, labels, C, {random: randomNumbers(0)})).value;
  return {scores: others.map((text) => [...classOf.scores(text)]), classes: others.map((text) => classOf(text))};
};
globalThis.fitSlowly = (texts, labels, C) => {
  const began = performance.now();
  const {value, nParts, longest} = result(fitLinearSteps(texts, labels, C, {random: randomNumbers(0)}));
  return {nParts, longest, time: performance.now() - began, classes: texts.slice(0, 300).map(value)};
};
globalThis.plan = planOf;
"""
DECAYS = (1000.0, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0)
SEVERAL_SCRIPTS = ["Привет, мир! Привет", "猫が好き cats 2024", "สวัสดี hello", "naïve façade", "🙂🙂 ok", "a", "", " - "]


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    """An empty page with the modules."""
    modules = [f"playground/training/{module}" for module in ("optimizer", "probe", "baseline", "recipe")]
    with page_with(browser, modules, IN_THE_PAGE) as page:
        yield page


def features_of(n: int, n_features: int, n_classes: int, *, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Correlated features with different means and scales, and classes that depend on them."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=n - n_classes)])
    centres = rng.normal(size=(n_classes, n_features))
    features = (centres[labels] + 3 * rng.normal(size=(n, n_features))) @ rng.normal(size=(n_features, n_features))
    scales, means = np.exp(rng.normal(size=n_features)), 5 * rng.normal(size=n_features)
    return (features * scales + means).astype(np.float32), labels


def sklearn_probe(features: np.ndarray, labels: np.ndarray, decay: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Weights and biases for the features as they are, and the objective at the optimum."""
    mean, scale = features.mean(0, dtype=np.float64), features.std(0, dtype=np.float64)
    scaled = (features - mean) / scale
    model = LogisticRegression(C=1 / decay, tol=1e-10, max_iter=10_000).fit(scaled, labels)
    weight, bias = model.coef_ / scale, model.intercept_
    bias = bias - weight @ mean
    return weight, bias, objective(features, labels, weight, bias, decay)


def objective(features: np.ndarray, labels: np.ndarray, weight: np.ndarray, bias: np.ndarray, decay: float) -> float:
    logits = features.astype(np.float64) @ weight.T + bias
    highest = logits.max(1, keepdims=True)
    losses = np.log(np.exp(logits - highest).sum(1)) + highest[:, 0] - logits[np.arange(len(labels)), labels]
    penalty = ((weight * features.std(0, dtype=np.float64)) ** 2).sum()
    return float(losses.sum() + decay / 2 * penalty)


def choose(page: Page, features: np.ndarray, labels: np.ndarray, n_classes: int) -> dict[str, Any]:
    """The page's probe, with five folds of every fifth row."""
    folds = np.arange(len(labels)) % 5
    arguments = [features.tolist(), labels.tolist(), n_classes, folds.tolist()]
    chosen: dict[str, Any] = page.evaluate("([...given]) => choose(...given)", arguments)
    return chosen


def received(probe: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(probe["weight"]).reshape(probe["shape"]), np.array(probe["bias"])


@pytest.mark.parametrize("n, n_classes", [(40, 3), (200, 10)])
def test_the_probe_has_the_weights_of_scikit_learn(page: Page, n: int, n_classes: int) -> None:
    features, labels = features_of(n, 24, n_classes, seed=n)
    chosen = choose(page, features, labels, n_classes)
    decay, (weight, bias) = chosen["decay"], received(chosen["probe"])
    expected, _, least = sklearn_probe(features, labels, decay)
    assert objective(features, labels, weight, bias, decay) == pytest.approx(least, rel=1e-5)
    np.testing.assert_allclose(weight, expected, atol=5e-3 * np.abs(expected).max())


def test_a_constant_feature_and_a_class_without_rows_do_no_harm(page: Page) -> None:
    features, labels = features_of(60, 8, 2, seed=1)
    features[:, 3] = 7.0
    weight, bias = received(choose(page, features, labels, 3)["probe"])
    answers = (features @ weight.T + bias).argmax(1)
    assert set(answers) <= {0, 1} and (answers == labels).mean() > 0.7


def test_cross_validation_has_the_answers_of_probes_without_their_fold_and_the_decay_of_the_lowest_loss(
    page: Page,
) -> None:
    features, labels = features_of(200, 32, 3, seed=8)
    folds, losses = np.arange(200) % 5, dict.fromkeys(DECAYS, 0.0)
    chosen = choose(page, features, labels, 3)
    assert len(chosen["ofFolds"]) == 5
    for fold, probe in enumerate(chosen["ofFolds"]):
        weight, bias = received(probe)
        seen, left = folds != fold, folds == fold
        assert np.array_equal((features[left] @ weight.T + bias).argmax(1), np.array(chosen["answers"])[left])
        excess = []
        for decay in DECAYS:
            best_weight, best_bias, least = sklearn_probe(features[seen], labels[seen], decay)
            excess.append(objective(features[seen], labels[seen], weight, bias, decay) / least)
            losses[decay] += objective(features[left], labels[left], best_weight, best_bias, 0.0)
        assert min(excess) < 1.002, "the best probe for these rows and one of the decays"
    assert min(DECAYS, key=losses.__getitem__) == chosen["decay"]


def rows_of(n: int) -> tuple[list[str], list[int]]:
    """Texts of three kinds."""
    rng = random.Random(4)
    kinds = [[example.text for example in examples_for(name)] for name in ("ag_news", "clinc150", "imdb")]
    labels = [rng.randrange(3) for _ in range(n)]
    texts = [
        " ".join(
            [
                *rng.choice(kinds[label]).split()[: rng.randint(4, 25)],
                *rng.choice(kinds[rng.randrange(3)]).split()[:5],
                rng.choice(["!", " ...", "", " (42)"]),
            ]
        )
        for label in labels
    ]
    return texts, labels


def sklearn_scores(texts: list[str], labels: list[int], others: list[str]) -> np.ndarray:
    vectorizers = (
        TfidfVectorizer(token_pattern=WORD, ngram_range=(1, 2), sublinear_tf=True),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True),
    )
    seen = csr_array(hstack([vectorizer.fit_transform(texts) for vectorizer in vectorizers]))
    unseen = csr_array(hstack([vectorizer.transform(others) for vectorizer in vectorizers]))
    return np.asarray(LinearSVC(C=1.0, tol=1e-8, max_iter=100_000).fit(seen, labels).decision_function(unseen))


def test_the_linear_baseline_has_the_scores_of_scikit_learns_linear_svc(page: Page) -> None:
    texts, labels = rows_of(300)
    texts, labels, others = texts[:200], labels[:200], [*texts[200:], *SEVERAL_SCRIPTS]
    result = page.evaluate("([...given]) => scores(...given)", [texts, labels, 3, others])
    expected = sklearn_scores(texts, labels, others)
    np.testing.assert_allclose(result["scores"], expected, atol=0.02)
    assert result["classes"] == expected.argmax(1).tolist()
    two = [label % 2 for label in labels]
    result = page.evaluate("([...given]) => scores(...given)", [texts, two, 2, others])
    expected = sklearn_scores(texts, two, others)
    np.testing.assert_allclose(result["scores"], np.stack([-expected, expected], -1), atol=0.03)


def test_the_baseline_of_many_rows_and_classes_takes_seconds_and_lets_the_worker_answer(page: Page) -> None:
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefghijklmnoprstuvw", k=rng.randint(2, 8))) for _ in range(4000)]
    labels = [n % 60 for n in range(1200)]
    texts = [" ".join([words[label], words[60 + label], *rng.choices(words, k=23)]) for label in labels]
    result = page.evaluate("([...given]) => fitSlowly(...given)", [texts, labels, 60])
    assert result["nParts"] > 1200
    assert result["time"] < 30_000 and result["longest"] < 1000  # much less on an idle core
    assert np.mean(np.array(result["classes"]) == labels[:300]) > 0.95


@pytest.mark.parametrize("start, least", [("encoder", 80), ("random", 160)])
def test_the_plan_has_more_steps_for_more_rows_and_for_random_weights(page: Page, start: str, least: int) -> None:
    steps = [page.evaluate("plan", {"n": n, "start": start})["steps"] for n in (1, 40, 500, 3000)]
    assert steps == sorted(steps) and steps[0] == least < steps[-1]
