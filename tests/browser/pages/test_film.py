"""The page Training film in a browser: slider, keys and play button work without the server."""

import re
from html import unescape

import numpy as np
import pytest
from playwright.sync_api import Page, WebSocket, expect

from tests.app.film import FILMED
from tests.browser.conftest import Server
from tests.browser.visiting import query, settle, text_box, visit
from txcls import figures
from txcls.inference.predictor import Predictor
from txcls.inspection.training_film import TrainingFilm, training_film

TEXT = "voters went to the polls"
FILM = ".film .maps canvas"
PIXELS = """(canvas) => {
  const {width, height} = canvas
  return [...canvas.getContext("2d").getImageData(0, 0, width, height).data]
}"""


@pytest.fixture(scope="module")
def classifier(server: Server) -> Predictor:
    return Predictor.load(server.log.parent / "checkpoints" / FILMED)


@pytest.fixture(scope="module")
def film(classifier: Predictor) -> TrainingFilm:
    return training_film(classifier, TEXT)


def percent(share: float) -> str:
    return unescape(figures.percent(round(float(share), 6)))


def bars(page: Page) -> list[tuple[str, str]]:
    """The class and probability of each bar, from top to bottom."""
    items = page.locator(".film .classes li:visible").evaluate_all(
        """(items) => items
          .map((item) => ({item, top: Number(/\\* ([\\d.]+)/.exec(item.style.top)?.[1] ?? 0)}))
          .sort((one, other) => one.top - other.top)
          .map(({item}) => [...item.querySelectorAll("span")].map((span) => span.textContent).filter(Boolean))"""
    )
    return [(name.removesuffix(" ★"), value) for name, value in items]


def expected_bars(film: TrainingFilm, classes: tuple[str, ...], n: int) -> list[tuple[str, str]]:
    order = np.argsort(-film.probabilities[n], kind="stable")
    return [(classes[index], percent(film.probabilities[n, index])) for index in order]


def listen(page: Page) -> list[object]:
    """A list that collects everything the browser sends to the server from now on."""
    sent: list[object] = []

    def watch(socket: WebSocket) -> None:
        socket.on("framesent", lambda frame: sent.append(frame))

    page.on("websocket", watch)
    return sent


def test_slider_keys_and_play_show_every_state_without_the_server(
    page: Page, server: Server, classifier: Predictor, film: TrainingFilm
) -> None:
    sent = listen(page)
    visit(page, server, "film", wait_for=FILM, checkpoint=FILMED, text=TEXT)
    assert sent, "the run that drew the page was asked for"
    slider = page.get_by_role("slider", name="Snapshot of the training run")
    expect(slider).to_have_value("0")
    settle(page)
    page.wait_for_load_state("networkidle")
    before = len(sent)
    seen = []
    slider.focus()
    for n, row in enumerate(film.rows):
        expect(page.locator(".film .where")).to_have_text(f"Step {row.step} of 12")
        assert bars(page) == expected_bars(film, classifier.classes, n)
        figures = f"validation: accuracy {percent(row.validation_accuracy)}, loss {row.validation_loss:.2f}"
        expect(page.locator(".film .figures")).to_contain_text(figures)
        lens = page.locator(".film .lens li .value").all_text_contents()
        assert lens == [percent(share) for share in film.lens[n].max(axis=-1)]
        seen.append(page.locator(FILM).first.evaluate(PIXELS))
        page.keyboard.press(("ArrowRight", "PageDown")[n % 2])
    assert len({tuple(pixels) for pixels in seen}) == len(film.rows), "the maps change with the state"
    expect(slider).to_have_value("5")
    last = f"step 12 of 12: {classifier.classes[film.predicted[-1]]}, {percent(film.probabilities[-1].max())}"
    expect(slider).to_have_attribute("aria-valuetext", last)
    expect(page).to_have_url(re.compile("training_step=12"))
    page.keyboard.press("Space")  # plays from the beginning to the end
    expect(page.locator(".film .play")).to_contain_text("Pause")
    expect(page.locator(".film .where")).to_contain_text("Step 2 ")
    expect(page.locator(".film .play")).to_contain_text("Play again")
    expect(slider).to_have_value("5")
    page.keyboard.press("PageUp")
    expect(slider).to_have_value("4")
    box = slider.bounding_box()
    assert box
    slider.click(position={"x": 9, "y": box["height"] / 2})
    expect(page.locator(".film .where")).to_contain_text("Step 0 ")
    expect(page).not_to_have_url(re.compile("training_step"))
    assert len(sent) == before, "nothing was asked of the server"
    first = max([n + 1 for n, answer in enumerate(film.predicted) if answer != film.predicted[-1]], default=0)
    found = f"from step {film.rows[first].step} on is" if first else "from the start."
    expect(page.locator(".film .finding")).to_contain_text(found)
    page.get_by_label("Guess first").check()
    expect(page.locator(".film .finding")).to_have_text("Press Play to watch the model train.")
    maps = page.get_by_role("button", name=re.compile("enlarge$"))
    assert maps.last.locator(".keys span").all_text_contents() == TEXT.split()


def test_the_step_stays_in_the_link_when_the_text_changes_and_opens_again(page: Page, server: Server) -> None:
    visit(page, server, "film", wait_for=FILM, checkpoint=FILMED, text=TEXT, training_step=3)
    expect(page.locator(".film .where")).to_have_text("Step 3 of 12")
    page.locator("h1").click()
    page.keyboard.press("PageDown")
    expect(page).to_have_url(re.compile("training_step=5"))
    text_box(page).fill("the bank raised its rates")
    page.wait_for_url(re.compile("bank"))
    settle(page)
    expect(page.locator(".film .where")).to_have_text("Step 5 of 12")
    expect(page).to_have_url(re.compile("training_step=5"))  # the film writes its step 200 ms after the server
    assert query(page)["text"] == "the bank raised its rates"
    page.reload()
    page.wait_for_selector(FILM)
    expect(page.locator(".film .where")).to_have_text("Step 5 of 12")
    text_box(page).press("PageDown")
    text_box(page).press("Space")
    expect(page.locator(".film .where")).to_have_text("Step 5 of 12")  # keys in the text box do not move the film
