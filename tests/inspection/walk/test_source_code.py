"""Code that is shown is the code that runs."""

from pathlib import Path

import pytest

import txcls.model
from txcls.errors import TraceError
from txcls.inspection.walk import source_of, walk_through
from txcls.inspection.walk.source_code import snippet
from txcls.model import LayerNorm, SelfAttention

ROOT = Path(__file__).parents[3]


def test_a_class_is_shown_as_its_file_has_it() -> None:
    found = source_of(LayerNorm)
    assert found.file == "txcls/model.py"
    lines = (ROOT / found.file).read_text(encoding="utf-8").splitlines()
    shown = found.code.splitlines()
    assert shown == lines[found.line - 1 : found.line - 1 + len(shown)]
    assert shown[0] == "class LayerNorm(nn.Module):" and "torch.sqrt(variance" in found.code


def test_some_lines_of_a_method_come_without_their_indent() -> None:
    found = source_of(SelfAttention.forward, first="scores = (q /", last="F.softmax(")
    lines = (ROOT / found.file).read_text(encoding="utf-8").splitlines()
    assert found.code.startswith("scores = (q / math.sqrt(self.d_head)) @ k.mT")
    assert lines[found.line - 1].strip() == found.code.splitlines()[0]
    assert "softmax" in found.code.splitlines()[-1] and "softmax" not in "".join(found.code.splitlines()[:-1])


def test_lines_of_a_module_are_numbered_as_in_its_file() -> None:
    found = source_of(txcls.model, first="class LayerNorm", last="def __init__")
    assert found.line == source_of(LayerNorm).line and found.code.startswith("class LayerNorm(nn.Module):")


def test_lines_that_are_not_there_are_named() -> None:
    with pytest.raises(TraceError, match=r"no line of LayerNorm after its first 0 contains 'attention'"):
        source_of(LayerNorm, first="attention")


def test_a_line_that_is_gone_is_an_error() -> None:
    with pytest.raises(TraceError, match="'no such line'"):
        snippet(walk_through, "no such line")
    with pytest.raises(TraceError, match="'nor this'"):
        snippet(walk_through, "def walk_through", "nor this")
