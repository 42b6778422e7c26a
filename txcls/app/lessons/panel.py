"""The panel of a lesson next to a page, and its slides in lecture mode: narration, question, answer, progress."""

import html
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from txcls.app.components.widgets import store_answers, word_bins
from txcls.app.lessons import lesson
from txcls.app.shell import lecture, view_state
from txcls.app.shell.markdown import escape
from txcls.errors import TxclsError
from txcls.lessons import SolvedStep, languages_of
from txcls.lessons.format import Choice, Drag, Heads, Number
from txcls.lessons.markup import words_in
from txcls.lessons.page_address import View

STYLE_SHEET = Path(__file__).parent / "lesson.css"
LANGUAGES = {
    "en": "English", "de": "Deutsch", "es": "Español", "fr": "Français", "it": "Italiano", "pt": "Português",
    "zh": "中文",
}  # fmt: skip
"""Names of languages on buttons; other languages are shown as their codes."""
_NOTHING_CHOSEN = "_lesson_nothing_chosen"
"""The session key for the opened step (`lesson.n_opened`) in which Check was last clicked without an answer."""


def draw() -> None:
    """Draw the panel of the current step; in lecture mode, a slide with its narration and question."""
    position = lesson.now()
    if position is None:
        return
    try:
        solved = lesson.solved(position)
    except TxclsError as error:
        st.error(escape(str(error)))
        st.button(words_in(position.language)["leave"], key="lesson_leave", on_click=lesson.leave)
        return
    words = words_in(position.language)
    st.html(STYLE_SHEET)
    if st.context.is_embedded:  # an embedded page has no menu above the panel
        st.html("<style>.st-key-lesson_panel {top: 0 !important;}</style>")
    store_answers(
        position.name, lesson.answers_to_store(position), on_restore=partial(lesson.restore_answers, position)
    )
    if lecture.is_on():
        question = solved.step.question
        with lecture.lesson_slide(hides_answer=question is not None):
            st.subheader(solved.step.title, anchor=False)
            st.markdown(_with_display_formulas(solved.narration))
            if question is not None:
                _draw_question(position, solved, words)
            elif solved.step.room:
                _room(solved, words)
        return
    with st.container(key="lesson_panel"):
        _progress(position, words)
        st.subheader(solved.step.title, anchor=False)
        st.markdown(_with_display_formulas(solved.narration))
        if position.index == 0 and position.language.partition("-")[0] != "en":
            st.caption(words["app_language"])
        if solved.step.question is not None:
            _draw_question(position, solved, words)
        if solved.step.room and not lesson.is_open():
            _room(solved, words)
        if (settings := solved.step.params.get("playground")) and not lesson.is_open():
            address = f"playground?{urlencode({'playground': settings})}"
            st.link_button(words["playground"], address)  # opens a new tab, so the lesson remains open
        if not lesson.is_page_hidden():
            st.html(f'<button type="button" class="txcls-to-part">{html.escape(words["see"])}</button>')
        if lesson.changes():
            st.caption(words["changed"])
            st.button(words["restore"], key="lesson_restore", on_click=lesson.restore)
        _result(position, words)
        _navigation(position, words)


def draw_answer() -> None:
    """In lecture mode, draw the answer; the last slide shows it below the page's answer."""
    position = lesson.now()
    if position is None or not lecture.is_on() or position.step.question is None:
        return
    try:
        solved = lesson.solved(position)
    except TxclsError:
        return
    words = words_in(position.language)
    with st.container(key="lesson_answer"):
        _explanation(lesson.answer_of(position), solved, words)
        if solved.step.room:
            _room(solved, words)


def covers(view: View) -> bool:
    """Draw only the text, and return True, if the page is hidden until its question is answered."""
    position = lesson.now()
    if position is None or not lesson.is_page_hidden():
        return False
    try:
        lesson.solved(position)
    except TxclsError:
        return False  # `draw` has shown the error
    words = words_in(position.language)
    with st.container(key="lesson_cover"):
        st.html(f'<p class="txcls-lesson-text">{html.escape(view.text)}</p>')
        st.markdown(words["predict"])
    return True


