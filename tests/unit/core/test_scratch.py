"""Temporary directories: removed at the end, after a kill by the next process; no other user's is touched."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from netwarp.core.scratch import scratch
from support.checkout import ROOT

HOLD = """\
import sys
from netwarp.core.scratch import scratch
with scratch("t-") as directory:
    print(directory, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def holder() -> tuple[subprocess.Popen[str], Path]:
    """A process that holds one."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        cwd=ROOT,
    )  # fmt: skip
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_it_is_removed_with_the_process_that_made_it(place: Path) -> None:
    with scratch("t-") as directory:
        (directory / "sub").mkdir()
    assert list(place.iterdir()) == []


def test_the_next_process_removes_what_a_killed_one_left(place: Path) -> None:
    process, directory = holder()
    with scratch("t-") as ours:
        assert ours.is_dir() and directory.is_dir(), "it lives"
    process.kill()
    process.communicate()
    assert directory.is_dir()
    with scratch("t-"):
        assert not directory.exists()
    assert list(place.iterdir()) == []


def test_one_that_was_left_before_it_was_locked_is_removed(place: Path) -> None:
    (place / "t-killed-at-once").mkdir()
    with scratch("t-") as ours:
        assert list(place.iterdir()) == [ours]


def test_directories_of_others_stay(place: Path) -> None:
    (place / "other-1").mkdir()
    (place / "elsewhere").mkdir()
    (place / "t-link").symlink_to(place / "elsewhere")
    (place / "t-file").touch()
    if os.geteuid() == 0:
        (place / "t-theirs").mkdir()
        os.chown(place / "t-theirs", 65534, 65534)
    before = sorted(path.name for path in place.rglob("*"))
    with scratch("t-"):
        pass
    assert sorted(path.name for path in place.rglob("*")) == before


def test_where_files_have_another_owner_than_who_makes_them(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a host's directory in a guest of an ordinary user: what has the owner of our own is removed."""
    (place / "t-left").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with scratch("t-") as ours:
        assert list(place.iterdir()) == [ours]


def test_a_file_system_without_locks(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    (place / "t-left").mkdir()
    monkeypatch.setattr(fcntl, "flock", refuse)
    with scratch("t-") as ours:
        assert ours.is_dir()
    assert list(place.iterdir()) == [place / "t-left"]


def test_processes_that_begin_at_once_each_have_one(place: Path) -> None:
    for _ in range(5):
        holders = [holder() for _ in range(4)]
        assert len({directory for _, directory in holders}) == 4 and all(each.is_dir() for _, each in holders)
        for process, _ in holders:
            process.communicate()
    assert list(place.iterdir()) == []
