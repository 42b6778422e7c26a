"""Which words led to the answer? Methods that score the words of a text, and how good their explanations are.

`explain` scores the words of one text, `deletion_curves` and `top_overlaps` evaluate the methods on it, and
`measure_explanations` does so on many test texts.
"""

from txcls.inspection.attribution.evaluation import (
    DeletionCurves,
    ExplanationEvaluation,
    deletion_curves,
    evaluate_explanation,
    n_top,
    top_overlaps,
)
from txcls.inspection.attribution.methods import (
    METHODS,
    SIGNED,
    Baseline,
    Explanation,
    IntegratedGradients,
    Target,
    explain,
    gradient_x_input,
    integrated_gradients,
    leave_one_out,
    logits_without,
    methods_of,
)
from txcls.inspection.attribution.on_test_texts import (
    ExplanationAverages,
    average_explanations,
    measure_explanations,
    with_explanations,
)

__all__ = [
    "METHODS",
    "SIGNED",
    "Baseline",
    "DeletionCurves",
    "Explanation",
    "ExplanationAverages",
    "ExplanationEvaluation",
    "IntegratedGradients",
    "Target",
    "average_explanations",
    "deletion_curves",
    "evaluate_explanation",
    "explain",
    "gradient_x_input",
    "integrated_gradients",
    "leave_one_out",
    "logits_without",
    "measure_explanations",
    "methods_of",
    "n_top",
    "top_overlaps",
    "with_explanations",
]
