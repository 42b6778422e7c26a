import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from txcls.errors import CheckpointError
from txcls.inference.predictor import Predictor
from txcls.lessons import find_lesson, lesson_names
from txcls.web.assemble import HERE, LANGUAGES, page_languages, script, words_in_language
from txcls.web.export import export_page
from txcls.web.playground import playground

BRACES = re.compile(r"\{\w+\}")
SINGULAR = re.compile(r'\btrn\("([^"]+)",\s*"([^"]+)"')
MOST_BYTES = 15_000
"""Of a language in a page."""


class _Said(HTMLParser):
    """Collects the texts of a page's HTML, and the attributes that are displayed or read by screen readers."""

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
        is_seen = not {"script", "style", "noscript"} & set(self.inside)
        if is_seen and re.search("[a-z]", data) and "{{" not in data:
            self.found.add(" ".join(data.split()))


def _texts_of_html(*names: str) -> set[str]:
    page = _Said()
    page.feed(re.sub("</?em>", "*", "".join((HERE / f"{name}.html").read_text("utf-8") for name in names)))
    return page.found


def _texts_of_scripts(*modules: str) -> set[str]:
    code = script(*modules)
    return {json.loads(f'"{text}"') for text in re.findall(r'\b(?:tr\(|trn\("[^"]+",\s*)\s*"([^"]+)"', code)}


def said() -> set[str]:
    names = {step.checkpoint for lesson in lesson_names() for step in find_lesson(lesson).steps}
    return (
        _texts_of_html("page/page", "page/introduction", "page/article", "playground/playground")
        | _texts_of_scripts("page/page", "playground/playground")
        | {Predictor.load(name).checkpoint.config.title for name in names}
        | {"The project"}  # the link of `export page --project`
    )


def _forms(language: str) -> list[tuple[str, str]]:
    words = words_in_language(language).items()
    return [(key, form) for key, value in words for form in (value.values() if isinstance(value, dict) else [value])]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_translation_has_exactly_the_texts_of_the_pages(language: str) -> None:
    assert set(words_in_language(language)) == said()


@pytest.mark.parametrize("language", LANGUAGES)
def test_placeholders_and_emphasis_are_the_same_in_each_language(language: str) -> None:
    code = script("page/page", "playground/playground").replace("\\u00a0", "\u00a0")
    singular = {many: one for one, many in SINGULAR.findall(code)}
    assert all("other" in value for value in words_in_language(language).values() if isinstance(value, dict))
    for english, other in _forms(language):
        allowed = [sorted(BRACES.findall(text)) for text in (english, singular.get(english, english))]
        assert sorted(BRACES.findall(other)) in allowed, english
        assert english.count("*") == other.count("*"), english


def _data(page: bytes) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="page-data">(.*)</script>', page.decode("utf-8"))
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_a_page_carries_all_languages_in_few_bytes(tmp_path: Path) -> None:
    page = export_page(["who_won"], tmp_path / "page", single_file=True).read_bytes()
    for languages in (_data(page)["languages"], _data(playground())["languages"]):
        assert tuple(languages) == ("en", *LANGUAGES)
        assert all(len(texts) <= MOST_BYTES for texts in languages.values())


def test_a_page_exported_in_a_language_has_only_that_one(tmp_path: Path) -> None:
    page = export_page(["who_won"], tmp_path / "page", single_file=True, language="de").read_bytes()
    for data in (_data(page), _data(playground(language="de"))):
        assert data["language"] == "de" and set(data["languages"]) == {"en", "de"}
    assert _data(playground(language="en"))["languages"] == {}
    with pytest.raises(CheckpointError, match="'eo'; expected one of en, de"):
        page_languages(only="eo")
