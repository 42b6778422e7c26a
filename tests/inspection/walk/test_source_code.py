"""Code that is shown is the code that runs."""

from pathlib import Path

import pytest

from txcls.errors import TraceError
from txcls.inspection.walk import source_of, walk_through
from txcls.model import LayerNorm, SelfAttention

ROOT = Path(__file__).parents[3]


def test_a_class_is_shown_as_its_file_has_it() -> None:
    source = source_of(LayerNorm)
    assert source.file == "txcls/model.py"
    lines = (ROOT / source.file).read_text(encoding="utf-8").splitlines()
    shown = source.code.splitlines()
    assert shown == lines[source.line - 1 : source.line - 1 + len(shown)]
    assert shown[0] == "class LayerNorm(nn.Module):" and "torch.sqrt(variance" in source.code


def test_some_lines_of_a_method_come_without_their_indent() -> None:
    source = source_of(SelfAttention.forward, first="scores = (q /", last="F.softmax(")
    lines = (ROOT / source.file).read_text(encoding="utf-8").splitlines()
    assert source.code.startswith("scores = (q / math.sqrt(self.d_head)) @ k.mT")
    assert lines[source.line - 1].strip() == source.code.splitlines()[0]
    assert "softmax" in source.code.splitlines()[-1] and "softmax" not in "".join(source.code.splitlines()[:-1])


@pytest.mark.parametrize("missing", [("no such line",), ("def walk_through", "nor this")])
def test_lines_that_are_not_there_are_named(missing: tuple[str, ...]) -> None:
    with pytest.raises(TraceError, match=f"no line of walk_through after its first 0 contains '{missing[-1]}'"):
        source_of(walk_through, *missing)
