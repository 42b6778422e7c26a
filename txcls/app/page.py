"""What every page starts with: its heading, the checkpoint with its figures, and the one text of the session."""

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from txcls.app import loaders, state
from txcls.app.browser import answer_while_typing, save_buttons
from txcls.app.examples import examples_for
from txcls.errors import TxclsError
from txcls.figures import percent, visible

if TYPE_CHECKING:
    from txcls.predict import Classifier, Prediction

TEXT_BOX = "text_box"
CLASSIFY, TOKENS, ATTENTION, POSITIONS, SWITCHBOARD, EXPLANATION, LENS = (
    f"txcls/app/{name}.py"
    for name in ("classify", "tokens_page", "attention", "positions", "switchboard", "explanation", "lens")
)

STYLE = """
<style>
.txcls-facts {font-size: 0.95rem; opacity: 0.85; line-height: 1.5; min-height: 1.5em;}
.txcls-facts b {font-weight: 650;}
.txcls-answer {font-size: 1.9rem; font-weight: 700; line-height: 1.25; min-height: 2.4rem;}
.txcls-answer {overflow-wrap: anywhere;}
.txcls-outside {border-left: 6px solid #E69F00; padding-left: 0.6rem;}
.txcls-answer small {font-weight: 400; font-size: 0.62em; opacity: 0.85; padding-left: 0.4em;}
.txcls-strip {font-size: 1.15rem; line-height: 2.3rem; min-height: 2.3rem;}
[class*="st-key-text_box"] textarea {font-size: 1.15rem; line-height: 1.5;}
.stPlotlyChart :is(.xtick, .x2tick, .ytick, .cbaxis, .g-xtitle, .g-ytitle, .legend, .bars, .annotation) text,
.stPlotlyChart .colorbar text {fill: currentColor !important; opacity: 0.9;}
</style>
"""


@dataclass(frozen=True, slots=True)
class Page:
    """The view to draw, the checkpoint's cache key, and the places that wait for it: its line, and its answer."""

    view: state.View
    source: loaders.Source
    facts: DeltaGenerator
    answer: DeltaGenerator

    @property
    def has_text(self) -> bool:
        """Whether there is anything but white space in the box."""
        return bool(self.view.text.strip())


def open_page(
    name: str,
    heading: str,
    *,
    box_height: int = 84,
    examples: Literal["buttons", "menu"] = "menu",
    compare: bool = False,
) -> Page:
    """Draw the heading, the checkpoint's line, the text box and the examples; `compare` adds a second picker.

    Where there is no checkpoint, it says how to make one and ends the run.
    """
    st.html(STYLE)
    names = loaders.names()
    text_box = f"{TEXT_BOX}_{name}"  # a key of its own per page: Streamlit drops a box when its page is left
    view = state.current_view(names, text_box=text_box)
    st.title(heading, anchor=False)
    if not names:
        st.error(
            "There is no trained checkpoint yet. Train one with `python -m txcls train sample` (a few minutes) or "
            "`python -m txcls train ag_news`, then reload this page."
        )
        st.stop()
    line = st.container(horizontal=True, vertical_alignment="center", gap="medium")
    if len(names) > 1:
        st.session_state["checkpoint_box"] = view.checkpoint
        line.selectbox(
            "Checkpoint",
            names,
            key="checkpoint_box",
            format_func=_describe,
            on_change=_follow("checkpoint", "checkpoint_box"),
            label_visibility="collapsed",
            width=460,
        )
        if compare:
            st.session_state["versus_box"] = view.versus or None
            line.selectbox(
                "Compare with",
                [other for other in names if other != view.checkpoint],
                index=None,
                key="versus_box",
                format_func=_describe,
                on_change=_follow("versus", "versus_box"),
                placeholder="Compare with another checkpoint",
                label_visibility="collapsed",
                width=460,
            )
    try:
        source = loaders.source(view.checkpoint)
    except TxclsError as error:
        stop_with(error)
    facts = line.empty()
    if not loaders.is_loaded(source):
        facts.html(_facts_html(f"<b>{html.escape(view.checkpoint)}</b> · loading …"))
    st.text_area(
        "Text to classify",
        key=text_box,
        height=box_height,
        placeholder="Type or paste a text here …",
        on_change=_follow("text", text_box),
        label_visibility="collapsed",
    )
    row = st.container(
        horizontal=True, vertical_alignment="center", gap="xsmall" if examples == "buttons" else "medium"
    )
    offered = examples_for(loaders.summary(view.checkpoint).dataset)
    if examples == "buttons":
        for example in offered:
            row.button(
                example.title, key=f"example_{example.title}", on_click=_choose_example, args=(example.text, text_box)
            )
    else:
        texts = {example.title: example.text for example in offered}
        row.menu_button(
            "Try another text", list(texts), key="examples", on_click=_choose_from_menu, args=(texts, text_box)
        )
    answer = row.empty()
    for note in state.take_notes():
        st.warning(plain(note))
    state.publish(view)
    return Page(view, source, facts, answer)


