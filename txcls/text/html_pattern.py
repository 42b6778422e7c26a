"""A pattern for HTML markup that does not match less-than signs, as in `a<b and c>d`."""

import re
import string

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

WITHOUT_VALUE = tuple(_WITHOUT_VALUE.split())
"""Attributes that may occur without a value, from the HTML Living Standard: its index of attributes and, below the
empty line, obsolete attributes."""

_LETTER = f"[{string.ascii_lowercase}]"
_WITH_COLON = rf"{_LETTER}[\w.-]*:{_LETTER}[\w.-]*"
_ATTRIBUTE = rf"[^\s\"'<>/=]+\s*=|(?:{'|'.join(WITHOUT_VALUE)})[\s/>]"
BEGINNING = rf"(?:{'|'.join(ELEMENTS)}|{_WITH_COLON})(?:[\s/]*>|[\s/]+(?:{_ATTRIBUTE}))"
"""What follows `<` or `</` in a tag (ignoring case): an element's name, then the end of the tag or the first attribute.

If the first attribute has no `=`, it must be one of `WITHOUT_VALUE`, since `b` and `p` may be elements or variables.
"""


def tag(max_length: int) -> re.Pattern[str]:
    """A pattern that matches a start tag, an end tag, a comment or a doctype of at most `max_length` characters."""
    return re.compile(
        rf"<!--(?:(?!<!--|-->).){{0,{max_length - 7}}}-->|</?(?={BEGINNING}){_LETTER}[^<>]{{0,{max_length - 4}}}>"
        rf"|<!doctype[^<>]{{0,{max_length - 10}}}>",
        re.DOTALL | re.IGNORECASE,
    )
