"""Named cleaning steps: `clean` applies them, and `clean_aligned` also gives each character's origin."""

import html
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from txcls.text import composition, html_tags

MAX_MATCH_LENGTH = 2000
"""Maximum length of a match of any pass, in characters (except URLs), so that a text can be cleaned in pieces."""


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

    def align(self, cleaned: CleanedText) -> CleanedText:
        return _splice(cleaned, self._edits(cleaned.text))

    def _edits(self, text: str) -> Iterator[tuple[int, int, str]]:
        for match in self.pattern.finditer(text):
            replacement = self.replacement if isinstance(self.replacement, str) else self.replacement(match)
            if replacement != match[0]:
                yield match.start(), match.end(), replacement


class _Compose:
    """Converts to NFC; its pattern is only built for texts that are not in NFC yet."""

    def apply(self, text: str) -> str:
        return text if composition.is_composed(text) else self._replace().apply(text)

    def align(self, cleaned: CleanedText) -> CleanedText:
        return cleaned if composition.is_composed(cleaned.text) else self._replace().align(cleaned)

    def _replace(self) -> _Replace:
        return _Replace(composition.pieces(), composition.compose)


class _Lower:
    def apply(self, text: str) -> str:
        return text.lower()

    def align(self, cleaned: CleanedText) -> CleanedText:
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
    pieces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    done = 0
    for first, last, replacement in edits:
        pieces += (cleaned.text[done:first], replacement)
        starts += cleaned.starts[done:first]
        ends += cleaned.ends[done:first]
        done = last
        while not replacement.startswith(" ") and first < last - 1 and cleaned.text[first] == " ":
            first += 1  # the space of the artefact " #39;" is not part of its apostrophe
        starts += [cleaned.starts[first]] * len(replacement)
        ends += [cleaned.ends[last - 1]] * len(replacement)
    if not done:
        return cleaned
    return CleanedText(
        "".join(pieces) + cleaned.text[done:], starts + list(cleaned.starts[done:]), ends + list(cleaned.ends[done:])
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


TAG = html_tags.tag(MAX_MATCH_LENGTH)
URL = re.compile(r"(?:https?://|\bwww\.)[^\s<>\"]*[^\s<>\"'.,;:!?)\]}]", re.IGNORECASE)
WORD_APOSTROPHE = re.compile(r"(?<=\w)['’](?=\w)")
PUNCTUATION = re.compile(r"[^\w\s]|_")
_INVISIBLE = r"\s\x00-\x1f\x7f-\x9f\u200b\u2060\ufeff"
SPACES = re.compile(rf"[{_INVISIBLE}](?<! )[{_INVISIBLE}]*| [{_INVISIBLE}]+")


def _mark_or_space(match: re.Match[str]) -> str:
    return match[0] if unicodedata.category(match[0])[0] == "M" else " "


@dataclass(frozen=True, slots=True)
class Step:
    """One named cleaning step."""

    description: str
    passes: tuple[_Replace | _Compose | _Lower, ...]

    def apply(self, text: str) -> str:
        """The text after this step."""
        for cleaning_pass in self.passes:
            text = cleaning_pass.apply(text)
        return text

    def align(self, cleaned: CleanedText) -> CleanedText:
        """The same, with the alignment updated."""
        for cleaning_pass in self.passes:
            cleaned = cleaning_pass.align(cleaned)
        return cleaned


_FIRST = Step(
    "lone surrogates, which cannot be encoded, become U+FFFD, and letters typed apart from their accents one character",
    (_Replace(re.compile("[\ud800-\udfff]"), "\ufffd"), _Compose()),
)
"""Applied before the named steps."""

STEPS: Mapping[str, Step] = MappingProxyType(
    {
        "html_entities": Step(
            "&amp; &#39; &lt; … as the characters they stand for, AG News' forms without ampersand ( #39;  quot;) too",
            (_Replace(ENTITY, _unescape),),
        ),
        "html_tags": Step("HTML tags, comments and doctypes become a space", (_Replace(TAG, " "),)),
        "urls": Step("web addresses become a space", (_Replace(URL, " "),)),
        "backslashes": Step(
            "literal backslashes, AG News' line breaks, become a space", (_Replace(re.compile(r"\\"), " "),)
        ),
        "lowercase": Step("lower-case letters", (_Lower(),)),
        "punctuation": Step(
            "apostrophes inside words vanish; every other character but letters, digits and accents becomes a space",
            (_Replace(WORD_APOSTROPHE, ""), _Replace(PUNCTUATION, _mark_or_space)),
        ),
        "whitespace": Step(
            "runs of whitespace and control characters become one space, none at either end",
            (_Replace(SPACES, " "), _Replace(re.compile(r"\A +| +\Z"), "")),
        ),
    }
)
"""The cleaning steps, keyed by their names in the configuration."""


def clean(text: str, steps: Sequence[str]) -> str:
    """Apply the named steps in order."""
    text = _FIRST.apply(text)
    for name in steps:
        text = STEPS[name].apply(text)
    return text


def clean_aligned(text: str, steps: Sequence[str]) -> CleanedText:
    """`clean`, with the alignment of every character to the original text."""
    cleaned = _FIRST.align(CleanedText(text, range(len(text)), range(1, len(text) + 1)))
    for name in steps:
        cleaned = STEPS[name].align(cleaned)
    return cleaned


@dataclass(frozen=True, slots=True)
class CleaningStep:
    """The effect of one step: each edit (i, j, k, l) turned `before[i:j]` into `after[k:l]`; the rest is unchanged."""

    name: str
    description: str
    before: str
    after: str
    edits: tuple[tuple[int, int, int, int], ...]


def explain_cleaning(text: str, steps: Sequence[str]) -> list[CleaningStep]:
    """What each step of `clean` changes, in order."""
    before, explained = _FIRST.apply(text), []
    for name in steps:
        step = STEPS[name]
        cleaned = step.align(CleanedText(before, range(len(before)), range(1, len(before) + 1)))
        explained.append(CleaningStep(name, step.description, before, cleaned.text, tuple(_edits(before, cleaned))))
        before = cleaned.text
    return explained


def _edits(before: str, cleaned: CleanedText) -> Iterator[tuple[int, int, int, int]]:
    """The edits between `before` and its cleaned text."""
    old = new = 0  # everything up to here is matched
    for at, (character, start, end) in enumerate(zip(cleaned.text, cleaned.starts, cleaned.ends, strict=True)):
        if end != start + 1 or start < old or before[start] != character:
            continue
        if before[old:start] != cleaned.text[new:at]:
            yield old, start, new, at
        old, new = start + 1, at + 1
    if before[old:] != cleaned.text[new:]:
        yield old, len(before), new, len(cleaned.text)