def _progress(position: lesson.LessonPosition, words: Mapping[str, str]) -> None:
    """Draw the lesson's title, the number of the step, and a progress bar."""
    shown_lesson = position.lesson
    n = len(shown_lesson.steps)
    progress = words["step_of"].format(step=position.index + 1, steps=n)
    step = position.step
    minutes = f" · {words['minutes'].format(minutes=f'{step.minutes:g}')}" if step.minutes else ""
    chapter = shown_lesson.chapters[position.index]
    title = html.escape(shown_lesson.title + (f" · {chapter}" if chapter else ""))
    marks = "".join(f'<i class="{"done" if number <= position.index else ""}"></i>' for number in range(n))
    st.html(
        f'<div class="txcls-lesson-head"><b>{title}</b><span>{html.escape(progress + minutes)}</span>'
        f'<div class="bar" role="progressbar" aria-valuemin="1" aria-valuemax="{n}" '
        f'aria-valuenow="{position.index + 1}" aria-label="{html.escape(progress, quote=True)}">{marks}</div></div>'
    )


def _draw_question(position: lesson.LessonPosition, solved: SolvedStep, words: Mapping[str, str]) -> None:
    question = solved.step.question
    assert question is not None
    with st.container(key="lesson_question"):
        st.markdown(f"**{question.ask.strip()}**")
        answer = lesson.answer_of(position)
        if answer is not None and answer.revealed and not lecture.is_on():
            _explanation(answer, solved, words)
            return
        if lecture.is_on():  # the question can be asked again in the next lecture
            if answer is not None and answer.answer is not None:
                st.markdown(f"{words['your_answer']}: **{_as_text(answer.answer, solved)}**")
        elif answer is not None:
            text = words["try_again"].format(answer=f"**{_as_text(answer.answer, solved)}**")
            st.warning(text, icon="✖️")
        elif question.look:
            st.caption(words["look"])
        _answer_controls(position, solved, words)
        if st.session_state.get(_NOTHING_CHOSEN) == lesson.n_opened():
            st.warning(words["choose_first"])  # until the next click on Check: the button must not move now
        with st.container(horizontal=True, gap="small"):
            st.button(words["check"], key="lesson_check", type="primary", on_click=_check, args=(position, solved))
            if not lecture.is_on():
                st.button(words["show"], key="lesson_show", on_click=lesson.reveal)


def _key(position: lesson.LessonPosition) -> str:
    return f"lesson_given_{position.name}_{position.index}"


def _answer_controls(position: lesson.LessonPosition, solved: SolvedStep, words: Mapping[str, str]) -> None:
    """Draw the controls for an answer: options, a number field, words to drag, or heads."""
    question, key = solved.step.question, _key(position)
    if isinstance(question, Choice):
        options = range(len(solved.offered))
        st.radio(
            words["your_answer"], options, index=None, key=key, format_func=solved.offered.__getitem__,
            label_visibility="collapsed",
        )  # fmt: skip
    elif isinstance(question, Number):
        unit = f" ({question.unit})" if question.unit else ""
        st.number_input(words["your_answer"] + unit, value=None, step=1.0, format="%g", key=key)
    elif isinstance(question, Heads):
        st.pills(words["heads_help"], solved.offered, selection_mode="multi", key=key)
    elif isinstance(question, Drag):
        st.caption(words["group_help"])

        def store(rows: list[list[str]]) -> None:
            st.session_state[f"{key}_rows"] = rows

        rows = {"": solved.offered, **dict.fromkeys(question.groups, ())}
        word_bins(rows, label=words["your_answer"], key=f"{key}_bins", on_move=store)


