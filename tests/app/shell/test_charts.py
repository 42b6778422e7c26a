"""Every chart is described in words that agree with what it draws, and names its axes.

What a description must hold is read off the figure as it is sent to the browser, not from what the page computed.
"""

import re
from collections.abc import Callable, Iterator
from html import unescape
from typing import Any

import numpy as np
import pytest

from tests.app.drawn import Chart, chart, charts_of, numbers, open_page
from tests.app.tiny import LEARNED, PAIRS, SAYS_WORDS
from txcls.figures.style import FRAME
from txcls.predictor import Predictor

TEXT = "banks signed a deal after the election"
Figure = dict[str, Any]


def shown(name: str) -> str:
    """A label of a figure as people read it."""
    return unescape(re.sub("[\u200b\u200c]", "", name)).strip()


def ticks(figure: Figure, axis: str) -> list[str]:
    return [shown(name) for name in figure["layout"][axis]["ticktext"]]


def bars(figure: Figure, trace: int = 0) -> list[tuple[str, float]]:
    """Name and value of each bar of a chart whose bars lie."""
    data = figure["data"][trace]
    names = data["customdata"] if "customdata" in data else ticks(figure, "yaxis")
    names = [shown(name if isinstance(name, str) else name[-1]) for name in names]
    return list(zip(names, numbers(data["x"]).tolist(), strict=True))


def cells(figure: Figure) -> tuple[np.ndarray, list[str], list[str]]:
    """The values of a heat map, and the names of its rows and columns."""
    (data,) = figure["data"]
    return numbers(data["z"]), [shown(name) for name in data["y"]], [shown(name) for name in data["x"]]


def strongest(figure: Figure) -> tuple[str, str, float]:
    values, rows, columns = cells(figure)
    row, column = np.unravel_index(int(np.nanargmax(values)), values.shape)
    return rows[row], columns[column], float(values[row, column])


def probabilities(figure: Figure) -> Iterator[str]:
    for name, value in bars(figure):
        yield f"{'all others' if name.endswith((' other', ' others')) else name} {100 * value:.1f} %"


def training(figure: Figure) -> Iterator[str]:
    saved = [trace for trace in figure["data"] if trace["name"] == "saved weights"][1]
    yield f"{100 * saved['y'][0]:.1f} %"


def one_head(figure: Figure) -> Iterator[str]:
    row, column, weight = strongest(figure)
    yield from ("layer 2, head 1", f"{len(cells(figure)[1])} tokens", f"{weight:.2f} from “{row}” to “{column}”")


def all_heads(figure: Figure) -> Iterator[str]:
    yield f"{len(ticks(figure, 'xaxis'))} heads in {len(ticks(figure, 'yaxis'))} layers"
    (frame,) = figure["layout"]["shapes"]
    head, layer = (int((frame[f"{axis}0"] + frame[f"{axis}1"]) / 2) for axis in "xy")
    yield f"layer {layer + 1}, head {head + 1} is selected"


def arcs(figure: Figure) -> Iterator[str]:
    (ends,) = (trace for trace in figure["data"] if trace.get("customdata"))
    query, key = map(shown, ends["customdata"][0])
    yield from ("layer 2, head 1", f"{len(ends['text'])} arcs", f"{query} to {key}")


def dimensions(figure: Figure) -> Iterator[str]:
    products = numbers(figure["data"][0]["y"])
    yield from (f"{len(products)} dimensions", f"{products.sum():.2f}")


def board(digits: int) -> Callable[[Figure], Iterator[str]]:
    def extremes(figure: Figure) -> Iterator[str]:
        values = numbers(figure["data"][0]["z"]).astype(float)
        yield f"from {np.nanmin(values):.{digits}f} to {np.nanmax(values):.{digits}f}"

    return extremes


def rollout(figure: Figure) -> Iterator[str]:
    row, column, weight = strongest(figure)
    yield from (f"{len(cells(figure)[1])} tokens", f"{weight:.2f} from “{row}” to “{column}”")


def pooling(figure: Figure) -> Iterator[str]:
    names, weights = figure["data"][0]["x"], numbers(figure["data"][0]["y"])
    for place in np.argsort(-weights)[:3]:
        yield f"{shown(names[place])} {100 * weights[place]:.0f} %"


