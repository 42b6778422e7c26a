import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import numpy as np
import pytest

from tests.app.drawn import Chart, chart, charts_of, numbers, open_page
from tests.app.tiny import LEARNED, PAIRS, SAYS_WORDS
from txcls.inference.predictor import Predictor

TEXT = "banks signed a deal after the election"
VIEWS: dict[str, dict[str, str]] = {
    "classify": {"checkpoint": LEARNED, "k": "2"},
    "steps": {"step": "softmax"},
    "steps, a vector": {"step": "logits"},
    "steps, the class lens": {"step": "lens"},
    "attention": {"layer": "2", "checkpoint": LEARNED, "versus": PAIRS},
    "attention, score": {"layer": "2", "section": "score"},
    "attention, pooling": {"layer": "2", "section": "pooling"},
    "heads": {"switched": "1.1"},
    "positions": {},
    "whatif": {"changed": "banks signed a treaty after the election"},
    "report": {},
    "language": {"part": "fill"},
    "language, continued": {"part": "continue", "causal": SAYS_WORDS},
}
"""Links that together show the charts of all pages."""


NUMBER = re.compile(r"[−-]?\d[\d,]*(?:\.\d+)?")


def as_number(written: str) -> float:
    return float(written.replace("−", "-").replace(",", ""))


def values_in(part: Any) -> Iterator[float]:
    """All numbers in part of a figure, including those in its texts."""
    if isinstance(part, str):
        yield from map(as_number, NUMBER.findall(unescape(part)))
    elif isinstance(part, dict) and "bdata" not in part:
        for value in part.values():
            yield from values_in(value)
    elif isinstance(part, list) and any(isinstance(value, str | list | dict) for value in part):
        for value in part:
            yield from values_in(value)
    elif part is not None:
        numbers_in_part = np.atleast_1d(numbers(part)).astype(float)
        yield from (*numbers_in_part.ravel().tolist(), float(np.nansum(numbers_in_part)))


def drawn_values(figure: dict[str, Any]) -> np.ndarray:
    """The numbers that a figure draws, also as percentages, and the ends of its error bars."""
    values = list(values_in(figure["layout"].get("annotations", [])))
    for trace in figure["data"]:
        values += values_in([trace[name] for name in ("x", "y", "z", "text", "customdata") if name in trace])
        if error := trace.get("error_x"):
            values += [trace["x"][0] - error["arrayminus"][0], trace["x"][0] + error["array"][0]]
    return np.array([*values, *(100 * value for value in values)])


def assert_describes_heat_map(alt: str, trace: dict[str, Any]) -> None:
    """Assert that the range, size and largest weight in a description agree with the heat map."""
    values = numbers(trace["z"]).astype(float)
    if match := re.search(r"from (\S+) to ([−-]?\d+\.\d+)", alt):
        for written, value in zip(match.groups(), (np.nanmin(values), np.nanmax(values)), strict=True):
            digits = len(written.partition(".")[2])
            assert as_number(written) == pytest.approx(value, abs=0.51 * 10**-digits), alt
    if match := re.search(r"over (\d+) tokens", alt):
        assert values.shape == (int(match[1]),) * 2, alt
    if match := re.search(r"largest weight: (\S+) from “(.*)” to “(.*)”", alt):
        row, column = np.unravel_index(int(np.nanargmax(values)), values.shape)
        names = [
            unescape(re.sub("[\u200b\u200c]", "", trace[axis][place])).strip()
            for axis, place in (("y", row), ("x", column))
        ]
        assert (f"{values[row, column]:.2f}", *names) == match.groups(), alt


def described(drawing: Chart) -> None:
    """Fail if a description contains a decimal number that is not drawn, or an axis has neither title nor names."""
    alt, figure = drawing.alt, drawing.figure
    assert len(alt) > 20, drawing.key
    if len(figure["data"]) == 1 and figure["data"][0]["type"] == "heatmap":
        assert_describes_heat_map(alt, figure["data"][0])
    values = drawn_values(figure)
    without_heads = re.sub(r"head \d+\.\d+", "", alt)
    for written in filter(lambda number: "." in number, NUMBER.findall(without_heads)):
        digits = len(written.partition(".")[2])
        assert np.isclose(values, as_number(written), rtol=0, atol=0.51 * 10**-digits).any(), (written, alt)
    layout = figure["layout"]
    for name, axis in layout.items():
        if re.fullmatch(r"[xy]axis\d*", name) and axis.get("showticklabels") is not False:
            is_named = axis.get("title", {}).get("text") or axis.get("ticktext") or axis.get("type") == "category"
            headings = drawing.key.startswith(("chart_training", "chart_live")) and layout["annotations"]
            assert is_named or headings, f"{drawing.key}: {name} has neither a title nor names"


@pytest.mark.parametrize("view", VIEWS)
def test_descriptions_agree_with_the_charts(view: str) -> None:
    app = open_page(view.partition(",")[0], text=TEXT, **VIEWS[view])
    charts = charts_of(app)
    assert charts
    for drawing in charts:
        described(drawing)


def test_the_description_of_what_was_measured_on_test_texts_says_what_is_drawn(measured: Predictor) -> None:
    described(chart(open_page("heads", checkpoint=measured.name, text=TEXT), "chart_table"))
