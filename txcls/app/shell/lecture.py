"""Lecture mode: pages as slides that fill the window, in large type; PageDown goes to the next slide or page.

`slide` marks a part of a page as a slide; outside lecture mode it has no effect. The browser shows one slide at a time
and moves between them without the server (`components/lecture.js`); after the last slide it requests the next page.

In a lesson, PageDown goes to the next step. In lecture mode, a step has three slides: narration and question, the
slide of its page that it is about (`slide` in its state, or else the first), and this slide with the answer below it.
Outside lecture mode, the page scrolls to that part (`.txcls-part`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from txcls.app import menu
from txcls.app.classroom import stage
from txcls.app.components.widgets import IN_SMALL_WINDOW, LECTURE_STYLE_SHEET, bar_and_keys
from txcls.app.lessons import lesson
from txcls.app.shell import checkpoints, view_state
from txcls.figures import MAX_NAMED
from txcls.lessons.format import LessonStep
from txcls.lessons.markup import words_in
from txcls.lessons.page_address import SLIDE

MIN_FONT_PX, MIN_FONT_PX_SMALL_WINDOW = 26, 20
"""Minimum font size in a chart, in a large window and in a small one (`components/lecture.js`)."""
MAX_ROW_NAMES = 16
"""Maximum number of rows of a chart that all have a name on a slide; if there are more, every second row has one."""
_SLIDES, _PAGE, _PARTS = "_slides", "_slides_of", "_slides_parts"
_GO_TO, _CLASSIFIER = "_go_to", "classifier:"

WORDS, VECTORS, ATTENTION, FEED_FORWARD, POOLING, CLASSES = "words", "vectors", "attn", "ff", "pool", "classes"
"""The parts of the architecture on the map, from text to prediction; `attn.0` and `ff.0` are those of layer 0."""
STEPS = {
    **dict.fromkeys(("text", "tokens", "ids"), WORDS),
    **dict.fromkeys(("embeddings", "positions", "sum"), VECTORS),
    **dict.fromkeys(("norm_ff", "expand", "contract", "add_ff"), FEED_FORWARD),
    **dict.fromkeys(("norm", "pool_scores", "pool_weights", "pooled"), POOLING),
    **dict.fromkeys(("logits", "class_softmax", "calibrated", "lens"), CLASSES),
}
"""The part to which each step of the forward pass belongs; steps not listed belong to attention."""
PARTS_OF_PAGES = {
    menu.TOKENS.name: WORDS,
    menu.POSITIONS.name: VECTORS,
    menu.ATTENTION.name: ATTENTION,
    menu.HEADS.name: ATTENTION,
    menu.CLASSIFY.name: CLASSES,
}
"""The part that each page is about; pages not listed are about none or all."""
FIRST_STEPS = {
    WORDS: "tokens",
    VECTORS: "embeddings",
    ATTENTION: "softmax",
    FEED_FORWARD: "expand",
    POOLING: "pooled",
    CLASSES: "class_softmax",
}
"""For each part of the map, the step that a click on it opens."""


def has_small_window() -> bool:
    """Whether the browser has said that its window is small."""
    return bool(st.session_state.get(IN_SMALL_WINDOW, False))


def is_on() -> bool:
    """Whether this session is in lecture mode."""
    return view_state.shown_view().mode == "lecture"


def begin(info: menu.PageInfo) -> None:
    """Begin a page without slides, or open the page that was requested by going past the end of another."""
    st.session_state[_SLIDES], st.session_state[_PAGE] = [], info
    st.session_state[_PARTS] = 0
    target = st.session_state.pop(_GO_TO, None)
    if target is not None:
        page, params = target
        st.switch_page(page.path, query_params=params)
    if is_on():
        st.html(LECTURE_STYLE_SHEET)


@contextmanager
def slide(*shows: str, own_keys: bool = False) -> Iterator[None]:
    """Make everything drawn in this block a slide, if lecture mode is on.

    Args:
        shows: the parts of the architecture that the slide is about (`WORDS`, …).
        own_keys: whether the slide contains a drawing that handles PageDown and PageUp itself and is enlarged as a
            whole; these keys leave the slide only at the beginning and the end of the drawing.
    """
    if not is_on():
        _mark_part()
        yield
        return
    slides: list[dict[str, Any]] = st.session_state[_SLIDES]
    slides.append({"shows": shows, "own_keys": own_keys, "n": len(slides)})
    with st.container(key=f"slide_{len(slides) - 1}"):
        yield


@contextmanager
def lesson_slide(*, hides_answer: bool = False) -> Iterator[None]:
    """Make everything drawn in this block a slide of the lesson, before those of the page; only for lecture mode.

    `hides_answer` hides the prediction in the strip above the slide.
    """
    slides: list[dict[str, Any]] = st.session_state[_SLIDES]
    slides.append({"shows": (), "own_keys": False, "n": len(slides), "lesson": True, "hides_answer": hides_answer})
    n = len(slides) - 1
    with st.container(key=f"slide_{n}"), st.container(key=f"lesson_slide_{n}"):
        yield


def _mark_part() -> None:
    """Mark the beginning of the part of the page that the lesson's step is about; only outside lecture mode."""
    position = lesson.now()
    if position is None or st.session_state[_PAGE] is not position.page:
        return
    st.session_state[_PARTS] += 1
    if st.session_state[_PARTS] == _slide_of(position):
        st.html('<span class="txcls-part"></span>')


