"""The Neighbourhood page."""

import numpy as np
import pytest

from tests.app.drawn import body_text, figures_of, open_page
from tests.app.tiny import LEARNED, MANY, PAIRS, PLAIN
from txcls.app.pages.neighbourhood import CHOSEN_TEXT
from txcls.app.shell import cached_results, checkpoints
from txcls.data.examples import EXAMPLES

TEXT = "the bank raised its rates again"


@pytest.mark.parametrize("name", [PLAIN, LEARNED, PAIRS, MANY])
def test_words_and_texts_are_drawn_with_their_nearest(name: str) -> None:
    app = open_page("neighbourhood", checkpoint=name, text=TEXT)
    app.toggle(key="with_test_texts").set_value(False).run()
    texts, words = figures_of(app)
    assert words["data"][-1]["name"] == texts["data"][-1]["name"] == "this text"  # type: ignore[index]
    shown = body_text(app)
    token_plane = cached_results.token_plane(checkpoints.source(name), TEXT)
    first = token_plane.text_ids[0]
    assert f" {token_plane.nearest[first][0][1]:.2f}," in shown
    assert f"{len(EXAMPLES)} example texts of this app" in shown
    examples = tuple(example.text for example in EXAMPLES)
    plane = cached_results.text_plane(checkpoints.source(name), TEXT, examples)
    assert f"| {plane.cosines.max():.2f} |" in shown


def test_a_chosen_word_comes_first_with_its_nearest_and_they_are_named_in_the_plot() -> None:
    source = checkpoints.source(PLAIN)
    word = cached_results.token_strings(source).index("goalkeeper")
    app = open_page("neighbourhood", text=TEXT, word=str(word))
    nearest = cached_results.nearest_tokens(source, word)[:6]
    first = next(line for element in app.markdown for line in element.value.splitlines() if line.startswith("| ▶"))
    assert first.startswith("| ▶ **goalkeeper** | ")
    assert [f"{cosine:.2f}".replace("-", "−") in first for _, cosine in nearest] == [True] * 6
    named = figures_of(app)[1]["data"][1]  # type: ignore[index]
    assert set(named["customdata"]) <= {word, *(index for index, _ in nearest)} and word in named["customdata"]


def test_a_clicked_text_has_its_own_nearest_texts_beside_the_plot() -> None:
    app = open_page("neighbourhood", text=TEXT)
    app.toggle(key="with_test_texts").set_value(False).run()
    examples = tuple(example.text for example in EXAMPLES)
    vectors = cached_results.pool_texts(checkpoints.source(PLAIN), examples).vectors
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    app.session_state[CHOSEN_TEXT] = examples[2]
    app.run()
    expected = np.delete(unit @ unit[2], 2).max()
    first = next(
        line for element in app.markdown for line in element.value.splitlines() if line.startswith(("| 0.", "| 1."))
    )
    assert first.startswith(f"| {expected:.2f} |") and examples[2][:20] in body_text(app)


def test_a_slide_shows_only_the_beginnings_of_the_nearest_texts() -> None:
    app = open_page("neighbourhood", text=TEXT, mode="lecture")
    [table] = [element.value for element in app.markdown if "| predicted |" in element.value]
    texts = [row.strip("| ").split(" | ")[2] for row in table.strip().splitlines()[2:]]
    assert len(texts) == 4 and max(map(len, texts)) <= 51
