from streamlit.testing.v1 import AppTest

from tests.app.drawn import body_text, html_of, open_page
from tests.app.tiny import PAIRS, PLAIN
from txcls.app.shell import cached_results, checkpoints


def open_tokens(**params: str) -> AppTest:
    return open_page("tokens", **params)


def merges(app: AppTest):  # type: ignore[no-untyped-def]
    return next(slider for slider in app.slider if slider.label == "Merges applied")


def test_steps_that_change_something_show_it_and_the_others_are_named() -> None:
    app = open_tokens(text="The <b>bank</b> raised")
    assert "&lt;b&gt;</del><ins>␣</ins>" in html_of(app) and "<ins>t</ins>he" in html_of(app)
    assert any("No effect on this text: html entities, urls" in element.help for element in app.markdown)


def test_ids_are_those_of_the_encoder() -> None:
    app = open_tokens(text="The bank zyzzyva", section="words")
    encoding = checkpoints.classifier(checkpoints.source(PLAIN)).tokenizer.encode("The bank zyzzyva")
    html = html_of(app)
    for token in encoding.tokens:
        assert f"<i>{token.id}</i>" in html
    assert "zyzzyva<sup>?</sup>" in html
    assert "**1 of 3 words is lost**" in body_text(app)


def test_a_word_too_long_to_follow_is_not_offered() -> None:
    app = open_tokens(text="x" * 100_000, section="merges")
    assert not app.slider
    app = open_tokens(text="bank " + "x" * 100_000, section="merges")
    assert merges(app).max >= 1


def test_both_vocabularies_are_of_the_same_texts() -> None:
    tokenizers = cached_results.tokenizers(checkpoints.source(PAIRS))
    pairs, words = tokenizers.subwords.byte_pairs, tokenizers.words.vocabulary.tokens
    assert pairs is not None and "the" in words
    for word in filter(str.isalpha, words):
        assert len(pairs.parts(word)) == 1, word
