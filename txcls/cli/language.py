"""`txcls generate`: continue a text with a causal language model."""

from typing import Annotated

import typer

from txcls.cli.options import JsonOption
from txcls.cli.output import print_json
from txcls.errors import DataError
from txcls.inference.generation import Sampling, TextModel
from txcls.inference.generation import generate as generate_tokens


def generate(
    checkpoint: Annotated[
        str, typer.Argument(metavar="CHECKPOINT", help="A causal language model, or a folder with a published GPT-2.")
    ],
    prompt: Annotated[str, typer.Argument(metavar="PROMPT", help="The text to continue.")],
    tokens: Annotated[int, typer.Option("--tokens", metavar="N", min=1, help="Maximum number of tokens to add.")] = 40,
    temperature: Annotated[
        float, typer.Option("--temperature", min=0.0, help="With 0, always take the most probable token.")
    ] = 1.0,
    top_k: Annotated[
        int | None, typer.Option("--top-k", metavar="K", min=1, help="Sample from the K most probable tokens.")
    ] = None,
    top_p: Annotated[
        float, typer.Option("--top-p", help="Sample from the most probable tokens that together have this probability.")
    ] = 1.0,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="The same seed gives the same text.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Continue a text with a causal language model, token by token."""
    text_model = TextModel.load(checkpoint)
    try:
        sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
        ids = text_model.encode(prompt)
        steps = list(generate_tokens(text_model.model, ids, n=tokens, sampling=sampling))
    except ValueError as error:
        raise DataError(str(error)) from None
    continuation = text_model.appended_text(ids, [step.id for step in steps])
    if as_json:
        probabilities = [step.probability for step in steps]
        print_json({"prompt": prompt, "continuation": continuation, "probabilities": probabilities})
    else:
        print(prompt + continuation)
