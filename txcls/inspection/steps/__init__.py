"""How does the forward pass compute its output, step by step?

`walk_through` returns the steps for one text, from the text to calibrated probabilities and the class lens; there is
one module per part of the model. All numbers are recorded in one forward pass, or follow from it by the arithmetic that
the step shows.
"""

from txcls.inspection.steps.arithmetic import Arithmetic
from txcls.inspection.steps.order import Walk, walk_through
from txcls.inspection.steps.step import SYMBOLS, Axis, Question, SourceLines, WalkStep, source_of

__all__ = ["SYMBOLS", "Arithmetic", "Axis", "Question", "SourceLines", "Walk", "WalkStep", "source_of", "walk_through"]
