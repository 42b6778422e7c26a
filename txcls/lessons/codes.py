"""A code that records how a lesson's questions were answered, created and read without a server.

`attention.RWR.7KQ2F`: the lesson, a letter for each question (R right, W wrong, N not answered), and a checksum, which
detects typing errors. It does not prevent cheating: anyone who reads this file can create a code.
txcls/web/page/lesson.js creates the same codes in exported pages.
"""

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from txcls.lessons.reading import LessonError

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's base 32, without letters that look like digits."""
_CODE = re.compile(r"([a-z0-9_-]{1,80})\.([RWN]{1,100})\.([0-9A-Z]{5})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Answered:
    """The contents of a code: the lesson, and whether each question was answered correctly; None if unanswered."""

    lesson: str
    answers: tuple[bool | None, ...]


def make_code(lesson: str, answers: Sequence[bool | None]) -> str:
    """The code for a lesson's answers."""
    letters = "".join("N" if right is None else "R" if right else "W" for right in answers)
    return f"{lesson}.{letters}.{_checksum(lesson, letters)}"


def read_code(code: str) -> Answered:
    """Decode a code.

    Raises:
        LessonError: it is not a code, or its checksum is wrong.
    """
    match = _CODE.fullmatch("".join(code.split()))
    if match is None:
        raise LessonError(f"{code[:60]!r} is not a lesson code; expected, for example, attention.RWR.7KQ2F")
    lesson, letters, checksum = match[1].lower(), match[2].upper(), match[3].upper()
    if checksum.translate(str.maketrans("OIL", "011")) != _checksum(lesson, letters):
        raise LessonError(f"the checksum of {code[:60]!r} is wrong; was it copied in full?")
    return Answered(lesson, tuple({"R": True, "W": False, "N": None}[letter] for letter in letters))


def _checksum(lesson: str, letters: str) -> str:
    """The lower 25 bits of the CRC-32 of lesson and letters, as five characters."""
    bits = zlib.crc32(f"{lesson}.{letters}".encode())
    return "".join(ALPHABET[bits >> shift & 31] for shift in (20, 15, 10, 5, 0))
