"""Reports: metrics as `evaluate` measures them, classes in a readable order, mistakes, and the linear baseline."""

import numpy as np
import pytest

from tests.conftest import CLASSES, TEXTS
from txcls.data.types import LabelledTexts
from txcls.errors import DataError
from txcls.evaluation.baseline import answer_with_baseline
from txcls.evaluation.evaluate import evaluate_rows
from txcls.evaluation.report import (
    Answers,
    Report,
    answer_rows,
    answered_above,
    class_counts_of,
    cluster_order,
    report_on,
    some_rows,
    worst_pairs,
)
from txcls.predictor import Predictor

ROWS = LabelledTexts(TEXTS, [1, 2, 3, 0, 1, 2, 3, 0], CLASSES)


def test_report_metrics_equal_evaluate(classifier: Predictor) -> None:
    report = report_on(classifier, ROWS, rows_are="8 rows")
    assert report.figures == evaluate_rows(classifier.checkpoint, ROWS, device="cpu").to_dict()
    assert report.confusion is not None and report.confusion.sum() == len(TEXTS)


def test_report_answers_equal_predict(classifier: Predictor) -> None:
    seen: list[tuple[int, int]] = []
    answers = answer_rows(classifier, ROWS, on_rows=lambda *progress: seen.append(progress))
    assert seen[-1] == (8, 8)
    for row, prediction in enumerate(classifier.predict(TEXTS)):
        found = answers.row(row)
        assert found.predicted == prediction.label
        assert found.probability == pytest.approx(prediction.probability, abs=1e-5)
        assert answers.lengths[row] == len(prediction.tokens)


def test_all_mistakes_are_listed_most_confident_first(classifier: Predictor) -> None:
    answers = answer_rows(classifier, ROWS)
    mistakes = answers.mistakes()
    assert sorted(one.row for one in mistakes) == np.flatnonzero(~answers.right).tolist()
    assert [one.probability for one in mistakes] == sorted((one.probability for one in mistakes), reverse=True)
    first = mistakes[0]
    assert first in answers.confused(first.label, first.predicted)


def test_a_text_without_words_is_counted(classifier: Predictor) -> None:
    answers = answer_rows(classifier, LabelledTexts(["", TEXTS[0]], [0, 1], CLASSES))
    assert np.allclose(answers.probabilities.sum(axis=1), 1)
    assert answers.unknown[0] == 1


def test_classes_that_are_confused_are_neighbours() -> None:
    matrix = np.eye(150, dtype=int) * 20
    random = np.random.default_rng(0)
    order = random.permutation(150)
    pairs = order.reshape(-1, 3)[:20]  # twenty groups of three classes, scattered among all classes
    for group in pairs:
        matrix[np.ix_(group, group)] = 5 + 15 * np.eye(3, dtype=int)
    place = np.argsort(cluster_order(matrix))
    for group in pairs:
        assert np.ptp(place[group]) == 2
    assert sorted(cluster_order(matrix)) == list(range(150))


@pytest.mark.parametrize("n", [2, 3, 5])
def test_every_class_is_listed_once(n: int) -> None:
    for matrix in (np.zeros((n, n), int), np.eye(n, dtype=int), np.ones((n, n), int)):
        assert sorted(cluster_order(matrix)) == list(range(n))


def test_worst_pairs_count_both_ways() -> None:
    worst = worst_pairs(("a", "b", "c"), [[8, 2, 0], [3, 7, 0], [0, 1, 9]])
    assert [(one.first, one.second, one.first_as_second, one.second_as_first) for one in worst] == [
        ("a", "b", 2, 3),
        ("b", "c", 0, 1),
    ]
    assert worst[0].n == 5 and worst[0].share == 0.25


def test_sampled_rows_are_reproducible_and_in_order() -> None:
    few = some_rows(ROWS, limit=3)
    assert len(few) == 3 and few.texts == some_rows(ROWS, limit=3).texts
    assert list(few.texts) == [text for text in TEXTS if text in few.texts]
    assert some_rows(ROWS, limit=8) is ROWS


def test_rows_that_only_one_of_two_models_gets_right(classifier: Predictor) -> None:
    answers = answer_rows(classifier, ROWS)
    baseline = answer_with_baseline(answers, ROWS)  # it classifies all of its own training rows correctly
    assert baseline.accuracy == 1.0
    assert baseline.only_transformer_right() == []
    assert sorted(row.row for row in baseline.only_baseline_right()) == np.flatnonzero(~answers.right).tolist()
    assert "8 rows" in baseline.verdict()


def test_the_baseline_maps_classes_by_name_and_refuses_strange_ones(classifier: Predictor) -> None:
    answers = answer_rows(classifier, ROWS)
    turned = LabelledTexts(ROWS.texts, [3 - label for label in ROWS.labels], CLASSES[::-1])
    assert np.array_equal(
        answer_with_baseline(answers, turned).predicted, answer_with_baseline(answers, ROWS).predicted
    )
    with pytest.raises(DataError, match="does not know"):
        answer_with_baseline(answers, LabelledTexts(TEXTS, ROWS.labels, ("A", "B", "C", "D")))


def test_what_is_left_to_a_human_and_what_each_class_finds() -> None:
    probabilities = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.45, 0.55]])
    answers = Answers(LabelledTexts(["a"] * 4, [0, 1, 1, 1], ("x", "y")), probabilities, np.ones(4, int), np.zeros(4))
    used = answered_above(answers, 0.6)
    assert (used.n, used.share, used.right) == (3, 0.75, 2) and used.accuracy == pytest.approx(2 / 3)
    assert "75 % of the rows are answered, 66.7 % of them right" in str(used)
    assert "No row" in str(answered_above(answers, 0.99))
    report = Report("m", ("x", "y"), "4 rows", {"confusion": [[16, 14], [12, 58]]})
    first = class_counts_of(report)["x"]
    assert (first.finds, first.false_alarms) == ("16 of 30 (36 to 70 %)", 12)
