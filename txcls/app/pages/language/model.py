"""The language model of a part of the page, and its ranked tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from txcls.app.shell import checkpoints, layout, lecture, model_parts
from txcls.app.shell.cache import Source
from txcls.app.shell.charts import chart
from txcls.app.shell.markdown import plain
from txcls.errors import TxclsError
from txcls.figures import token_bars, visible
from txcls.inference.generation import TextModel
from txcls.inspection.language_model import RankedTokens
from txcls.text.formatting import bounded_percentage, percentage
from txcls.text.tokens import Encoding, Token

PRESETS: dict[checkpoints.Objective, tuple[str, str]] = {
    "masked": ("encoder", "fills in blanks"),
    "causal": ("lm", "continues texts"),
}
"""For each objective, the preset to train with, and what such a model does."""


@dataclass(frozen=True)
class ChosenModel:
    """A loaded language model and its cache key."""

    source: Source
    model: TextModel
    names: tuple[str, ...]
    objective: checkpoints.Objective

    def name_of(self, token: Token) -> str:
        """A token in printable form; an unknown token as typed."""
        return visible(token.text) if token.is_unknown else self.name(token.id)

    def name(self, index: int) -> str:
        """The token with this id in printable form; on slides, which lack the room, without the sign of a space."""
        name = self.names[index]
        return visible((name.removeprefix("␣") or name) if lecture.is_on() else name)


def choose_model(page: layout.PlainPage, objective: checkpoints.Objective, controls: Any) -> ChosenModel | None:
    """Load the selected language model, with a picker if there are several; without one, explain how to train it."""
    names, requested = checkpoints.language_names(objective), getattr(page.view, objective)
    if not names:
        preset, ability = PRESETS[objective]
        st.info(
            f"There is no language model that {ability} yet. Train one with `python -m txcls pretrain {preset}`, which "
            "takes a while on a CPU (`--max-steps 500` trains a rough one in minutes), then reload this page."
        )
        return None
    name = requested if requested in names else names[0]
    if requested and requested != name:
        st.warning(plain(f"There is no language model “{requested[:60]}” here that {PRESETS[objective][1]}."))
    if len(names) > 1 and not lecture.is_on():
        layout.picker(controls, objective, names, name)
    placeholder = st.empty()
    try:
        source = checkpoints.source(name)
        if not checkpoints.is_loaded(source):
            placeholder.skeleton(480)
        language = checkpoints.language(source, objective)
    except TxclsError as error:
        placeholder.empty()
        st.error(plain(str(error)))
        return None
    placeholder.empty()
    return ChosenModel(source, language.model, language.names, objective)


def draw_facts(model: TextModel) -> None:
    """Draw the line about a model, and its parameters on demand."""
    kind = "" if model.model.config.causal else "masked-token "
    perplexity = (
        "" if model.perplexity is None else f" · {kind}perplexity **{model.perplexity:,.1f}** on validation texts"
    )
    st.caption(f"**{plain(model.title or model.name)}**{perplexity} · vocabulary of **{len(model.tokens):,}** tokens")
    model_parts.parameters(model.model, model.name)


def warn_if_cut(encoding: Encoding, chosen: ChosenModel, *, more: str = "") -> None:
    """Draw a note, with `more` at its end, if the text is too long for the model."""
    if encoding.truncated_at is not None:
        st.caption(
            f"✂ This text is too long for **{plain(chosen.model.name)}**: it is cut after "
            f"{len(encoding.tokens):,} tokens.{more}"
        )


def expected_tokens(ranked: RankedTokens, chosen: ChosenModel, name: str | None = None, *, is_unknown: bool) -> str:
    """Which tokens are the most probable, and the rank of the one in the text, if any, whose name is given."""
    first = ", then ".join(
        f"**{plain(chosen.name(index))}** ({bounded_percentage(probability)})"
        for index, probability in zip(ranked.ids[:2], ranked.probabilities, strict=False)
    )
    sentence = f"The model **{plain(chosen.model.name)}** expects {first}."
    if name is None:
        return sentence
    shown = plain(name[:80])
    if is_unknown or ranked.true_rank is None or ranked.true_probability is None:
        return f"{sentence} **{shown}** was in the text; the model cannot predict it: it is not in the vocabulary."
    mark = "◀ " if ranked.true_id in ranked.ids else ""
    return (
        f"{sentence} {mark}**{shown}** was in the text: rank **{ranked.true_rank:,}** of {len(chosen.names):,} "
        f"(**{bounded_percentage(ranked.true_probability)}**)."
    )


def draw_ranking(
    ranked: RankedTokens,
    chosen: ChosenModel,
    *,
    key: str,
    filtered: Sequence[float] | None = None,
    **options: Any,
) -> None:
    """Draw the most probable tokens as bars; `filtered` are their probabilities after filtering."""
    names = [chosen.name(index) for index in ranked.ids]
    probabilities = ", ".join(
        f"{name[:20]} {percentage(p)}" for name, p in zip(names, ranked.probabilities, strict=True)
    )
    chart(
        token_bars(
            names,
            ranked.probabilities,
            other=(ranked.n_others, ranked.other),
            filtered=filtered,
            actual=ranked.ids.index(ranked.true_id) if ranked.true_id in ranked.ids else None,
        ),
        key=key,
        alt=f"Bar chart of the most probable tokens: {probabilities}; all others {percentage(ranked.other)}",
        file_prefix=chosen.source.name,
        **options,
    )