def encoding(figure: Figure) -> Iterator[str]:
    n_positions, n_dimensions = numbers(figure["data"][0]["z"]).shape
    yield f"{n_positions} positions by {n_dimensions} dimensions"


def curves(figure: Figure) -> Iterator[str]:
    yield ", ".join(trace["name"].removeprefix("dimension ") for trace in figure["data"])


def products(figure: Figure) -> Iterator[str]:
    yield f"{len(numbers(figure['data'][0]['z']))} positions"


def shuffles(figure: Figure) -> Iterator[str]:
    (_, after) = figure["data"]
    name, value = max(bars(figure), key=lambda one: one[1])
    yield from (after["name"], name, f"{100 * value:.1f} %")


def shift(figure: Figure) -> Iterator[str]:
    yield f"first {len(numbers(figure['data'][0]['z']))} dimensions"


def effects(figure: Figure) -> Iterator[str]:
    written = figure["data"][0]["text"]
    yield f"{sum(len(row) - 2 for row in written)} heads and {len(written)} feed-forward blocks"
    what = figure["data"][-1]["text"][0]
    yield re.findall("The probability of (.*?) changes", str(what))[0]


def moved(figure: Figure) -> Iterator[str]:
    before, after = bars(figure, 0), bars(figure, 1)
    yield f"{before[0][0]} goes from {100 * before[0][1]:.1f} % to {100 * after[0][1]:.1f} %"


def overlaps(figure: Figure) -> Iterator[str]:
    first, *others = ticks(figure, "xaxis")
    for name, value in zip(others, figure["data"][0]["text"][0][1:], strict=True):
        yield f"{first} and {name} {value}"


def deletion(figure: Figure) -> Iterator[str]:
    yield figure["layout"]["yaxis"]["title"]["text"].removeprefix("probability of ")
    yield from (trace["name"].partition(" (")[0] for trace in figure["data"] if "name" in trace)


def lens(figure: Figure) -> Iterator[str]:
    lines = [trace for trace in figure["data"] if trace.get("name")]
    for place, state in enumerate(lines[0]["x"]):
        best = max(lines, key=lambda line: numbers(line["y"])[place])
        yield f"{shown(state.replace('<br>', ': '))}: {shown(best['name'])} {100 * numbers(best['y'])[place]:.0f} %"


def contributions(figure: Figure) -> Iterator[str]:
    for name, value in bars(figure):
        yield f"{name} " + f"{round(value, 2) + 0.0:+.2f}".replace("-", "−")


def table(rows: str, form: str) -> Callable[[Figure], Iterator[str]]:
    def sizes(figure: Figure) -> Iterator[str]:
        values, names, tokens = cells(figure)
        yield from (
            f"{len(names)} {rows}",
            f"{len(tokens)} tokens",
            f"from {values.min():{form}} to {values.max():{form}}",
        )

    return sizes


def step(figure: Figure) -> Iterator[str]:
    if figure["data"][0]["type"] == "bar":
        yield from vector(figure)
        return
    values = numbers(figure["data"][0]["z"])
    frame = figure["layout"]["shapes"][-1]
    row, column = (int((frame[f"{axis}0"] + frame[f"{axis}1"]) / 2) for axis in "yx")
    yield f"{values.shape[0]} by {values.shape[1]} numbers from {values.min():.4f} to {values.max():.4f}"
    yield from (f"row {row + 1}, column {column + 1}", f"{values[row, column]:.4f}")


def vector(figure: Figure) -> Iterator[str]:
    [drawn] = figure["data"]
    values = numbers(drawn["x"])
    chosen = drawn["marker"]["color"].index(FRAME)
    yield f"{len(values)} numbers from {values.min():.4f} to {values.max():.4f}"
    yield f"selected: class {drawn['customdata'][chosen] + 1}, {values[chosen]:.4f}"


def compared(figure: Figure) -> Iterator[str]:
    for trace, of in enumerate(("as typed", "changed")):
        name, value = max(bars(figure, trace), key=lambda one: one[1])
        yield f"{name} {100 * value:.1f} % {of}"


