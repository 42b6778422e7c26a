import numpy as np

from tests.conftest import CLASSES, TEXTS
from txcls.data.types import LabelledTexts
from txcls.evaluation.evaluate import evaluate_rows
from txcls.evaluation.report import (
    RowPredictions,
    cluster_order,
    report_on,
)
from txcls.evaluation.sections import sections_of
from txcls.inference.predictor import Predictor

ROWS = LabelledTexts(TEXTS, [1, 2, 3, 0, 1, 2, 3, 0], CLASSES)


def test_report_metrics_equal_evaluate(classifier: Predictor) -> None:
    report = report_on(classifier, ROWS, rows_description="8 rows")
    measured = evaluate_rows(classifier.checkpoint, ROWS, device="cpu", measure_without_order=False)
    assert report.metrics == measured.to_dict() and sum(map(sum, report.metrics["confusion"])) == len(TEXTS)


def test_all_mistakes_are_listed_most_confident_first(classifier: Predictor) -> None:
    predictions = report_on(classifier, ROWS, rows_description="8 rows").predictions
    assert predictions is not None
    mistakes = predictions.mistakes()
    assert sorted(mistake.row for mistake in mistakes) == np.flatnonzero(~predictions.right).tolist()
    assert [mistake.probability for mistake in mistakes] == sorted(
        (mistake.probability for mistake in mistakes), reverse=True
    )


def test_a_text_is_listed_once_among_the_mistakes(classifier: Predictor) -> None:
    rows = LabelledTexts([*TEXTS, *(text.upper() for text in TEXTS)], [1, 2, 3, 0, 1, 2, 3, 0] * 2, CLASSES)
    report = report_on(classifier, rows, rows_description="16 rows")
    by_name = {section.name: section for section in sections_of(report)}
    assert report.predictions is not None and len(report.predictions.mistakes()) > len(TEXTS)
    listed = [str(text).casefold() for text, *_ in by_name["mistakes"].rows]
    assert 0 < len(listed) == len(set(listed))
    assert "has fewer than 5 errors in different texts" in by_name["words"].notes[0]


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


def test_each_threshold_counts_the_rows_at_least_as_confident() -> None:
    probabilities = np.array([[1 - p, p] for p in (0.55, 0.7, 0.9, 0.9, 0.99)])
    predictions = RowPredictions(LabelledTexts(["text"] * 5, [1, 0, 1, 1, 0], ("a", "b")), probabilities)
    counted = {threshold: predictions.above(threshold) for threshold in (0.5, 0.7, 0.9, 0.99)}
    assert counted == {0.5: (5, 3), 0.7: (4, 2), 0.9: (3, 2), 0.99: (1, 0)}
