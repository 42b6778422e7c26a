"""Models of the playground that start from the encoder: saved, opened again there and in Python; refused if changed."""

import base64
import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

import txcls
from tests.browser.conftest import Server, page_with
from tests.browser.visiting import visit
from txcls.app.shell.server import encoder_address
from txcls.checkpoint.load import load_checkpoint
from txcls.web.encoder import browser_encoder, packed_encoder
from txcls.web.playground import ENCODER_PART, page_data

CLASSES = ["delivery", "account", "<img src=x onerror=alert(1)>"]
TEXTS = [
    "My parcel hasn't arrived &amp; I'm waiting.",
    "I forgot my password; please reset it!",
    "Größe: 42 — naïve café 😀",
    "x",
    "The 2nd order of <b>May 5</b> at www.example.com was late, and the customer service did not answer. " * 6,
]
IN_THE_PAGE = """
const send = (bytes) => {
  let text = "";
  for (let start = 0; start < bytes.length; start += 3e4) {
    text += btoa(String.fromCharCode(...bytes.subarray(start, start + 3e4)));
  }
  return text;
};
const received = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const fileOf = async (text) => { // tests deflate the files, most of which are zeros
  const inflated = new Blob([received(text)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new File([await new Response(inflated).blob()], "model.zip");
};
globalThis.halves = (text) => {
  const bytes = halvesOf(new Float32Array(received(text).buffer));
  return send(new Uint8Array(bytes.buffer));
};
globalThis.trained = async (data, classes, seed) => {
  const {config, tokenizer, newWeights} = await loadEncoder(data), random = randomNumbers(seed);
  const model = newModel(config, tokenizer.tokens.length, classes.length, seed ? random : () => 0.5);
  const changed = (value) => (seed ? value * (1 + 0.02 * (random() - 0.5)) : 0);
  for (const [name, {data, shape}] of newWeights()) model.weights.set(name, {data: data.map(changed), shape});
  const settings = {rate: 0.0003, batch: 32, seed: 1}, train = {epochs: 8, token_dropout: 0.1};
  return {task: "own", settings, steps: 7, classes, tokenizer, model, train};
};
const metrics = {data: {title: "a table (trained in a browser)", train_rows: 40, validation_rows: 0}};
globalThis.refusedToPack = (classes, data) => trained(data, classes, 0)
  .then((saved) => pack(saved, data.config, metrics, {step: 7}).length).catch((error) => error.message);
globalThis.packed = async (data, classes, seed) => {
  const saved = await trained(data, classes, seed);
  return send(pack(saved, {...data.config, title: "mine"}, metrics, {step: 7})[1]);
};
globalThis.answers = async (text, data, texts) => {
  const saved = await unpack(await fileOf(text), data.config);
  const {task, start, steps, settings, classes, tokenizer, model} = saved;
  const description = {classes, calibration: {temperature: 1, power: 1}, scope: null, means: null, stories: {}};
  const classifier = Classifier.of(description, new Tokenizer(tokenizer, data.tables), model);
  const probabilities = texts.map((one) => [...classifier.read(one).probabilities]);
  return {task, start, steps, settings, classes, probabilities};
};
globalThis.refusal = async (text, data) =>
  unpack(await fileOf(text), data.config).then(() => "", (error) => error.message);
globalThis.again = async (text, data) => {
  const saved = await unpack(await fileOf(text), data.config);
  return send(pack({...saved, settings: {rate: 0.001, batch: 8, seed: 2}}, data.config, {}, {step: 8})[1]);
};
globalThis.loadEncoder = loadEncoder;
"""
MODULES = ("playground/saving", "playground/own_page", "playground/encoder", "engine/classifier")


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    """The page's data, with the encoder inside the page."""
    return page_data(browser_encoder(), {"embedded": True})


@pytest.fixture(scope="module")
def modules(browser: Browser) -> Iterator[Page]:
    """An empty page with the encoder and the modules that save and load."""
    encoder = ENCODER_PART.format(base64.b64encode(packed_encoder()).decode())
    with page_with(browser, MODULES, IN_THE_PAGE, content=encoder) as page:
        yield page


