"""Desks: private folders that only their token opens, removed when nobody visits them."""

import os
import stat
import time
from pathlib import Path

import pytest

from txcls.app.jobs import desks
from txcls.app.jobs.desks import Desk
from txcls.app.shell import limits
from txcls.errors import ConfigError


def age(desk: Desk, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(desk.folder / "seen", (then, then))


def test_only_its_token_opens_a_desk_and_its_folder_does_not_give_it_away(desk: Desk) -> None:
    other = Desk.new()
    found = Desk.find(desk.token)
    assert found == desk and other.folder != desk.folder
    assert desk.token not in str(desk.folder) and Desk.find(desk.folder.name) is None
    for token in ("", "x", "../" * 11, desk.token[:-1], desk.token + "a", "a" * 32, "\0" * 32):
        assert Desk.find(token) is None


def test_what_is_on_a_desk_is_for_this_user_alone(desk: Desk) -> None:
    for folder in (desks.root(), desk.folder, desk.own):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_desk_that_nobody_visits_is_removed_after_the_stated_time(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TXCLS_KEEP_SECONDS", "100")
    limits.limits.cache_clear()
    visited = Desk.new()
    told: list[Path] = []
    monkeypatch.setattr(desks, "_listeners", [told.append])
    age(desk, 90)
    assert desks.sweep() == 0
    age(desk, 101)
    assert desks.sweep() == 1 and not desk.folder.exists() and visited.exists and told == [desk.folder]
    assert Desk.find(desk.token) is None


def test_a_visit_keeps_a_desk(desk: Desk) -> None:
    age(desk, 3599)
    assert Desk.find(desk.token) is not None
    assert time.time() - (desk.folder / "seen").stat().st_mtime < 5


def test_the_remains_of_a_desk_are_removed(desk: Desk) -> None:
    (desk.folder / "seen").unlink()
    assert desks.sweep() == 0, "it may be being made"
    assert desks.sweep(time.time() + 70) == 1 and not desk.folder.exists()


def test_a_folder_that_others_can_read_or_that_is_a_link_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "open").mkdir(mode=0o755)
    monkeypatch.setenv("TXCLS_JOBS", str(tmp_path / "open"))
    with pytest.raises(ConfigError, match="other users may read it"):
        desks.root()
    (tmp_path / "link").symlink_to(tmp_path / "jobs")
    monkeypatch.setenv("TXCLS_JOBS", str(tmp_path / "link"))
    (tmp_path / "jobs").mkdir(mode=0o700, exist_ok=True)
    with pytest.raises(ConfigError, match="not a folder of this user's own"):
        desks.root()
