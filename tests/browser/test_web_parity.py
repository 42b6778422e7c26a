"""The browser's forward pass, cleaning and tokenisation give the same results as Python, in a real Chromium."""

import base64
import html.entities
import json
import random
import re
import string
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import regex
import torch
import wasmtime
from playwright.sync_api import Browser, Page
from tokenizers import pre_tokenizers

from tests.browser.conftest import page_with
from tests.conftest import TEXTS, Untrained, make_checkpoint, with_token_counts
from tests.text.strategies import PIECES
from txcls.checkpoint.folders import checkpoint_root
from txcls.checkpoint.listing import list_checkpoints
from txcls.config import ScopeRule, ScopeScore, TextConfig
from txcls.data.datasets import examples_for
from txcls.inference.predictor import Predictor
from txcls.inspection.ablation import Ablation, ablate, measure_means
from txcls.inspection.lens import class_lens
from txcls.inspection.patching import Direction, patch_grid
from txcls.inspection.tracing import trace_text
from txcls.text.cleaning import clean
from txcls.text.tokenizer import Tokenizer
from txcls.web import assemble
from txcls.web.export import describe
from txcls.web.tokenizer_rules import reading_tables, to_javascript

CLEANING = ("html_entities", "backslashes", "html_tags", "urls", "lowercase", "punctuation", "whitespace")
WITHOUT_PUNCTUATION = tuple(step for step in CLEANING if step != "punctuation")
TOKENIZERS: dict[str, dict[str, Any]] = {
    "word": {"tokenizer": "word", "cleaning": WITHOUT_PUNCTUATION},
    "word, uncleaned": {"tokenizer": "word", "cleaning": ()},
    "byte pairs": {"tokenizer": "bpe", "max_vocabulary": 900, "cleaning": WITHOUT_PUNCTUATION},
    "byte pairs, uncleaned": {"tokenizer": "bpe", "max_vocabulary": 900, "cleaning": ()},
    "byte pairs, all steps": {"tokenizer": "bpe", "max_vocabulary": 900, "cleaning": CLEANING},
    "whitespace, all steps": {"tokenizer": "whitespace", "cleaning": CLEANING},
    "basic English, lower case": {"tokenizer": "basic_english", "cleaning": ("lowercase",)},
}
MODELS: dict[str, dict[str, Any]] = {
    "as shipped": {"positions": "learned", "pooling": "attention"},
    "2017": {"norm": "post", "activation": "relu", "scale_embeddings": True, "pooling": "mean"},
    "class token": {"pooling": "class_token", "positions": "none", "activation": "gelu_tanh", "n_heads": 4},
    "causal, first token": {"causal": True, "pooling": "first", "qkv_bias": False, "output_bias": False},
    "narrow embeddings": {"d_embedding": 6, "n_layers": 1, "d_model": 18, "n_heads": 3, "d_ff": 21},
    "byte pairs": {"text": {"tokenizer": "bpe", "max_vocabulary": 300}, "max_length": 60},
}

MODULES = ("engine/classifier", "engine/ablation", "engine/patching")

IN_THE_PAGE = """
globalThis.make = ({description, weights, tables}) => {
  globalThis.classifier = new Classifier(description, fromBase64(weights), tables);
};
globalThis.encode = (description, tables, texts) => {
  const tokenizer = new Tokenizer(description, tables);
  return texts.map((text) => {
    const {tokens, truncatedAt} = tokenizer.encode(text);
    return [tokens.map((token) => [token.id, token.start, token.end, token.text, token.label]), truncatedAt];
  });
};
Object.assign(globalThis, {Cleaning, PARTS, hasKernel: kernel !== null});
globalThis.product = (x, w, b, T, K, N) => {
  const y = new Float32Array(T * N);
  multiply(Float32Array.from(x), Float32Array.from(w), Float32Array.from(b), y, T, K, N);
  return [...y];
};
const sent = ({data}) => btoa(Array.from(new Uint8Array(data.buffer, data.byteOffset, data.byteLength),
  (byte) => String.fromCharCode(byte)).join(""));
globalThis.read = (text, names, off, how) => {
  const edit = headsOff(off, how, classifier.description.means);
  const pass = classifier.read(text, {edit});
  const wanted = [...pass.trace.values].filter(([name]) => !names || names.some((one) => name.endsWith(one)));
  return {
    values: wanted.map(([name, value]) => [name, value.shape, sent(value)]),
    probabilities: [...pass.probabilities],
    outOfScope: pass.outOfScope,
    ranked: pass.ranked.map(({label}) => label),
    lens: off.length ? [] : classifier.lens(pass.trace).map(({probabilities}) => [...probabilities]),
  };
};
globalThis.patch = (first, second, direction) => {
  const pair = textPair(classifier, first, second);
  if (pair.problem) return pair.problem;
  const n = patchParts(classifier.model.config).length * pair.encodings[0].tokens.length;
  return [...run(patchGrid(classifier, pair, direction, new Float64Array(n).fill(NaN)))];
};
"""


