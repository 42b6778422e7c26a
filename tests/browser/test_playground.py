"""The page on which visitors train a model, opened from a file in a real Chromium without a server."""

import base64
import csv
import json
import re
import time
import zipfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Frame, Page, expect

from tests.browser.conftest import Server, offline_page, page_with
from tests.browser.test_hostile_tables import DROP
from tests.browser.test_playground_saving import changed
from tests.browser.visiting import settle, visit, wait_until_steady
from txcls.checkpoint.folders import encoder_folder
from txcls.classifier import load
from txcls.data.generated.sample import open_sample
from txcls.evaluation.metrics import paired_difference, wilson
from txcls.lessons import open_lesson
from txcls.lessons.page_address import PLAYGROUND
from txcls.text.formatting import bounded_percentage
from txcls.web.lesson import export_lesson
from txcls.web.playground import export_playground, page_data
from txcls.web.playground import playground as playground_page

TABLE = "message;topic\n" + "".join(
    f"{text};{label}\n"
    for n in range(12)
    for text, label in ((f"my parcel {n} is late", "delivery"), (f'"reset; my password {n}"', "account"))
)


def messages(n: int, *, topics: int = 4, split: Literal["train", "test"] = "train") -> list[tuple[str, str]]:
    """Messages with their topics, n of each of the first topics, one topic after the other."""
    sample = open_sample()
    rows = sample.load(split)
    found = []
    for topic in range(topics):
        texts = (text for text, label in zip(rows.texts, rows.labels, strict=True) if label == topic)
        found += [(text, sample.classes[topic]) for text in islice(texts, n)]
    return found


def table_of(rows: list[tuple[str, str]]) -> str:
    return "\n".join(["text\tlabel", *("\t".join(row) for row in rows)])


def paste(page: Page, table: str) -> None:
    """Paste a table into the box on the page."""
    page.locator("#table").evaluate(
        """(box, text) => {
          box.focus()
          box.select()
          document.execCommand("insertText", false, text) // like a visitor's, it leads to a change event later
          box.dispatchEvent(new ClipboardEvent("paste", {bubbles: true}))
        }""",
        table,
    )


def wait_for_stage(page: Page, stage: str) -> None:
    page.wait_for_function("(stage) => document.documentElement.dataset.stage === stage", arg=stage, timeout=240_000)


