"""Temporary directories: removed at the end, after a kill by the next process; no other user's is touched."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from netwarp.core.scratch import scratch
from support.checkout import ROOT
from support.leftovers import settle

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


def holder(program: str = HOLD, **options: Any) -> tuple[subprocess.Popen[str], Path]:
    """A process that holds one."""
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, **options
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_it_is_removed_with_the_process_that_made_it(place: Path) -> None:
    with scratch("t-") as directory:
        (directory / "sub").mkdir()
    assert list(place.iterdir()) == []


def test_a_killed_process_leaves_nothing(place: Path) -> None:
    process, directory = holder()
    (directory / "cells").mkdir()
    (directory / "cells" / "file").write_text("x")
    with scratch("t-") as ours:
        assert ours.is_dir() and directory.is_dir(), "it lives"
    process.kill()
    process.communicate()
    assert settle(lambda: [path.name for path in place.iterdir()]) == []


def test_a_killed_group_leaves_nothing(place: Path) -> None:
    """As the kernel kills a session, or a test its process group."""
    process, directory = holder(start_new_session=True)
    assert directory.is_dir()
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert settle(lambda: [path.name for path in place.iterdir()]) == []


DYING = """\
import os, sys, time
os.chdir(sys.argv[1])
until = time.monotonic() + float(sys.argv[2])
while time.monotonic() < until:
    for number in range(20):
        try:
            os.makedirs(f"a{number}/b/c")
            os.removedirs(f"a{number}/b/c")
        except OSError:
            pass
"""
"""A process that makes and removes directories in its own until it ends, as a guest that dies slowly."""


@pytest.mark.parametrize("seconds", [0.5, 4.0], ids=["soon", "slowly"])
def test_guests_that_die_after_it_leave_nothing(place: Path, seconds: float) -> None:
    process, directory = holder()
    guest = subprocess.Popen([sys.executable, "-c", DYING, str(directory), str(seconds)])
    settle(lambda: [] if any(directory.iterdir()) else ["the guest has not begun"])
    process.kill()
    process.communicate()
    guest.wait()
    assert settle(lambda: [path.name for path in place.iterdir()]) == []


def test_a_worker_that_outlives_its_parent_keeps_it(place: Path) -> None:
    """The directory goes when the last process that was forked there has ended."""
    fork = HOLD.replace(
        "    sys.stdin.read()\n", "    if os.fork():\n        os.kill(os.getpid(), 9)\n    sys.stdin.read()\n"
    )
    process, directory = holder(fork.replace("import sys", "import os, sys", 1))
    process.wait()
    assert directory.is_dir()
    process.communicate()
    assert settle(lambda: [path.name for path in place.iterdir()]) == []


def test_the_next_process_removes_what_is_left(place: Path) -> None:
    """By a machine that lost its power: the watcher is gone too."""
    (place / "t-left").mkdir()
    (place / "t-left" / "file").write_text("x")
    with scratch("t-"):
        assert not (place / "t-left").exists()
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
