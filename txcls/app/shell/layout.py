"""The frame of every page: heading, checkpoint picker, text box with examples, and the links at the end."""

import html
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from txcls.app.components.widgets import save_menu, submit_while_typing
from txcls.app.lessons import panel
from txcls.app.menu import PAGES, PageInfo
from txcls.app.shell import checkpoints, lecture, view_state
from txcls.app.shell.cache import Source
from txcls.app.shell.limits import BusyError
from txcls.app.shell.markdown import escape
from txcls.checkpoint.folders import checkpoint_root
from txcls.checkpoint.listing import Summary
from txcls.data.datasets import examples_for
from txcls.errors import TxclsError
from txcls.figures import visible
from txcls.lessons.page_address import View

ICON = str(Path(__file__).parent / "icon.png")
"""The browser tab's icon: a local file, because Streamlit fetches named icons from the network."""

STYLE_SHEET = Path(__file__).parent / "style.css"
TEXT_BOX = view_state.TEXT_BOX


@dataclass(frozen=True)
class PlainPage:
    """An opened page, and the view that it shows."""

    info: PageInfo
    view: View

    @property
    def has_text(self) -> bool:
        """Whether the box contains more than whitespace."""
        return bool(self.view.text.strip())


@dataclass(frozen=True)
class Page(PlainPage):
    """An opened page with a classifier.

    Attributes:
        source: the classifier's cache key.
        facts, answer, unknown: placeholders for the line about the classifier, for its prediction, and for words that
            are not in its vocabulary.
    """

    source: Source
    facts: DeltaGenerator
    answer: DeltaGenerator
    unknown: DeltaGenerator


def open_page(
    info: PageInfo,
    *,
    examples: Literal["buttons", "menu"] = "menu",
    compare: bool = False,
    has_box: bool = True,
    questions: Mapping[str, str] | None = None,
    supports: Callable[[Summary], float] = lambda checkpoint: True,
    why_not: str = "",
    first_text: Callable[[str], str] | None = None,
    prefers: Sequence[str] = (),
) -> Page:
    """Draw the heading, the checkpoint picker, the text box and the examples; without a checkpoint, end the run.

    Args:
        compare: whether there is a second checkpoint picker.
        has_box: whether there is a text box; without it, the page only carries the text to the next page.
        questions: headings, keyed by data set; the default is the page's question.
        supports: returns how much the page can show for a checkpoint; if 0, it shows the one with the most instead.
        why_not: the reason for 0, which completes a sentence that begins with the checkpoint's name.
        first_text: returns a checkpoint's text for visitors who came without one; the default is its first example.
        prefers: the checkpoints offered first to visitors who came without one.
    """
    names = checkpoints.names()
    is_named, is_first_page = "checkpoint" in st.query_params, "_view" not in st.session_state
    view, text_box, pickers = _begin(info, (*prefers, *names), questions or {}, first_text)
    support = {name: supports(checkpoints.summary(name)) for name in names}
    if not support.get(view.checkpoint, 1) and any(support.values()):
        best = max(support, key=support.__getitem__)
        before = view_state.shown_view()
        change_checkpoint(best, text_box, keeps_text=False)
        if is_named or view.checkpoint != names[0]:  # nobody chose the first
            shown, other = map(checkpoints.title, (view.checkpoint, best))
            view_state.add_note(f"“{shown}” {why_not}, so this page shows “{other}” instead.")
        if not is_first_page:
            view_state.keep_own_view(info.name, before)
        view_state.follow_url()
        view = view_state.shown_view()
    if not names:
        _list_unreadable()
        st.error("There is no trained checkpoint yet. Train one with `python -m txcls train sample`, then reload.")
        st.stop()
    if len(names) > 1 and not lecture.is_on():
        picker(
            pickers,
            "checkpoint",
            names,
            view.checkpoint,
            on_change=lambda: change_checkpoint(str(st.session_state["checkpoint_box"]), text_box),
        )
    try:
        source = checkpoints.source(view.checkpoint)
    except TxclsError as error:
        stop_with(error)
    if has_box:
        others = [other for other in names if other != view.checkpoint] if compare else []
        facts, answer, unknown = _draw_text_box(info, view, text_box, examples=examples, others=others)
    else:
        if lecture.is_on():
            question = html.escape((questions or {}).get(checkpoints.summary(view.checkpoint).dataset, info.question))
            model = html.escape(checkpoints.title(view.checkpoint))
            st.container(key="lecture_strip", horizontal=True).html(
                f'<div class="txcls-strip"><b>{question}</b> {model}</div>'
            )
        facts, answer, unknown = st.empty(), st.empty(), st.empty()
        _show_notes(info, view)
    if not checkpoints.is_loaded(source) and not lecture.is_on():
        facts.html(facts_html(f"<b>{html.escape(checkpoints.title(view.checkpoint))}</b> · loading …"))
    return Page(info, view, source, facts, answer, unknown)


