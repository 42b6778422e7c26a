"""CSV that is safe to open in a spreadsheet: cells that it would run as formulas become text."""

import re

_FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")


def escape_formula(value: str) -> str:
    """Put an apostrophe before a field that starts with = + - @, a tab or a line break, unless it is a number.

    A spreadsheet would run such a field as a formula, which can execute commands or leak data (OWASP, CSV Injection).
    """
    return f"'{value}" if _FORMULA.match(value) and not _NUMBER.fullmatch(value) else value
