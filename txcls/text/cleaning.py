"""Cleaning of texts in named steps: `clean`, and `clean_aligned` with the origin of each character."""

import html
import re
import string
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

MAX_MATCH_LENGTH = 2000
"""Maximum length of a match in characters, except for URLs; this makes it possible to clean only a prefix of a text."""


@dataclass(frozen=True, slots=True)
class CleanedText:
    """A cleaned text with its alignment: `text[i]` comes from the original characters `starts[i]:ends[i]`."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]


@dataclass(frozen=True, slots=True)
class _Replace:
    """Replaces each match of `pattern` with `replacement`."""

    pattern: re.Pattern[str]
    replacement: str | Callable[[re.Match[str]], str]

    def apply(self, text: str) -> str:
        return self.pattern.sub(self.replacement, text)

    def apply_aligned(self, cleaned: CleanedText) -> CleanedText:
        return _splice(cleaned, self._edits(cleaned.text))

    def _edits(self, text: str) -> Iterator[tuple[int, int, str]]:
        for match in self.pattern.finditer(text):
            replacement = self.replacement if isinstance(self.replacement, str) else self.replacement(match)
            if replacement != match[0]:
                yield match.start(), match.end(), replacement


MAX_COMBINING_MARKS = 30
"""Maximum number of combining marks in a piece; natural text has only a few in a row."""
_HANGUL = range(0xAC00, 0xD7A4)
_CODE_POINTS = (*range(0x3400), *range(0xA000, 0xAC00), *range(0xF900, 0x20000), *range(0x2F800, 0x2FA20))
"""Code points that may combine or decompose, except Hangul; the rest are ideographs, private or unassigned."""


@cache
def composable() -> re.Pattern[str]:
    """A pattern that matches each piece that Unicode's composed form (NFC, Unicode Standard Annex 15) may change.

    `unicodedata.normalize` gives no alignment, and its time is quadratic in the length of a run of combining marks.
    Therefore a piece ends after MAX_COMBINING_MARKS marks, as in the annex's Stream-Safe Text Format.
    """
    marks, beginnings, decomposed = set[int](), set[int](), set[int]()
    marks.update(range(0x1161, 0x1176), range(0x11A8, 0x11C3))  # Hangul vowels and final consonants
    beginnings.update(range(0x1100, 0x1113), _HANGUL)
    for code in _CODE_POINTS:
        character = chr(code)
        if unicodedata.combining(unicodedata.normalize("NFD", character)[0]):
            marks.add(code)
        mapping = unicodedata.decomposition(character)
        if not mapping or mapping.startswith("<"):  # "<" marks a compatibility mapping, which NFC ignores
            continue
        beginnings.add(code)
        if unicodedata.is_normalized("NFC", character):
            first, second = (int(number, 16) for number in mapping.split())
            beginnings.add(first)
            marks.add(second)
        else:
            decomposed.add(code)
    beginning, mark, single = (_character_class(codes) for codes in (beginnings - marks, marks, decomposed - marks))
    return re.compile(f"{beginning}?{mark}{{1,{MAX_COMBINING_MARKS}}}|{single}")


def _character_class(codes: Iterable[int]) -> str:
    """The character class of a regular expression for these code points."""
    ranges: list[list[int]] = []
    for code in sorted(codes):
        if ranges and code == ranges[-1][1] + 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return f"[{''.join(chr(first) if first == last else f'{chr(first)}-{chr(last)}' for first, last in ranges)}]"


class _Compose:
    """Converts to NFC; builds its pattern only for texts that are not in NFC yet."""

    def apply(self, text: str) -> str:
        return text if unicodedata.is_normalized("NFC", text) else self._replace().apply(text)

    def apply_aligned(self, cleaned: CleanedText) -> CleanedText:
        return cleaned if unicodedata.is_normalized("NFC", cleaned.text) else self._replace().apply_aligned(cleaned)

    def _replace(self) -> _Replace:
        return _Replace(composable(), lambda piece: unicodedata.normalize("NFC", piece[0]))


class _Lower:
    def apply(self, text: str) -> str:
        return text.lower()

    def apply_aligned(self, cleaned: CleanedText) -> CleanedText:
        text = cleaned.text.lower()
        if len(text) == len(cleaned.text):
            return CleanedText(text, cleaned.starts, cleaned.ends)
        widths = [len(character.lower()) for character in cleaned.text]  # "İ" becomes two characters
        return CleanedText(
            text,
            [start for start, width in zip(cleaned.starts, widths, strict=True) for _ in range(width)],
            [end for end, width in zip(cleaned.ends, widths, strict=True) for _ in range(width)],
        )


def _splice(cleaned: CleanedText, edits: Iterable[tuple[int, int, str]]) -> CleanedText:
    """Apply edits (start, end, replacement), in order."""
    pieces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    copied_to = 0
    for start, end, replacement in edits:
        if copied_to < start:
            pieces.append(cleaned.text[copied_to:start])
            starts += cleaned.starts[copied_to:start]
            ends += cleaned.ends[copied_to:start]
        copied_to = end
        if not replacement:
            continue
        while not replacement.startswith(" ") and start < end - 1 and cleaned.text[start] == " ":
            start += 1  # a space before what is replaced is not its origin
        pieces.append(replacement)
        starts += [cleaned.starts[start]] * len(replacement)
        ends += [cleaned.ends[end - 1]] * len(replacement)
    if not copied_to:
        return cleaned
    pieces.append(cleaned.text[copied_to:])
    return CleanedText(
        "".join(pieces), starts + list(cleaned.starts[copied_to:]), ends + list(cleaned.ends[copied_to:])
    )


_NAMES_WITHOUT_AMPERSAND = (
    "quot|amp|lt|gt|nbsp|apos|hellip|[lr][sd]quo|[mn]dash|"
    "bull|middot|pound|euro|yen|cent|copy|reg|trade|deg|eacute|ntilde"
)
ENTITY = re.compile(
    r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
    rf"|(?:^| )(?:#[0-9]{{2,7}}|#x[0-9a-fA-F]{{2,6}}|{_NAMES_WITHOUT_AMPERSAND});"
)


def _unescape(match: re.Match[str]) -> str:
    entity = match[0].lstrip(" ")
    return html.unescape(entity if entity.startswith("&") else "&" + entity)


_ELEMENTS = """
a abbr address area article aside audio b base bdi bdo blockquote body br button canvas caption cite code col colgroup
data datalist dd del details dfn dialog div dl dt em embed fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 head
header hgroup hr html i iframe img input ins kbd label legend li link main map mark math menu meta meter nav noscript
object ol optgroup option output p picture pre progress q rp rt ruby s samp script search section select selectedcontent
slot small source span strong style sub summary sup svg table tbody td template textarea tfoot th thead time title tr
track u ul var video wbr

