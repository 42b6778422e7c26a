"""The page on which visitors train a model, opened from a file in a real Chromium without a server."""

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.browser.conftest import PATIENCE_MS, Server, Watch
from tests.browser.visiting import visit
from txcls.checkpoint.archive import unpack
from txcls.classifier import load
from txcls.data.generated.who_won import Form, make_report
from txcls.lessons import given_lesson
from txcls.lessons.page_address import PLAYGROUND
from txcls.web.join_scripts import script
from txcls.web.lesson import export_lesson
from txcls.web.playground import export_playground, playground
from txcls.wording import bounded_percentage

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

TABLE = "message;topic\n" + "".join(
    f"{text};{label}\n"
    for n in range(12)
    for text, label in ((f"my parcel {n} is late", "delivery"), (f'"reset; my password {n}"', "account"))
)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    return export_playground(tmp_path_factory.mktemp("playground") / "page").as_uri()


@pytest.fixture
def offline(browser: "Browser") -> "Iterator[Page]":
    """A page without a network; errors and requests for anything other than a file fail the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(PATIENCE_MS)
    context.set_offline(True)
    watch = Watch()
    page = context.new_page()
    watch.on(page, "")
    yield page
    context.close()
    assert not watch.problems


def train(page: "Page", steps: int) -> None:
    page.get_by_role("button", name="▶ Train").click()
    page.wait_for_function("(steps) => Number(document.documentElement.dataset.steps) >= steps", arg=steps)
    page.get_by_role("button", name="❚❚ Pause").click()
    page.wait_for_function("() => (({steps, evaluated}) => steps === evaluated)(document.documentElement.dataset)")


def save(page: "Page", file: Path) -> Path:
    with page.expect_download() as download:
        page.get_by_role("button", name="Save model").click()
    download.value.save_as(file)
    return file


def steps_of(page: "Page") -> int:
    """The number of steps that the model has been trained."""
    return int(page.locator("html").get_attribute("data-steps") or 0)


def accuracy(page: "Page") -> float:
    match = re.search(r"([\d.]+)\s%", page.locator("#accuracy").inner_text())
    assert match
    return float(match[1])


def test_a_model_learns_and_everything_follows(offline: "Page", address: str) -> None:
    offline.goto(f"{address}#task=majority&layers=1&width=16&rate=0.01")
    expect(offline.locator("#progress")).to_contain_text("bag-of-words baseline:")
    expect(offline.locator("#reading-note")).to_have_text("Not trained yet: the weights are random.")
    before = offline.locator(".machine-head canvas").first.evaluate("(canvas) => canvas.toDataURL()")
    train(offline, 150)
    expect(offline.locator(".line-1")).to_have_count(2)
    assert accuracy(offline) > 85
    assert offline.locator(".machine-head canvas").first.evaluate("(canvas) => canvas.toDataURL()") != before
    offline.locator("#text").fill("red red red blue lamp stone river")
    expect(offline.locator(".machine-bars li").first).to_contain_text("red")
    offline.locator(".machine-head").first.click()
    expect(offline.locator(".machine-bar p")).to_have_text(
        re.compile(r" ?Head 1\.1 set to zero: (red|blue) .*% \(with all heads on: .*%\)\.")
    )
    offline.get_by_role("button", name="Reset").click()
    expect(offline.locator("#progress")).to_contain_text("not trained yet")


def test_links_may_set_what_the_menus_offer(offline: "Page", address: str) -> None:
    offline.goto(address)
    menus = offline.locator("select").evaluate_all(
        "(all) => all.map((menu) => [...menu.options].map((one) => one.value))"
    )
    offered = [tuple(values) for values in menus if values != ["0", "100", "1000"]]
    expected = [values for name, values in PLAYGROUND.items() if name not in ("task", "lesson")]
    assert offered == [tuple(name for name in PLAYGROUND["task"] if name != "own"), *expected]
    for step in PLAYGROUND["lesson"]:
        offline.goto("about:blank")
        offline.goto(f"{address}#lesson={step}")
        expect(offline.locator("#lesson b")).to_contain_text(f"Build one, {step} of {len(PLAYGROUND['lesson'])}")
        expect(offline.locator("#tasks")).to_have_value("ends")
        assert offline.url.endswith(f"#lesson={step}")
        assert offline.locator("#text").input_value()
    offline.get_by_role("button", name="Close").click()
    assert offline.url.endswith("#task=ends&rate=0.1")


def test_a_link_opens_the_same_task_settings_and_sentence(offline: "Page", address: str) -> None:
    offline.goto(f"{address}#task=winner&width=16&rate=0.01")
    sentence = "Albion & City? 100 % beaten by County #1"
    offline.locator("#text").fill(sentence)
    offline.get_by_label("Seed").select_option("4")
    offline.locator("#text").press("Enter")
    link = offline.url
    offline.goto("about:blank")
    offline.goto(link)
    expect(offline.locator("#text")).to_have_value(sentence)
    expect(offline.locator("#tasks")).to_have_value("winner")
    for label, value in (
        ("Width", "16"),
        ("Learning rate", "0.01"),
        ("Seed", "4"),
        ("Layers", "2"),
    ):
        expect(offline.get_by_label(label)).to_have_value(value)
    assert offline.url == link
    offline.locator("#tasks").select_option("majority")
    assert offline.locator("#text").input_value() != sentence and "text=" not in offline.url


def test_a_model_of_an_own_table_opens_in_python_and_again_in_the_page(
    offline: "Page", address: str, tmp_path: Path
) -> None:
    def train_on(table: str) -> None:
        offline.locator("#table").fill(table)
        offline.get_by_role("button", name="Train on this table").click()

    offline.goto(f"{address}#layers=1&width=16&rate=0.01&batch=8&pooling=class_token&positions=learned")
    offline.get_by_text("Your own table").click()
    train_on("one\ntwo")
    expect(offline.locator("#table-problem")).to_contain_text("Expected two, texts and labels")
    train_on(TABLE)
    expect(offline.get_by_label("Speed")).to_have_value("100")
    offline.get_by_label("Speed").select_option("full speed")
    expect(offline.locator("#progress")).to_contain_text("Paused: the 18 training texts are learned. Judge the model")
    expect(offline.get_by_role("button", name="▶ Train")).to_be_visible()
    offline.locator("#text").fill("parcel is late, dear")
    expect(offline.locator("#reading-note")).to_have_text(
        "Do not trust this answer: the model was not trained on 2 of these 5 words (“,”, “dear”)."
    )
    offline.locator("#text").fill("parcel is late")
    expect(offline.locator("#reading-note")).to_be_empty()
    first_bar = offline.locator(".machine-bars li").first
    expect(first_bar).to_contain_text("delivery")
    file, steps = save(offline, tmp_path / "model.zip"), steps_of(offline)
    unpack(file, tmp_path, name="mine")
    prediction = load(tmp_path / "mine")("parcel is late")
    assert prediction.label == "delivery" and prediction.probability is not None
    assert bounded_percentage(prediction.probability) in first_bar.inner_text()

    # The page loads it without its table: it classifies, and is trained further once it has a table.
    offline.goto("about:blank")
    offline.goto(address)
    offline.locator("#model").set_input_files(file)
    expect(offline.locator("#problem")).to_contain_text("has the classes “account”, “delivery”; this task has others")
    offline.locator("#text").fill("parcel is late")
    expect(first_bar).to_contain_text("delivery")
    for name in ("▶ Train", "One step"):
        offline.get_by_role("button", name=name).click()
    expect(offline.get_by_role("button", name="▶ Train")).to_be_visible()
    offline.locator("#own summary").click()
    train_on(TABLE)
    expect(offline.locator("#problem")).to_be_hidden()
    expect(offline.locator("#progress")).to_contain_text("training texts are learned")
    assert steps_of(offline) > steps
    offline.get_by_role("button", name="Reset").click()
    expect(offline.locator("#progress")).to_contain_text("not trained yet")


def test_nothing_moves_when_a_head_is_switched_off(offline: "Page", address: str) -> None:
    for width in (390, 1280):
        offline.set_viewport_size({"width": width, "height": 844})
        offline.goto("about:blank")
        offline.goto(f"{address}#task=ends&width=16")
        expect(offline.locator("#progress")).to_contain_text("not trained yet")
        places = (
            "() => ['.machine-stage', '#reading-note', '#errors'].map((one) => document.querySelector(one).offsetTop)"
        )
        before = offline.evaluate(places)
        for head in range(4):
            offline.locator(".machine-head").nth(head).click()
            offline.mouse.move(2, 2)
            expect(offline.locator(".machine-bar p")).to_contain_text("set to zero")
            assert offline.evaluate(places) == before


def shown_bars(page: "Page") -> list[str]:
    return page.locator(".machine-bars li").all_inner_texts()


def test_a_saved_model_is_loaded_gives_the_same_answers_and_is_trained_further(
    offline: "Page", address: str, tmp_path: Path
) -> None:
    offline.goto(f"{address}#task=majority&layers=1&width=16&rate=0.01&seed=3&pooling=attention")
    train(offline, 60)
    expect(offline.locator("#accuracy")).not_to_be_empty()
    first = save(offline, tmp_path / "first.zip")
    before, right = shown_bars(offline), accuracy(offline)
    offline.goto("about:blank")
    offline.goto(address)
    expect(offline.locator("#progress")).to_contain_text("not trained yet")
    offline.locator("#model").set_input_files(first)
    expect(offline.locator("#progress")).to_contain_text("loaded model, step ")
    assert offline.locator("#problem").is_hidden()
    for label, value in (("Layers", "1"), ("Width", "16"), ("Learning rate", "0.01"), ("Seed", "3")):
        expect(offline.get_by_label(label)).to_have_value(value)
    expect(offline.locator("#tasks")).to_have_value("majority")
    assert "task=majority" in offline.url and "seed=3" in offline.url
    assert shown_bars(offline) == before and accuracy(offline) == right
    resaved = save(offline, tmp_path / "again.zip")
    texts = ["red blue lamp red blue red stone", "blue blue red"]
    probabilities = []
    for number, file in enumerate((first, resaved)):
        unpack(file, tmp_path, name=f"model{number}")
        probabilities.append([dict(one.probabilities) for one in load(tmp_path / f"model{number}")(texts)])
    for one, other in zip(*probabilities, strict=True):
        assert one == pytest.approx(other, abs=1e-6)
    assert bounded_percentage(max(probabilities[0][0].values())) in before[0]
    train(offline, steps_of(offline) + 20)
    expect(offline.locator("#progress")).to_contain_text(re.compile(r"^step .* texts/s"))
    assert accuracy(offline) > right - 15
    # As programs that unpack and pack it again do: deflated, with files of their own.
    with (
        zipfile.ZipFile(tmp_path / "packed.zip", "w", zipfile.ZIP_DEFLATED) as target,
        zipfile.ZipFile(first) as source,
    ):
        for name in source.namelist():
            target.writestr(f"renamed/{name.rpartition('/')[2]}", source.read(name))
            target.writestr(f"__MACOSX/._{name.rpartition('/')[2]}", b"not JSON")
    offline.locator("#model").set_input_files(tmp_path / "packed.zip")
    expect(offline.locator("#progress")).to_contain_text("loaded model, step ")
    assert shown_bars(offline) == before


def changed(archive: Path, name: str, change: Callable[[bytes], bytes]) -> bytes:
    """The archive with one member's content changed, or without this member if its new content is empty."""
    out = io.BytesIO()
    with zipfile.ZipFile(archive) as source, zipfile.ZipFile(out, "w") as target:
        for member in source.namelist():
            content = source.read(member)
            if not member.endswith(name) or (content := change(content)):
                target.writestr(member, content)
    return out.getvalue()


