"""Lessons: text files that guide readers through the app's views; the answers to their questions are measured.

format        the contents of a lesson file
page_address  what a page shows, as the parameters of its URL
measures      the quantities that can be measured on a model
reading       loading and validating lesson files; the shipped lessons
checking      computing answers and checking claims
markup        the Markdown of lessons as HTML or plain text
pictures      the pictures on worksheets and exported pages
codes         a short code for the answers of a reader
worksheet     a lesson on paper
"""

from txcls.lessons.checking import Solved, check_lesson, is_right, solve
from txcls.lessons.codes import Answered, make_code, read_code
from txcls.lessons.reading import (
    Lesson,
    LessonError,
    find_lesson,
    given_lesson,
    languages_of,
    lesson_names,
    read_lesson,
)

__all__ = [
    "Answered",
    "Lesson",
    "LessonError",
    "Solved",
    "check_lesson",
    "find_lesson",
    "given_lesson",
    "is_right",
    "languages_of",
    "lesson_names",
    "make_code",
    "read_code",
    "read_lesson",
    "solve",
]
