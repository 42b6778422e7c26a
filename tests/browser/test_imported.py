"""An imported model in the browser: tokens and probabilities of Python, the exported page, and what is refused."""

import base64
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page

from tests.bert import write_bert
from tests.browser import test_web_parity as parity
from tests.browser.conftest import page_with
from tests.browser.exported import Open, bars, write
from tests.checkpoint.test_bert import TEXTS
from txcls.checkpoint.checkpoint import save_checkpoint
from txcls.checkpoint.hugging_face import load_bert
from txcls.checkpoint.weights import round_as_stored
from txcls.config import TextConfig
from txcls.inference.predictor import Predictor
from txcls.inspection.lens import class_lens
from txcls.text.subwords import Normalizer, WordPieces
from txcls.text.tokenizer import Tokenizer
from txcls.text.vocabulary import BERT_TOKENS
from txcls.web.export import export_page, pack

MARKS = "\u0301\u0323\U0001d165\u302e\u302f\u0344\U0001d15e\u0591\u05b0\u0f71\u094d각한豈\u2f800\U0002b820\U0002b920"
OPTIONS = ("lowercase", "strip_accents", "handle_chinese_chars")


@pytest.fixture(scope="module")
def engine(browser: Browser) -> Iterator[Page]:
    with page_with(browser, parity.MODULES, parity.IN_THE_PAGE) as page:
        yield page


@cache
def tokenizer_of_all(off: tuple[str, ...] = ()) -> Tokenizer:
    """A tokenizer that knows every character of Unicode's first planes, at the start of a word and inside."""
    normalizer = Normalizer(**{name: name not in off for name in OPTIONS})
    changed = WordPieces(BERT_TOKENS, normalizer).normalize(" ".join(set(parity.ASSIGNED)))
    known = sorted({*changed} - {" "} - {chr(code) for code in range(0x20000, 0x30000)})
    pieces = WordPieces((*BERT_TOKENS, *known, *(f"##{one}" for one in known)), normalizer)
    config = TextConfig(tokenizer="wordpiece", cleaning=("as_typed",))
    return Tokenizer(pieces, config, max_length=4000, class_token=True)


@pytest.mark.parametrize("off", [(), ("lowercase",), OPTIONS], ids=str)
def test_tokens_and_offsets_are_those_of_python(engine: Page, off: tuple[str, ...]) -> None:
    random = np.random.default_rng(0)
    texts = parity.unicode_texts(300, seed=5)
    texts += ["".join(random.choice(list(MARKS + "aA e"), size=12)) for _ in range(300)]
    texts += ["[CLS] [SEP][MASK]x[UNK] [PAD] [sep] [[SEP]]", "x" * 100, "x" * 101, ""]
    parity.assert_same_tokens(engine, tokenizer_of_all(off), texts)


def test_every_character_is_read_as_python_reads_it(engine: Page) -> None:
    characters = [one for one in parity.ASSIGNED if one < "\U000f0000"]
    joined = ["".join(f"a{one}b" for one in characters[n : n + 100]) for n in range(0, len(characters), 100)]
    parity.assert_same_tokens(engine, tokenizer_of_all(), joined)


@pytest.fixture(scope="module", params=["bert", "distilbert"])
def imported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("imported")
    write_bert(folder / "published", request.param)
    return save_checkpoint(load_bert(folder / "published"), folder / "ours")


def test_probabilities_and_the_lens_are_those_of_python(engine: Page, imported: Path) -> None:
    content = pack(imported)
    length = int.from_bytes(content[:4], "little")
    given = json.loads(content[4 : 4 + length]) | {"weights": base64.b64encode(content[4 + length :]).decode()}
    engine.evaluate("make", given)
    classifier = Predictor.load(imported)
    round_as_stored(classifier.checkpoint.model)
    for text in TEXTS:
        computed = engine.evaluate("(text) => read(text, null, [], 'zero')", text)
        expected = classifier.probabilities([text], precision="float32")[0]
        np.testing.assert_allclose(computed["probabilities"], expected, atol=1e-5)
        np.testing.assert_allclose(computed["lens"], class_lens(classifier, text).probabilities, atol=1e-5)
        exact = Predictor.load(imported).probabilities([text], precision="float32")[0]
        np.testing.assert_allclose(expected, exact, atol=5e-3, err_msg="rounded to float16")


def test_an_exported_page_reads_pieces_checks_itself_and_says_that_it_was_imported(
    imported: Path, tmp_path: Path, open_page: Open
) -> None:
    page = open_page(export_page([imported], tmp_path / "page", single_file=True).as_uri(), offline=True)
    page.wait_for_selector("html[data-checked]")
    assert float(page.locator("html").get_attribute("data-checked") or "nan") < 1e-5
    write(page, "The cat played")
    assert page.locator("#tokens span").all_inner_texts() == ["[CLS]", "The", "cat", "play", "ed", "[SEP]"]
    assert bars(page) and "imported, and they are not calibrated" in page.locator("#bars-caption").inner_text()
    assert any(
        "after the pooler, one more layer." in part for part in page.locator(".machine-text li").all_text_contents()
    )
    page.locator("#card summary").click()
    card = page.locator("#card").inner_text()
    assert (
        "ForSequenceClassification, imported" in card and "rounded to 16 bits" in card and "on validation" not in card
    )
