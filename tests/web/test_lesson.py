"""All texts of an exported lesson's page are in the lesson's language."""

import re
from html.parser import HTMLParser

import pytest

from txcls.inference.predictor import Predictor
from txcls.lessons import find_lesson, lesson_names
from txcls.web.join_scripts import HERE, script
from txcls.web.lesson import WORDS_FOLDER, page_words

LANGUAGES = sorted(file.stem for file in WORDS_FOLDER.glob("*.yaml"))
BRACES = re.compile(r"\{\w+\}")


class _Said(HTMLParser):
    """Collects the texts of page.html, and the attributes that are displayed or read by screen readers."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "link", "input"):
            self.inside.append(tag)
        self.found |= {
            " ".join(value.split()) for name, value in attrs if name in ("aria-label", "title", "placeholder") and value
        }

    def handle_endtag(self, tag: str) -> None:
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        is_seen = not {"script", "style", "title", "noscript"} & set(self.inside)
        if is_seen and re.search("[a-z]", data) and "{{" not in data:
            self.found.add(" ".join(data.split()))


def said() -> set[str]:
    page = _Said()
    page.feed((HERE / "page" / "page.html").read_text("utf-8"))
    return page.found | set(re.findall(r'\btr\("([^"]+)"', script("page/page")))


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_translation_has_exactly_the_texts_of_the_page(language: str) -> None:
    names = {step.checkpoint for lesson in lesson_names() for step in find_lesson(lesson, language).steps}
    assert set(page_words(language)) == said() | {Predictor.load(name).checkpoint.config.title for name in names}


@pytest.mark.parametrize("language", LANGUAGES)
def test_placeholders_are_the_same_in_each_language(language: str) -> None:
    for english, other in page_words(language).items():
        assert sorted(BRACES.findall(english)) == sorted(BRACES.findall(other)), english


def test_a_language_without_words_stays_english() -> None:
    assert page_words("fr") == {} and page_words("en") == {}
    assert page_words("de-AT") == page_words("de")