def open_language_page(info: PageInfo, *, dataset: str) -> tuple[PlainPage, DeltaGenerator]:
    """Draw the heading, the text box and examples for `dataset`; return the page and a placeholder for its controls."""
    view, text_box, _ = _begin(info, checkpoints.names())
    _, controls, _ = _draw_text_box(info, view, text_box, dataset=dataset)
    return PlainPage(info, view), controls


def open_plain_page(info: PageInfo) -> PlainPage:
    """Draw the heading of a page without text box and model; the view is carried to the next page."""
    view, _, _ = _begin(info, checkpoints.names())
    _show_notes(info, view)
    return PlainPage(info, view)


def _begin(
    info: PageInfo,
    names: Sequence[str],
    questions: Mapping[str, str] | None = None,
    first_text: Callable[[str], str] | None = None,
) -> tuple[View, str, DeltaGenerator]:
    """Draw the heading; return the view, the key of the page's text box, and the container for pickers."""
    st.html(STYLE_SHEET)
    view_state.return_to_own_view(info.name)
    text_box = f"{TEXT_BOX}_{info.name}"  # a separate key per page: Streamlit deletes a box when its page is left
    view = view_state.current_view(names, text_box=text_box, first_text=first_text or first_example)
    question = (questions or {}).get(checkpoints.summary(view.checkpoint).dataset, info.question)
    lecture.begin(info)
    panel.draw()
    pickers = st.container()
    if not lecture.is_on():
        with pickers.container(key="heading", horizontal=True, vertical_alignment="center", gap="small"):
            st.html(f'<div class="txcls-title"><h1>{info.title}</h1><p>{html.escape(question)}</p></div>')
            pickers = st.container(key="pickers", width="content")
            with st.container(key="page_tools", horizontal=True, gap="small", width="content"):
                view_state.share_view(view)
                save_menu()
                lecture.start_button()
    if panel.covers(view):
        view_state.write_to_url(view)
        lecture.end()
        st.session_state.pop(text_box, None)  # otherwise the browser would show the old text when the box is drawn
        st.stop()
    return view, text_box, pickers


def first_example(name: str) -> str:
    """The first example text of a checkpoint."""
    return checkpoints.examples(name)[0].text


def change_checkpoint(name: str, text_box: str, *, keeps_text: bool = True) -> None:
    """Change to a checkpoint and, if the text is an example, to the new one's first example; for callbacks.

    Without `keeps_text`, a text that the visitor wrote is replaced too.
    """
    view = view_state.shown_view()
    before, now = (checkpoints.examples(checkpoint) for checkpoint in (view.checkpoint, name))
    view_state.forget_own_view()
    view_state.change_view(checkpoint=name)
    if before != now and (not keeps_text or view.text in {example.text for example in before}):
        view_state.put_text(now[0].text, text_box)


def picker(
    container: DeltaGenerator,
    field: str,
    names: Sequence[str],
    chosen: str | None,
    *,
    placeholder: str | None = None,
    on_change: Callable[[], None] | None = None,
) -> None:
    """Draw a select box for a checkpoint, bound to a field of the view; with a placeholder it may be empty."""
    key = f"{field}_box"
    st.session_state[key] = chosen
    container.selectbox(
        placeholder or "Checkpoint",
        names,
        index=None if placeholder else 0,
        key=key,
        format_func=checkpoints.title,
        on_change=on_change or view_state.store_value_of(field, key),
        placeholder=placeholder,
        label_visibility="collapsed",
        width="stretch",
    )


def _draw_text_box(
    info: PageInfo,
    view: View,
    text_box: str,
    *,
    dataset: str | None = None,
    examples: Literal["buttons", "menu"] = "menu",
    others: Sequence[str] = (),
) -> tuple[DeltaGenerator, DeltaGenerator, DeltaGenerator]:
    """Draw the text box, the examples for a data set (by default the checkpoint's), and the notices.

    In lecture mode the box is in a strip that ends with the prediction, and there are no examples. Returns placeholders
    for the line about the classifier, for its prediction, and for what is below it.
    """
    strip = st.container(key="lecture_strip" if lecture.is_on() else "text_row", horizontal=True)
    strip.text_area(
        "Text",
        # If the browser draws the box only after a second run, only the default value sets its text.
        value=st.session_state[text_box],
        key=text_box,
        height=74,
        placeholder="Type or paste a text here …",
        on_change=view_state.store_value_of("text", text_box),
        label_visibility="collapsed",
    )
    if lecture.is_on():
        answer, below = strip.empty(), st.empty()
        _show_notes(info, view)
        return st.empty(), answer, below
    trained_on = checkpoints.summary(view.checkpoint).dataset
    dataset = trained_on if dataset is None else dataset
    offered = (checkpoints.examples(view.checkpoint) if trained_on == dataset else ()) or examples_for(dataset)
    beside = strip.container(key="beside_text", gap="xsmall")
    row = st.container(key=f"examples_as_{examples}", horizontal=True, vertical_alignment="center", gap="small")
    if examples == "buttons":
        for example in offered:
            row.button(
                example.title,
                key=f"example_{example.title}",
                on_click=view_state.put_text,
                args=(example.text, text_box),
            )
    else:
        texts = {example.title: example.text for example in offered}
        beside.menu_button(
            "Try another text",
            list(texts),
            key="examples",
            on_click=lambda: view_state.put_text(texts[st.session_state["examples"]], text_box),
            width="stretch",
        )
    if others:
        picker(beside, "versus", others, view.versus or None, placeholder="Compare with …")
    answer = row.empty()
    facts = (beside if examples == "buttons" else row).empty()
    below = st.empty()
    _show_notes(info, view)
    return facts, answer, below


