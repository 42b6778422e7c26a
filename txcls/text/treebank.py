r"""Penn Treebank word tokens: the rules of NLTK's `NLTKWordTokenizer`.

The patterns and replacements are those of nltk/tokenize/destructive.py in NLTK 3.10 (https://www.nltk.org), copyright
2001-2026 NLTK Project, authors Liling Tan and Tom Aarsen, contractions after Robert MacIntyre; Apache License 2.0, see
LICENSE-NLTK.txt beside this file. Changes: only the rules that `tokenize` applies are kept, as one table per stage, and
they run on the standard library's `re`, where NLTK uses an engine with a time limit. The rules are kept here because
importing NLTK takes more than a second; the tests compare them with the installed NLTK.
"""

import re

STARTING_QUOTES = (
    ("([«“‘„]|[`]+)", r" \1 "),
    (r"^\"", r"``"),
    (r"(``)", r" \1 "),
    (r"([ \(\[{<])(\"|\'{2})", r"\1 `` "),
    (r"(?i)(?<!\w)(\')(?!(?:re|ve|ll|m|t|s|d|n)\b)(?=\w)", r"\1 "),
)
PUNCTUATION = (
    (r'([^\.])(\.)([\]\)}>"\'' "»”’ " r"]*+)\s*$", r"\1 \2 \3 "),
    (r"([:,])([^\d])", r" \1 \2"),
    (r"([:,])$", r" \1 "),
    (r"\.{2,}", r" \g<0> "),
    (r"[;@#$%&]", r" \g<0> "),
    (r"[\u2012-\u2015]", r" \g<0> "),  # figure dash, en dash, em dash, horizontal bar
    (r'([^\.])(\.)([\]\)}>"\']*)\s*$', r"\1 \2\3 "),
    (r"[?!]", r" \g<0> "),
    (r"([^'])' ", r"\1 ' "),
    (r"[*]", r" \g<0> "),
)
PARENS_BRACKETS = (r"[\]\[\(\)\{\}\<\>]", r" \g<0> ")
DOUBLE_DASHES = (r"--", r" -- ")
ENDING_QUOTES = (
    ("([»”’])", r" \1 "),
    (r"''", " '' "),
    (r'"', " '' "),
    (r"\s+", " "),
    (r"([^' ])('[sS]|'[mM]|'[dD]|') ", r"\1 \2 "),
    (r"([^' ])('ll|'LL|'re|'RE|'ve|'VE|n't|N'T) ", r"\1 \2 "),
)
CONTRACTIONS2 = (
    r"(?i)\b(can)(?#X)(not)\b",
    r"(?i)\b(d)(?#X)('ye)\b",
    r"(?i)\b(gim)(?#X)(me)\b",
    r"(?i)\b(gon)(?#X)(na)\b",
    r"(?i)\b(got)(?#X)(ta)\b",
    r"(?i)\b(lem)(?#X)(me)\b",
    r"(?i)\b(more)(?#X)('n)\b",
    r"(?i)\b(wan)(?#X)(na)(?=\s)",
)
CONTRACTIONS3 = (r"(?i) ('t)(?#X)(is)\b", r"(?i) ('t)(?#X)(was)\b")

_SPLITS = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (*STARTING_QUOTES, *PUNCTUATION, PARENS_BRACKETS, DOUBLE_DASHES)
)
_ENDINGS = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        *ENDING_QUOTES,
        *((pattern, r" \1 \2 ") for pattern in (*CONTRACTIONS2, *CONTRACTIONS3)),
    )
)


def tokenize(text: str) -> list[str]:
    """The tokens of one sentence, as `NLTKWordTokenizer().tokenize` returns them; double quotes become `` and ''."""
    for rule, replacement in _SPLITS:
        text = rule.sub(replacement, text)
    text = f" {text} "
    for rule, replacement in _ENDINGS:
        text = rule.sub(replacement, text)
    return text.split()