def word_effects(figure: Figure) -> Iterator[str]:
    names = [shown(trace) for trace in figure["data"][0]["x"]]
    both = [np.abs(np.nan_to_num(numbers(trace["y"]))) for trace in figure["data"]]
    yield f"strongest: {names[int(np.argmax(np.maximum(*both)))]}"
    yield figure["layout"]["yaxis"]["title"]["text"].removeprefix("for ")


def words(figure: Figure) -> Iterator[str]:
    vocabulary, own = (len(figure["data"][place]["text"]) for place in (0, -1))
    yield from (f"{vocabulary:,} token vectors", f"{own} of them tokens of this text")


def texts(figure: Figure) -> Iterator[str]:
    *others, own = figure["data"]
    yield f"{sum(len(trace['text']) for trace in others)} texts"
    yield from (f"{len(trace['text'])} {shown(trace['name'])}" for trace in others)
    yield re.findall("this text</b>: (.*?)<", own["hovertemplate"])[0]


def tokens(figure: Figure) -> Iterator[str]:
    for name, value in bars(figure):
        yield f"{name} {100 * value:.1f} %"
    (others,) = figure["layout"]["annotations"]
    yield f"others {float(re.findall(': ([0-9.]+) %', others['text'])[0]):.1f} %"


def surprisal(figure: Figure) -> Iterator[str]:
    names, bits = figure["data"][0]["x"], numbers(figure["data"][0]["y"])
    yield from (f"{len(names)} tokens", f"{shown(names[int(bits.argmax())])} with {bits.max():.1f}")


def mask(figure: Figure) -> Iterator[str]:
    allowed = numbers(figure["data"][0]["z"])
    yield from (f"{len(allowed)} tokens", f"{int(allowed.sum()):,} of {allowed.size:,} query–key pairs unmasked")


def confusion(figure: Figure) -> Iterator[str]:
    (data,) = figure["data"]
    counts, names = numbers(data["customdata"]), [shown(name) for name in data["y"]]
    both = np.triu(counts + counts.T, k=1)
    yield f"{len(names)} of {len(names)} classes"
    if both.any():
        first, second = (names[place] for place in np.unravel_index(int(both.argmax()), both.shape))
        yield f"{both.max():,} rows"
        assert first in names and second in names


def reliability(figure: Figure) -> Iterator[str]:
    _, _, line = figure["data"]
    rows = numbers(line["customdata"])
    largest = int(rows.argmax())
    yield f"{len(rows)} bins"
    for values in (line["x"], line["y"]):
        yield f"{100 * numbers(values)[largest]:.1f} %"


def groups(figure: Figure) -> Iterator[str]:
    (bars,) = figure["data"]
    for (name, rows), accuracy in zip(bars["customdata"], numbers(bars["x"]), strict=True):
        yield f"{shown(name)} {100 * accuracy:.1f} % of {rows:,} rows"


def pattern(figure: Figure) -> Iterator[str]:
    yield from ("layer 2 of", "head 1 of", f"{len(cells(figure)[1])} tokens")


def counts(figure: Figure) -> Iterator[str]:
    name, value = next(iter(bars(figure)))
    yield from (name, f"{value:,}")


def histogram(figure: Figure) -> Iterator[str]:
    yield f"{int(numbers(figure['data'][0]['y']).sum()):,} texts"


def live(figure: Figure) -> Iterator[str]:
    done = [trace for trace in figure["data"] if trace["name"] == "training rows"]
    yield from (f"{done[0]['y'][-1]:.3f}", f"{100 * done[1]['y'][-1]:.1f} %", f"{done[0]['x'][-1]:,} of")


def intervals(figure: Figure) -> Iterator[str]:
    for trace in figure["data"]:
        low, high = trace["x"][0] - trace["error_x"]["arrayminus"][0], trace["x"][0] + trace["error_x"]["array"][0]
        yield f"{trace['name']} {100 * trace['x'][0]:.1f} % ({100 * low:.1f} % to {100 * high:.1f} %)"


