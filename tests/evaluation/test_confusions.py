import re
from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import binom, fisher_exact

from txcls.data.types import LabelledTexts
from txcls.evaluation.report import RowPredictions
from txcls.evaluation.sections import ConfusionWord, _words_section, confusion_words

CLASSES = ("Billing", "Orders", "Other")


def predictions_of(texts: Sequence[str], labels: Sequence[int], predicted: Sequence[int]) -> RowPredictions:
    return RowPredictions(LabelledTexts(texts, labels, CLASSES), np.eye(3)[predicted])


def random_texts(seed: int, n: int) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(f"w{min(int(word), 400)}" for word in random.zipf(1.4, size=12)) for _ in range(n)]


def test_the_word_that_causes_errors_is_named_with_its_counts() -> None:
    texts = random_texts(0, 164)
    texts[:9] = [f"{text}. Refund refund!" for text in texts[:9]]
    texts[14:17] = [f"{text} refund" for text in texts[14:17]]
    texts[100:104] = [f"{text} parcel" for text in texts[100:104]]  # four errors, too few
    texts, labels = [*texts, *texts[:9]], [*[0] * 100, *[1] * 64, *[0] * 9]  # nine texts are repeated
    predicted = [*[1] * 14, *[0] * 90, *[1] * 69]
    found = confusion_words(predictions_of(texts, labels, predicted))
    assert found == ([ConfusionWord("Billing", "Orders", "refund", 9, 14, 3, 86)], 1)
    few = predictions_of(texts[10:164], labels[10:164], predicted[10:164])
    assert confusion_words(few) == ([], 0)
    section = _words_section(predictions_of(texts, labels, predicted))
    assert [*section.rows] == [("Billing", "Orders", "refund", "9 of 14 (64.3\u00a0%)", "3 of 86 (3.5\u00a0%)")]


def test_the_statistic_is_scipys_exact_test_with_a_correction_for_all_words() -> None:
    texts = [f"{text} {'a' * (n < 25)} {'b' * (n < 12)} {'c' * (n < 8)}" for n, text in enumerate(random_texts(1, 60))]
    found, *_ = confusion_words(predictions_of(texts, [0] * 60, [*[1] * 15, *[2] * 15, *[0] * 30]))
    words = [set(re.findall(r"\w+", text)) for text in texts]
    p_values = {}
    for errors, name in ((words[:15], "Orders"), (words[15:30], "Other")):
        for word in set().union(*errors, *words[30:]):
            a, b = (sum(word in row for row in rows) for rows in (errors, words[30:]))
            if a + b >= 3:
                words_in = (sum(map(len, rows)) for rows in (errors, words[30:]))
                p_values[name, word] = max(
                    fisher_exact([[a, n - a], [b, m - b]], alternative="greater").pvalue
                    for n, m in ((15, 30), words_in)
                )
    expected = {key for key, p in p_values.items() if p <= 0.05 / len(p_values)}
    assert {(word.predicted, word.word) for word in found} == expected
    assert ("Orders", "a") in expected and 2 < len(expected) < 6


@pytest.mark.parametrize("n_errors, n_right", [(40, 8), (5, 30)])
def test_frequent_words_are_not_named_only_because_errors_are_longer_or_shorter(n_errors: int, n_right: int) -> None:
    """The words of all texts are drawn alike, whatever the number of words of a text; only "refund" is not."""
    random = np.random.default_rng(0)
    lengths = [*[n_errors] * 60, *[n_right] * 240]
    texts = [" ".join(f"w{min(int(word), 400)}" for word in random.zipf(1.4, size=length)) for length in lengths]
    texts[:25] = [f"{text} refund" for text in texts[:25]]
    found, *_ = confusion_words(predictions_of(texts, [0] * 300, [*[1] * 60, *[0] * 240]))
    assert [word.word for word in found] == ["refund"]


def test_random_errors_name_a_word_in_at_most_one_report_in_twenty() -> None:
    named = 0
    for seed in range(100):
        predicted = np.random.default_rng(seed).choice(3, size=120, p=[0.7, 0.2, 0.1]).tolist()
        named += bool(confusion_words(predictions_of(random_texts(seed, 120), [0] * 120, predicted))[0])
    assert named <= binom.ppf(0.999, 100, 0.05)
