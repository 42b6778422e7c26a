"""A lesson as a page to print: questions with space for answers, pictures, and the answers on a separate page.

The pictures (`picture_of`) are drawn from measured numbers; exported pages show them too.
"""

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from txcls.errors import make_printable
from txcls.inference.predictor import Predictor
from txcls.inspection.ablation import AblationMethod, Means, ablate_each
from txcls.inspection.attribution import explain
from txcls.inspection.tracing import trace_text
from txcls.lessons.checking import SolvedStep, solve
from txcls.lessons.format import Choice, Drag, Heads, LessonStep, Number
from txcls.lessons.markup import in_notation, to_html, to_inline_html, words_in
from txcls.lessons.measures import Load
from txcls.lessons.page_address import View, view_from_params
from txcls.lessons.reading import Lesson, LessonError
from txcls.text.formatting import bounded_percentage, with_sign

_STYLE = Path(__file__).parent / "worksheet.css"
WIDTH = 480
"""Width of a picture in SVG units."""
INK, BLUE, ORANGE, PALE = "#1c2127", "#0b66a8", "#b34700", "#e3e8ee"
MAX_LABEL_LENGTH = 18
"""Maximum length of a name, in characters."""


def write_worksheet(lesson: Lesson, load: Load, target: str | Path) -> None:
    """Write the worksheet as a single self-contained HTML file."""
    page = worksheet(lesson, load)
    try:
        Path(target).write_text(page, encoding="utf-8")
    except OSError as error:
        raise LessonError(f"{target}: cannot be written: {error.strerror or error}") from None


def worksheet(lesson: Lesson, load: Load) -> str:
    """The worksheet as HTML.

    A step's picture is beside its question, or among the answers if it would give the answer away. Of equal pictures in
    succession, only one is shown: beside the last of their questions, or beside the first of their answers.
    """
    words = words_in(lesson.language)
    solutions = [solve(step, load, language=lesson.language) for step in lesson.steps]
    pictures = [picture_of(step, load, language=lesson.language) for step in lesson.steps]
    figures = [f"<figure>{each.svg}<figcaption>{html.escape(each.caption)}</figcaption></figure>" for each in pictures]
    hidden = [solved.step.question is not None and not solved.step.question.look for solved in solutions]
    beside_questions = ["" if hide else figure for hide, figure in zip(hidden, figures, strict=True)]
    beside_questions = _without_repeats(beside_questions[::-1])[::-1]
    beside_answers = _without_repeats([figure if hide else "" for hide, figure in zip(hidden, figures, strict=True)])
    questions = [
        _question(number, solved, figure, words)
        for number, (solved, figure) in enumerate(zip(solutions, beside_questions, strict=True), 1)
    ]
    answers = [
        _answer(number, solved, figure)
        for number, (solved, figure) in enumerate(zip(solutions, beside_answers, strict=True), 1)
        if solved.step.question is not None
    ]
    title = html.escape(lesson.title)
    return f"""<!doctype html>
<html lang="{html.escape(lesson.language)}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" \
content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{_STYLE.read_text(encoding="utf-8")}</style>
</head>
<body>
<header>
<h1>{title}</h1>
{to_html(lesson.summary)}
<p class="who"><span>{words["name"]}</span><span>{words["date"]}</span></p>
</header>
<main>
{chr(10).join(questions)}
</main>
<section class="answers">
<h1>{words["answers"]}: {title}</h1>
{chr(10).join(answers)}
</section>
</body>
</html>
"""


def _without_repeats(figures: Sequence[str]) -> list[str]:
    return [figure if figure != previous else "" for previous, figure in pairwise(["", *figures])]


def _question(number: int, solved: SolvedStep, figure: str, words: Mapping[str, str]) -> str:
    step = solved.step
    question = step.question
    parts = [
        f"<h2>{number}. {html.escape(step.title)}</h2>",
        figure,
        to_html(solved.narration),
        f'<p class="text">{html.escape(step.text)}</p>',
    ]
    if question is not None:
        parts += [f'<div class="ask">{to_inline_html(question.ask)}</div>', _answer_space(solved)]
    if step.room:
        parts.append(f'<div class="room"><b>{words["room"]}</b> {to_inline_html(step.room)}</div>')
    return f"<section>{''.join(parts)}</section>"


def _answer_space(solved: SolvedStep) -> str:
    """Boxes to tick, words to sort into groups, or lines to write on."""
    question = solved.step.question
    if isinstance(question, Choice | Heads):
        rows = "".join(f"<li>{to_inline_html(option)}</li>" for option in solved.offered)
        return f'<ul class="options{" heads" * isinstance(question, Heads)}">{rows}</ul>'
    if isinstance(question, Drag):
        offered = "".join(f"<span>{html.escape(word)}</span>" for word in solved.offered)
        lines = [f'<div class="line"><b>{html.escape(group)}: </b></div>' for group in question.groups]
        return f'<div class="words">{offered}</div>{"".join(lines)}'
    unit = html.escape(question.unit) if isinstance(question, Number) else ""
    return f'<div class="line number">{unit}</div>'