def _show_notes(info: PageInfo, view: View) -> None:
    """Draw notices about the link and the text, and write the view to the URL."""
    container = st.container(key="lecture_notes") if lecture.is_on() else st
    for note in view_state.notes_on(view, info.name):
        container.warning(escape(note))
    view_state.write_to_url(view)


def close_page(page: PlainPage, *, step: tuple[int, int] | None = None) -> None:
    """Draw the end of a page: links to the pages before and after it, and components for typing and for the keyboard.

    `step` is the step that the page shows and the number of steps (see `lecture.end`).
    """
    index = PAGES.index(page.info)
    with st.container(horizontal=True, horizontal_alignment="distribute", key="page_links"):
        if index > 0:
            draw_link(page, PAGES[index - 1], f"← {PAGES[index - 1].question}")
        if index + 1 < len(PAGES):
            draw_link(page, PAGES[index + 1], f"{PAGES[index + 1].question} →")
    _list_unreadable()
    submit_while_typing(TEXT_BOX, text=page.view.text, follows=lecture.is_on())
    panel.draw_answer()
    layers, classifiers = None, {}
    if isinstance(page, Page):
        classifiers = {name: checkpoints.title(name) for name in checkpoints.names()}
        if checkpoints.is_loaded(page.source):
            layers = checkpoints.classifier(page.source).checkpoint.config.model.n_layers
    text_box = f"{TEXT_BOX}_{page.info.name}"
    lecture.end(
        layers=layers,
        step=step,
        classifiers=classifiers,
        on_classifier=lambda name: change_checkpoint(name, text_box),
    )


def _list_unreadable() -> None:
    """Show one line of text for each checkpoint that cannot be read."""
    for name, reason in checkpoints.listing().left_out.items():
        st.caption(
            f"Checkpoint **{escape(visible(name))}** cannot be read and is not listed. {escape(visible(reason))}"
        )


def show_busy(busy: BusyError) -> None:
    """Draw the end of a page whose computation was refused because the queue was full."""
    st.warning(str(busy))
    st.button("Try again", key="try_again")
    submit_while_typing(TEXT_BOX, text=view_state.shown_view().text)
    lecture.end(is_broken=True)


def draw_link(page: PlainPage, other: PageInfo, label: str) -> None:
    """Draw a link to another page with the same view."""
    st.page_link(other.path, label=label, query_params=view_state.link_params(view_state.own_view(page.view)))


def draw_answer(
    page: PlainPage,
    sentence: str,
    *,
    about: str | None = None,
    place: DeltaGenerator | None = None,
    question: str | None = None,
) -> None:
    """Draw the answer to the page's question in large type, on a slide after the question; `about` is shown on demand.

    `place` is a container with the key "lead", which was drawn earlier; `question` replaces the page's.
    """
    asked = page.info.question if question is None else question
    shown = f"**{asked}** " if asked and lecture.is_on() else ""
    (place or st.container(key="lead")).markdown(shown + sentence, help=about)


def facts_html(line: str) -> str:
    """The line about a checkpoint, as HTML."""
    return f'<div class="txcls-facts">{line}</div>'


def stop_with(error: TxclsError) -> NoReturn:
    """Show an error message, without the paths of the server's folders, and end the run."""
    st.error(escape(str(error).replace(f"{checkpoint_root().absolute()}{os.sep}", "")))
    lecture.end(is_broken=True)
    st.stop()


AnyPage = TypeVar("AnyPage", bound=PlainPage)


def fit_view(page: AnyPage, **limit: int) -> AnyPage:
    """The page with fields of its view reduced to at most a `limit`, such as `layer=1`, with a warning for each."""
    view = page.view
    for field, last in limit.items():
        value = getattr(view, field)
        if value > last:
            st.warning(f"This model has no {field} {value + 1}; showing {field} {last + 1}.")
            change: dict[str, Any] = {field: last}
            view = replace(view, **change)
    if view is not page.view:
        view_state.write_to_url(view)
    return replace(page, view=view)
