import re
from functools import cache
from html.parser import HTMLParser
from typing import Any

import pytest
from markdown_it import MarkdownIt

from tests.checkpoint.test_card import FIGURES
from tests.conftest import tiny_config
from txcls.checkpoint.card import model_card
from txcls.checkpoint.comparison import ClassifierScores, Comparison, Measured
from txcls.lessons.markup import to_html, to_inline_html
from txcls.text.formatting import as_markdown

pytestmark = pytest.mark.attack
PAYLOADS = (
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<svg/onload=alert(1)>", "</td><td onclick=x>",
    "<b onmouseover=alert(1)>b", "<!--", "--><script>alert(1)</script>", "<![CDATA[<img src=x>]]>", "<?php x ?>",
    "<!DOCTYPE x>", "<form action=//x><input>", "<a href=javascript:alert(1)>a</a>", "[a](javascript:alert(1))",
    "[a](https://x.example)", "![a](https://x.example/a.png)", "[a][b]", "[b]: https://x.example", "<https://x.example>",
    "<me@x.example>", "**bold**", "__bold__", "*a*", "_a_", "~~gone~~", "`code`", "``a`b``", "```", "~~~", "# h", "- a",
    "+ a", "1. a", "12) a", "> quote", "===", "---", "a\n\n# h", "a\n===", "| a | b |\n|---|---|", "a | b",
    "\\", "\\<img src=x>", "&lt;img src=x&gt;", "&#60;img src=x&#62;", "$\\text{<img src=x onerror=alert(1)>}$", "$x$",
)  # fmt: skip


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append(" ".join([tag, *sorted(name for name, _ in attrs)]))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.found.append("comment")

    def handle_decl(self, decl: str) -> None:
        self.found.append("declaration")

    def handle_pi(self, data: str) -> None:
        self.found.append("instruction")

    def unknown_decl(self, data: str) -> None:
        self.found.append("declaration")


def read(html: str) -> tuple[list[str], str]:
    """The elements of HTML with their attribute names, and the text."""
    parser = _Elements()
    parser.feed(html)
    parser.close()
    return parser.found, " ".join(parser.text.split())


EFFECT = dict.fromkeys(("kl", "kl_low", "kl_high", "lost", "lost_low", "lost_high"), 0.1)
TABLE = dict.fromkeys(("share", "low", "high", "control"), 0.5)
PART = {
    "mean": EFFECT,
    "resampled": EFFECT,
    "uniform": EFFECT,
    "tables": {"both": TABLE},
    "best": "both",
    "verdict": "confirmed",
}
HEADS: dict[str, Any] = {
    "split": "test", "n": 3, "n_training": 3, "accuracy": 0.5, "heads": [PART], "layers": [PART], "all_heads": PART,
    "feed_forward": [{"mean": EFFECT, "resampled": EFFECT}],
}  # fmt: skip


def card_with(text: str) -> str:
    """A model card with the text in every field that comes from outside, rendered with raw HTML enabled."""
    measured = Measured(0.5, 0.4, 0.6)
    either = ClassifierScores(measured, measured)
    comparison = Comparison(9, 9, either, either, either, measured, measured, 1, 1, baseline=text)
    metrics = {
        "test": FIGURES | {"per_class": [FIGURES["per_class"][0] | {"label": text}]},
        "data": {"title": text, "note": text, "terms": text, "train_rows": 3},
        "training": dict.fromkeys(("command", "seed", "machine", "software"), text),
        "comparison": comparison.to_dict(),
        "heads": {**HEADS, "heads": [HEADS["heads"][0] | {"rule": text}]},
    }  # fmt: skip
    config = tiny_config().with_settings(["data.dataset=table"]).model_copy(update={"title": text})
    classes = (text, f"{text} {text}", f"a{text}b", f"{text}.")
    card = model_card(name=text, config=config, classes=classes, vocab_size=9, n_parameters=9, metrics=metrics)
    body = re.sub(r"\A---\n.*?\n---\n", "", card, flags=re.DOTALL)
    return str(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(body))


@cache
def read_card_with(text: str) -> tuple[list[str], str]:
    return read(card_with(text))


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_card_shows_texts_from_outside_as_they_are(payload: str) -> None:
    elements, text = read_card_with(payload)
    plain_elements, plain_text = read_card_with("plain")
    assert elements == plain_elements
    assert text == plain_text.replace("plain", " ".join(payload.split()))


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_measured_value_in_a_lesson_is_text_and_a_formula_draws_nothing_else(payload: str) -> None:
    assert read(to_inline_html(f"The model answers {as_markdown(payload)}."))[0] == []
    elements = read(to_html(f"$\\text{{{payload}}}$ and ${payload}$ and {payload}"))[0]
    allowed = r"(p|em|strong|code|h1|ul|ol|li|hr|blockquote|pre|m\w+( (?!on|href|src|style)\w+)*|a href)"
    assert not [element for element in elements if not re.fullmatch(allowed, element)]
