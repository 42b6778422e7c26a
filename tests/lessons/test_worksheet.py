"""A lesson on paper."""

import re
from functools import cache
from xml.etree import ElementTree

import pytest

from txcls.inspection.stories import HeadAtlas, head_chips
from txcls.inspection.tracing import trace_text
from txcls.lessons import find_lesson
from txcls.lessons.markup import inline, to_html
from txcls.lessons.pictures import picture_of
from txcls.lessons.worksheet import worksheet
from txcls.predictor import Predictor
from txcls.wording import bounded_percentage

load = cache(Predictor.load)


@pytest.mark.parametrize("language", ["en", "de"])
def test_answers_are_on_a_separate_page_after_all_questions(language: str) -> None:
    lesson = find_lesson("tokens", language)
    page = worksheet(lesson, load)
    asked, _, answers = page.partition('<section class="answers">')
    assert f'<html lang="{language}">' in page and ".answers {break-before: page;" in page
    for step in lesson.steps:
        assert step.question is not None
        assert inline(step.question.ask) in asked
    assert "form-action 'none'" in page
    assert "Hackett" in answers and "hack + ett" in page
    assert not re.search(r"(src|href)=|https?://(?!www\.w3\.org)|<script", page)


def test_pictures_that_reveal_the_answer_are_printed_with_the_answers() -> None:
    asked, _, answers = worksheet(find_lesson("attention"), load).partition('<section class="answers">')
    assert asked.count("<svg") == 2  # the maps to read; the map of the step without a question comes first
    assert answers.count("<svg") == 3
    assert "<figcaption>Heat map of the weights of head 2.2: rows are queries, columns keys</figcaption>" in asked
    assert (asked + answers).count("<figcaption>") == 5


@pytest.mark.parametrize("name", ["tokens", "attention", "positions", "explanation", "training", "errors"])
def test_every_step_has_a_picture_with_alt_text(name: str) -> None:
    for step in find_lesson(name).steps:
        picture = picture_of(step, load)
        drawn = ElementTree.fromstring(picture.svg)
        assert drawn.get("aria-label") == picture.alt and len(drawn) >= 2


def test_markdown_and_formulas_become_html_and_markup_does_not() -> None:
    rendered = to_html("**bold** $a_i$ and <b onclick=x>no</b>\n\n$$\\frac{1}{2}$$ [a](javascript:alert(1)) `$5`")
    assert "<strong>bold</strong>" in rendered and "<math" in rendered and "<mfrac>" in rendered
    assert "<b " not in rendered and "&lt;b onclick=x&gt;" in rendered and "href" not in rendered
    assert inline("one *line*") == "one <em>line</em>"
    assert to_html("$\\nonsense{$") and "<p>" in to_html("costs $5 and $ 6")


def test_the_description_of_a_picture_has_its_numbers() -> None:
    lesson = find_lesson("attention")
    model = load("who_won")
    bars = picture_of(lesson.steps[0], load).alt
    ranked = model.predict([lesson.steps[0].text], top_k=5)[0].ranked
    assert all(f"{each.label}, {bounded_percentage(each.probability)}" in bars for each in ranked)
    traced = trace_text(model, lesson.steps[2].text)
    row = traced.attention[1, 1, 0]
    largest = f"<cls>: {traced.tokens[int(row.argmax())].text} {row.max():.2f}"
    assert largest in picture_of(lesson.steps[2], load).alt


def test_the_picture_of_the_atlas_shows_each_heads_verdict() -> None:
    step = next(step for step in find_lesson("explanation").steps if step.page == "atlas")
    atlas = HeadAtlas.of(load(step.checkpoint))
    assert atlas is not None
    alt = picture_of(step, load).alt
    for name, chip in head_chips(atlas).items():
        assert f"{name}: {chip['text']}" in alt


def test_numbers_have_units_and_heads_are_drawn_side_by_side() -> None:
    page = worksheet(find_lesson("explanation"), load)
    assert '<div class="line number">points</div>' in page
    assert '<ul class="options heads">' in worksheet(find_lesson("attention"), load)
    assert "&#x029F5;" not in page, "a sign that most fonts lack"


@pytest.mark.parametrize("name, step", [("errors", 2), ("attention", 2), ("explanation", 3)])
def test_numbers_in_pictures_are_in_the_notation_of_the_language(name: str, step: int) -> None:
    written = re.findall(r">([^<]+)</text>", picture_of(find_lesson(name, "de").steps[step], load, language="de").svg)
    numbers = [text for text in written if re.search(r"\d", text)]
    assert any("," in number for number in numbers) and not any("." in number for number in numbers)
