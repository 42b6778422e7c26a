"""repeated_word: five words, of which one occurs twice, or all are different.

    river stone lamp river key   ->  repeated

Which words occur says nothing about the class, and neither does their order: only how often each one occurs.
"""

import random
from functools import cache

from txcls.data.splits import split_by_checksum
from txcls.data.types import Dataset, DatasetInfo, LabelledTexts, SplitName

INFO = DatasetInfo(
    name="repeated_word",
    title="Five words: does one of them occur twice?",
    examples="five words",
    terms="CC0 1.0",
)
CLASSES = ("all different", "repeated")
WORDS = ("lamp", "river", "stone", "key", "door", "cloud", "table", "glass")
N_ROWS = 8_000
SEED = 2026


def open_repeated_word() -> Dataset:
    """Open the data set of generated rows."""
    return Dataset(
        info=INFO,
        classes=CLASSES,
        source="txcls/data/generated/repeated_word.py",
        splits=("train", "validation", "test"),
        read=lambda split: _rows_by_split()[split],
    )


@cache
def _rows_by_split() -> dict[SplitName, LabelledTexts]:
    """All rows, without repetitions, keyed by split."""
    rng = random.Random(SEED)
    labels: dict[str, int] = {}
    while len(labels) < N_ROWS:
        words, label = rng.sample(WORDS, 5), rng.randrange(2)
        if label:
            words[0] = rng.choice(words[1:])
            rng.shuffle(words)
        labels[" ".join(words)] = label
    texts: dict[SplitName, list[str]] = {"train": [], "validation": [], "test": []}
    for text in labels:
        texts[split_by_checksum(text)].append(text)
    return {split: LabelledTexts(rows, [labels[text] for text in rows], CLASSES) for split, rows in texts.items()}