def _slide_of(position: lesson.LessonPosition) -> int:
    """The number, from 1, of the slide that a step is about."""
    number = str(position.step.state.get(SLIDE, 1))
    return int(number) if number.isdecimal() else 1


def _slides_of_step(position: lesson.LessonPosition) -> list[dict[str, Any]]:
    """The lesson's slide, the page's slide that the step is about, and the latter with the answer below it."""
    slides: list[dict[str, Any]] = st.session_state[_SLIDES]
    of_lesson = [slide for slide in slides if "lesson" in slide]
    of_page = [slide for slide in slides if "lesson" not in slide]
    number = _slide_of(position)
    shown = of_lesson + of_page[number - 1 : number]
    return shown if position.step.question is None else [*shown, *({**slide, "answer": True} for slide in shown[-1:])]


def _part_of_lesson_step(step: LessonStep) -> str:
    """The part of the architecture that a lesson's step is about; empty if it is about none or all."""
    is_walk = step.page == menu.STEPS.name
    part = STEPS.get(str(step.state.get("step")), ATTENTION) if is_walk else PARTS_OF_PAGES.get(step.page, "")
    layer = str(step.state.get("layer", ""))
    return f"{part}.{int(layer) - 1}" if part in (ATTENTION, FEED_FORWARD) and layer.isdecimal() else part


def step_part(name: str, layer: int | None) -> str:
    """The part of the architecture that a step of the forward pass belongs to."""
    part = STEPS.get(name, ATTENTION)
    return part if layer is None else f"{part}.{layer}"


def end(
    *,
    layers: int | None = None,
    step: tuple[int, int] | None = None,
    is_broken: bool = False,
    classifiers: Mapping[str, str] | None = None,
    on_classifier: Callable[[str], None] | None = None,
) -> None:
    """End the page: draw the component for the keys, and in lecture mode the bar with the map of the architecture.

    Args:
        layers: number of layers of the page's model; None if it shows no model or several.
        step: the step that the page shows, from 0, and the number of steps, through which the buttons `step_back` and
            `step_next` go; None for a page without steps.
        is_broken: whether the page ends with a message outside its slides.
        classifiers: the names and titles of the classifiers that the menu offers.
        on_classifier: called before the next run with the name of the selected one.
    """
    info: menu.PageInfo = st.session_state[_PAGE]
    if is_on():
        stage.draw(info.name)
    data = {
        "on": is_on(),
        "page": info.name,
        "title": info.title,
        "slides": [] if is_broken else st.session_state[_SLIDES],
        "at": step,
        "layers": layers,
        "small": has_small_window(),
        "menu": {section: [(page.name, page.title) for page in pages] for section, pages in menu.MENU.items()},
        "shared": view_state.link_and_code(view_state.shown_view()) if is_on() else None,
    }
    if (position := lesson.now()) is not None:
        steps = position.lesson.steps
        data |= {
            "menu": {position.lesson.title: [(str(at), f"{at + 1} · {step.title}") for at, step in enumerate(steps)]},
            "page": f"{info.name} {position.name} {position.index}{' open' * lesson.is_open()}",
            "slides": [] if is_broken else _slides_of_step(position),
            "at": None,
            "lesson": _lesson_data(position),
            "first": position.index == 0,
            "last": position.index == len(steps) - 1 and not lesson.is_open(),
        }
        bar_and_keys(
            data,
            on_mode=_switch,
            on_turn=lambda n: lesson.turn(n, to_last_slide=n < 0),
            on_jump=lambda index: lesson.go(int(index)),
        )
        return
    index = menu.PAGES.index(info) if info in menu.PAGES else -1
    if classifiers and on_classifier:
        data["menu"]["Classifier"] = [(f"{_CLASSIFIER}{name}", title) for name, title in classifiers.items()]
    bar_and_keys(
        {**data, "first": index <= 0, "last": index in (-1, len(menu.PAGES) - 1)},
        on_mode=_switch,
        on_turn=lambda n: _turn(_neighbouring_page(index, n), to_last_slide=n < 0),
        on_jump=partial(_jump, on_classifier=on_classifier),
    )


