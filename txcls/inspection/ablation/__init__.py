"""What does each part of the model contribute? Parts are switched off or replaced, and the answer is compared.

`ablate` and `ablate_each` do so for one text, `ablate_on_rows` and `measure_heads` for labelled rows.
"""

from txcls.inspection.ablation.changes import Change, How, Means, Off, Part, measure_means
from txcls.inspection.ablation.on_test_rows import (
    AccuracyEffects,
    ablate_on_rows,
    accuracy_with,
    measure_heads,
    sampled,
    with_heads,
)
from txcls.inspection.ablation.one_text import Ablation, PartEffects, ablate, ablate_each

__all__ = [
    "Ablation",
    "AccuracyEffects",
    "Change",
    "How",
    "Means",
    "Off",
    "Part",
    "PartEffects",
    "ablate",
    "ablate_each",
    "ablate_on_rows",
    "accuracy_with",
    "measure_heads",
    "measure_means",
    "sampled",
    "with_heads",
]