def sent(archive: bytes) -> str:
    return base64.b64encode(zlib.compress(archive, 1)).decode()


def answers(modules: Page, archive: bytes, data: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = modules.evaluate("(given) => answers(...given)", [sent(archive), data, TEXTS])
    return found


def test_weights_are_rounded_to_the_nearest_16_bit_float_as_by_numpy(modules: Page) -> None:
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    middles = (halves[:-1] + halves[1:]) / 2  # exact in 32 bits
    values = np.concatenate([halves, middles, np.nextafter(middles, 0), np.nextafter(middles, np.float32(np.inf))])
    bits = np.random.default_rng(0).integers(0, 2**32, 200_000, dtype=np.uint32).view(np.float32)
    values = np.concatenate([values, -values, bits[np.abs(bits) < 65519]]).astype("<f4")
    rounded = modules.evaluate("(text) => halves(text)", base64.b64encode(values.tobytes()).decode())
    np.testing.assert_array_equal(np.frombuffer(base64.b64decode(rounded), "<u2"), values.astype("<f2").view("<u2"))
    refused = modules.evaluate(
        "(text) => { try { return halves(text) } catch (error) { return error.message } }",
        base64.b64encode(np.array([1, 65520], "<f4").tobytes()).decode(),
    )
    assert refused.startswith("This model cannot be saved: a weight has numbers that are too large")


def test_a_saved_model_gives_the_same_answers_in_python_and_opened_again(
    modules: Page, data: dict[str, Any], tmp_path: Path
) -> None:
    archive = base64.b64decode(modules.evaluate("(given) => packed(...given)", [data, CLASSES, 1]))
    opened = answers(modules, archive, data)
    assert (opened["task"], opened["start"], opened["steps"], opened["classes"]) == ("own", "encoder", 7, CLASSES)
    assert opened["settings"] == {"rate": 0.0003, "batch": 32, "seed": 1}
    file = tmp_path / "model.zip"
    file.write_bytes(archive)
    assert len(archive) < 10e6
    classifier = txcls.load(file)
    assert classifier.classes == tuple(CLASSES)
    config = classifier.checkpoint.config
    assert (config.title, config.model.pooling, config.model.max_length) == ("mine", "mean", 128)
    expected = classifier.probabilities(TEXTS, precision="float32")
    np.testing.assert_allclose(opened["probabilities"], expected, atol=1e-5)
    assert np.ptp(expected, axis=0).max() > 0.01, "the texts get different answers"

    # A page with another encoder, or with none, reads it as it is: the file has its encoder's vocabulary and sizes.
    unknowing = {**data, "pretrained": None, "encoder": None}
    np.testing.assert_array_equal(answers(modules, archive, unknowing)["probabilities"], opened["probabilities"])

    # Saved again, it is the same model: its weights are already rounded.
    resaved = base64.b64decode(modules.evaluate("(given) => again(...given)", [sent(archive), data]))
    np.testing.assert_array_equal(answers(modules, resaved, data)["probabilities"], opened["probabilities"])


def changed(archive: bytes, name: str, change: Callable[[bytes], bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    """The archive with one member's content changed."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as source, zipfile.ZipFile(out, "w", method) as target:
        for member in source.namelist():
            content = source.read(member)
            target.writestr(member, change(content) if member.endswith(name) else content)
    return out.getvalue()


def header_changed(change: Callable[[dict[str, Any]], None]) -> Callable[[bytes], bytes]:
    """A change of the description in a safetensors file."""

    def changes(content: bytes) -> bytes:
        size = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + size])
        change(header)
        text = json.dumps(header).encode()
        return len(text).to_bytes(8, "little") + text + content[8 + size :]

    return changes


def json_changed(change: Callable[[Any], None]) -> Callable[[bytes], bytes]:
    def changes(content: bytes) -> bytes:
        value = json.loads(content)
        change(value)
        return json.dumps(value).encode()

    return changes


def size_changed(archive: bytes, offset: int, size: int) -> bytes:
    """The archive with one of the sizes in the table of contents of model.safetensors changed."""
    entry = archive.rindex(b"PK\x01\x02")
    return archive[: entry + offset] + struct.pack("<I", size) + archive[entry + offset + 4 :]


def test_changed_files_are_refused_with_a_sentence(modules: Page, data: dict[str, Any]) -> None:
    good = base64.b64decode(modules.evaluate("(given) => packed(...given)", [data, CLASSES, 0]))
    assert answers(modules, good, data)["probabilities"][0] == pytest.approx([1 / 3] * 3)
    with zipfile.ZipFile(io.BytesIO(good)) as source:
        weights_size = next(one.file_size for one in source.infolist() if one.filename.endswith("safetensors"))

    def weights(change: Callable[[bytes], bytes]) -> bytes:
        return changed(good, "model.safetensors", change)

    def tokenizer(change: Callable[[Any], None]) -> bytes:
        return changed(good, "tokenizer.json", json_changed(change))

    def config(change: Callable[[Any], None]) -> bytes:
        return changed(good, "config.json", json_changed(change))

    bomb = changed(good, "history.jsonl", lambda _: bytes(60_000_000), zipfile.ZIP_DEFLATED)
    deflated = changed(good, "x", bytes, zipfile.ZIP_DEFLATED)
    head = "head.weight"
    vocabulary = "Its vocabulary is incomplete or too large"
    cases: list[tuple[bytes, str]] = [
        (weights(lambda content: content[:-2] + b"\x00\x7e"), "The numbers of head.bias are damaged"),  # not a number
        (weights(lambda content: content + b"\0\0"), "model.safetensors in it is damaged"),
        (weights(lambda content: b"\xff" * 8 + content[8:]), "model.safetensors in it is damaged"),
        (weights(header_changed(lambda header: header.pop(head))), "Its weights lack head.weight"),
        (weights(header_changed(lambda header: header[head].update(dtype="__proto__"))), "not stored as F16 or F32"),
        (weights(header_changed(lambda header: header[head].update(data_offsets=[0, 1152]))), "damaged"),
        (weights(header_changed(lambda header: header.update({"__proto__": header[head]}))), "this model: __proto__"),
        (tokenizer(lambda value: value["tokens"].__setitem__(4, "zzq")), vocabulary),
        (tokenizer(lambda value: value["tokens"].append("zzq")), "embeddings.token.weight is [12000,192]"),
        (tokenizer(lambda value: value["tokens"].extend(f"x{n}" for n in range(30_000))), vocabulary),
        (tokenizer(lambda value: value.update(max_length=10**6)), "max_length is 1000000; expected 128"),
        (tokenizer(lambda value: value["config"].update(cleaning=["urls"] * 9)), "its tokenizer's cleaning"),
        (config(lambda value: value["model"].update(pooling="max")), 'its pooling is "max"; expected "mean"'),
        (config(lambda value: value["model"].update(n_layers=12, d_model=1024)), "are too large or do not fit"),
        (config(lambda value: value["model"].update(mask_padding=False)), "its mask_padding is false"),
        (config(lambda value: value.pop("model")), "damaged, or is not a model"),
        (changed(good, "labels.json", lambda _: json.dumps([f"c{n}" for n in range(61)]).encode()), "Expected 2 to 60"),
        (changed(good, "labels.json", lambda _: b"[" * 100_000), "damaged, or is not a model"),
        (bomb, "history.jsonl in it is too large. Expected at most 1 MB"),
        (size_changed(good, 24, weights_size - 4), "model.safetensors in it is damaged"),
        (size_changed(deflated, 24, 1000), "A file in it unpacks to more than its size"),
        (good[: len(good) // 2], "This is not a zip file"),
    ]  # fmt: skip
    for content, problem in cases:
        refused = modules.evaluate("(given) => refusal(...given)", [sent(content), data])
        assert problem in refused, (problem, refused)
        assert refused.endswith(".") and len(refused) < 300


def test_what_could_not_be_opened_again_is_not_saved(modules: Page, data: dict[str, Any]) -> None:
    for other, problem in (("b" * 300_000, "very long words or class names."), ("\ud83d", "half of a character.")):
        sent_classes = json.dumps(["a", other])  # a lone surrogate cannot be sent as it is
        refused = modules.evaluate("([text, data]) => refusedToPack(JSON.parse(text), data)", [sent_classes, data])
        assert refused.startswith("This model cannot be saved: ") and problem in refused


def test_the_encoder_in_the_browser_is_the_shipped_one(modules: Page, data: dict[str, Any]) -> None:
    checkpoint = load_checkpoint("encoder")
    found = modules.evaluate(
        """async (data) => {
          const {tokenizer, newWeights} = await loadEncoder(data), weights = newWeights();
          const squares = (data) => data.reduce((sum, one) => sum + one * one, 0);
          return {nTokens: tokenizer.tokens.length, sums: [...weights].map(([name, {data}]) => [name, squares(data)])};
        }""",
        data,
    )
    expected = {
        name: value.double().square().sum().item()
        for name, value in [*checkpoint.model.state_dict().items(), *checkpoint.model.named_buffers()]
        if name.startswith(("embeddings.", "layers.", "norm."))
    }
    assert dict(found["sums"]) == pytest.approx(expected, rel=1e-6)
    assert found["nTokens"] == checkpoint.tokenizer.vocab_size


def test_a_page_without_the_encoder_says_how_to_get_it(browser: Browser) -> None:
    with page_with(browser, ["playground/encoder"], "globalThis.loadEncoder = loadEncoder;") as page:
        failure = "(data) => loadEncoder(data).then(() => '', (error) => error.message)"
        assert "python -m txcls export playground --encoder" in page.evaluate(failure, {"encoder": None})
        unreachable = {"encoder": {"address": "http://127.0.0.1:9/x", "bytes": 10}}
        assert "Check the connection and try again" in page.evaluate(failure, unreachable)


TABLE = "message\ttopic\n" + "".join(
    f"{text}\t{label}\n"
    for n in range(12)
    for text, label in ((f"my parcel {n} is late again", "delivery"), (f"please reset my password {n}", "account"))
)


def test_in_the_app_the_encoder_is_fetched_by_the_app_and_a_page_is_kept_from_the_frame(
    page: Page, server: Server, offline: Page, tmp_path: Path
) -> None:
    requests: list[str] = []
    page.on("request", lambda request: requests.append(urlsplit(request.url).path))
    visit(page, server, "playground", wait_for="iframe")
    frame = page.frame_locator("iframe")
    expect(frame.locator("#progress")).to_contain_text("not trained yet")
    address = f"/{encoder_address()}"
    assert address not in requests, "only once it is chosen"
    frame.locator("#table").fill(TABLE)
    frame.locator("#table").blur()
    frame.get_by_role("button", name="▶ Train", exact=True).click()
    expect(frame.locator("html")).to_have_attribute("data-steps", re.compile(r"[1-9]\d*"))
    frame.get_by_role("button", name="❚❚ Pause").click()
    assert requests.count(address) == 1
    with page.expect_download() as download:
        frame.get_by_role("button", name="Save page with model", exact=True).click()
    download.value.save_as(tmp_path / "kept.html")
    data = re.search(r'id="page-data">(.*?)</script>', (tmp_path / "kept.html").read_text("utf-8"), re.DOTALL)
    assert data and json.loads(data[1])["encoder"] is None, "a file cannot fetch it"
    offline.goto((tmp_path / "kept.html").as_uri())
    expect(offline.locator("#problem")).to_contain_text("account")
    expect(offline.locator(".machine-bars .number")).to_have_count(2)
    assert download.value.suggested_filename == "playground-own.html"
