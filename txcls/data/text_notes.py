"""What to know about texts before training on them: e-mail headers, tokens that reveal the label, other languages."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from txcls.data.types import LabelledTexts
from txcls.wording import percentage, shown

_HEADER = re.compile(
    r"(?:from|to|cc|subject|date|sent|received|reply-to|message-id|lines|organization): ", re.IGNORECASE
)
_CODE = re.compile(r"(?=\S*\d)[\w#\[\](){}<>:@./-]{3,60}")
READ_ROWS = 5000
"""Maximum number of rows that are looked at."""
MIN_HEADERS = 0.2
"""Minimum fraction of texts that begin with e-mail headers for a note."""
MIN_IN_CLASS, MAX_ELSEWHERE, MIN_CLASS_ROWS = 0.5, 0.02, 10
"""A token reveals a class if it is in at least this fraction of the class's rows and at most this of the others."""
MIN_ENGLISH, MIN_WORDS = 0.15, 200
"""English texts have at least this fraction of function words (headlines about 0.25, other texts 0.4)."""


def text_notes(rows: LabelledTexts) -> Iterator[str]:
    """Sentences on the texts of at most READ_ROWS random rows, each with what to do."""
    order = np.random.default_rng(0).permutation(len(rows))[:READ_ROWS]
    some = rows.subset(order.tolist())
    headers = sum(_begins_with_headers(text) for text in some.texts) / len(some)
    if headers >= MIN_HEADERS:
        yield (
            f"{percentage(headers, 0)} of the texts begin with e-mail headers (From:, Subject: …), which may reveal "
            "the label. Remove them if the texts to classify later have none."
        )
    if codes := _revealing_codes(some):
        code, label, share = codes[0]
        more = f" (and {len(codes) - 1} more like it)" if len(codes) > 1 else ""
        yield (
            f"'{shown(code, limit=40)}', digits aside, is in {percentage(share, 0)} of the rows of class "
            f"'{shown(label, limit=40)}' and in hardly any other{more}: it reveals the label. Remove it if the "
            "texts to classify later do not have it; otherwise the result is better than it will be then."
        )
    if not is_english(some.texts):
        yield (
            "The texts do not look like English, which is all that the pre-trained encoder has read; compare with the "
            "linear baseline, which reads words and characters of any language."
        )


def is_english(texts: Sequence[str]) -> bool:
    """Whether enough of the words are English function words; True for too few words to tell."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    words = [word for text in texts[:1000] for word in re.findall(r"\w+", text[:1000].lower())]
    share = sum(word in ENGLISH_STOP_WORDS for word in words) / max(len(words), 1)
    return len(words) < MIN_WORDS or share >= MIN_ENGLISH


def _begins_with_headers(text: str) -> bool:
    return sum(_HEADER.match(line) is not None for line in text.lstrip()[:2000].splitlines()[:6]) >= 2


def _revealing_codes(rows: LabelledTexts) -> list[tuple[str, str, float]]:
    """Tokens with digits (compared without their digits) that are in most rows of one class and in few others.

    Each with the class and the fraction of the class's rows; the largest fraction first.
    """
    n_of, in_class = Counter(rows.labels), defaultdict[str, Counter[int]](Counter)
    example: dict[str, str] = {}
    for text, label in zip(rows.texts, rows.labels, strict=True):
        codes = {re.sub(r"\d+", "0", code): code for code in _CODE.findall(text[:5000])}
        for shape, code in codes.items():
            if re.search(r"[^\W\d]", shape):  # not a number alone
                in_class[shape][label] += 1
                example.setdefault(shape, code)
    revealing = []
    for shape, counts in in_class.items():
        label, n = counts.most_common(1)[0]
        others = len(rows) - n_of[label]
        elsewhere = (counts.total() - n) / max(others, 1)
        if n >= MIN_CLASS_ROWS and n >= MIN_IN_CLASS * n_of[label] and elsewhere <= MAX_ELSEWHERE:
            revealing.append((example[shape], rows.classes[label], n / n_of[label]))
    return sorted(revealing, key=lambda code: -code[2])
