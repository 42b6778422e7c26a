"""The texts to try."""

import pytest

from txcls.data.examples import ANY, EXAMPLES, QUERIES, REVIEWS, Example, examples_for


def test_examples_are_of_the_kind_that_the_checkpoint_reads() -> None:
    assert examples_for("imdb") is REVIEWS and examples_for("clinc150") is QUERIES
    assert examples_for("table") is ANY and not {one.text for one in ANY} & {one.text for one in EXAMPLES}
    assert examples_for("ag_news") is examples_for("no such set") is EXAMPLES


def test_news_texts_are_short_enough_to_be_drawn_whole() -> None:
    assert all(len(one.text.split()) <= 16 for one in EXAMPLES)


@pytest.mark.parametrize("examples", [EXAMPLES, REVIEWS, QUERIES, ANY], ids=["news", "reviews", "queries", "any"])
def test_no_title_and_no_text_comes_twice(examples: tuple[Example, ...]) -> None:
    assert len({one.title for one in examples}) == len({one.text for one in examples}) == len(examples)