def _answer(number: int, solved: SolvedStep, figure: str) -> str:
    step = solved.step
    parts = [
        f"<h2>{number}. {html.escape(step.title)}</h2>",
        "" if solved.why_has_answer else f"<div><b>{to_inline_html(solved.answer)}</b></div>",
        to_html(solved.why) if solved.why else "",
        figure,
    ]
    return f"<section>{''.join(parts)}</section>"


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG with a text alternative that includes its numbers, and a caption."""

    svg: str
    caption: str


def picture_of(step: LessonStep, load: Load, *, language: str = "en") -> Picture:
    """The contents of a step's page as one picture.

    Raises:
        TxclsError: the checkpoint cannot be loaded, or the text contains no word that the model reads.
    """
    words = words_in(language)
    classifier = load(step.checkpoint)
    view, _ = view_from_params(step.params, checkpoints=[step.checkpoint])
    if step.page == "attention" or (step.page == "steps" and view.step in ("softmax", "scores", "weighted")):
        head = f"{max(view.layer, 0) + 1}.{max(view.head, 0) + 1}"
        height, parts, largest = _draw_map(classifier, step.text, view, language)
        return _as_svg((height, parts), words["alt_map"].format(head=head), largest)
    if step.page == "heads":
        how = "zero" if view.heads == "mean" and Means.of(classifier) is None else view.heads
        return _as_svg(_draw_board(classifier, step.text, how, language), words[f"alt_board_{how}"])
    if step.page == "explanation":
        return _as_svg(_draw_scores(classifier, step.text, language), words["alt_scores"])
    if step.page == "film" and classifier.checkpoint.snapshots is not None:
        return _as_svg(_draw_film(classifier, view.training_step, language), words["alt_film"])
    if step.page in ("tokens", "steps"):
        return _as_svg(_draw_tokens(classifier, step.text), words["alt_tokens"])
    texts = [step.text, *([view.changed] if view.changed else [])]
    return _as_svg(_draw_predictions(classifier, texts, language), words["alt_bars"])


def _as_svg(drawing: tuple[int, list[str]], caption: str, numbers: str = "") -> Picture:
    """A picture from its height and elements; its text alternative has `numbers`, or by default all text in the SVG."""
    height, parts = drawing
    content = "".join(parts)
    alt = f"{caption}: {numbers or ', '.join(map(html.unescape, re.findall(r'>([^<]+)</text>', content)))}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" font-size="14"'
    svg = f'{head} font-family="sans-serif" aria-label="{html.escape(alt, quote=True)}">{content}</svg>'
    return Picture(svg, caption)


def _text(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "start",
    fill: str = INK,
    size: int = 14,
    max_length: int = MAX_LABEL_LENGTH,
) -> str:
    shown = text if len(text) <= max_length else text[: max_length - 1] + "…"
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}" font-size="{size}">'
        f"{html.escape(make_printable(shown))}</text>"
    )


def _box(x: float, y: float, width: float, height: float, fill: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{height:.1f}" fill="{fill}"/>'


def _draw_bars(
    names: Sequence[str], values: Sequence[float], labels: Sequence[str], top: int = 0
) -> tuple[int, list[str]]:
    """Horizontal bars; negative bars are orange, and labelled with a minus sign so that colour is not needed."""
    largest = max(map(abs, values), default=1.0) or 1.0
    parts = []
    for row, (name, value, label) in enumerate(zip(names, values, labels, strict=True)):
        y = top + 26 * row
        length = 250 * abs(value) / largest
        parts += [
            _text(148, y + 17, name, anchor="end"),
            _box(156, y + 4, length, 18, ORANGE if value < 0 else BLUE),
            _text(162 + length, y + 17, label),
        ]
    return top + 26 * len(names) + 4, parts


def _draw_predictions(classifier: Predictor, texts: Sequence[str], language: str) -> tuple[int, list[str]]:
    height, parts = 0, []
    for number, text in enumerate(texts):
        if len(texts) > 1:
            parts.append(_text(0, height + 16, f"{number + 1}: {text}", max_length=60))
            height += 24
        ranked = classifier.predict([text], top_k=5)[0].ranked
        probabilities = [score.probability for score in ranked]
        labels = [in_notation(bounded_percentage(probability), language) for probability in probabilities]
        height, bars = _draw_bars([score.label for score in ranked], probabilities, labels, height)
        parts += bars
    return height, parts


def _draw_scores(classifier: Predictor, text: str, language: str) -> tuple[int, list[str]]:
    explanation = explain(classifier, text, methods=("leave_one_out",))
    scores = explanation.scores["leave_one_out"]
    strongest = sorted(np.argsort(-np.abs(scores))[:14].tolist())
    values = [float(scores[index]) for index in strongest]
    labels = [in_notation(with_sign(value, 2), language) for value in values]
    return _draw_bars([explanation.words[index].label for index in strongest], values, labels)


def _draw_tokens(classifier: Predictor, text: str) -> tuple[int, list[str]]:
    """A box for each token; unknown tokens have a dashed frame and a question mark."""
    parts, x, y = [], 0.0, 0
    for token in classifier.encode(text).tokens:
        name = token.label + ("?" if token.is_unknown else "")
        width = 9.0 * min(len(name), MAX_LABEL_LENGTH) + 14
        if x + width > WIDTH:
            x, y = 0.0, y + 36
        dashes = ' stroke-dasharray="4 3"' if token.is_unknown else ""
        parts.append(
            f'<rect x="{x + 1:.1f}" y="{y + 2}" width="{width - 4:.1f}" height="28" rx="4" fill="{PALE}" '
            f'stroke="{INK}"{dashes}/>'
        )
        parts.append(_text(x + width / 2 - 1, y + 21, name, anchor="middle"))
        x += width
    return y + 36, parts


def _draw_map(classifier: Predictor, text: str, view: View, language: str) -> tuple[int, list[str], str]:
    """The pattern of one head: darker cells have more weight, and large weights are written in the cells.

    Also returns the largest weight of each query, in words.
    """
    traced = trace_text(classifier, text)
    layer, head = max(view.layer, 0), max(view.head, 0)
    names = [token.label for token in traced.tokens][:24]
    pattern = traced.attention[layer, head][: len(names), : len(names)]
    size = min(46.0, (WIDTH - 120) / max(len(names), 1))
    parts = []
    for row, name in enumerate(names):
        parts.append(_text(112, 100 + size * (row + 0.65), name, anchor="end", size=12))
        x = 122 + size * (row + 0.5)
        parts.append(f'<g transform="rotate(-50 {x:.1f} 92)">{_text(x, 92, name, size=12)}</g>')
        for column, weight in enumerate(pattern[row]):
            left, top = 118 + size * column, 100 + size * row
            shade = round(255 * (1 - float(weight)))
            parts.append(_box(left, top, size - 1, size - 1, f"#{shade:02x}{(shade + 2 * 255) // 3:02x}ff"))
            if weight >= 0.1 and size >= 26:
                ink = "#ffffff" if weight > 0.7 else INK
                label = in_notation(f"{float(weight):.1f}", language)
                parts.append(_text(left + size / 2, top + size * 0.62, label, anchor="middle", fill=ink, size=11))
    largest = [(int(row.argmax()), float(row.max())) for row in pattern]
    description = "; ".join(
        f"{name}: {names[key]} {in_notation(f'{weight:.2f}', language)}"
        for name, (key, weight) in zip(names, largest, strict=True)
    )
    return int(104 + size * len(names)), parts, description


def _draw_board(classifier: Predictor, text: str, how: AblationMethod, language: str) -> tuple[int, list[str]]:
    """A cell for each head, with the change in the predicted class's probability in percentage points."""
    effects = 100 * ablate_each(classifier, text, heads=how, means=Means.of(classifier)).heads
    parts = []
    step = min(130.0, WIDTH / effects.shape[1])
    for layer, row in enumerate(effects):
        for head, effect in enumerate(row):
            x, y = step * head, 62 * layer
            share = min(1.0, abs(float(effect)) / max(1.0, float(np.abs(effects).max())))
            pale, middle = int(255 - 110 * share), int(255 - 60 * share)
            fill = f"#{pale:02x}{middle:02x}ff" if effect < 0 else f"#ff{middle:02x}{pale:02x}"
            parts.append(_box(x, y, step - 4, 58, fill))
            parts.append(_text(x + 8, y + 20, f"{layer + 1}.{head + 1}", size=13))
            label = in_notation(with_sign(effect), language)
            parts.append(_text(x + step / 2 - 2, y + 42, label, anchor="middle", size=18))
    return 62 * len(effects) + 2, parts


def _draw_film(classifier: Predictor, step: int, language: str) -> tuple[int, list[str]]:
    """Accuracy over the snapshots, evenly spaced, with the step number below every third one and the selected one."""
    assert classifier.checkpoint.snapshots is not None
    rows = classifier.checkpoint.snapshots.rows
    xs = np.linspace(50, WIDTH - 20, len(rows))
    ys = [200 - 180 * row.validation_accuracy for row in rows]
    parts = [f'<path d="M50 20V200H{WIDTH - 20}" fill="none" stroke="{INK}"/>']
    parts += [_text(44, 205 - 1.8 * value, f"{value} %", anchor="end", size=12) for value in (0, 50, 100)]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))
    parts.append(f'<polyline points="{points}" fill="none" stroke="{BLUE}" stroke-width="2.5"/>')
    for number, (row, x, y) in enumerate(zip(rows, xs, ys, strict=True)):
        radius, fill = (6, ORANGE) if row.step == step else (3, BLUE)
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{fill}"/>')
        if number % 3 == 0 or row.step == step:
            label = in_notation(f"{row.step:,}", language)
            parts.append(_text(x, 220 if number % 3 == 0 else 236, label, anchor="middle", size=12))
    return 242, parts
