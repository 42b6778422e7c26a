import base64
import gzip
import random
from pathlib import Path

import pytest

from txcls.data.tables import lines
from txcls.data.tables.lines import read_text
from txcls.errors import DataError


def test_too_large_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_BYTES", 1 << 20)
    for name, raw in {
        "plain": bytes((1 << 20) + 1),
        "packed": gzip.compress(b"0123456789abcdef\n" * 2 + base64.b64encode(random.Random(0).randbytes(1 << 20))),
    }.items():
        (tmp_path / name).write_bytes(raw)
        with pytest.raises(DataError, match=rf"{name}: holds more than 1,048,576 characters"):
            read_text(tmp_path / name)
    (tmp_path / "plain").write_bytes(b" " * (1 << 20))
    assert len(read_text(tmp_path / "plain")) == 1 << 20