@pytest.fixture(scope="module")
def engine(browser: Browser) -> Iterator[Page]:
    """An empty page with the engine's modules."""
    with page_with(browser, MODULES, IN_THE_PAGE) as page:
        yield page


@pytest.fixture(scope="module", params=["kernel", "no WebAssembly"])
def multiplying(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """`engine`, and the same in a browser without WebAssembly."""
    before = "delete globalThis.WebAssembly" if request.param == "no WebAssembly" else "null"
    with page_with(browser, MODULES, IN_THE_PAGE, before=before) as page:
        assert page.evaluate("hasKernel") == (request.param == "kernel")
        yield page


def test_matrix_products_of_any_shape_equal_numpys(multiplying: Page) -> None:
    random = np.random.default_rng(0)
    shapes = [(1, 1, 1), (800, 3, 9), *(tuple(map(int, random.integers(1, 60, 3))) for _ in range(20))]
    for T, K, N in shapes:
        x, w = random.normal(size=(T, K)).astype(np.float32), random.normal(size=(N, K)).astype(np.float32)
        b = random.normal(size=N).astype(np.float32)
        arguments = [x.ravel().tolist(), w.ravel().tolist(), b.tolist(), T, K, N]
        computed = np.reshape(multiplying.evaluate("(given) => product(...given)", arguments), (T, N))
        expected = x.astype(np.float64) @ w.T.astype(np.float64) + b
        np.testing.assert_allclose(computed, expected, atol=1e-5 * np.sqrt(K), rtol=0, err_msg=f"{T} {K} {N}")


def test_the_kernel_is_what_its_source_assembles_to() -> None:
    folder = Path(assemble.__file__).with_name("engine")
    assembled = bytes(wasmtime.wat2wasm((folder / "kernel.wat").read_text(encoding="utf-8")))
    stored = base64.b64decode((folder / "kernel.js").read_text(encoding="utf-8").split("`")[1])
    assert stored == without_names(assembled), "after a change, write the module's base64 to kernel.js"
    assert len(stored) <= 4096, "the most that older versions of Chromium compile at once on the main thread"


def without_names(module: bytes) -> bytes:
    """A WebAssembly module without its custom sections, the names of functions and variables."""
    kept, start = module[:8], 8
    while start < len(module):
        size, i = 0, start + 1
        while True:  # LEB128: seven bits in each byte, the lowest first
            size |= (module[i] & 127) << 7 * (i - start - 1)
            i += 1
            if module[i - 1] < 128:
                break
        if module[start] != 0:
            kept += module[start : i + size]
        start = i + size
    return kept


def call(engine: Page, function: str, *given: object) -> Any:
    """What a function in the page returns; values travel as JSON, since Playwright needs a minute for long lists."""
    code = f"(given) => JSON.stringify(({function})(...JSON.parse(given)))"
    return json.loads(engine.evaluate(code, json.dumps(given)))


def unicode_texts(n: int, *, seed: int) -> list[str]:
    """Texts of characters from all of Python's Unicode, and of strings that are hard to tokenize."""
    rng = random.Random(seed)

    def character() -> str:
        end = rng.choices((0x7F, 0x250, 0x3000, 0x10000, 0x20000, 0x110000), (30, 20, 20, 15, 10, 5))[0]
        while unicodedata.category(drawn := chr(rng.randrange(end))) == "Cn":
            pass
        return drawn

    def text() -> str:
        length, kind = rng.randrange(1, 25), rng.random()
        if kind < 0.4:
            return "".join(character() for _ in range(2 * length))
        if kind < 0.7:
            return "".join(rng.choice(PIECES) for _ in range(length))
        return " ".join(rng.choice(PIECES) if rng.random() < 0.6 else character() for _ in range(length))

    return [_without_pairs(text()) for _ in range(n)]


def _without_pairs(text: str) -> str:
    """Remove low surrogates that follow high ones: in JavaScript, such a pair is one character."""
    result = ""
    for character in text:
        if not ("\udc00" <= character <= "\udfff" and "\ud800" <= result[-1:] <= "\udbff"):
            result += character
    return result


def units(text: str) -> list[int]:
    """The UTF-16 offset at which each character starts, and the end."""
    places = [0]
    for character in text:
        places.append(places[-1] + (2 if character > "\uffff" else 1))
    return places


def in_units(tokenizer: Tokenizer, text: str) -> list[Any]:
    """Python's encoding of a text, with offsets converted to JavaScript's."""
    place, encoding = units(text), tokenizer.encode(text)
    tokens = [[token.id, place[token.start], place[token.end], token.text, token.label] for token in encoding.tokens]
    return [tokens, None if encoding.truncated_at is None else place[encoding.truncated_at]]


def assert_same_tokens(engine: Page, tokenizer: Tokenizer, texts: Sequence[str]) -> None:
    config = tokenizer.config
    tables = reading_tables(tokenizers=[config.tokenizer])
    for text, computed in zip(texts, call(engine, "encode", tokenizer.to_dict(), tables, texts), strict=True):
        assert computed == in_units(tokenizer, text), ascii(text)


ASSIGNED = "".join(
    character for character in map(chr, range(0x110000)) if unicodedata.category(character) not in ("Cn", "Cs")
)
"""The characters in Python's version of Unicode; a browser's version may have more."""


@pytest.mark.parametrize("pattern", [r"\w", r"\d", r"\s", r"[^\W\d_]", r"(?<=-)\b", r"."])
def test_a_translated_pattern_matches_the_same_characters(engine: Page, pattern: str) -> None:
    texts = "".join(f"-{character}" if "<" in pattern else character for character in ASSIGNED)
    find = "(source, text) => Array.from(text.matchAll(new RegExp(source, 'gv')), (match) => match.index)"
    places = units(texts)
    for library in (re, regex):
        compiled = library.compile(pattern)
        computed = call(engine, find, to_javascript(compiled), texts)
        assert computed == [places[match.start()] for match in compiled.finditer(texts)]


def test_a_letter_without_case_matches_the_same_characters(engine: Page) -> None:
    patterns = [re.compile(f"[{letter}_]", re.IGNORECASE) for letter in string.ascii_lowercase]
    match = "(sources, text) => sources.map((source) => text.match(new RegExp(source, 'gv')).join(''))"
    matched = call(engine, match, [to_javascript(pattern) for pattern in patterns], ASSIGNED)
    assert matched == ["".join(pattern.findall(ASSIGNED)) for pattern in patterns]


def cleaned(engine: Page, step: str, texts: Sequence[str]) -> list[str]:
    clean_all = (
        "(step, tables, texts) => { const cleaning = new Cleaning([step], tables);"
        " return texts.map((text) => cleaning.clean(text).text); }"
    )
    result: list[str] = call(engine, clean_all, step, reading_tables(tokenizers=[]), texts)
    return result


def test_every_character_has_the_same_lowercase_form(engine: Page) -> None:
    """The lowercase form of Σ depends on its neighbours.

    Two characters whose properties changed after Unicode 14.0 are left out.
    """
    characters = set(ASSIGNED) - {"\u0295", "\U0001171e"}
    for form in ("{}", "{}Σ", "a{}Σ", "aΣ{}"):
        texts = [form.format(character) for character in characters if unicodedata.category(character) != "Lo"]
        assert cleaned(engine, "lowercase", texts) == [clean(text, ["lowercase"]) for text in texts]


def test_accents_are_kept_where_punctuation_becomes_spaces(engine: Page) -> None:
    texts = [f"a{character}b" for character in ASSIGNED]
    assert cleaned(engine, "punctuation", texts) == [clean(text, ["punctuation"]) for text in texts]


def test_entities_become_the_same_characters(engine: Page) -> None:
    numbers = [f"&#{number};" for number in (*range(0x300), *range(0xD7F0, 0xE010), *range(0xFDC0, 0x10010))]
    numbers += [f"&#x{plane + last:x};" for plane in range(0, 0x120000, 0x10000) for last in (0xFFFD, 0xFFFE, 0xFFFF)]
    texts = [*numbers, "&#9999999;", *(f"&{name.rstrip(';')};" for name in html.entities.html5), "&notit;", "&bogus;"]
    assert cleaned(engine, "html_entities", texts) == [clean(text, ["html_entities"]) for text in texts]


def test_text_is_parted_for_byte_pairs_as_the_library_does_it(engine: Page) -> None:
    split = pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str
    for form in ("a{}b", "1{}2", "!{}?", " {} "):
        text = "".join(form.format(character) for character in ASSIGNED)
        lengths = call(engine, "(text) => Array.from(text.matchAll(PARTS), ([part]) => [...part].length)", text)
        assert lengths == [end - start for _, (start, end) in split(text)]


@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.smoke
def test_tokens_and_offsets_are_those_of_python(engine: Page, kind: str) -> None:
    texts = unicode_texts(600, seed=0)
    learned = [text.encode("utf-8", "replace").decode() for text in texts[:300]] + list(TEXTS)
    config = TextConfig.model_validate({"min_frequency": 1, **TOKENIZERS[kind]})
    tokenizer = Tokenizer.fit(learned, config, max_length=40, class_token=kind.startswith("byte"))
    assert_same_tokens(engine, tokenizer, [*texts, "", " ", "\u2028", "İ" * 50, "ΑΣ ΑΣ. 'Σ Σα"])


def test_the_beginning_of_a_very_long_text_is_read_as_python_reads_it(engine: Page) -> None:
    config = TextConfig.model_validate({"min_frequency": 1, "cleaning": WITHOUT_PUNCTUATION})
    tokenizer = Tokenizer.fit(TEXTS, config, max_length=64)
    filler = "<b>" + "😀 " * 9_000
    assert_same_tokens(engine, tokenizer, [filler * 4 + "the bank", "\x00 " * 60_000 + "the striker", "word. " * 9_000])


def make(engine: Page, classifier: Predictor) -> None:
    description = describe(classifier)
    config = classifier.tokenizer.config
    path = classifier.checkpoint.path
    assert path is not None
    weights = base64.b64encode((path / "model.safetensors").read_bytes()).decode()
    tables = reading_tables(tokenizers=[config.tokenizer])
    engine.evaluate("(one) => make(one)", {"description": description, "weights": weights, "tables": tables})


def read(
    engine: Page, text: str, *, names: Sequence[str] = (), off: Sequence[tuple[int, int]] = (), how: str = "zero"
) -> dict[str, Any]:
    heads = [{"layer": layer, "head": head} for layer, head in off]
    computed: dict[str, Any] = engine.evaluate(
        "([text, names, off, how]) => read(text, names, off, how)", [text, list(names) or None, heads, how]
    )
    computed["values"] = {
        name: np.frombuffer(base64.b64decode(data), dtype=np.float32).reshape(shape)
        for name, shape, data in computed["values"]
    }
    return computed


@pytest.mark.smoke
@pytest.mark.parametrize("kind", MODELS)
def test_every_tap_holds_what_it_holds_in_python(engine: Page, untrained: Untrained, kind: str) -> None:
    scores = get_args(ScopeScore)
    score = scores[list(MODELS).index(kind) % len(scores)]
    scope = ScopeRule(score=score, threshold=1.4 if score == "standard_score" else 0.6)
    classifier = untrained(**MODELS[kind], scope=scope)
    make(engine, classifier)
    for text in (*TEXTS[:3], "the", "a word that was never seen, and more of them than it reads: " * 4):
        traced, computed = trace_text(classifier, text), read(engine, text)
        assert computed["values"].keys() == traced.values.keys()
        for name, value in traced.values.items():
            np.testing.assert_allclose(computed["values"][name], value, atol=2e-5, err_msg=name)
        prediction = traced.prediction
        assert computed["ranked"] == [score.label for score in prediction.ranked]
        assert computed["outOfScope"] == prediction.is_out_of_scope
        probabilities = dict(zip(classifier.classes, computed["probabilities"], strict=True))
        for score in prediction.ranked:
            assert probabilities[score.label] == pytest.approx(score.probability, abs=1e-5)
        np.testing.assert_allclose(computed["lens"], class_lens(classifier, text).probabilities, atol=1e-5)


@pytest.mark.smoke
@pytest.mark.parametrize("how", ["zero", "uniform", "mean"])
def test_a_head_switched_off_changes_the_answer_as_in_python(engine: Page, untrained: Untrained, how: Any) -> None:
    classifier = untrained(causal=True)
    means = measure_means(classifier, TEXTS, split="test")
    make(engine, classifier)
    taps = {name: mean.tolist() for name, mean in means.taps.items()}
    engine.evaluate("(means) => { classifier.description.means = means; }", taps)
    for off in ([(0, 1)], [(0, 0), (1, 0), (1, 1)]):
        changes = [Ablation("head", how, layer, head) for layer, head in off]
        expected = ablate(classifier, TEXTS[0], [changes], means=means).changed[0]
        computed = read(engine, TEXTS[0], off=off, how=how)["probabilities"]
        np.testing.assert_allclose(computed, expected, atol=1e-5)


@pytest.mark.smoke
@pytest.mark.parametrize("tokenizer", ["word", "bpe"])
def test_short_and_unusual_texts_are_judged_as_in_python(engine: Page, tmp_path: Path, tokenizer: str) -> None:
    words = {"tokenizer": tokenizer, "max_vocabulary": 300}
    checkpoint = with_token_counts(make_checkpoint(tmp_path / "tiny", text=words, max_length=60, pooling="class_token"))
    calibration = checkpoint.calibration.model_copy(update={"short": ((3, 9.0), (12, 3.0))})
    generated = checkpoint.config.model_copy(
        update={"data": checkpoint.config.data.model_copy(update={"dataset": "who_won"})}
    )
    reports = ("Rovers easily beat City", "Rovers were not beaten by City.")
    strange = ("Привет, the bank", "今天天气很好 𝒳𝒴 it don't", "zqxjv qqq " * 9, "the bank raised its rates agian")
    for changes in ({"calibration": calibration}, {"config": generated}, {"token_counts": None}):
        classifier = Predictor(replace(checkpoint, **changes))
        make(engine, classifier)
        judged = []
        for text in (*TEXTS[:5], "the bank", *reports, *strange, " ".join(TEXTS)):
            prediction = classifier.predict([text])[0]
            computed = read(engine, text, names=[])
            assert computed["probabilities"] == pytest.approx(
                [prediction.probabilities[name] for name in checkpoint.classes], abs=1e-5
            )
            found = engine.evaluate("(text) => classifier.read(text).isUnusual", text)
            assert found == prediction.is_unusual, text
            judged.append(found)
        assert set(judged) == ({False} if "token_counts" in changes else {False, True})


@pytest.mark.smoke
@pytest.mark.parametrize("kind", [kind for kind in MODELS if kind != "byte pairs"])  # that one has only one answer
def test_the_patch_grid_of_any_model_is_that_of_python(engine: Page, untrained: Untrained, kind: str) -> None:
    classifier = untrained(**MODELS[kind])
    make(engine, classifier)
    words = " ".join(TEXTS).split()
    texts = [" ".join(words[start : start + n]) for n in (1, 2, 4) for start in range(len(words) - n)]
    ids = {text: classifier.tokenizer.encode(text).ids for text in texts}
    logits = {text: classifier.logits(torch.tensor([ids[text]]))[0].numpy() for text in ids}
    # Where the difference between the answers is tiny, dividing by it enlarges errors of rounding.
    differences = {
        (first, second): np.subtract(
            *(logits[first] - logits[second])[[logits[first].argmax(), logits[second].argmax()]]
        )
        for first, second in combinations(ids, 2)
        if len(ids[first]) == len(ids[second]) and logits[first].argmax() != logits[second].argmax()
    }
    first, second = max(differences, key=differences.__getitem__)
    for direction in get_args(Direction):
        expected = patch_grid(classifier, first, second, direction=direction).values
        computed = engine.evaluate("(given) => patch(...given)", [first, second, direction])
        np.testing.assert_allclose(np.reshape(computed, expected.shape), expected, atol=1e-4, rtol=0)


@pytest.mark.smoke
def test_texts_without_a_patch_grid_are_refused_as_in_python(engine: Page) -> None:
    make(engine, Predictor.load(checkpoint_root() / "who_won"))
    first = "Rovers lost to Wanderers, who beat United last week."
    for second, problem in (
        ("Rovers beat City", "lengths"),
        (first.replace("United", "City"), "answers"),
        (" \u200b", "words"),
    ):
        assert engine.evaluate("(given) => patch(...given)", [first, second, "noising"]) == problem


def shipped() -> list[str]:
    return [summary.name for summary in list_checkpoints().classifiers]


@pytest.mark.parametrize("name", shipped())
@pytest.mark.smoke
def test_shipped_classifiers_answer_as_in_python(engine: Page, name: str) -> None:
    """Logits agree within 1e-4 and attention patterns within 1e-3."""
    classifier = Predictor.load(checkpoint_root() / name)
    make(engine, classifier)
    examples = [example.text for name in ("ag_news", "imdb", "clinc150") for example in examples_for(name)]
    rng, words = random.Random(0), " ".join(examples).split()
    for text in [*examples[:5], *(" ".join(rng.choices(words, k=n)) for n in (1, 9, 30, 69))]:
        traced = trace_text(classifier, text)
        computed = read(engine, text, names=["attn.pattern", "logits"])["values"]
        for tap, value in computed.items():
            np.testing.assert_allclose(
                value, traced[tap], atol=1e-4 if tap == "logits" else 1e-3, rtol=0, err_msg=f"{tap} of {text!r}"
            )
