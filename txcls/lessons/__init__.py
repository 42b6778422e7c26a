"""Lessons: text files that guide readers through the app's views; the answers to their questions are measured.

format        the contents of a lesson file
reading       loading and validating lesson files; the shipped lessons
page_address  what a page shows, as the parameters of its URL
measures      the quantities that can be measured on a model
checking      right answers and claims
markup        Markdown as HTML, and the texts around a lesson in its language
worksheet     a lesson on paper, with pictures
"""

from txcls.lessons.checking import SolvedStep, check_lesson, is_right, solve
from txcls.lessons.reading import (
    Lesson,
    LessonError,
    find_lesson,
    languages_of,
    lesson_names,
    open_lesson,
    read_lesson,
)

__all__ = [
    "Lesson",
    "LessonError",
    "SolvedStep",
    "check_lesson",
    "find_lesson",
    "is_right",
    "languages_of",
    "lesson_names",
    "open_lesson",
    "read_lesson",
    "solve",
]
