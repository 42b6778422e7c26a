"""An imported model in the browser: tokens and probabilities of Python, the exported page, and what is refused."""

import base64
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.bert import write_bert
from tests.browser import test_web_parity as parity
from tests.checkpoint.test_bert import TEXTS
from txcls.checkpoint.bert import load_bert
from txcls.checkpoint.checkpoint import save_checkpoint
from txcls.config import TextConfig
from txcls.inference.predictor import Predictor
from txcls.inspection.lens import class_lens
from txcls.text.tokenizer import Tokenizer
from txcls.text.vocabulary import BERT_TOKENS
from txcls.text.wordpiece import Normalizer, WordPieces
from txcls.web.export import describe, page_weights
from txcls.web.join_scripts import script
from txcls.web.tokenizer_rules import reading_tables

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

MARKS = "\u0301\u0323\U0001d165\u302e\u302f\u0344\U0001d15e\u0591\u05b0\u0f71\u094d각한豈\u2f800\U0002b820\U0002b920"
OPTIONS = ("lowercase", "strip_accents", "handle_chinese_chars")


@pytest.fixture(scope="module")
def engine(browser: "Browser") -> "Iterator[Page]":
    page = browser.new_page()
    page.add_script_tag(type="module", content=script(*parity.MODULES) + parity.IN_THE_PAGE)
    page.wait_for_function("globalThis.ready")
    yield page
    page.close()


@cache
def tokenizer_of_all(off: tuple[str, ...] = ()) -> Tokenizer:
    """A tokenizer that knows every character of Unicode's first planes, at the start of a word and inside."""
    normalizer = Normalizer(**{name: name not in off for name in OPTIONS})
    changed = WordPieces(BERT_TOKENS, normalizer).normalized(" ".join(set(parity.ASSIGNED)))
    known = sorted({*changed} - {" "} - {chr(code) for code in range(0x20000, 0x30000)})
    pieces = WordPieces((*BERT_TOKENS, *known, *(f"##{one}" for one in known)), normalizer)
    config = TextConfig(tokenizer="wordpiece", cleaning=("as_typed",))
    return Tokenizer(pieces, config, max_length=4000, class_token=True)


@pytest.mark.parametrize("off", [(), ("lowercase",), OPTIONS], ids=str)
def test_tokens_and_offsets_are_those_of_python(engine: "Page", off: tuple[str, ...]) -> None:
    random = np.random.default_rng(0)
    texts = parity.unicode_texts(300, seed=5)
    texts += ["".join(random.choice(list(MARKS + "aA e"), size=12)) for _ in range(300)]
    texts += ["[CLS] [SEP][MASK]x[UNK] [PAD] [sep] [[SEP]]", "x" * 100, "x" * 101, ""]
    parity.assert_same_tokens(engine, tokenizer_of_all(off), texts)


def test_every_character_is_read_as_python_reads_it(engine: "Page") -> None:
    characters = [one for one in parity.ASSIGNED if one < "\U000f0000"]
    joined = ["".join(f"a{one}b" for one in characters[n : n + 100]) for n in range(0, len(characters), 100)]
    parity.assert_same_tokens(engine, tokenizer_of_all(), joined)


@pytest.mark.parametrize("kind", ["bert", "distilbert"])
def test_probabilities_and_the_lens_are_those_of_python(engine: "Page", tmp_path: Path, kind: str) -> None:
    write_bert(tmp_path / "published", kind)
    path = save_checkpoint(load_bert(tmp_path / "published"), tmp_path / "ours")
    classifier = Predictor.load(path)
    weights = base64.b64encode(page_weights(classifier.checkpoint, path)).decode()
    tables = reading_tables(tokenizers=["wordpiece"])
    engine.evaluate("make", {"description": describe(classifier), "weights": weights, "tables": tables})
    for text in TEXTS:
        computed = engine.evaluate("(text) => read(text, null, [], 'zero')", text)
        expected = classifier.probabilities([text], precision="float32")[0]
        np.testing.assert_allclose(computed["probabilities"], expected, atol=2e-3, err_msg="rounded to float16")
        lens = class_lens(classifier, text).probabilities
        np.testing.assert_allclose(computed["lens"], lens, atol=2e-3)