def close_page(page: Page, links: Mapping[str, str]) -> None:
    """Draw the end of a page: links to others (path to label; phones hide the menu), and what listens to typing."""
    with st.container(horizontal=True, gap="medium"):
        for path, label in links.items():
            link_to(page, path, label)
    answer_while_typing(TEXT_BOX)


def link_to(page: Page, path: str, label: str) -> None:
    """A link to another page with the same view."""
    st.page_link(path, label=label, query_params=state.params_from_view(page.view))


class Waiting:
    """Holds the room of what is to come while the checkpoint is loaded for the first time, until `over`."""

    def __init__(self, page: Page, *, height: int) -> None:
        self._slot = st.empty()
        if not loaders.is_loaded(page.source):
            self._slot.skeleton(height)

    def over(self) -> None:
        """Free the room."""
        self._slot.empty()


def load(page: Page) -> "Classifier":
    """The page's classifier, with the line about it filled in; where it cannot be loaded, a message ends the run."""
    try:
        classifier = loaders.classifier(page.source)
    except TxclsError as error:
        stop_with(error)
    page.facts.html(_facts_html(facts(classifier)))
    return classifier


def facts(classifier: "Classifier") -> str:
    """One line of HTML: name, title (unless the picker beside it says it), test accuracy, parameters."""
    checkpoint = classifier.checkpoint
    parts = [f"<b>{html.escape(classifier.name)}</b>"]
    if checkpoint.config.title and len(loaders.names()) < 2:
        parts.append(html.escape(checkpoint.config.title))
    for split in ("test", "validation"):
        if split in checkpoint.metrics:
            figures = checkpoint.metrics[split]
            parts.append(f"<b>{figures['accuracy']:.1%}</b> right on {figures['n']:,} {split} texts".replace("%", " %"))
            break
    parts.append(f"<b>{classifier.n_parameters:,}</b> parameters")
    return " · ".join(parts)


def _facts_html(line: str) -> str:
    return f'<div class="txcls-facts">{line}</div>'


def answer_html(prediction: "Prediction", *, large: bool = False) -> str:
    """The winning class and its probability, in words; where the text seems to be of no class, that first."""
    best = prediction.scores[0]
    label = html.escape(visible(best.label))
    outside = prediction.out_of_scope is True
    if large:
        words = (
            f"? Probably none of these<small>nearest: {label}, {percent(best.probability)}</small>"
            if outside
            else f"{label}<small>{percent(best.probability)}</small>"
        )
        return f'<div class="txcls-answer{" txcls-outside" * outside}" role="status">{words}</div>'
    words = (
        f"<b>probably none of these</b> (nearest: {label}, {percent(best.probability)})"
        if outside
        else f"<b>{label}</b>, {percent(best.probability)}"
    )
    return f'<div class="txcls-strip" role="status">Prediction: {words}</div>'