def test_files_that_are_no_model_of_the_page_are_refused_with_a_sentence(
    offline: "Page", address: str, tmp_path: Path
) -> None:
    offline.goto(f"{address}#task=majority&layers=1&width=16")
    expect(offline.locator("#progress")).to_contain_text("not trained yet")
    file = save(offline, tmp_path / "model.zip")
    archive = file.read_bytes()
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as target:
        target.writestr("model.safetensors", bytes(20_000_000))

    def replaced(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
        return lambda content: content.replace(old, new, 1)

    def config(old: bytes, new: bytes) -> bytes:
        return changed(file, "config.json", replaced(old, new))

    def weights(change: Callable[[bytes], bytes]) -> bytes:
        return changed(file, "model.safetensors", change)

    markup = b'"<img src=x onerror=alert(1)>"'
    cases = [
        (b"text,label\n", "This is not a zip file."),
        (b"", "This is not a zip file."),
        (archive[:-30], "This is not a zip file."),
        (
            archive[: len(archive) // 2] + b"damage" + archive[len(archive) // 2 + 6 :],
            "model.safetensors in it is damaged",
        ),
        (archive[:-22] + archive[-22:-6] + b"\xff\xff\xff\x7f\0\0", "damaged"),
        (b"x" * 11_000_000, "11.0 MB"),
        (bomb.getvalue(), "too large"),
        (changed(file, "labels.json", lambda _: b""), "There is no labels.json in it"),
        (changed(file, "labels.json", lambda _: b'["red"]'), "Expected 2 to 60 different classes"),
        (changed(file, "labels.json", lambda _: b'["red","blue","green"]'), "shape of head.weight is [2,16]"),
        (changed(file, "labels.json", lambda _: b"{"), "damaged, or is not a model"),
        (changed(file, "tokenizer.json", replaced(b'"<unk>"', b'"unknown"')), "Its vocabulary"),
        (config(b'"d_model":16', b'"d_model":128'), "its width is 128; expected 16, 32, 64"),
        (config(b'"d_model":16', b'"d_model":' + markup), "its width is"),
        (config(b'"n_layers":1', b'"n_layers":1e9'), "its layers is 1000000000"),
        (config(b'"d_ff":32', b'"d_ff":64'), "its d_ff is 64; expected 32"),
        (config(b'"temperature":1', b'"temperature":2'), "its calibration"),
        (weights(replaced(b"head.weight", b"head.wright")), "Its weights lack head.weight"),
        (weights(lambda content: content[:-4] + b"\0\0\xc0\x7f"), "damaged"),
        (weights(lambda content: content[:-4]), "damaged"),
        (weights(lambda content: b"\xff" * 8 + content[8:]), "damaged"),
    ]
    for number, (content, problem) in enumerate(cases):
        name = f"model {number}.zip"
        offline.locator("#model").set_input_files({"name": name, "mimeType": "application/zip", "buffer": content})
        expect(offline.locator("#problem")).to_contain_text(f"{name} was not loaded.")
        expect(offline.locator("#problem")).to_contain_text(problem)
    assert offline.locator("#problem img").count() == 0
    expect(offline.locator("#progress")).to_contain_text("not trained yet")


def test_training_on_a_generated_task_pauses_once_it_is_learned(offline: "Page", address: str) -> None:
    offline.goto(f"{address}#task=majority&layers=1&width=32&rate=0.01")
    offline.get_by_role("button", name="▶ Train").click()
    expect(offline.locator("#progress")).to_contain_text("· Paused: ", timeout=120_000)
    expect(offline.locator("#progress")).to_contain_text("Press Train to continue.")
    boxes = offline.locator("#loss-curves text").evaluate_all("""(all) => all.map((one) => {
      const {left, right, top, bottom} = one.getBoundingClientRect()
      return [left, right, top + 3, bottom - 3]
    })""")
    for n, (left, right, top, bottom) in enumerate(boxes):
        assert not [
            box for box in boxes[:n] if box[2] < bottom and top < box[3] and left < box[1] + 8 and box[0] < right + 8
        ]
    train(offline, steps_of(offline) + 50)
    expect(offline.locator("#progress")).to_contain_text("Paused")


@pytest.mark.parametrize("theme, width", [("light", 1280), ("dark", 390)])
def test_axe_finds_nothing(browser: "Browser", address: str, theme: Any, width: int) -> None:
    page = browser.new_page(color_scheme=theme, viewport={"width": width, "height": 5000})
    page.goto(f"{address}#task=majority&layers=1&width=16")
    page.evaluate("() => document.querySelectorAll('details').forEach((one) => { one.open = true })")
    page.get_by_role("button", name="Lesson: build one").click()
    expect(page.locator("#what")).to_contain_text("Press Train")
    expect(page.locator("#curves .name-1").first).to_be_attached()
    expect(page.locator("#curves")).not_to_contain_text("step")
    page.get_by_role("button", name="One step").click()
    expect(page.locator("#progress")).to_contain_text("step 1 ")
    expect(page.locator("#what")).to_contain_text("Change the sentence")
    expect(page.locator("#what")).not_to_contain_text("Press Train")
    expect(page.locator("#curves")).to_contain_text("step 1")
    expect(page.locator("#wrong button").first).to_be_visible()
    violations = Axe().run(page).response["violations"]
    assert [(one["id"], [node["html"][:120] for node in one["nodes"]]) for one in violations] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_the_lesson_asks_trains_and_shows_the_answer(offline: "Page", address: str) -> None:
    offline.goto(address)
    offline.get_by_role("button", name="Lesson: build one").click()
    expect(offline.get_by_label("Layers")).to_have_value("0")
    offline.get_by_role("button", name="About half: it guesses").click()
    expect(offline.locator("#lesson [role=status]")).to_contain_text("You were right", timeout=60_000)
    offline.get_by_role("button", name="Next", exact=True).click()
    expect(offline.get_by_label("Positions")).to_have_value("none")


LESSON = """
title: One step
language: en
minutes: 1
summary: A lesson
steps:
  - title: Without positions
    page: classify
    checkpoint: who_won
    text: United beat Rovers.
    state: {playground: "task=winner&positions=none"}
    narration: Train it.
"""


def test_a_step_of_a_lesson_opens_the_playground_with_its_settings(offline: "Page", tmp_path: Path) -> None:
    (tmp_path / "mine.en.yaml").write_text(LESSON, encoding="utf-8")
    lesson = given_lesson(tmp_path / "mine.en.yaml")
    offline.goto(export_lesson(lesson, tmp_path / "without", single_file=True).as_uri())
    expect(offline.locator("#lesson")).to_contain_text("Train it.")
    expect(offline.get_by_role("link", name="playground")).to_have_count(0)
    expect(offline.get_by_role("link", name="Train a Transformer")).to_be_hidden()
    offline.goto(export_lesson(lesson, tmp_path / "with", single_file=True, with_playground=True).as_uri())
    expect(offline.get_by_role("link", name="Train a Transformer")).to_be_visible()
    with offline.expect_popup() as opened:
        offline.get_by_role("link", name="Train one yourself in the playground").click()
    expect(opened.value.locator("#tasks")).to_have_value("winner")
    expect(opened.value.get_by_label("Positions")).to_have_value("none")


def test_the_app_shows_the_page_in_a_frame_with_its_settings_in_the_address(page: "Page", server: Server) -> None:
    visit(page, server, "playground", wait_for="iframe", playground="task=ends&layers=0")
    frame = page.frame_locator("iframe")
    expect(frame.locator("#progress")).to_contain_text("bag-of-words baseline:")
    expect(frame.locator("#tasks")).to_have_value("ends")
    expect(frame.get_by_label("Layers")).to_have_value("0")
    frame.get_by_label("Layers").select_option("3")
    frame.get_by_role("button", name="One step").click()
    expect(frame.locator("#progress")).to_contain_text("step 1 ")
    page.wait_for_url(re.compile("playground=task%3Dends%26layers%3D3"))
    page.get_by_test_id("stPopover").get_by_role("button").first.click()  # a run of the server
    expect(page.get_by_text("“Copy link” on the page copies the current ones")).to_be_visible()
    assert "playground=task%3Dends%26layers%3D3" in page.url
    expect(frame.locator("#progress")).to_contain_text("step 1 ")
    page.reload()
    expect(frame.get_by_label("Layers")).to_have_value("3")


def test_in_a_small_window_of_the_app_the_settings_and_the_picture_are_in_view(page: "Page", server: Server) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    visit(page, server, "playground", wait_for="iframe")
    frame = page.frame_locator("iframe")
    expect(frame.get_by_text("Press Train: a small Transformer learns this task")).to_be_visible()
    frame.get_by_role("button", name="One step").click()
    expect(frame.locator("#progress")).to_contain_text("step 1 ")
    task, train, layers, positions, sentence = (
        control.bounding_box() or {}
        for control in (
            frame.locator("#tasks"), frame.get_by_role("button", name="▶ Train"), frame.get_by_label("Layers"),
            frame.get_by_label("Positions"), frame.locator("#text"),
        )
    )  # fmt: skip
    assert task["y"] < train["y"] < min(layers["y"], sentence["y"]) and layers["x"] + 300 < sentence["x"]
    assert positions["width"] >= 100, "room for “sinusoidal”"
    bars = frame.locator(".machine-bars li").last.bounding_box()
    assert bars and bars["y"] + bars["height"] < 800


def test_the_page_is_small_and_asks_no_server() -> None:
    html = playground()
    assert len(html) <= 300_000
    assert b"default-src &#x27;none&#x27;" in html and b"connect-src" not in html


@pytest.fixture(scope="module")
def tables(browser: "Browser") -> "Iterator[Page]":
    """An empty page with the modules that read tables and generate tasks."""
    page = browser.new_page()
    code = script("playground/training/table", "playground/training/tasks", "playground/training/optimizer")
    names = "readTable, tasksOf, randomNumbers, withHeldOut"
    page.add_script_tag(content=f"{code}\nObject.assign(globalThis, {{{names}}})", type="module")
    page.wait_for_function("() => typeof tasksOf === 'function'")
    yield page
    page.close()


@pytest.mark.parametrize(
    "content, rows",
    [
        ("a,x\nb,y\n" * 3, [["a", "x"], ["b", "y"]] * 3),
        ("label\ttext\r\n" + "x\tone, two\r\ny\tthree\r\n" * 3, [["one, two", "x"], ["three", "y"]] * 3),
        ("one, two, three\tx\nfour\ty\n" * 3, [["one, two, three", "x"], ["four", "y"]] * 3),
        ("one, two, three,x\nfour,y\n" * 3, [["one, two, three", "x"], ["four", "y"]] * 3),
        ("x,one, two\ny,three\n" * 9, [["one, two", "x"], ["three", "y"]] * 9),
        (
            "id;text;label\n" + "".join(f"{n};one; two;x\n{n}0;three;y\n" for n in range(4, 8)),
            [["one; two", "x"], ["three", "y"]] * 4,
        ),
        ("a,x\nb,y\n" * 10 + "no label\n", [["a", "x"], ["b", "y"]] * 10),
        ('text,label\n"a ""b"", c\nd",x\n' + "e f,y\n" * 5, [['a "b", c\nd', "x"], *[["e f", "y"]] * 5]),
    ],
)
def test_pasted_tables_are_read(tables: "Page", content: str, rows: list[list[str]]) -> None:
    assert tables.evaluate("(c) => readTable(c).rows.map(({text, label}) => [text, label])", content) == rows


@pytest.mark.parametrize(
    "content, problem",
    [
        ("a\n" * 9, "one column"),
        ("a,x\nb,y\n", "Rows: 2. Expected at least 6"),
        ("".join(f"text {n},{n % 21}\n" for n in range(42)), "at most 20"),
        ("a,x\nb,x\nc,x\nd,x\ne,x\nf,x\ng,x", "same label"),
    ],
)
def test_tables_of_no_use_are_refused_with_a_sentence(tables: "Page", content: str, problem: str) -> None:
    message = tables.evaluate("(c) => { try { readTable(c) } catch (error) { return error.message } }", content)
    assert problem in message


@pytest.mark.parametrize("sizes, held_out", [((10, 10), (2, 2)), ((3, 3), (1, 1)), ((21, 2, 1), (5, 1, 0))])
def test_a_fifth_of_each_class_is_held_out(tables: "Page", sizes: tuple[int, ...], held_out: tuple[int, ...]) -> None:
    rows = [{"text": "a", "label": str(label)} for label, size in enumerate(sizes) for _ in range(size)]
    split = tables.evaluate("(rows) => withHeldOut(rows, randomNumbers(3))", rows)
    assert [sum(row["heldOut"] for row in split if row["label"] == str(n)) for n in range(len(sizes))] == list(held_out)


def test_generated_texts_have_the_right_labels(tables: "Page") -> None:
    rows: dict[str, Any] = tables.evaluate(
        """(grammar) => Object.fromEntries(tasksOf({messages: {}, grammar}).filter(({name}) => name !== "messages").map(
          (task) => [task.name, task.rows(randomNumbers(5)).map(({text, label}) => [text, label])]))""",
        GRAMMAR,
    )
    for text, label in rows["repeated"]:
        words = text.split()
        assert label == ("repeated" if len(set(words)) < 5 else "all different") and len(words) == 5
    for text, label in rows["ends"]:
        words = text.split()
        assert label == ("same ends" if words[0] == words[-1] else "different ends")
        assert len(words) == 6 and len(set(words)) == 5
    for text, label in rows["majority"]:
        words = text.split()
        assert (words.count("red") > words.count("blue")) == (label == "red") and len(words) == 7
    for text, label in rows["agreement"]:
        subject = re.match(r"(?:\w+ the \w+, t|T)he (\w+) .*___", text)
        assert subject, text
        is_plural = subject[1].endswith("s") or subject[1] in ("children", "men", "mice", "women")
        assert label == ("are" if is_plural else "is"), text
    for task in ("agreement", "repeated", "ends", "majority"):
        shares = [label for _, label in rows[task]]
        assert 0.4 < shares.count(shares[0]) / len(shares) < 0.6
    for text, winner in rows["winner"]:
        assert_is_a_report(text, winner)


GRAMMAR = {
    "verbs": {"beat": "beaten", "edged": "edged", "overcame": "overcome"},
    "inverse": ["lost", "fell"],
    "manners": ["easily"],
    "endings": ["yesterday", "at home"],
    "teams": ["Albion", "Athletic", "City", "County"],
}
REPORT = re.compile(
    r"(\w+)(?:, who (\w+)( to)? (\w+) last week,)? (were )?(?:(easily) )?"
    r"(\w+)( to| by)? (\w+)(?: (yesterday|at home))?\."
)


def assert_is_a_report(text: str, winner: str) -> None:
    """Check that Python's grammar produces the same sentence for the same winner."""
    match = REPORT.fullmatch(text)
    assert match, text
    first, other_verb, other_to, third, were, manner, verb, particle, second, ending = match.groups()
    main = "passive" if were else "inverse" if particle else "active"
    past = next((past for past, participle in GRAMMAR["verbs"].items() if participle == verb), verb) if were else verb  # type: ignore[attr-defined]
    relative = () if third is None else (("first", "lost to" if other_to else "beat", other_verb, "last week", 0),)
    form = Form(main=main, verb=past, relatives=relative, manner=manner or "", ending=ending or "")  # type: ignore[arg-type]
    loser = second if winner == first else first
    written = make_report(form, winner=winner, loser=loser, others=[third] if third else [])
    assert written.text == text
