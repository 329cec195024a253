"""Temporary directories: removed at the end, after a kill by the next process; no other user's is touched."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from netwarp.core.scratch import LOCK, scratch
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


def test_directories_of_others_stay(place: Path) -> None:
    (place / "other-1").mkdir()
    (place / "t-without-a-lock").mkdir()
    (place / "elsewhere").mkdir()
    (place / "elsewhere" / LOCK).touch()
    (place / "t-link").symlink_to(place / "elsewhere")
    (place / "t-trap").mkdir()
    (place / "t-trap" / LOCK).symlink_to(place / "elsewhere" / LOCK)
    if os.geteuid() == 0:
        (place / "t-theirs").mkdir()
        (place / "t-theirs" / LOCK).touch()
        os.chown(place / "t-theirs", 65534, 65534)
    before = sorted(path.name for path in place.rglob("*"))
    with scratch("t-"):
        pass
    assert sorted(path.name for path in place.rglob("*")) == before