def has_long_names(classes: Sequence[str]) -> bool:
    """Whether a checkpoint's classes have names that belong above their bars: on a phone they leave no room beside."""
    return max(map(len, classes), default=0) > 12


def invite(what: str) -> None:
    """A friendly line where there is no text to work on."""
    st.info(f"Type a few words above, or pick one of the texts: {what}")


def nothing_to_read() -> None:
    """A friendly line where the text holds no token."""
    st.info("After cleaning, this text holds nothing that the model reads. A few words are enough.")


def stop_with(error: TxclsError) -> "Any":
    """Show an error as a message and end the run."""
    st.error(plain(str(error)))
    st.stop()


def plain(text: str) -> str:
    """Text as Markdown that shows it unchanged."""
    return "".join(f"\\{character}" if character in "\\`*_{}[]()<>#+-.!|~$:&" else character for character in text)


def _follow(field: str, key: str) -> Callable[[], None]:
    def copy() -> None:
        state.change_view(**{field: st.session_state[key] or ""})

    return copy


def _choose_from_menu(texts: Mapping[str, str], text_box: str) -> None:
    _choose_example(texts[st.session_state["examples"]], text_box)


def _describe(name: str) -> str:
    """A checkpoint in the picker: its name, and what it is for."""
    known = loaders.summary(name)
    parts = [name, known.title, f"{known.n_classes} classes" if known.n_classes else ""]
    if known.accuracy is not None:
        parts.append(f"{known.accuracy:.1%}".replace("%", " %"))
    return " · ".join(filter(None, parts))


def _choose_example(text: str, text_box: str) -> None:
    state.change_view(text=text)
    st.session_state[text_box] = text


def fit_view(page: Page, **most: int) -> Page:
    """The page with numbers of its view cut to what the checkpoint has, and a note on each that was out of range.

    Args:
        most: the largest value per field, for example `layer=1` for two layers.
    """
    view = page.view
    for field, largest in most.items():
        value = getattr(view, field)
        if value > largest:
            st.warning(
                f"There is no {field} {value + 1} in {plain(view.checkpoint)}; this is {field} {largest + 1}, its last."
            )
            change: dict[str, Any] = {field: largest}
            view = replace(view, **change)
    if view is not page.view:
        state.publish(view)
    return replace(page, view=view)


MOST_TOKENS = 64
"""Tokens drawn side by side; of longer texts a window is shown, chosen with a slider."""


def window(n_tokens: int, *, key: str) -> slice:
    """The tokens to draw: all, or of more than `MOST_TOKENS` a window of so many, with a slider that moves it."""
    if n_tokens <= MOST_TOKENS:
        return slice(0, n_tokens)
    first = st.slider(
        f"First token drawn: {MOST_TOKENS} of this text's {n_tokens} are shown at a time",
        1,
        n_tokens - MOST_TOKENS + 1,
        key=f"{key}_{n_tokens}",
    )
    return slice(first - 1, first - 1 + MOST_TOKENS)


def chart(
    figure: go.Figure,
    *,
    key: str,
    alt: str,
    file_name: str,
    on_select: Callable[[], None] | Literal["ignore"] = "ignore",
) -> None:
    """A figure with its description for screen readers and its buttons to save it as PNG and SVG."""
    st.plotly_chart(
        figure,
        key=key,
        on_select=on_select,
        selection_mode="points",
        alt=alt,
        config={
            "displaylogo": False,
            "scrollZoom": False,
            "doubleClick": False if on_select != "ignore" else "reset",
            "modeBarButtonsToRemove": [
                "select2d",
                "lasso2d",
                "zoom2d",
                "pan2d",
                "autoScale2d",
                "zoomIn2d",
                "zoomOut2d",
            ],
            "toImageButtonOptions": {"format": "png", "filename": file_name, "scale": 2},
        },
    )
    save_buttons(key, file_name=file_name)
