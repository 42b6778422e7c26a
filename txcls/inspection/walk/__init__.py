"""How does the forward pass compute its answer? One text as a walk through it, step by step.

`walk_through` gives the steps that the classifier at hand has, from the typed text to calibrated probabilities: one
file per part of the model. All numbers are those recorded in one forward pass, or follow from them by the arithmetic
that the step shows.
"""

from txcls.inspection.walk.arithmetic import Arithmetic
from txcls.inspection.walk.order import Walk, walk_through
from txcls.inspection.walk.questions import Question
from txcls.inspection.walk.source_code import Source, source_of
from txcls.inspection.walk.step import SYMBOLS, Axis, Step

__all__ = ["SYMBOLS", "Arithmetic", "Axis", "Question", "Source", "Step", "Walk", "source_of", "walk_through"]
