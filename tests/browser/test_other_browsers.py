"""The exported page, the playground and the home page in Firefox and in WebKit, the engine of Safari."""

from collections.abc import Iterator

import pytest

from tests.browser.conftest import Server
from tests.browser.exported import expected
from tests.browser.webdriver import Window, firefox, webkit
from tests.conftest import TEXTS
from txcls.inference.predictor import Predictor

DEEP = """(() => {
  const all = (root, selector) => [...root.querySelectorAll(selector),
    ...[...root.querySelectorAll("*")].flatMap(({shadowRoot}) => shadowRoot ? all(shadowRoot, selector) : [])];
  const found = all(document, arguments[0]);
  %s
})()"""
"""JavaScript with the elements that a CSS selector matches, those of Streamlit's components included."""


pytestmark = pytest.mark.engines


@pytest.fixture(scope="module", params=["firefox", "webkit"])
def window(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Window]:
    run = firefox if request.param == "firefox" else webkit
    with run(tmp_path_factory.mktemp(request.param)) as opened:
        yield opened


def texts_of(window: Window, selector: str) -> list[str]:
    """The texts of the elements that match."""
    texts: list[str] = window.evaluate(DEEP % "return found.map(({textContent}) => textContent);", selector)
    return texts


def wait_for_answer(window: Window, numbers: list[str]) -> None:
    """Wait until the bars show these percentages, as Python computes them."""
    shows = "return JSON.stringify(found.map(({textContent}) => textContent)) === JSON.stringify(arguments[1]);"
    window.wait_for(DEEP % shows, ".machine-bars .number", numbers)


def assert_picture_is_drawn(window: Window, classifier: Predictor, text: str) -> None:
    """There is a word for each token, ribbons between the lanes, and attention weights in each head's map."""
    tokens = classifier.tokenizer.encode(text).tokens
    assert len(texts_of(window, ".machine-word")) == len(tokens)
    boxes = (
        "return found.map((one) => one.getBoundingClientRect()).filter(({width, height}) => width > 1 && height > 1);"
    )
    assert len(window.evaluate(DEEP % boxes, ".machine-word")) == len(tokens)
    assert len(window.evaluate(DEEP % boxes, ".ribbon")) > len(tokens)
    colours = """return found.map((canvas) => new Set(
      new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size);"""
    maps = window.evaluate(DEEP % colours, ".machine-head canvas")
    assert len(maps) == classifier.checkpoint.config.model.n_layers * classifier.checkpoint.config.model.n_heads
    assert min(maps) > 1


def test_the_exported_page_answers_while_one_types(
    window: Window, single: str, classifiers: dict[str, Predictor]
) -> None:
    classifier = classifiers["first"]
    window.open(single)
    window.wait_for("document.documentElement.dataset.answered")
    window.evaluate("document.getElementById('text').value = ''")
    window.type("#text", TEXTS[0])
    wait_for_answer(window, expected(classifier, TEXTS[0]))
    assert window.evaluate("document.getElementById('text').value") == TEXTS[0]
    assert_picture_is_drawn(window, classifier, TEXTS[0])
    before = texts_of(window, ".machine-bars .number")
    window.click(".machine-head")
    window.wait_for("location.hash.includes('off=')")
    assert texts_of(window, ".machine-bars .number") != before
    window.open("about:blank")
    window.open(f"{single}#text={TEXTS[1].replace(' ', '+')}")
    window.wait_for("document.documentElement.dataset.answered")
    wait_for_answer(window, expected(classifier, TEXTS[1]))


def test_the_playground_trains(window: Window, playground: str) -> None:
    window.open(playground)
    window.wait_for("document.querySelector('.machine-head canvas')")
    window.click("#play")
    window.wait_for("Number(document.documentElement.dataset.steps) >= 20")
    window.click("#play")
    assert window.evaluate("document.getElementById('accuracy').textContent")
    assert window.evaluate("document.getElementById('problem').hidden")


def test_the_home_page_answers_while_one_types(window: Window, server: Server, answers: Predictor) -> None:
    window.open(f"{server.address}/?text=the+bank")
    window.wait_for(DEEP % "return found.length;", ".picture[data-read]")
    wait_for_answer(window, expected(answers, "the bank"))
    box = '[class*="st-key-text_box"] textarea'
    window.wait_for(DEEP % "return found.length;", box)
    window.type(box, " raised its rates")
    text = "the bank raised its rates"
    wait_for_answer(window, expected(answers, text))
    assert_picture_is_drawn(window, answers, text)
    window.wait_for(f"document.querySelector('.txcls-text')?.innerText === {text!r}")  # the server has read it too
    label = str(answers.predict([text])[0].label)
    window.wait_for(f"document.querySelector('.txcls-answer').innerText.includes({label!r})")
    window.wait_for("new URLSearchParams(location.search).get('text') === 'the bank raised its rates'")
