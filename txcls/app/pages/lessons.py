"""The available lessons: what each teaches, how long it takes, and links to start it."""

import streamlit as st

from txcls.app import menu
from txcls.app.lessons import lesson, panel
from txcls.app.shell import layout, lecture
from txcls.app.shell.markdown import escape
from txcls.errors import TxclsError
from txcls.lessons import find_lesson, languages_of, lesson_names
from txcls.lessons.markup import words_in
from txcls.lessons.reading import not_offered


def main() -> None:
    """Draw the page."""
    page = layout.open_plain_page(menu.LESSONS)
    layout.draw_answer(
        page, "Lessons lead through the app’s pages, and ask questions before they show answers, computed by the model."
    )
    if reason := not_offered():
        st.warning(escape(reason))
    with st.container(key="lesson_cards"):
        for number, name in enumerate(lesson_names()):
            _draw_lesson_card(name, number)
    st.caption(
        "PageDown and PageUp (also on a presenter remote) move between a lesson's steps; F9 shows them as slides. You "
        "can write your own: `python -m txcls lesson new mine.en.yaml` creates a file to edit, and "
        "`TXCLS_LESSONS=FOLDER` lists the lessons of a folder here."
    )
    lecture.end()


def _draw_lesson_card(name: str, number: int) -> None:
    """Draw one lesson, with a link for each of its languages."""
    with st.container(border=True, key=f"lesson_card_{number}", gap="small"):
        languages = sorted(languages_of(name), key=lambda language: (language != "en", language))
        heading, links = st.container(gap="xsmall"), st.container(horizontal=True, gap="medium")
        for language in languages:
            try:
                translation = find_lesson(name, language)
            except TxclsError as error:
                st.warning(escape(str(error)))
                continue
            if language == languages[0]:
                minutes = words_in(language)["minutes"].format(minutes=f"{translation.minutes:g}")
                unbroken = minutes.replace(" ", "\N{NO-BREAK SPACE}")
                heading.subheader(f"{translation.title} :gray[({unbroken})]", anchor=False)
                heading.markdown(translation.summary)
            first_step = lesson.LessonPosition(translation.name, translation.language, 0)
            title = "" if language == languages[0] else f": {translation.title}"
            links.page_link(
                first_step.page.path,
                label=f"{panel.LANGUAGES.get(language, language)}{title} →",
                query_params={**first_step.params, **({"mode": "lecture"} if lecture.is_on() else {})},
            )


if __name__ == "__main__":
    main()
