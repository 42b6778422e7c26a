"""Lessons: text files that lead through the app's views and ask questions whose answers the models give.

format     what a file can say
measures   what can be measured of a model
reading    files, checked field by field; the shipped ones
solving    answers and claims, computed
codes      which questions were answered, as a short code
worksheet  a lesson on paper
"""

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
from txcls.lessons.solving import Solved, check_lesson, is_right, solve

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