def _jump(target: str, *, on_classifier: Callable[[str], None] | None) -> None:
    """Change to a classifier, or open a page by name or Step by step at a part of the architecture ("attn.0")."""
    if target.startswith(_CLASSIFIER):
        if on_classifier:
            on_classifier(target.removeprefix(_CLASSIFIER))
        return
    part, _, layer = target.partition(".")
    if part in FIRST_STEPS:
        view_state.change_view(step=FIRST_STEPS[part], **({"layer": int(layer)} if layer.isdecimal() else {}))
        part = menu.STEPS.name
    _turn(next((page for pages in menu.MENU.values() for page in pages if page.name == part), None))


def _lesson_data(position: lesson.LessonPosition) -> dict[str, Any]:
    """The data of a lesson's step for the bar and the keys."""
    shown_lesson = position.lesson
    planned = shown_lesson.planned(position.index)
    words = words_in(position.language)
    return {
        "language": position.language,
        "title": shown_lesson.title,
        "step": position.step.title,
        "at": position.index,
        "of": len(shown_lesson.steps),
        "parts": [_part_of_lesson_step(step) for step in shown_lesson.steps],
        "planned": "" if planned is None else words["minutes"].format(minutes=f"{planned[0]:g}–{planned[1]:g}"),
        "far_down": _slide_of(position) > 1,
    }


def start_button() -> None:
    """Draw a button that starts lecture mode; its label names the key."""
    st.button(
        "Lecture mode · F9", key="lecture_start", on_click=_switch, help="Slides in large type; F9 starts and ends it."
    )


def _switch() -> None:
    view_state.change_view(mode="" if is_on() else "lecture")


def _neighbouring_page(index: int, offset: int) -> menu.PageInfo | None:
    """The next or previous page, if there is one; skips the training film if the checkpoint has no snapshots."""
    other = index + offset
    if 0 <= other < len(menu.PAGES) and menu.PAGES[other] is menu.FILM:
        has_snapshots = checkpoints.summary(view_state.shown_view().checkpoint).has_snapshots
        other = other if has_snapshots else other + offset
    return menu.PAGES[other] if 0 <= other < len(menu.PAGES) else None


def _turn(page: menu.PageInfo | None, *, to_last_slide: bool = False) -> None:
    """Open a page when this one is drawn next; do nothing if it is None."""
    if page is None:
        return
    params = view_state.link_params(view_state.own_view(view_state.shown_view()))
    if to_last_slide:
        params[SLIDE] = "last"
    st.session_state[_GO_TO] = (page, params)


def enlarge(figure: go.Figure) -> go.Figure:
    """The figure with fonts of at least `MIN_FONT_PX`, or `MIN_FONT_PX_SMALL_WINDOW` in a small window; the names of
    many rows are a tenth smaller."""
    return go.Figure(_enlarged(figure.to_dict()), skip_invalid=False)


def _min_font() -> int:
    return MIN_FONT_PX_SMALL_WINDOW if has_small_window() else MIN_FONT_PX