acronym applet basefont bgsound big blink center dir font frame frameset isindex keygen listing marquee menuitem
multicol nextid nobr noembed noframes param plaintext rb rtc spacer strike tt xmp
"""
_WITHOUT_VALUE = """
allowfullscreen async autofocus autoplay checked contenteditable controls crossorigin default defer disabled download
formnovalidate hidden inert ismap itemscope loop multiple muted nomodule novalidate open playsinline popover readonly
required reversed selected

compact declare nohref noresize noshade nowrap truespeed
"""

ELEMENTS = tuple(_ELEMENTS.split())
"""Names of elements, from the HTML Living Standard (https://html.spec.whatwg.org/multipage/): its index of elements
and, below the empty line, obsolete elements. Names with a colon, such as those from Office in e-mails (`o:p`,
`v:shape`), also count as markup."""

_ATTRIBUTES = tuple(_WITHOUT_VALUE.split())
"""Attributes that may occur without a value, from the standard's index and, below the empty line, obsolete ones."""

_LETTER = f"[{string.ascii_lowercase}]"
_WITH_COLON = rf"{_LETTER}[\w.-]*:{_LETTER}[\w.-]*"
_ATTRIBUTE = rf"[^\s\"'<>/=]+\s*=|(?:{'|'.join(_ATTRIBUTES)})[\s/>]"
_BEGINNING = rf"(?:{'|'.join(ELEMENTS)}|{_WITH_COLON})(?:[\s/]*>|[\s/]+(?:{_ATTRIBUTE}))"
"""What follows `<` or `</` in a tag (ignoring case): an element's name, then the end of the tag or the first attribute.

If the first attribute has no `=`, it must be one of `_ATTRIBUTES`, since `b` and `p` may be elements or variables.
"""


TAG = re.compile(
    rf"<!--(?:(?!<!--|-->).){{0,{MAX_MATCH_LENGTH - 7}}}-->"
    rf"|</?(?={_BEGINNING}){_LETTER}[^<>]{{0,{MAX_MATCH_LENGTH - 4}}}>|<!doctype[^<>]{{0,{MAX_MATCH_LENGTH - 10}}}>",
    re.DOTALL | re.IGNORECASE,
)
"""A start tag, an end tag, a comment or a doctype, but no less-than signs as in `a<b and c>d`."""
URL = re.compile(r"(?:https?://|\bwww\.)[^\s<>\"]*[^\s<>\"'.,;:!?)\]}]", re.IGNORECASE)
WORD_APOSTROPHE = re.compile(r"(?<=\w)['’](?=\w)")
PUNCTUATION = re.compile(r"[^\w\s]|_")
_INVISIBLE = r"\s\x00-\x1f\x7f-\x9f\u200b\u2060\ufeff"
SPACES = re.compile(rf"[{_INVISIBLE}](?<! )[{_INVISIBLE}]*| [{_INVISIBLE}]+")


def _mark_or_space(match: re.Match[str]) -> str:
    """The matched character if it is a combining mark, otherwise a space."""
    return match[0] if unicodedata.category(match[0])[0] == "M" else " "


@dataclass(frozen=True, slots=True)
class Step:
    """A cleaning step."""

    description: str
    passes: tuple[_Replace | _Compose | _Lower, ...]

    def apply(self, text: str) -> str:
        """Apply the step to a text."""
        for cleaning_pass in self.passes:
            text = cleaning_pass.apply(text)
        return text

    def apply_aligned(self, cleaned: CleanedText) -> CleanedText:
        """Apply the step to a text and its alignment."""
        for cleaning_pass in self.passes:
            cleaned = cleaning_pass.apply_aligned(cleaned)
        return cleaned


_REPAIR = _Replace(re.compile("[\ud800-\udfff]"), "\ufffd")
_FIRST = Step(
    "lone surrogates, which cannot be encoded, become U+FFFD; letters and their combining accents become one character",
    (_REPAIR, _Compose()),
)
"""Applied before the named steps, even if the only one is `as_typed`."""

STEPS: Mapping[str, Step] = MappingProxyType(
    {
        "html_entities": Step(
            "entities (&amp; &#39; &lt; …) become characters, even AG News' forms without an ampersand ( #39;  quot;)",
            (_Replace(ENTITY, _unescape),),
        ),
        "html_tags": Step("HTML tags, comments and doctypes become a space", (_Replace(TAG, " "),)),
        "urls": Step("each web address becomes a space", (_Replace(URL, " "),)),
        "backslashes": Step(
            "backslashes, which are line breaks in AG News, become a space", (_Replace(re.compile(r"\\"), " "),)
        ),
        "lowercase": Step("letters become lower case", (_Lower(),)),
        "punctuation": Step(
            "apostrophes inside words are removed; all characters but letters, digits and accents become a space",
            (_Replace(WORD_APOSTROPHE, ""), _Replace(PUNCTUATION, _mark_or_space)),
        ),
        "whitespace": Step(
            "runs of whitespace and control characters become one space, and are removed at both ends",
            (_Replace(SPACES, " "), _Replace(re.compile(r"\A +| +\Z"), "")),
        ),
        "as_typed": Step("the text stays as typed; WordPiece has a normaliser of its own", (_REPAIR,)),
    }
)
"""The cleaning steps, keyed by their names in the configuration."""


def _steps(names: Sequence[str]) -> list[Step]:
    return [*([] if "as_typed" in names else [_FIRST]), *(STEPS[name] for name in names)]


def clean(text: str, steps: Sequence[str]) -> str:
    """Clean a text with the named steps, in order."""
    for step in _steps(steps):
        text = step.apply(text)
    return text


def clean_aligned(text: str, steps: Sequence[str]) -> CleanedText:
    """Clean a text as `clean` does, with the alignment of every character to the original text."""
    cleaned = CleanedText(text, range(len(text)), range(1, len(text) + 1))
    for step in _steps(steps):
        cleaned = step.apply_aligned(cleaned)
    return cleaned


@dataclass(frozen=True, slots=True)
class CleaningStep:
    """The effect of a step: each edit (i, j, k, l) changed `before[i:j]` to `after[k:l]`; the rest is unchanged."""

    name: str
    description: str
    before: str
    after: str
    edits: tuple[tuple[int, int, int, int], ...]


def explain_cleaning(text: str, steps: Sequence[str]) -> list[CleaningStep]:
    """The effect of each step of `clean`, in order."""
    before, effects = text if "as_typed" in steps else _FIRST.apply(text), []
    for name in steps:
        step = STEPS[name]
        cleaned = step.apply_aligned(CleanedText(before, range(len(before)), range(1, len(before) + 1)))
        effects.append(CleaningStep(name, step.description, before, cleaned.text, tuple(_edits(before, cleaned))))
        before = cleaned.text
    return effects


def effect_of_cleaning(text: str, steps: Sequence[str]) -> CleaningStep:
    """The effect of all steps of `clean` together."""
    cleaned = clean_aligned(text, steps)
    return CleaningStep("cleaning", ", ".join(steps), text, cleaned.text, tuple(_edits(text, cleaned)))


def _edits(before: str, cleaned: CleanedText) -> Iterator[tuple[int, int, int, int]]:
    """Yield the edits between `before` and its cleaned text."""
    old_end = new_end = 0  # the texts are compared up to here
    for index, (character, start, end) in enumerate(zip(cleaned.text, cleaned.starts, cleaned.ends, strict=True)):
        if end != start + 1 or start < old_end or before[start] != character:
            continue
        if before[old_end:start] != cleaned.text[new_end:index]:
            yield old_end, start, new_end, index
        old_end, new_end = start + 1, index + 1
    if before[old_end:] != cleaned.text[new_end:]:
        yield old_end, len(before), new_end, len(cleaned.text)