WORDS: dict[str, Callable[[Figure], Iterator[str]]] = {
    "chart_arcs": arcs,
    "chart_bars": probabilities,
    "chart_board": effects,
    "chart_accuracy": board(2),
    "chart_classes": counts,
    "chart_classified": counts,
    "chart_compared": compared,
    "chart_comparison": intervals,
    "chart_confusion": confusion,
    "chart_contribution_map": table("parts", ".2f"),
    "chart_contributions": contributions,
    "chart_curves": curves,
    "chart_deletion": deletion,
    "chart_distance": board(1),
    "chart_effects": word_effects,
    "chart_entropy": board(2),
    "chart_fill": tokens,
    "chart_groups": groups,
    "chart_grid": all_heads,
    "chart_lengths": table("states", ".1f"),
    "chart_lens": lens,
    "chart_live": live,
    "chart_map": one_head,
    "chart_mask": mask,
    "chart_moved": moved,
    "chart_next": tokens,
    "chart_numbers": step,
    "chart_overlaps": overlaps,
    "chart_pattern": pattern,
    "chart_pooling": pooling,
    "chart_positions": encoding,
    "chart_products": products,
    "chart_query_key": dimensions,
    "chart_reliability": reliability,
    "chart_rollout": rollout,
    "chart_shift": shift,
    "chart_shuffles": shuffles,
    "chart_surprisal": surprisal,
    "chart_texts": texts,
    "chart_training": training,
    "chart_versus": one_head,
    "chart_words": words,
    "chart_rows_by_length": histogram,
}
"""What the description of a chart must say, by the start of the chart's key."""
VIEWS: dict[str, dict[str, str]] = {
    "classify": {"checkpoint": LEARNED, "k": "2"},
    "steps": {"step": "softmax"},
    "steps, a vector": {"step": "logits"},
    "attention": {"layer": "2", "checkpoint": LEARNED, "versus": PAIRS},
    "attention, score": {"layer": "2", "section": "score"},
    "attention, heads": {"layer": "2", "section": "heads"},
    "attention, rollout": {"layer": "2", "section": "rollout"},
    "attention, pooling": {"layer": "2", "section": "pooling"},
    "switchboard": {"switched": "1.1"},
    "explanation": {},
    "lens": {},
    "positions": {},
    "whatif": {"changed": "banks signed a treaty after the election"},
    "neighbourhood": {},
    "report": {},
    "language": {"part": "fill"},
    "language, continued": {"part": "continue", "causal": SAYS_WORDS},
    "language, masks": {"part": "masks", "causal": SAYS_WORDS, "layer": "2"},
}
"""The pages with charts, as links that show all of theirs."""


def described(drawing: Chart) -> None:
    """Fail where a chart's description leaves out what the chart draws, or an axis has neither title nor names."""
    rules = [rule for key, rule in WORDS.items() if re.fullmatch(rf"{key}(_.*)?", drawing.key)]
    assert len(rules) == 1, f"say in WORDS what the description of {drawing.key} must hold"
    for expected in rules[0](drawing.figure):
        assert expected in drawing.alt, f"{drawing.key}: “{expected}” is drawn, and not in “{drawing.alt}”"
    layout = drawing.figure["layout"]
    for name, axis in layout.items():
        if re.fullmatch(r"[xy]axis\d*", name) and axis.get("showticklabels") is not False:
            names = axis.get("title", {}).get("text") or axis.get("ticktext") or axis.get("type") == "category"
            names = names or (
                drawing.key.startswith(("chart_training", "chart_live"))
                and [note["text"] for note in layout["annotations"]]
            )
            assert names, f"{drawing.key}: {name} has neither a title nor names"


@pytest.mark.parametrize("view", VIEWS)
def test_descriptions_say_what_the_charts_draw(view: str) -> None:
    app = open_page(view.partition(",")[0], text=TEXT, **VIEWS[view])
    charts = charts_of(app)
    assert charts
    for drawing in charts:
        described(drawing)


def test_the_description_of_what_was_measured_on_test_texts_says_what_is_drawn(measured: Predictor) -> None:
    app = open_page("switchboard", checkpoint=measured.name, text=TEXT)
    described(chart(app, "chart_accuracy"))
