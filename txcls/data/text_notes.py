"""Notes on texts before training: tokens that reveal the label; how many are not English."""

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from txcls.data.html import are_html
from txcls.data.types import LabelledTexts
from txcls.wording import percentage, quoted

_CODE = re.compile(
    r"(?=\S*\d)[\w#\[\](){}<>:@./-]{3,60}"  # contains a digit
    r"|#\w[\w-]{1,58}|\b[^\W\d]\w{1,28}: [^\W\d]\w{1,28}"  # `#billing` and `Queue: Billing`
)
MAX_READ_ROWS = 5000
"""Maximum number of rows that are checked."""
MIN_IN_CLASS, MAX_ELSEWHERE, MIN_CLASS_ROWS = 0.5, 0.02, 10
"""A token reveals a class if it is in at least this fraction of the class's rows, at most this fraction of the other
rows, and at least this number of rows of the class."""
MIN_ENGLISH, MIN_WORDS, MIN_JUDGED, MIN_SHORT_WORDS = 0.15, 8, 20, 200
"""Minimum fraction of function words in an English text (headlines have about 0.3, other texts 0.4), and minimum number
of words of a text to judge it. If fewer than MIN_JUDGED texts are so long, all words are judged together, if they are
at least MIN_SHORT_WORDS."""
MAX_FOREIGN_BYTES = 3.0
"""Maximum number of bytes per token of the English encoder, on average, in a text that is not English: 2.4 to 2.6 in
German, Italian and Malay, 3.5 to 5 in English. English notes and résumés without sentences have few function words too,
but longer tokens."""


def text_notes(rows: LabelledTexts) -> Iterator[str]:
    """Yield warnings about problems in at most MAX_READ_ROWS random texts, each with its remedy.

    HTML is noted only in texts given in Python, since tables are read without it.
    """
    sample = rows.subset(np.random.default_rng(0).permutation(len(rows))[:MAX_READ_ROWS].tolist())
    if are_html(sample.texts):
        yield (
            "Many texts are HTML, and their tags are read as words. Keep only the visible text before training, for "
            "example with txcls.data.html.without_html(text)."
        )
    names = [rows.classes[label].casefold() for label in sample.labels]
    lines = ([line.strip() for line in text.casefold().splitlines()] for text in sample.texts)
    begins = [any(line.startswith(name) for line in text) for text, name in zip(lines, names, strict=True)]
    if (share := sum(begins) / max(len(begins), 1)) >= MIN_IN_CLASS:
        example = rows.classes[sample.labels[begins.index(True)]]
        yield (
            f"Remove the label from the texts unless new ones have it too: {percentage(share, 0)} of them, or one of "
            f"their lines, begin with it, such as {quoted(example)}."
        )
    if codes := _revealing_codes(sample):
        code, label, share = codes[0]
        digits = " (with any digits)" if re.search("[0-9]", code) else ""
        n = len(codes) - 1
        more = f" and {n} similar token{'s' * (n > 1)}" if n else ""
        yield (
            f"Remove {quoted(code)}{digits}{more} from texts unless new ones have it too: it is in "
            f"{percentage(share, 0)} of the rows of class {quoted(label)} and hardly ever in other rows."
        )


def share_not_english(texts: Sequence[str], token_bytes: NDArray[np.float64]) -> float:
    """The fraction of the first 1,000 texts with few English function words and with short tokens.

    `token_bytes` is the mean number of bytes of the English encoder's tokens in each text, (N,). The result is 0 if
    there are too few words to judge.
    """
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    words = [re.findall(r"\w+", text[:1000].lower()) for text in texts[:1000]]
    judged = [(text, size) for text, size in zip(words, token_bytes, strict=False) if len(text) >= MIN_WORDS]
    if len(judged) < MIN_JUDGED:
        together = list(itertools.chain.from_iterable(words))
        judged = [(together, float(np.mean(token_bytes)))] if len(together) >= MIN_SHORT_WORDS else []
    n_foreign = sum(
        size <= MAX_FOREIGN_BYTES and sum(word in ENGLISH_STOP_WORDS for word in text) < MIN_ENGLISH * len(text)
        for text, size in judged
    )
    return int(n_foreign) / max(len(judged), 1)


def _revealing_codes(rows: LabelledTexts) -> list[tuple[str, str, float]]:
    """(token, class, fraction of the class's rows) for each token that reveals a class.

    Tokens that differ only in digits count as the same. The largest fraction comes first.
    """
    class_sizes, counts_by_pattern = Counter(rows.labels), defaultdict[str, Counter[int]](Counter)
    examples: dict[str, str] = {}
    for text, label in zip(rows.texts, rows.labels, strict=True):
        codes = {re.sub(r"\d+", "0", code): code for code in _CODE.findall(text[:5000])}
        for pattern, code in codes.items():
            if re.search(r"[^\W\d]", pattern):  # contains a letter
                counts_by_pattern[pattern][label] += 1
                examples.setdefault(pattern, code)
    revealing = []
    for pattern, counts in counts_by_pattern.items():
        label, n = counts.most_common(1)[0]
        elsewhere = (counts.total() - n) / max(len(rows) - class_sizes[label], 1)
        if n >= MIN_CLASS_ROWS and n >= MIN_IN_CLASS * class_sizes[label] and elsewhere <= MAX_ELSEWHERE:
            revealing.append((examples[pattern], rows.classes[label], n / class_sizes[label]))
    return sorted(revealing, key=lambda code: -code[2])
