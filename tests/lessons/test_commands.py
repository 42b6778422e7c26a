from pathlib import Path

import pytest
from typer.testing import CliRunner

from txcls.cli import command_line


def run(*args: str) -> str:
    result = CliRunner().invoke(command_line(), list(args), catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_a_new_lesson_passes_its_check_and_is_printed(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    run("lesson", "new", str(file))
    output = " ".join(run("lesson", "check", str(file)).split())
    assert "3 steps, 3 questions" in output and "Rangers" in output, "the answers are printed"
    assert "The app will not list it" in output
    named = file.rename(tmp_path / "mine.en.yaml")
    assert f"TXCLS_LESSONS={tmp_path}" in " ".join(run("lesson", "check", str(named)).split())
    run("lesson", "worksheet", str(named), "--out", str(tmp_path / "sheet.html"))
    assert "Who won" in (tmp_path / "sheet.html").read_text("utf-8")


def test_a_broken_file_leaves_the_other_lessons_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.en.yaml").write_text("title: [", "utf-8")
    (tmp_path / "attention.en.yaml").write_text("title: Mine", "utf-8")
    monkeypatch.setenv("TXCLS_LESSONS", str(tmp_path))
    output = run("lesson", "list")
    assert "tokens" in output and "Attention in zehn Minuten" in output
    for problem in ("broken.en.yaml: line 1", "attention.en.yaml: language: missing"):
        assert f"not listed: {tmp_path}/{problem}" in output
