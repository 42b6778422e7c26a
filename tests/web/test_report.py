import html
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.conftest import CLASSES, TEXTS, make_checkpoint
from txcls.cli import command_line
from txcls.cli.evaluate import print_sections
from txcls.data.types import LabelledTexts
from txcls.evaluation.label_errors import DoubtfulLabels
from txcls.evaluation.report import Report, report_on
from txcls.evaluation.sections import report_object, sections_of
from txcls.inference.predictor import Predictor
from txcls.text.formatting import percentage
from txcls.web.report import report_html

ROWS = LabelledTexts([*TEXTS, "<script>alert(1)</script> shares"] * 2, [1, 2, 3, 0, 1, 2, 3, 0, 2] * 2, CLASSES)


def test_the_file_needs_no_network_and_runs_nothing_of_the_rows(classifier: Predictor) -> None:
    report = report_on(classifier, ROWS, rows_description="18 rows")
    assert report.predictions is not None
    doubtful = DoubtfulLabels([report.predictions.row(8)] * 5, 18, 0.75)
    page = page_of(replace(report, warnings=["Far below <b>all</b>."]), doubtful)
    assert "right on 75.0\u00a0% of 18 rows" in page and '<p class="warning">Far below &lt;b&gt;all' in page
    assert "<script>alert(1)" not in page and "&lt;script&gt;alert(1)" in page
    markup = re.sub(r"<script[^>]*>.*?</script>", "", page, flags=re.DOTALL)  # without plotly's code
    assert len(markup) < 100_000 and "http" not in markup
    assert not re.search(r"<script[^>]+src=", page[:2000] + page[-200_000:])
    assert page.count("Plotly.newPlot(") >= 3


def page_of(report: Report, doubtful: DoubtfulLabels | None = None) -> str:
    return report_html(report, sections_of(report, doubtful))


def test_html_json_and_terminal_show_the_same_sections(
    classifier: Predictor, capsys: pytest.CaptureFixture[str]
) -> None:
    report = report_on(classifier, ROWS, rows_description="18 rows")
    sections = sections_of(report)
    page, values = report_html(report, sections), report_object(report, sections)
    print_sections(report, sections, verbose=True)
    printed = " ".join(capsys.readouterr().out.split())
    assert {"metrics", "confusion", "classes", "thresholds", "mistakes", "by_length"} <= set(values["sections"])
    assert json.loads(json.dumps(values)) == values
    for section in sections:
        assert f"<h2>{section.title}" in page
        assert [list(row.values()) for row in values["sections"][section.name]["rows"]] == [*map(list, section.rows)]
        if section.rows:
            assert section.title in printed
        for note in section.notes:
            assert " ".join(note.split()) in printed and html.escape(note) in page
    print_sections(report, sections, verbose=False)
    assert len(re.findall(r"\S+", capsys.readouterr().out)) <= 150


def test_markup_in_class_names_is_shown_as_text(tmp_path: Path) -> None:
    names = ("<b>bold</b>", "<img src=x onerror=alert(1)>", "<i>slanted</i>", "plain")
    make_checkpoint(tmp_path / "tiny", classes=names)
    rows = LabelledTexts(TEXTS, [0, 0, 1, 1, 2, 2, 3, 3], names)
    page = page_of(report_on(Predictor.load(tmp_path / "tiny"), rows, rows_description="8 rows"))
    for name in ("<b>bold", "<img src=x", "<i>slanted"):
        assert name not in page and name.replace("<", r"\u003c").replace(">", r"\u003e") not in page
        as_text = name.replace("<", "&lt;").replace(">", "&gt;")
        assert f"<td>{as_text}" in page and f'"{as_text}' in page, "in tables, and in figures"


def test_rows_have_their_numbers_in_the_file_and_unknown_classes_count_as_errors(tmp_path: Path) -> None:
    make_checkpoint(tmp_path / "tiny")
    file, out = tmp_path / "mine.csv", tmp_path / "report.html"
    lines = [(f"{text} {n}", CLASSES[(k + n // 11) % 4]) for n in range(12) for k, text in enumerate(TEXTS)]
    lines[3:3] = [("", CLASSES[0]), *[("words of another kind", "Weather")] * 48]
    file.write_text("text,label\n" + "".join(f'"{text}","{label}"\n' for text, label in lines), "utf-8")
    arguments = ["report", str(tmp_path / "tiny"), "--data", str(file), "--rows", "80"]
    result = CliRunner().invoke(command_line(), [*arguments, "--json", "--out", str(out)])
    assert result.exit_code == 0, result.output
    figures: dict[str, Any] = json.loads(result.stdout)
    listed = [row for name in ("mistakes", "doubtful") for row in figures["sections"][name]["rows"]]
    assert figures["sections"]["doubtful"]["rows"] and [lines[row["row"] - 2] for row in listed] == [
        (r["text"], r["label"]) for r in listed
    ]
    page = out.read_text("utf-8")
    cells = re.findall(r"<tr><td>(\d+)</td><td>([^<]+)</td><td>([^<]+)</td>", page)
    assert len(cells) == len(listed) and all(lines[int(row) - 2] == (text, label) for row, text, label in cells)
    assert percentage(figures["accuracy_with_unknown"]) in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert figures["accuracy_with_unknown"] == pytest.approx(figures["accuracy"] * 96 / 144, abs=1e-4)