@pytest.fixture(scope="module")
def with_encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a page that contains the encoder."""
    return export_playground(tmp_path_factory.mktemp("playground") / "with_encoder", encoder=True).as_uri()


@pytest.fixture
def phone(browser: Browser) -> Iterator[Page]:
    with offline_page(browser, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True) as page:
        page.set_default_timeout(240_000)
        yield page


def file_of(address: str) -> Path:
    return Path(unquote(urlsplit(address).path))


def train(page: Page | Frame, steps: int) -> None:
    page.get_by_role("button", name="▶ Train").click()
    page.wait_for_function("(steps) => Number(document.documentElement.dataset.steps) >= steps", arg=steps)
    page.evaluate("() => /Pause/.test(play.textContent) && play.click()")  # unless it has paused by itself
    page.wait_for_function("() => (({steps, evaluated}) => steps === evaluated)(document.documentElement.dataset)")


def save(page: Page, file: Path) -> Path:
    with page.expect_download() as download:
        page.get_by_role("button", name="Save model").click()
    download.value.save_as(file)
    return file


LOOKS = (("light", 390), ("dark", 1280))


def assert_accessible(page: Page, *, looks: tuple[tuple[str, int], ...] = LOOKS, rules: object = None) -> None:
    """Axe finds nothing in these themes and widths, and nothing is wider than the window."""
    for theme, width in looks:
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 844})
        wait_until_steady(page)
        violations = Axe().run(page, options={"rules": rules or {}}).response["violations"]
        assert [(one["id"], [node["html"][:120] for node in one["nodes"]]) for one in violations] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def steps_of(page: Page) -> int:
    """The number of steps that the model has been trained."""
    return int(page.locator("html").get_attribute("data-steps") or 0)


def accuracy(page: Page) -> float:
    match = re.search(r"([\d.]+)\s%", page.locator("#accuracy").inner_text())
    assert match
    return float(match[1])


def test_a_model_learns_and_everything_follows(offline: Page, playground: str) -> None:
    offline.goto(f"{playground}#task=majority&layers=1&width=16&rate=0.01")
    expect(offline.locator("#progress")).to_contain_text("not trained yet")
    expect(offline.locator("#reading-note")).to_have_text("Not trained yet: the weights are random.")
    expect(offline.locator(".truth")).to_have_text(re.compile("^[✓✗] true class: red$"))
    before = offline.locator(".machine-head canvas").first.evaluate("(canvas) => canvas.toDataURL()")
    train(offline, 150)
    expect(offline.locator("#curves div > svg path.line-random")).to_have_count(2)
    expect(offline.locator("#accuracy-curves .legend")).to_contain_text(re.compile(r"linear model \d+"))
    expect(offline.locator("#intervals tr")).to_have_count(3)
    expect(offline.locator("#gains")).to_contain_text("The linear model is")
    assert accuracy(offline) > 85
    assert offline.locator(".machine-head canvas").first.evaluate("(canvas) => canvas.toDataURL()") != before
    expect(offline.locator(".truth")).to_have_text("✓ true class: red")
    offline.locator("#text").fill("red red red blue lamp river stone river")
    expect(offline.locator(".machine-bars li").first).to_contain_text("red")
    expect(offline.locator(".truth")).to_be_empty()
    offline.locator(".machine-head").first.click()
    expect(offline.locator(".machine-bar p")).to_have_text(
        re.compile(r" ?Head 1\.1 off \(.*\): (red|blue) .*% \(before: .*%\)\.")
    )
    without = offline.locator("#without")
    expect(without).to_have_text(
        re.compile(r"^Accuracy without it: [\d.]+\s% \(all heads on: [\d.]+\s%\)(\.|: on .* chance\.)$")
    )
    expect(without).to_have_attribute("title", re.compile(r"points \(95\s% interval"))
    offline.locator(".machine-head").first.click()
    offline.locator("#text").fill("red blue red blue lamp river stone")  # the answer is uncertain
    advice = offline.locator(".head-advice")
    expect(advice).to_have_text(re.compile(r"^Head \d\.\d changes this answer most, by \d+ points?\.$"))
    changes = {}
    for head in offline.locator(".machine-head").all():
        head.click()
        sentence = offline.locator(".machine-bar p")
        expect(sentence).to_contain_text(" off (")
        shown = re.search(r"Head (\S+) .*: \w+\D*([\d.]+).*before:\D*([\d.]+)", sentence.inner_text())
        assert shown
        changes[shown[1]] = abs(float(shown[2]) - float(shown[3]))
        head.click()
        expect(sentence).not_to_contain_text(" off (")
    named = re.match(r"Head (\S+) .* by (\d+) points?\.", advice.inner_text())
    assert named and changes[named[1]] == max(changes.values()) == pytest.approx(float(named[2]), abs=0.6)
    offline.get_by_role("button", name="set layers to 0 and train again.").click()
    expect(offline.get_by_label("Layers")).to_have_value("0")
    expect(offline.locator("#what")).to_have_text("Compare it with the previous run, in grey.")
    offline.get_by_role("button", name="Reset").click()
    expect(offline.locator("#progress")).to_contain_text("not trained yet")
    expect(offline.locator("#accuracy-curves .legend")).to_contain_text("previous run")
    assert offline.locator("#results").is_hidden()


def test_on_a_phone_the_effect_of_a_head_is_where_it_is_tapped(offline: Page, playground: str) -> None:
    offline.set_viewport_size({"width": 390, "height": 844})
    offline.goto(f"{playground}#task=majority&layers=2&width=16&rate=0.01")
    train(offline, 20)
    expect(offline.locator("#gains")).to_contain_text("linear model")  # which is fitted meanwhile
    last = offline.locator(".machine-head").last
    last.scroll_into_view_if_needed()
    places = "() => ['.machine-stage', '.machine-below', '#keep'].map((one) => document.querySelector(one).offsetTop)"
    before = offline.evaluate(places)
    last.click()
    effect, sentence = offline.locator("#heads-note"), offline.locator(".machine-bar p")
    changed = re.compile(r"Accuracy without it: .*% \(all heads on: .*%\).*Press again to switch it back on\.")
    expect(effect).to_have_text(changed, use_inner_text=True)
    expect(sentence).to_have_text(re.compile(r"(red|blue) .*% \(before: .*%\)"))
    for said in (effect, sentence, offline.locator(".machine-strip")):
        expect(said).to_be_in_viewport(ratio=1)
    expect(offline.locator(".machine-strip .then")).to_have_count(1)
    run, place = offline.locator("#run").bounding_box(), sentence.bounding_box()
    assert run and place and place["y"] >= run["y"] + run["height"] - 1, "not covered by the buttons"
    assert offline.evaluate(places) == before, "nothing has moved"
    last.click()
    expect(effect).to_be_hidden()


def test_links_may_set_what_the_menus_offer(offline: Page, playground: str) -> None:
    offline.goto(playground)
    menus = offline.locator("select:not(#language)").evaluate_all(
        "(all) => all.map((menu) => [...menu.options].map((one) => one.value))"
    )
    offered = [tuple(values) for values in menus if values and values != ["0", "50", "100", "1000"]]
    expected = [values for name, values in PLAYGROUND.items() if name not in ("task", "lesson")]
    assert offered == [("own", *(name for name in PLAYGROUND["task"] if name != "own")), *expected]
    steps = [step for step in PLAYGROUND["lesson"] if not step.startswith("why")]
    offline.goto("about:blank")
    offline.goto(f"{playground}#lesson={steps[-1]}")
    expect(offline.locator("#lesson b")).to_contain_text(f"Build one, {steps[-1]} of {len(steps)}")
    expect(offline.locator("#tasks")).to_have_value("ends")
    assert offline.url.endswith(f"#lesson={steps[-1]}") and offline.locator("#text").input_value()
    offline.get_by_role("button", name="Close", exact=True).click()
    assert offline.url.endswith("#task=agreement")


def test_a_link_opens_the_same_task_settings_and_sentence(offline: Page, playground: str) -> None:
    offline.goto(f"{playground}#task=winner&width=16&rate=0.01")
    expect(offline.get_by_label("Start from")).to_be_disabled()
    sentence = "Albion & City? 100 % beaten by County #1"
    offline.locator("#text").fill(sentence)
    offline.get_by_label("Seed").select_option("4")
    offline.locator("#text").press("Enter")
    link = offline.url
    offline.goto("about:blank")
    offline.goto(link)
    expect(offline.locator("#text")).to_have_value(sentence)
    expect(offline.locator("#tasks")).to_have_value("winner")
    for label, value in (("Width", "16"), ("Learning rate", "0.01"), ("Seed", "4"), ("Layers", "2")):
        expect(offline.get_by_label(label)).to_have_value(value)
    offline.locator("#tasks").select_option("majority")
    assert offline.locator("#text").input_value() != sentence and "text=" not in offline.url


def test_a_model_of_an_own_table_opens_in_python_and_again_in_the_page(
    offline: Page, playground: str, tmp_path: Path
) -> None:
    offline.goto(f"{playground}#layers=1&width=16&pooling=class_token&positions=learned")
    paste(offline, TABLE)
    expect(offline.locator("#about")).to_contain_text("24 labelled rows to learn.")
    offline.get_by_role("button", name="▶ Train").click()
    wait_for_stage(offline, "done")
    expect(offline.locator("#progress")).to_contain_text("done: ")
    expect(offline.get_by_role("button", name="Results")).to_have_class("main")
    expect(offline.locator("#measured")).to_contain_text("24 rows, each predicted by a model that has not seen it")
    offline.locator("#text").fill("parcel is late, dear")
    expect(offline.locator("#reading-note")).to_have_text(
        "Do not trust this answer: the model was not trained on 2 of these 5 tokens (“,”, “dear”)."
    )
    offline.locator("#text").fill("parcel is late")
    expect(offline.locator("#reading-note")).to_be_empty()
    first_bar = offline.locator(".machine-bars li").first
    expect(first_bar).to_contain_text("delivery")
    offline.locator("#classify textarea").fill("parcel is late\nparcel is late, dear")
    offline.locator(".machine-head").first.click()
    offline.get_by_role("button", name="Classify", exact=True).click()
    expect(offline.locator("#classify td.number").last).to_contain_text(" %, 2 unknown tokens")
    expect(offline.locator("#classify td.number").first).not_to_contain_text("unknown")
    expect(offline.locator("#classify")).to_contain_text("2 rows classified. All heads are on for these.")
    offline.locator(".machine-head").first.click()
    file = save(offline, tmp_path / "model.zip")
    prediction = load(file)("parcel is late")
    assert prediction.label == "delivery" and prediction.probability is not None
    assert bounded_percentage(prediction.probability) in first_bar.inner_text()
    offline.evaluate("""() => {
      window.said = []
      new MutationObserver(() => said.push(play.textContent)).observe(play, {childList: true})
    }""")
    offline.get_by_role("button", name="↻ Train again").dblclick()
    offline.wait_for_function("() => said.includes('❚❚ Pause') && said.at(-1) === '↻ Train again'")  # was not paused

    # The page loads it without its table: it classifies, and is trained further once it has a table.
    offline.goto("about:blank")
    offline.goto(playground)
    offline.locator("input[accept='.zip']").set_input_files(file)
    expect(offline.locator("#problem")).to_contain_text("has the classes “account”, “delivery”. Try it")
    assert offline.locator("#curves").evaluate_all("(all) => all.every((one) => !one.offsetHeight)")
    offline.locator("#text").fill("parcel is late")
    expect(first_bar).to_contain_text("delivery")
    offline.locator(".machine-head").first.click()
    expect(offline.locator(".machine-bar p")).to_contain_text("Head 1.1 off (set to zero): ")
    expect(offline.get_by_role("button", name="▶ Train")).to_be_hidden()
    steps = steps_of(offline)
    paste(offline, TABLE)
    expect(offline.locator("#problem")).to_be_hidden()
    train(offline, steps + 10)
    expect(offline.locator("#measured")).to_contain_text("24 rows; the loaded model may have been trained on them.")
    offline.locator("#tasks").select_option("majority")
    with offline.expect_download():
        offline.get_by_role("button", name="Save it and go on").click()
    expect(offline.locator("#tasks")).to_have_value("majority")
    expect(offline.locator("#ask")).to_be_hidden()


def shown_bars(page: Page) -> list[str]:
    page.locator(".machine-bars li").first.wait_for()  # a worker reads the sentence
    return page.locator(".machine-bars li").all_inner_texts()


def test_a_saved_model_gives_the_same_answers_and_other_files_are_refused_with_a_sentence(
    offline: Page, playground: str, tmp_path: Path
) -> None:
    """What all models have in common is changed in test_playground_saving.py."""
    offline.goto(f"{playground}#task=majority&layers=1&width=16&rate=0.01&seed=3&pooling=attention")
    train(offline, 60)
    archive = save(offline, tmp_path / "model.zip").read_bytes()
    before, right = shown_bars(offline), accuracy(offline)
    probability = load(tmp_path / "model.zip")(offline.locator("#text").input_value()).probability
    assert probability is not None and bounded_percentage(probability) in before[0]

    def change(name: str, old: bytes, new: bytes) -> bytes:
        return changed(archive, name, lambda content: content.replace(old, new, 1))

    cases = [
        (b"text,label\n", "This is not a zip file."),
        (b"x" * 11_000_000, "11.0 MB"),
        (archive.replace(b"labels.json", b"labels.jsob"), "There is no labels.json in it"),
        (changed(archive, "labels.json", lambda _: b'["red","blue","green"]'), "shape of head.weight is [2,16]"),
        (change("tokenizer.json", b'"<unk>"', b'"unknown"'), "Its vocabulary"),
        (change("config.json", b'"d_model":16', b'"d_model":128'), "its width is 128; expected 16, 32, 64"),
        (change("config.json", b'"d_model":16', b'"d_model":"<img src=x onerror=alert(1)>"'), "its width is"),
    ]
    offline.goto("about:blank")
    offline.goto(playground)
    expect(offline.locator("#progress")).to_contain_text("not trained yet")
    for number, (content, problem) in enumerate(cases):
        name = f"model {number}.zip"
        offline.locator("input[accept='.zip']").set_input_files(
            {"name": name, "mimeType": "application/zip", "buffer": content}
        )
        expect(offline.locator("#problem")).to_contain_text(f"{name} was not loaded.")
        expect(offline.locator("#problem")).to_contain_text(problem)
    assert offline.locator("#problem img").count() == 0
    expect(offline.locator("#progress")).to_contain_text("not trained yet")
    # As programs that unpack and pack it again do: deflated, with files of their own.
    packed = tmp_path / "packed.zip"
    packed.write_bytes(changed(archive, "", bytes, zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(packed, "a") as target:
        target.writestr("__MACOSX/._config.json", b"not JSON")
    offline.locator("input[accept='.zip']").set_input_files(packed)
    expect(offline.locator("#progress")).to_contain_text("loaded model, step ")
    assert offline.locator("#problem").is_hidden()
    for label, value in (("Layers", "1"), ("Width", "16"), ("Learning rate", "0.01"), ("Seed", "3")):
        expect(offline.get_by_label(label)).to_have_value(value)
    assert "task=majority" in offline.url and "seed=3" in offline.url
    assert shown_bars(offline) == before and accuracy(offline) == right
    expect(offline.locator(".truth")).to_be_empty()  # the loaded model may have seen the sentence
    train(offline, steps_of(offline) + 20)
    assert accuracy(offline) > right - 15


def test_training_on_a_generated_task_pauses_once_it_is_learned(offline: Page, playground: str) -> None:
    offline.goto(f"{playground}#task=majority&layers=1&width=32&rate=0.01")
    offline.get_by_role("button", name="▶ Train").click()
    learned = re.compile(r"^(Paused: .* Press Train to continue|Done: all \d+ held-out texts are right)\.")
    expect(offline.locator("#learned")).to_contain_text(learned, timeout=120_000)
    expect(offline.get_by_role("button", name="Results")).to_have_class("main")


def test_a_table_is_explained_before_it_is_learned(offline: Page, playground: str) -> None:
    offline.goto(playground)
    rows = [
        (f"{text} {n}", label) for n in range(9) for text, label in ((f"parcel {n}", "__proto__"), ("bill", "<b>x</b>"))
    ]
    paste(offline, table_of([("an old bill", "__Proto__"), ("where is it", ""), ("who pays", "n/a"), *rows]))
    own, about = offline.locator("#own"), offline.locator("#about")
    expect(about).to_have_text(re.compile(r"^Which class: .*\? 19 labelled rows to learn, 2 without a label\. Five"))
    expect(own).to_contain_text("Pasted table: 21 rows, 2 columns")
    expect(own.locator(".preview tr")).to_have_count(6)
    expect(own).to_contain_text("3 classes: __proto__ 9, <b>x</b> 9, __Proto__ 1.")
    assert own.locator("b b, td b").count() == 0
    apart = "Not merged: “__Proto__” and “__proto__”. To take one for the other counts as an error"
    expect(own).to_contain_text(apart)
    own.get_by_role("checkbox").check()
    expect(own).to_contain_text("2 classes: __proto__ 10, <b>x</b> 9.")
    expect(own).not_to_contain_text("Not merged")
    own.get_by_role("checkbox").uncheck()
    expect(own).to_contain_text(apart)
    offline.get_by_role("button", name="One step").click()
    expect(offline.locator("#measured")).to_contain_text(apart)
    own.get_by_label("Labels").select_option("none")
    expect(offline.locator("#table-problem")).to_contain_text("Choose the column with the labels.")
    expect(offline.get_by_role("button", name="▶ Train")).to_be_disabled()
    own.get_by_label("Labels").select_option("text")
    expect(offline.locator("#table-problem")).to_contain_text("Texts and labels are the same column.")
    own.get_by_label("Labels").select_option("label")
    expect(offline.locator("#table-problem")).to_be_empty()


def test_a_dropped_file_and_text_pasted_anywhere_are_tables(offline: Page, playground: str) -> None:
    offline.goto(playground)
    offline.locator("input[accept*='.xlsx']").first.set_input_files(
        {"name": "my rows.csv", "mimeType": "text/csv", "buffer": TABLE.encode()}
    )
    expect(offline.locator("#own")).to_contain_text("my rows.csv: 24 rows")
    rows = [(f"text {n}", "xy"[n % 2]) for n in range(18)]
    offline.evaluate(
        """(pasted) => {
          const clipboardData = new DataTransfer()
          clipboardData.setData("text", pasted)
          document.body.dispatchEvent(new ClipboardEvent("paste", {clipboardData, bubbles: true, cancelable: true}))
        }""",
        table_of(rows[:8]),
    )
    expect(offline.locator("#own")).to_contain_text("Pasted table: 8 rows")
    offline.evaluate(DROP, ["dropped.tsv", base64.b64encode(table_of(rows[:10]).encode()).decode()])
    expect(offline.locator("#own")).to_contain_text("dropped.tsv: 10 rows")
    expect(offline.locator("#tasks")).to_have_value("own")


def test_the_sentence_of_a_held_out_row_is_read_by_a_model_that_has_not_seen_it(offline: Page, playground: str) -> None:
    offline.goto(f"{playground}#layers=1&width=16")
    text, note, truth = (offline.locator(one) for one in ("#text", "#reading-note", ".truth"))
    rows = [(f"a {word} text {n}", word) for n in range(110) for word in ("red", "blue")]
    paste(offline, table_of(rows))
    expect(offline.locator("#about")).to_contain_text("220 labelled rows to learn. 176 texts to train on, 44 held out.")
    offline.get_by_role("button", name="One step").click()
    expect(offline.locator("#progress")).to_contain_text("step 1")
    expect(truth).to_contain_text(f"true class: {dict(rows)[text.input_value()]}")
    expect(note).to_be_empty()
    seen = []
    for row, _ in rows[:15]:
        text.fill(row)
        expect(offline.locator(".machine-word").last).to_have_text(row.split()[-1])
        seen.append(note.inner_text() == "The model was trained on this text: change a word, or type your own.")
        assert seen[-1] == (truth.inner_text() == "")
    assert 7 < sum(seen) < 15
    # With folds, every row is held out once: the picture shows the model that measured it, right or wrong.
    paste(offline, table_of(messages(6, topics=3)))
    expect(offline.locator("#about")).to_contain_text("18 labelled rows to learn. Five-fold cross-validation.")
    expect(truth).to_contain_text("true class: ")
    offline.get_by_role("button", name="One step").click()
    wrong = offline.locator("#wrong li").first
    label, predicted = re.findall(r"(?:true|predicted): (\w+)", wrong.inner_text())
    wrong.get_by_role("button").click()
    expect(truth).to_have_text(f"✗ true class: {label}")
    expect(offline.locator(".machine-bars li").first).to_contain_text(predicted)


def test_problems_are_seen_and_end_with_the_next_action(offline: Page, playground: str) -> None:
    offline.set_viewport_size({"width": 390, "height": 844})
    offline.goto(f"{playground}#task=own")
    expect(offline.locator("#progress")).to_have_text("no table yet")
    assert offline.locator("#picture, #curves").evaluate_all("(all) => all.every((one) => !one.offsetHeight)")
    problem, play = offline.locator("#problem"), offline.locator("#play")
    offline.get_by_role("button", name="Save model").click()
    expect(problem).to_have_text("There is no model yet: press Train.")
    expect(problem).to_be_in_viewport()
    paste(offline, "text\tlabel\nmy parcel is late\tdelivery\nreset my password\taccount")
    expect(play).to_be_disabled()
    assert play.get_attribute("title") == offline.locator("#table-problem").inner_text() != ""
    paste(offline, TABLE)
    expect(play).to_be_enabled()
    expect(problem).to_be_hidden()
    expect(offline.locator("#own details")).not_to_have_attribute("open", "")
    no_model = {"name": "no.zip", "mimeType": "application/zip", "buffer": b"no"}
    offline.locator("input[accept='.zip']").set_input_files(no_model)  # type: ignore[arg-type]
    expect(problem).to_be_in_viewport()
    play.click()
    expect(problem).to_be_hidden()


def test_a_model_is_not_lost_by_accident_and_its_saved_page_opens_on_it_with_the_accuracy_and_a_sentence(
    offline: Page, playground: str, tmp_path: Path
) -> None:
    offline.goto(f"{playground}#layers=1&width=16")
    paste(offline, TABLE)
    expect(offline.locator("#progress")).to_contain_text("not trained yet")
    is_asked = "() => !dispatchEvent(new Event('beforeunload', {cancelable: true}))"
    assert not offline.evaluate(is_asked)
    offline.get_by_role("button", name="▶ Train").click()
    wait_for_stage(offline, "done")
    assert offline.evaluate(is_asked)
    ask, tasks, seed = offline.locator("#ask"), offline.locator("#tasks"), offline.get_by_label("Seed")
    steps = steps_of(offline)
    for lose in (
        offline.get_by_role("button", name="Reset").click,
        offline.get_by_role("button", name="↻ Train again").click,
        lambda: seed.select_option("4"),
        lambda: tasks.select_option("majority"),
    ):
        lose()
        expect(ask).to_contain_text("its model is not saved")
        expect(ask).to_be_in_viewport()
        assert (steps_of(offline), tasks.input_value(), seed.input_value()) == (steps, "own", "1")
        offline.get_by_role("button", name="Stay").click()
        expect(ask).to_be_hidden()
    sentence = 'my "late" parcel & <b>more</b>'
    offline.locator("#text").fill(sentence)
    right = int(re.sub(r"\D", "", offline.locator("#accuracy").inner_text().split(".")[0]))
    interval = re.compile(rf"^Accuracy: {right}(\.\d)?\s% \(95\s% interval \d+ to \d+\s%\)$")
    file, original = tmp_path / "saved.html", file_of(playground).read_text("utf-8")
    for _ in range(2):  # the second is saved from the first
        with offline.expect_download() as download:
            offline.get_by_role("button", name="Save page with model").click()
        download.value.save_as(file)
        content = file.read_text("utf-8")
        part = re.search(
            r'\n<script type="text/plain" id="saved-model" data-sentence="[^"]*">([\w+/=]*)</script>', content
        )
        assert part and content.replace(part[0], "\n") == original, "only the model was added; the hashes are the same"
        (tmp_path / "kept.zip").write_bytes(base64.b64decode(part[1]))
        assert load(tmp_path / "kept.zip")(sentence).label == "delivery"
        offline.goto("about:blank")
        offline.goto(file.as_uri())
        expect(offline.locator("#accuracy")).to_contain_text(interval)
        expect(offline.locator("#progress")).to_contain_text("on 24 rows, each predicted by a model that has not seen")
        expect(offline.locator("#text")).to_have_value(sentence)
        expect(offline.locator(".machine-bars li").first).to_contain_text("delivery")
        expect(offline.locator("#classify textarea")).to_be_visible()
        without = "#setup, #what, #start-note, #curves"
        assert offline.locator(without).evaluate_all("(all) => all.every((one) => !one.offsetHeight)")
        expect(offline.locator("#run button:visible")).to_have_count(0)
    paste(offline, TABLE)
    train(offline, steps_of(offline) + 10)
    offline.locator("#text").fill("reset my password")
    offline.locator("#reset").click()
    offline.get_by_role("button", name="Go on without it").click()
    expect(offline.locator("#progress")).to_contain_text("loaded model, step ")
    expect(offline.locator("#text")).to_have_value("reset my password")
    expect(offline.locator(".machine-bars li").first).to_contain_text("account")


LANGUAGES = {
    "german": "Mein Paket ist nicht da und ich warte seit Wochen|Der Drucker im zweiten Stock ist kaputt|"
    "Bitte setzen Sie mein Passwort zurück|Wir wollen das Geld zurück, so geht das nicht|Das Essen war kalt",
    "spanish": "Mi paquete no ha llegado y llevo dos semanas esperando|La impresora está rota otra vez|"
    "Olvidé mi contraseña, por favor|Queremos que nos devuelvan el dinero|La comida estaba fría",
    "english": "My parcel is not here and I have waited for weeks|The printer on the second floor is broken|"
    "Please reset my password|We want the money back, this is no way to treat people|The food was cold",
    "tweets": "omg cant believe u did that 😂|ugh mondays... need coffee #tired|idk bruh thats kinda sus ngl|"
    "wyd this wknd? tryna link up|app keeps crashin since tha update smh|gonna b lit 2nite yall 🔥🔥|yo @jen luv",
    "few words": "Paket|Drucker kaputt",
}  # fmt: skip


def test_texts_that_are_not_english_are_noticed(tables: Page) -> None:
    for name, texts in LANGUAGES.items():
        assert tables.evaluate("lackEnglish", 2 * texts.split("|")) == (name in ("german", "spanish")), name


def test_only_texts_unlike_english_are_unusual_for_the_encoder(tables: Page) -> None:
    folder = encoder_folder()
    assert folder
    find = """([description, tables, texts]) => {
      const tokenizer = new Tokenizer(description, tables)
      return texts.filter((text) => isUnlikeEnglish(text, tokenizer.encode(text).tokens.map((token) => token.text)))
    }"""

    def unusual(texts: list[str]) -> list[str]:
        tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8")) | {"class_token": False}
        found: list[str] = tables.evaluate(find, [tokenizer, page_data(None, None)["tables"], texts])
        return found

    english = (
        "My parcel is late.|Where is my order?|I am ill|Book flight to Rome|Good food, slow service|Hello|ok|Thank you"
    )
    english += "|Ronaldo leaves Real Madrid|Rio de Janeiro|La Liga results"
    others = "asdf qwer|Mein Paket ist nicht da|Mi paquete no ha llegado|Wo ist mein Paket?|La factura está mal"
    others += "|Le chat dort|De trein is te laat|Mi perro no come"
    assert unusual(english.split("|")) == []
    assert unusual(others.split("|")) == others.split("|")
    assert unusual([text for text, _ in messages(100, topics=6)]) == []


def test_the_lesson_asks_trains_and_shows_the_answer_and_closing_it_returns_to_the_settings_before_it(
    offline: Page, playground: str
) -> None:
    offline.goto(f"{playground}#task=majority&layers=1&width=16&seed=2")
    offline.locator("#text").fill("red blue blue")
    offline.get_by_role("button", name="Lessons", exact=True).click()
    expect(offline.get_by_role("button", name="Lesson: Build one")).to_be_in_viewport()
    offline.get_by_role("button", name="Lesson: Build one").click()
    expect(offline.get_by_label("Layers")).to_have_value("0")
    offline.get_by_role("button", name="About half, a guess").click()
    expect(offline.locator("#lesson [role=status]")).to_contain_text("You were right", timeout=60_000)
    expect(offline.locator("#lesson [role=status]")).to_contain_text("after 300 steps")
    offline.get_by_role("button", name="Next", exact=True).click()
    expect(offline.get_by_label("Positions")).to_have_value("none")
    offline.get_by_role("button", name="Close", exact=True).click()
    expect(offline.locator("#tasks")).to_have_value("majority")
    for label, value in (("Layers", "1"), ("Width", "16"), ("Seed", "2"), ("Positions", "sinusoidal")):
        expect(offline.get_by_label(label)).to_have_value(value)
    expect(offline.locator("#text")).to_have_value("red blue blue")


def test_a_model_of_the_encoder_is_read_saved_and_trained_further(
    offline: Page, with_encoder: str, tmp_path: Path
) -> None:
    offline.goto(f"{with_encoder}#task=few&start=encoder")
    expect(offline.get_by_label("Layers")).to_be_disabled()
    expect(offline.get_by_label("Layers")).to_have_value("4")
    expect(offline.get_by_label("Learning rate")).to_have_value("auto")
    expect(offline.locator("#reading-note")).to_contain_text("knows none of these classes.")
    expect(offline.locator(".machine-stage")).to_have_css("filter", "grayscale(1)")
    offline.get_by_role("button", name="▶ Train").click()
    expect(offline.locator("#accuracy-curves .legend")).to_contain_text("pre-trained, frozen")
    offline.wait_for_function("() => Number(document.documentElement.dataset.steps) >= 3")
    offline.get_by_role("button", name="❚❚ Pause").click()
    offline.wait_for_function("() => (({steps, evaluated}) => steps === evaluated)(document.documentElement.dataset)")
    expect(offline.locator(".machine-stage")).to_have_css("filter", "none")
    expect(offline.locator("#model option").first).to_have_text("pre-trained, fine-tuned")
    offline.locator("#text").fill("asdf qwer")
    expect(offline.locator("#reading-note")).to_have_text("Unusual for this model: may be wrong.")
    offline.locator("#text").fill("A cheap flight to Rome")
    expect(offline.locator("#reading-note")).to_be_empty()
    offline.locator("#classify textarea").fill("asdf qwer\nA cheap flight to Rome")
    offline.get_by_role("button", name="Classify", exact=True).click()
    probabilities = offline.locator("#classify td.number")
    expect(probabilities).to_have_text([re.compile(r"^[\d.]+\s%( \?)?, unusual$"), re.compile(r"^[\d.]+\s%( \?)?$")])
    saved = save(offline, tmp_path / "model.zip")
    offline.locator("input[accept='.zip']").set_input_files(saved)
    expect(offline.locator("#progress")).to_contain_text("loaded model, step ")
    expect(offline.get_by_label("Learning rate")).to_have_value("0.0003")
    expect(offline.get_by_label("Start from")).to_be_disabled()
    expect(offline.get_by_label("Start from")).to_have_value("encoder")
    before, steps = accuracy(offline), steps_of(offline)
    train(offline, steps + 8)  # without a plan
    assert steps_of(offline) >= steps + 8 and accuracy(offline) >= before - 5


def test_from_a_table_to_its_csv_with_the_keyboard_alone_and_axe_finds_nothing(
    offline: Page, playground: str, tmp_path: Path
) -> None:
    page = offline
    page.goto(f"{playground}#layers=1&width=16")

    def go_to(selector: str) -> None:
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
                outline = "() => getComputedStyle(document.activeElement).outlineStyle"
                assert page.evaluate(outline) != "none", selector
                return
        pytest.fail(f"{selector} is not reached")

    go_to("#table")
    paste(page, TABLE.replace("delivery", "Delivery", 2))
    expect(page.get_by_role("checkbox")).to_be_visible()
    go_to("#play")
    page.keyboard.press("Enter")
    wait_for_stage(page, "done")
    page.evaluate("() => document.querySelectorAll('details').forEach((one) => { one.open = true })")
    expect(page.locator("#wrong button").first).to_be_visible()
    assert_accessible(page)
    go_to("#classify textarea")
    page.keyboard.insert_text("my parcel is late\nreset my password")
    go_to("#classify button:not([hidden])")
    page.keyboard.press("Enter")
    expect(page.locator("#classify td.number")).to_have_count(2)
    while page.evaluate("document.activeElement.textContent") != "Download as CSV":
        page.keyboard.press("Tab")
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    assert "predicted_label" in download.value.path().read_text(encoding="utf-8-sig")
    page.locator("#reset").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Save it and go on")).to_be_focused()
    assert_accessible(page)
    go_to("#ask button:last-child")
    page.keyboard.press("Enter")
    expect(page.locator("#ask")).to_be_hidden()
    page.get_by_role("button", name="Lesson: Build one").click()
    page.get_by_role("button", name="Go on without it").click()
    expect(page.locator("#lesson")).to_contain_text("No attention")
    assert_accessible(page)
    page.evaluate("() => document.documentElement.classList.add('lecture')")
    assert_accessible(page, rules={"page-has-heading-one": {"enabled": False}})  # the app around it has one


def test_training_pauses_in_a_hidden_tab(offline: Page, playground: str) -> None:
    offline.goto(f"{playground}#task=ends")
    offline.get_by_role("button", name="▶ Train").click()
    offline.wait_for_function("() => Number(document.documentElement.dataset.steps) > 5")

    def hide(hidden: bool) -> None:
        offline.evaluate(
            """(hidden) => {
              Object.defineProperty(document, "hidden", {value: hidden, configurable: true})
              document.dispatchEvent(new Event("visibilitychange"))
            }""",
            hidden,
        )

    title = offline.title()
    hide(True)
    expect(offline.get_by_role("button", name="▶ Train")).to_be_visible()
    assert offline.title() == f"❚❚ Paused: {title}"
    offline.wait_for_function("() => (({steps, evaluated}) => steps === evaluated)(document.documentElement.dataset)")
    steps = steps_of(offline)
    offline.wait_for_timeout(300)
    assert steps_of(offline) == steps
    hide(False)
    expect(offline.get_by_role("button", name="❚❚ Pause")).to_be_visible()
    expect(offline.locator("#progress")).to_contain_text("was paused while its tab was hidden")
    assert offline.title() == title
    offline.wait_for_function("(steps) => Number(document.documentElement.dataset.steps) > steps", arg=steps)


@pytest.mark.timeout(400)
def test_a_newcomer_learns_what_pre_training_gains_and_classifies_more_rows_on_a_slow_phone(
    phone: Page, with_encoder: str, tmp_path: Path
) -> None:
    page = phone
    page.goto(with_encoder)
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": 4})
    started = time.monotonic()
    expect(page.locator("#lead")).to_contain_text("on your own table, train two: pre-trained and from random weights")
    button, picture = page.locator("#play").bounding_box(), page.locator(".machine-stage").bounding_box()
    assert button and button["y"] + button["height"] < 844, "in the first window"
    assert picture and picture["y"] + 150 < 844, "with words and the first maps"
    rows = [(" ".join(text.split()[:8]), topic) for text, topic in messages(10)]
    paste(page, table_of(rows))
    expect(page.locator("#own")).to_contain_text("4 classes")
    expect(page.get_by_label("Start from")).to_have_value("encoder")
    page.locator("#play").tap()
    expect(page.locator("#accuracy")).to_contain_text("re-trained", timeout=60_000)
    wait_for_stage(page, "done")
    expect(page.locator("#accuracy")).to_have_text(
        re.compile(r"^Pre-trained, f[\w-]+ [\d.]+\s% · from random weights [\d.]+\s% · linear model [\d.]+\s%$")
    )
    chart = page.locator("#accuracy-curves svg[role=img]").bounding_box()
    assert chart and 60 <= chart["height"] <= 80
    expect(page.locator("#accuracy-curves")).to_be_in_viewport(ratio=1)
    expect(page.locator("#gains")).to_contain_text(re.compile(r"Pre-training gained \d+ points"))
    expect(page.locator("#intervals")).to_contain_text("linear model")
    bar = page.locator("#run").bounding_box()
    assert bar and bar["height"] <= 120, page.locator("#run").inner_text()
    more = messages(10, split="test")[::4]
    page.locator("#classify textarea").fill("\n".join(text for text, _ in more))
    page.get_by_role("button", name="Classify", exact=True).tap()
    expect(page.locator("#classify td.number")).to_have_count(10)
    seconds = time.monotonic() - started
    answers = page.locator("#classify td:nth-child(2)").all_inner_texts()
    assert sum(answer == topic for answer, (_, topic) in zip(answers, more, strict=True)) >= 6
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as CSV").tap()
    download.value.save_as(tmp_path / "classified.csv")
    with (tmp_path / "classified.csv").open(encoding="utf-8-sig", newline="") as file:
        head, *classified = csv.reader(file)
    assert head[1:] == ["predicted_label", "probability"]
    assert [row[:2] for row in classified] == [[text, answer] for (text, _), answer in zip(more, answers, strict=True)]
    assert_accessible(page, looks=LOOKS[:1])
    assert seconds <= 180


@pytest.mark.timeout(400)
def test_why_pre_training_shows_each_line_after_its_prediction(offline: Page, with_encoder: str) -> None:
    offline.set_default_timeout(240_000)
    offline.goto(f"{with_encoder}#lesson=why-1")
    legend, status = offline.locator("#accuracy-curves .legend"), offline.locator("#lesson [role=status]")
    names = ["from random weights", "pre-trained, frozen"]
    expect(offline.locator("#reading-note")).to_contain_text("Not trained yet: the weights are random.")
    expect(offline.locator(".machine-bars")).to_be_visible()
    for n, name in enumerate(names):
        expect(offline.locator("#lesson b")).to_contain_text(f"Why pre-training?, {n + 1} of 3")
        expect(offline.locator("#model")).to_have_value("0" if n else "1")
        assert offline.locator("#results").is_hidden() and name not in legend.inner_text()
        offline.get_by_role("button", name="75 to 90 %").click()
        expect(status).to_contain_text(re.compile(r"You (were right|predicted)"), timeout=240_000)
        expect(legend).to_contain_text(name)
        assert "steps" not in status.inner_text(), "the bar has the numbers of both models"
        offline.get_by_role("button", name="Next", exact=True).click()
    offline.get_by_role("button", name="Close", exact=True).click()
    assert offline.url.endswith("#task=few&start=encoder")


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


def test_a_step_of_a_lesson_opens_the_playground_with_its_settings(offline: Page, tmp_path: Path) -> None:
    (tmp_path / "mine.en.yaml").write_text(LESSON, encoding="utf-8")
    lesson = open_lesson(tmp_path / "mine.en.yaml")
    offline.goto(export_lesson(lesson, tmp_path / "with", single_file=True, with_playground=True).as_uri())
    expect(offline.get_by_role("link", name="Train a Transformer")).to_be_visible()
    with offline.expect_popup() as opened:
        offline.get_by_role("link", name="Train one yourself in the playground").click()
    expect(opened.value.locator("#tasks")).to_have_value("winner")
    expect(opened.value.get_by_label("Positions")).to_have_value("none")


def test_the_app_shows_the_page_in_a_frame_with_its_settings_in_the_address_and_all_in_view(
    page: Page, server: Server
) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    visit(page, server, "playground", wait_for="iframe", playground="task=ends&layers=0")
    frame = page.frame_locator("iframe")
    expect(frame.locator("#progress")).to_contain_text("not trained yet")
    expect(page.locator("iframe")).to_have_attribute("title", "Playground: train a Transformer in your browser")
    expect(frame.locator("#tasks")).to_have_value("ends")
    frame.get_by_label("Layers").select_option("3")
    frame.get_by_role("button", name="One step").click()
    expect(frame.locator("#progress")).to_contain_text("step 1")
    page.wait_for_url(re.compile("playground=task%3Dends%26layers%3D3"))
    page.get_by_test_id("stPopover").get_by_role("button").first.click()  # a run of the server
    expect(page.get_by_text("A link to exactly this view")).to_be_visible()
    expect(frame.locator("#progress")).to_contain_text("step 1")
    page.reload()
    expect(frame.get_by_label("Layers")).to_have_value("3")
    frame.get_by_label("Layers").select_option("2")
    frame.get_by_role("button", name="One step").click()
    expect(frame.locator("#progress")).to_contain_text("step 1")
    boxes: dict[str, Any] = {
        name: frame.locator(name).bounding_box() or {} for name in ("#tasks", "#play", "#settings", "#text")
    }
    assert boxes["#tasks"]["y"] < boxes["#play"]["y"] < min(boxes["#settings"]["y"], boxes["#text"]["y"])
    assert boxes["#settings"]["x"] + 300 < boxes["#text"]["x"]
    positions = frame.get_by_label("Positions").bounding_box()
    assert positions and positions["width"] >= 100, "room for “sinusoidal”"
    bars = frame.locator(".machine-bars li").last.bounding_box()
    assert bars and bars["y"] + bars["height"] < 800


def test_lecture_mode_is_a_slide_in_large_type_and_keeps_the_run(page: Page, server: Server) -> None:
    page.set_viewport_size({"width": 1920, "height": 1080})
    visit(page, server, "playground", wait_for="iframe", playground="task=majority&layers=1&width=16")
    frame = page.frame_locator("iframe")
    frame.get_by_role("button", name="One step").click()
    expect(frame.locator("#progress")).to_contain_text("step 1")
    frame.locator("#play").press("F9")
    expect(frame.locator("html")).to_have_class("lecture")
    settle(page)
    expect(frame.locator("#progress")).to_contain_text("step 1")
    expect(frame.get_by_text("How does a Transformer learn?")).to_be_hidden()  # the app's bar has the title
    expect(frame.locator("#about").get_by_text("Are more of the words “red” or “blue”?")).to_be_visible()
    expect(frame.get_by_label("Speed")).to_have_value("50")
    expect(frame.locator("#accuracy-curves .legend").get_by_text("linear model")).to_be_visible()
    expect(frame.locator("#state")).to_contain_text(re.compile(r"^Accuracy: [\d.]+\s% on \d+ held-out rows"))
    expect(frame.get_by_text("Click a head (small map) to")).to_be_visible()
    before = frame.locator(".machine-stage").bounding_box()
    train(page.frames[-1], 20)
    assert frame.locator(".machine-stage").bounding_box() == before, "the picture stays where it is"
    trained = frame.locator("#progress").inner_text()
    places = ["#about b", "#play", "#text", "#accuracy"]
    for name in [*places, ".machine-bar p", ".machine-word", ".machine-head span", ".machine-bars .name"]:
        type_size = "(one) => parseFloat(getComputedStyle(one).fontSize) * one.currentCSSZoom"
        assert frame.locator(name).first.evaluate(type_size) >= 23.9, name
    bars, bar = frame.locator(".machine-stage").bounding_box(), page.locator(".bar").first.bounding_box()
    assert bars and bar and bars["y"] + bars["height"] <= bar["y"] + 1
    assert frame.locator("#settings").is_hidden()
    frame.locator("#play").press("F9")
    expect(frame.locator("html")).not_to_have_class("lecture")
    expect(frame.locator("#settings")).to_be_visible()
    expect(frame.get_by_label("Speed")).to_have_value("0")
    expect(frame.locator("#progress")).to_have_text(trained)


def test_the_page_is_small_and_asks_no_server(playground: str) -> None:
    html = file_of(playground).read_bytes()
    assert b"default-src &#x27;none&#x27;" in html and b"connect-src" not in html
    assert len(playground_page(language="en")) <= 600_000  # the size of other languages: tests/web/test_languages.py


@pytest.fixture(scope="module")
def tables(browser: Browser) -> Iterator[Page]:
    """An empty page with the modules that generate tasks, place rows and compare classifiers."""
    modules = ["training/tasks", "table/splits", "progress", "english"]
    names = "tasksOf, randomNumbers, splitGenerated, splitTable, wilson, pairedDifference, comparison"
    names += ", tuningNote, progressSentence, accuracySentence, Results, lackEnglish, isUnlikeEnglish, Tokenizer"
    paths = [*(f"playground/{name}" for name in modules), "engine/tokenizer"]
    with page_with(browser, paths, f"Object.assign(globalThis, {{{names}}});") as page:
        yield page


def test_a_fifth_of_each_class_is_held_out_and_below_200_rows_each_is_measured_once(tables: Page) -> None:
    for sizes, held_out in (((10, 10), [2, 2]), ((3, 3), [1, 1]), ((21, 2, 1), [5, 1, 0])):
        rows = [{"text": "a", "label": str(label)} for label, size in enumerate(sizes) for _ in range(size)]
        split = tables.evaluate("(rows) => splitGenerated(rows, 3)", rows)
        assert [sum(row["part"] == 0 for row in split if row["label"] == str(n)) for n in range(len(sizes))] == held_out
    code = "(n) => splitTable(Array.from({length: n}, () => ({})), Array.from({length: n}, (_, i) => i % 5))"
    for n, parts in ((199, {0, 1, 2, 3, 4}), (200, {-1, 0})):
        placed = tables.evaluate(code, n)
        assert {row["part"] for row in placed} == parts
        assert sum(row["part"] >= 0 for row in placed) == (n if n < 200 else n / 5)


def test_intervals_are_those_of_python(tables: Page) -> None:
    for right, n, a, b in ((38, 40, 6, 1), (0, 7, 0, 0), (7, 7, 3, 0), (311, 600, 12, 40)):
        shown = tables.evaluate("([r, n, a, b]) => [wilson(r, n), pairedDifference(a, b, n)]", [right, n, a, b])
        for found, expected in zip(shown, (wilson(right, n), paired_difference(a, b, n)), strict=True):
            bounds = [expected.value, expected.low, expected.high]
            assert [found["share"], found["low"], found["high"]] == pytest.approx(bounds, abs=1e-12)


def test_classifiers_are_compared_on_the_rows_that_both_have_answered(tables: Page) -> None:
    first, second, labels = [0, 1, 1, -1, 0, 1], [0, 0, 1, 1, -1, 0], [0, 1, 1, 1, 1, 0]
    found = tables.evaluate("(rows) => comparison(...rows)", [first, second, labels])
    assert found["n"] == 4
    assert found["difference"]["share"] == pytest.approx((1 - 1) / 4)


RESULTS = """({n = 40, linear = 20, random = 20, ...main}) => {
  const rows = Array.from({length: n}, (_, i) => ({text: "a", part: 0, classIndex: i % 2}))
  const data = {rows, classes: ["a", "b"], nParts: 1}
  const names = ["intervals", "verdict", "remarks", "note", "confusions", "wrong"]
  const right = (k) => ({answers: rows.map(({classIndex}, i) => (i < k ? classIndex : 1 - classIndex))})
  const of = (name, steps) => ({name, steps, total: steps, nPlanned: steps, stage: "done", seconds: 9})
  const encoder = {...of("encoder", 80), evaluated: right(30), probe: right(32), ...main}
  const runs = [encoder, {...of("random", 160), evaluated: right(random)}]
  const report = {runs, baseline: linear === null ? null : right(linear)}
  const parts = Object.fromEntries(names.map((name) => [name, document.createElement("div")]))
  document.body.append(...Object.values(parts))
  new Results(parts, {}).show(report, data, null, "")
  const remarks = [...parts.remarks.children].slice(1).map(({textContent}) => textContent)
  const sentences = [parts.verdict.textContent, remarks.join(" ")]
  const [headline, interval] = accuracySentence(report, data, new Set())
  return {headline, interval, sentences, note: parts.note.textContent, tuning: tuningNote(report, data),
    progress: progressSentence(report, {loaded: null, data}, false)}
}"""


def test_the_headline_names_all_three_models(tables: Page) -> None:
    tuned = tables.evaluate(RESULTS, {"preferred": "fine-tuned"})
    others = " · from random weights 50\u00a0% · linear model "
    assert tuned["headline"] == f"Pre-trained, fine-tuned 75\u00a0%{others}50\u00a0%"
    assert re.search(r"linear model: \+25\.0 points \(95\s% interval 10\.1 to 37\.5\), on 40 rows$", tuned["interval"])
    frozen = tables.evaluate(RESULTS, {"preferred": "probe", "linear": 31})
    assert frozen["headline"] == f"Pre-trained, frozen 80\u00a0%{others}78\u00a0%"
    assert frozen["sentences"][0].endswith("The linear model is 2 points behind: on 40 rows, this may be chance.")
    early = tables.evaluate(RESULTS, {"linear": None, "steps": 0, "stage": "probe"})
    assert early["headline"] == "Pre-trained, frozen 80\u00a0% · from random weights 50\u00a0%"


def test_what_pre_training_and_fine_tuning_gain_is_said_in_two_paragraphs(tables: Page) -> None:
    frozen = tables.evaluate(RESULTS, {"preferred": "probe"})
    verdict, remarks = frozen["sentences"]
    change = "50\u00a0%\u00a0→\u00a080\u00a0%"
    assert verdict == f"Pre-training gained 30 points ({change}). The linear model is 30 points behind."
    assert frozen["progress"] == f"Pre-training gained 30 points ({change})."
    assert remarks.startswith("No better than always answering “a”") and "from random weights, linear model." in remarks
    assert remarks.endswith("The frozen encoder answers and is saved: fine-tuning was no better.")
    tuned = tables.evaluate(RESULTS, {"preferred": "fine-tuned"})
    assert tuned["tuning"] == "Fine-tuning added nothing measurable."
    assert tuned["sentences"][1].endswith(tuned["tuning"])
    gained = tables.evaluate(RESULTS, {"n": 2000, "random": 29, "linear": 29})
    assert gained["sentences"][0].startswith(
        "Pre-training gained 1 point (1\u00a0%\u00a0→\u00a02\u00a0%): on 2,000 rows, this may be chance."
    )
    assert "Only 1 different texts" in gained["note"]


def test_a_run_that_the_time_limit_ended_says_so(tables: Page) -> None:
    cut = tables.evaluate(RESULTS, {"preferred": "fine-tuned", "total": 40, "steps": 40})
    stopped = (
        "Cut short by the time limit (pre-trained 40 of 80, from random weights 160 of 160 steps): this may change."
    )
    assert cut["progress"] == f"Pre-training gained 25 points (50\u00a0%\u00a0→\u00a075\u00a0%). {stopped}"
    assert cut["sentences"][0].startswith("Pre-training gained 25 points (50\u00a0%\u00a0→\u00a075\u00a0%).")


def test_generated_texts_have_the_right_labels(tables: Page) -> None:
    rows: dict[str, Any] = tables.evaluate(
        """(grammar) => Object.fromEntries(tasksOf({messages: {}, grammar})
          .filter(({name}) => !["messages", "few"].includes(name))
          .map((task) => [task.name, task.rows(randomNumbers(5)).map(({text, label}) => [text, label])]))""",
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
        match = re.match(r"(\w+)(?:, who [^,]*,)? (were )?(?:easily )?\w+( to| by)? (\w+)", text)
        assert match, text
        first, is_passive, particle, second = match.groups()
        assert winner == (second if is_passive or particle == " to" else first), text


GRAMMAR = {
    "verbs": {"beat": "beaten", "edged": "edged", "overcame": "overcome"},
    "inverse": ["lost", "fell"],
    "manners": ["easily"],
    "endings": ["yesterday", "at home"],
    "teams": ["Albion", "Athletic", "City", "County"],
}