def _as_text(answer: Any, solved: SolvedStep) -> str:
    """A visitor's answer as text."""
    question = solved.step.question
    if isinstance(question, Choice):
        return str(solved.offered[answer])
    if isinstance(question, Number):
        return f"{answer:g} {question.unit}".strip()
    if isinstance(question, Drag):
        return " · ".join(f"{name}: {', '.join(row) or '–'}" for name, row in zip(question.groups, answer, strict=True))
    return " · ".join(answer)


def _check(position: lesson.LessonPosition, solved: SolvedStep) -> None:
    """Store the visitor's answer, if there is one."""
    question, key = solved.step.question, _key(position)
    answer: Any = st.session_state.get(key)
    if isinstance(question, Drag):
        rows = st.session_state.get(f"{key}_rows", [list(solved.offered)])
        answer = None if len(rows) < 2 or rows[0] else rows[1:]  # None while some words are not in a group
    if isinstance(question, Heads) and not answer and question.look:  # heads switched off on the page count
        answer = [part for part in view_state.shown_view().switched if part.replace(".", "").isdecimal()]
    if answer is None or answer == []:
        st.session_state[_NOTHING_CHOSEN] = lesson.n_opened()
    else:
        st.session_state.pop(_NOTHING_CHOSEN, None)
        lesson.answer(answer)


def _explanation(answer: lesson.GivenAnswer | None, solved: SolvedStep, words: Mapping[str, str]) -> None:
    """Draw the visitor's answer, the right one, and the reason."""
    right = None if answer is None else answer.right
    lead = words["shown"] if right is None else words["right"] if right else words["wrong"]
    if answer is not None and right is False:
        lead = lead.format(answer=_as_text(answer.answer, solved))
    text = _with_display_formulas(
        f"**{lead}** {solved.why}" if solved.why_has_answer else f"**{lead}** {solved.answer}\n\n{solved.why}"
    )
    if right is None:
        st.info(text)
    elif right:
        st.success(text, icon="✔️")
    else:
        st.warning(text, icon="✖️")


def _room(solved: SolvedStep, words: Mapping[str, str]) -> None:
    st.markdown(f"**{words['room']}:** {(solved.step.room or '').strip()}")


def _result(position: lesson.LessonPosition, words: Mapping[str, str]) -> None:
    """Draw the result after the last step's question."""
    if position.index < len(position.lesson.steps) - 1 or lesson.is_open():
        return
    right, n_questions = lesson.count_right(position)
    if n_questions:
        st.markdown(f"**{words['done']}** {words['result'].format(right=right, questions=n_questions)}")


def _navigation(position: lesson.LessonPosition, words: Mapping[str, str]) -> None:
    n = len(position.lesson.steps)
    with st.container(horizontal=True, gap="small"):
        st.button(words["back"], key="lesson_back", disabled=position.index == 0, on_click=lesson.turn, args=(-1,))
        is_open = lesson.is_open()
        if position.index < n - 1 or is_open:
            st.button(
                words["next"], key="lesson_next", type="secondary" if is_open else "primary", on_click=lesson.turn,
                args=(1,),
            )  # fmt: skip
    with st.container(key="lesson_keys"):
        st.caption(words["keys"])
    with st.container(horizontal=True, gap="small"):
        for language in languages_of(position.name):
            if language != position.language:
                name = LANGUAGES.get(language, language)
                st.button(
                    name, key=f"lesson_in_{language}", type="tertiary", on_click=lesson.go,
                    args=(position.index, language),
                )  # fmt: skip
        if lesson.answers_to_store(position):
            st.button(words["again"], key="lesson_again", type="tertiary", on_click=lesson.clear_answers)
        st.button(words["leave"], key="lesson_leave", type="tertiary", on_click=lesson.leave)


def _with_display_formulas(text: str) -> str:
    """The text with each formula between $$ in a separate block."""
    return re.sub(r"\s*\$\$(.+?)\$\$\s*", r"\n\n$$\n\1\n$$\n\n", text, flags=re.DOTALL)
