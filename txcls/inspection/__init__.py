"""Looking inside a model: one module per question; results are plain arrays.

ablation         What changes without a part of the model, for one text?
attention        What do attention patterns show?
attribution      How do methods score the words of a text?
circuit          Which attention rows suffice for the prediction?
counterfactuals  What if the text were different?
heads            What does each head do, and what is it worth?
language_model   What does a language model predict?
lens             What can the class head read after each block?
parameters       How many parameters does each part have?
patching         How much of the difference between two predictions does one part carry at one token?
positions        How do positions enter the model, and does word order matter?
steps            How does the forward pass compute its output, step by step?
tracing          What happens inside the model for one text?
training_film    How did the prediction for this text develop during training?
vocabulary       Which tokens are similar, and how would another tokenizer split a text?
"""

from txcls.inspection import (
    ablation,
    attention,
    attribution,
    circuit,
    counterfactuals,
    heads,
    language_model,
    lens,
    parameters,
    patching,
    positions,
    steps,
    tracing,
    training_film,
    vocabulary,
)

__all__ = [
    "ablation", "attention", "attribution", "circuit", "counterfactuals", "heads", "language_model", "lens",
    "parameters", "patching", "positions", "steps", "tracing", "training_film", "vocabulary",
]  # fmt: skip
