import re
from functools import cache
from xml.etree import ElementTree

import pytest

from txcls.inference.predictor import Predictor
from txcls.lessons import find_lesson, worksheet
from txcls.lessons.markup import to_html, to_inline_html
from txcls.lessons.worksheet import picture_of

load = cache(Predictor.load)


@pytest.mark.parametrize("language", ["en", "de"])
def test_answers_are_on_a_separate_page_after_all_questions(language: str) -> None:
    lesson = find_lesson("tokens", language)
    page = worksheet.worksheet(lesson, load)
    questions, _, answers = page.partition('<section class="answers">')
    assert f'<html lang="{language}">' in page and ".answers {break-before: page;" in page
    for step in lesson.steps:
        assert step.question is not None
        assert to_inline_html(step.question.ask) in questions
    assert "form-action 'none'" in page
    assert "Hackett" in answers and "hack + ett" in page
    assert not re.search(r"(src|href)=|https?://(?!www\.w3\.org)|<script", page)


@pytest.mark.parametrize("name", ["tokens", "attention", "positions", "explanation", "training", "errors"])
def test_every_step_has_a_picture_with_alt_text(name: str) -> None:
    for step in find_lesson(name).steps:
        picture = picture_of(step, load)
        drawn = ElementTree.fromstring(picture.svg)
        assert drawn.get("aria-label", "").startswith(f"{picture.caption}: ") and len(drawn) >= 2


def test_markdown_and_formulas_become_html_and_markup_does_not() -> None:
    rendered = to_html("**bold** $a_i$ and <b onclick=x>no</b>\n\n$$\\frac{1}{2}$$ [a](javascript:alert(1)) `$5`")
    assert "<strong>bold</strong>" in rendered and "<math" in rendered and "<mfrac>" in rendered
    assert "<b " not in rendered and "&lt;b onclick=x&gt;" in rendered and "href" not in rendered
    assert to_inline_html("one *line*") == "one <em>line</em>"
    assert to_html("$\\nonsense{$") and "<p>" in to_html("costs $5 and $ 6")


@pytest.mark.parametrize("name, step", [("errors", 2), ("attention", 2), ("explanation", 3)])
def test_numbers_in_pictures_are_in_the_notation_of_the_language(name: str, step: int) -> None:
    written = re.findall(r">([^<]+)</text>", picture_of(find_lesson(name, "de").steps[step], load, language="de").svg)
    numbers = [text for text in written if re.search(r"\d", text)]
    assert any("," in number for number in numbers) and not any("." in number for number in numbers)
