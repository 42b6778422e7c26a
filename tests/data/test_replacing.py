from pathlib import Path

import pytest

from txcls.data.files import replacing


def test_the_new_file_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text("old")
    with replacing(file) as temporary:
        temporary.write_text("new")
        assert file.read_text() == "old"
    assert file.read_text() == "new" and list(tmp_path.iterdir()) == [file]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text("old")

    def fail() -> None:
        with replacing(file, temporary=tmp_path / "plan.tmp") as temporary:
            temporary.write_text("ne")
            raise RuntimeError("full")

    with pytest.raises(RuntimeError, match="full"):
        fail()
    assert file.read_text() == "old" and list(tmp_path.iterdir()) == [file]