def _enlarged(drawn: dict[str, Any]) -> dict[str, Any]:
    layout = drawn["layout"]
    across = [trace["x"] for trace in drawn["data"] if isinstance(trace.get("x"), (list, tuple)) and len(trace["x"])]
    down = [tuple(trace.get("y", ())) for trace in drawn["data"] if trace["type"] == "heatmap"]
    n_rows = max((len(names) for names in down if names and isinstance(names[0], str)), default=0)
    n_names = max((len(names) for names in across if isinstance(names[0], str)), default=0)
    for name in [name for name in layout if name.startswith(("xaxis", "yaxis"))]:
        layout[name] = _with_fonts(layout[name], "tickfont")
        if n_names > MAX_NAMED:  # plotly names as many as fit
            layout[name].pop("dtick", None)
        if name.startswith("yaxis"):  # many names, or names of several lines, would overlap in large type
            layout[name].pop("dtick", None)
            if MAX_ROW_NAMES < n_rows <= MAX_NAMED:  # otherwise every second row would have no name
                layout[name]["tickfont"] = {**layout[name]["tickfont"], "size": round(0.9 * _min_font())}
            every = 2 if len(layout[name].get("ticktext", ())) > MAX_ROW_NAMES else 1
            for ticks in {"tickvals", "ticktext"} & layout[name].keys():
                layout[name][ticks] = list(layout[name][ticks])[::every]
            if "ticktext" in layout[name]:
                layout[name]["ticktext"] = [text.replace("<br>", " ") for text in layout[name]["ticktext"]]
    for name in [name for name in layout if name.startswith("coloraxis")]:
        bar = layout[name].get("colorbar", {})
        layout[name] = {**layout[name], "colorbar": {**_with_fonts(bar, "tickfont"), "thickness": 20}}
    layout["legend"] = _with_fonts(layout.get("legend", {}), "font")
    if any(note.get("xref") == "paper" and note.get("xanchor") == "right" for note in layout.get("annotations", ())):
        room = round(layout["margin"]["l"] * _min_font() / layout["font"]["size"])  # for a title of the rows
        layout["margin"] = {**layout["margin"], "l": room}
    layout["font"] = {**layout.get("font", {}), "size": _min_font()}
    layout["hoverlabel"] = {**layout.get("hoverlabel", {}), "font": {"size": _min_font()}}
    layout["annotations"] = [_with_fonts(note, "font") for note in layout.get("annotations", ())]
    bars = [trace for trace in drawn["data"] if trace["type"] == "bar" and trace.get("textposition") == "outside"]
    if margin := layout.get("margin") if bars else None:  # room for the number beside a full bar
        size = min(trace.get("textfont", {}).get("size", _min_font()) for trace in bars)
        layout["margin"] = {**margin, "r": round(margin.get("r", 0) * max(1.0, _min_font() / size))}
    for trace in drawn["data"]:
        if "colorbar" in trace:
            trace["colorbar"] = _with_fonts(trace["colorbar"], "tickfont")
        if trace["type"] == "heatmap" and "size" in trace.get("textfont", {}):  # numbers in cells, which grow too
            trace["textfont"] = {**trace["textfont"], "size": round(1.4 * trace["textfont"]["size"])}
        if trace["type"] in ("bar", "heatmap", "scatter"):
            trace["textfont"] = _large(trace.get("textfont", {}))
        if trace["type"] == "bar":
            trace["constraintext"] = "none"  # otherwise plotly shrinks text that does not fit into a bar
    return drawn


def _with_fonts(settings: dict[str, Any], font: str) -> dict[str, Any]:
    """Settings of an axis, a colour bar, a legend or an annotation, with large type for the font and any title."""
    settings = {**settings, font: _large(settings.get(font, {}))}
    if title := settings.get("title"):
        title = {"text": title} if isinstance(title, str) else title
        settings["title"] = {**title, "font": _large(title.get("font", {}))}
    return settings


def _large(font: dict[str, Any]) -> dict[str, Any]:
    sizes = font.get("size", 0)
    if isinstance(sizes, Sequence):
        return {**font, "size": [max(size, _min_font()) for size in sizes]}
    return {**font, "size": max(sizes, _min_font())}
