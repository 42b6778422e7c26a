"""The available lessons: what each teaches, how long it takes, and links to start it."""

import streamlit as st

from txcls.app import menu
from txcls.app.lessons import lesson, panel
from txcls.app.shell import layout, lecture
from txcls.app.shell.markdown import plain
from txcls.errors import TxclsError
from txcls.lessons import find_lesson, languages_of, lesson_names
from txcls.lessons.reading import not_offered
from txcls.lessons.wording import words_in


def main() -> None:
    """Draw the page."""
    layout.open_plain_page(menu.LESSONS)
    st.markdown(
        "A lesson leads through the app's pages, asks questions before it shows answers, and takes every answer "
        "from the live model."
    )
    if why := not_offered():
        st.warning(plain(why))
    for number, name in enumerate(lesson_names()):
        _lesson_card(name, number)
    st.caption(
        "PageDown and PageUp (also on a presenter's remote) turn a lesson's steps; F9 shows them as slides. A lesson "
        "of your own is a text file: `python -m txcls lesson new mine.en.yaml` writes one; `TXCLS_LESSONS=FOLDER` "
        "lists it here."
    )
    lecture.end()


def _lesson_card(name: str, number: int) -> None:
    """Draw one lesson, with a link for each of its languages."""
    with st.container(border=True, key=f"lesson_card_{number}", gap="small"):
        languages = sorted(languages_of(name), key=lambda language: (language != "en", language))
        heading, links = st.container(gap="xsmall"), st.container(horizontal=True, gap="medium")
        for language in languages:
            try:
                shown = find_lesson(name, language)
            except TxclsError as error:
                st.warning(plain(str(error)))
                continue
            if language == languages[0]:
                minutes = words_in(language)["minutes"].format(minutes=f"{shown.minutes:g}")
                heading.subheader(f"{shown.title} · {minutes}", anchor=False)
                heading.markdown(shown.summary)
            first = lesson.Place(shown.name, shown.language, 0)
            title = "" if language == languages[0] else f": {shown.title}"
            links.page_link(
                first.page.path,
                label=f"{panel.LANGUAGES.get(language, language)}{title} →",
                query_params=first.params,
            )


if __name__ == "__main__":
    main()
