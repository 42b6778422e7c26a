"""Sessions: private folders that only their token opens, removed after a time without visits, with bounded disk use."""

import json
import os
import stat
import time
from pathlib import Path

import pytest

from tests.app.pages.test_train import limited
from txcls.app.jobs import sessions
from txcls.app.jobs.sessions import Session
from txcls.errors import ConfigError, DataError


def visited_before(session: Session, seconds: float) -> None:
    """Make the last visit to a session appear `seconds` old."""
    session.folder.with_name(f"{session.folder.name}.seen").write_text(json.dumps({"at": time.monotonic() - seconds}))


def test_sessions_open_only_by_token_and_folders_do_not_reveal_it(session: Session) -> None:
    other = Session.new()
    assert Session.find(session.token) == session and other.folder != session.folder
    assert session.token not in str(session.folder) and Session.find(session.folder.name) is None
    for token in ("", "x", "../" * 11, session.token[:-1], session.token + "a", "a" * 32, "\0" * 32):
        assert Session.find(token) is None


def test_session_files_are_readable_only_by_this_user(session: Session) -> None:
    for folder in (sessions.root(), session.folder, session.own, session.folder / "files"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_session_that_nobody_visits_is_removed_after_the_stated_time(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(monkeypatch, TXCLS_KEEP_SECONDS="100")
    visited, removed = Session.new(), list[Path]()
    monkeypatch.setattr(sessions, "_listeners", [removed.append])
    visited_before(session, 90)
    assert sessions.sweep() == 0
    visited_before(session, 101)
    assert sessions.sweep() == 1 and removed == [session.folder]
    assert not session.folder.exists() and visited.exists and Session.find(session.token) is None


@pytest.mark.attack
def test_clock_changes_do_not_affect_session_expiry(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """For example when the clock is corrected, or the machine restarts and monotonic time begins at zero again."""
    for jump in (1e9, -1e9):
        monkeypatch.setattr(time, "time", lambda jump=jump: jump)
        assert sessions.sweep() == 0 and session.exists
    visited_before(session, -1e6)
    assert sessions._seconds_since_visit(session.folder) == pytest.approx(time.monotonic(), abs=1)


def test_the_remains_of_a_session_are_removed(session: Session) -> None:
    session.folder.with_name(f"{session.folder.name}.seen").unlink()
    assert sessions.sweep() == 1 and not session.folder.exists()


@pytest.mark.parametrize("setting", ["TXCLS_SESSION_MB", "TXCLS_DISK_MB"])
@pytest.mark.attack
def test_uploads_beyond_the_disk_quota_are_refused(
    session: Session, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(monkeypatch, **{setting: "2"})
    other = session if setting == "TXCLS_SESSION_MB" else Session.new()
    other.save_upload("first", bytes(1_200_000))
    with pytest.raises(DataError, match=setting):
        session.save_upload("second", bytes(1_200_000))
    assert not (session.folder / "files/second").exists()
    other.remove()
    Session.new().save_upload("third", bytes(1_200_000))


@pytest.mark.attack
def test_a_full_disk_gives_a_message_and_leaves_no_partial_file(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_a_part(file: Path, data: bytes) -> None:
        with file.open("wb") as opened:
            opened.write(data[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", write_a_part)
    with pytest.raises(DataError, match="cannot keep files at the moment"):
        session.save_upload("table.csv", b"x" * 100)
    assert not (session.folder / "files/table.csv").exists()


def test_a_folder_that_others_can_read_or_that_is_a_link_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "open").mkdir(mode=0o755)
    monkeypatch.setenv("TXCLS_JOBS", str(tmp_path / "open"))
    with pytest.raises(ConfigError, match="other users may read it"):
        sessions.root()
    (tmp_path / "link").symlink_to(tmp_path / "jobs")
    monkeypatch.setenv("TXCLS_JOBS", os.fspath(tmp_path / "link"))
    (tmp_path / "jobs").mkdir(mode=0o700, exist_ok=True)
    with pytest.raises(ConfigError, match="not a folder owned by this user"):
        sessions.root()
