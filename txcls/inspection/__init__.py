"""Looking inside a model: one module per question; results are plain arrays.

ablation              What does each part of the model contribute?
attention             What do attention patterns say?
attribution           Which words led to the answer?
circuit               Which attention rows decide?
counterfactuals       What if the text were different?
induction             Does a language model continue repeated tokens?
language_model        What does a language model predict?
lens                  Where does the decision form?
parameters            How many parameters does each part have?
patching              Which part, at which token, carries the difference between two texts?
positions             How do positions enter, and does word order matter?
principal_components  Which tokens and texts lie near each other?
random_texts          Random texts of a data set, the same ones each time.
stories               What do heads attend to, and is that what decides?
tracing               What happens inside the model for one text?
training_film         How did the model learn to answer this text?
vocabulary            Which tokens are there?
walk                  How does the forward pass compute its answer, step by step?
"""

from txcls.inspection import (
    ablation,
    attention,
    attribution,
    circuit,
    counterfactuals,
    induction,
    language_model,
    lens,
    parameters,
    patching,
    positions,
    principal_components,
    random_texts,
    stories,
    tracing,
    training_film,
    vocabulary,
    walk,
)

__all__ = [
    "ablation", "attention", "attribution", "circuit", "counterfactuals", "induction", "language_model", "lens",
    "parameters", "patching", "positions", "principal_components", "random_texts", "stories", "tracing",
    "training_film", "vocabulary", "walk",
]  # fmt: skip
