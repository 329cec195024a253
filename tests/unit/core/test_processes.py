"""Waits for processes that work in certain directories."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from netwarp.core.processes import await_end_of_users
from netwarp.store.run_dir import RunDir

LASTING = [sys.executable, "-c", "print(flush=True); input()"]


def lasting(place: Path) -> subprocess.Popen[bytes]:
    """A process that works there until its input ends."""
    process = subprocess.Popen(LASTING, cwd=place, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_it_waits_for_those_that_work_there_and_for_no_others(tmp_path: Path) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    with lasting(here) as mine, lasting(elsewhere) as other:
        with pytest.raises(TimeoutError, match=f"still work there: {mine.pid}$"):
            await_end_of_users([here], 0.05)
        assert mine.stdin is not None
        threading.Timer(0.2, mine.stdin.close).start()
        assert await_end_of_users([here, tmp_path / "missing"], 60)
        assert other.poll() is None
        assert not await_end_of_users([here], 60)


def test_itself_is_no_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert not await_end_of_users([tmp_path], 60)


def test_unfinished_cells_are_removed_when_their_guest_has_ended(tmp_path: Path) -> None:
    """A directory that cannot be removed while a process writes into it: a guest that was killed, which ends soon."""
    run = RunDir(tmp_path)
    cell = run.partial_cell("x").root
    cell.mkdir(parents=True)
    program = "import os, sys\nprint(flush=True)\nfor _ in range(50000):\n try: open(f'{os.getcwd()}/f', 'w').close()\n"
    program += " except OSError: sys.exit()"
    with subprocess.Popen([sys.executable, "-c", program], cwd=cell, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        run.clear_partial()
        assert not run.partial.exists()
    assert writer.returncode == 0


def test_what_nobody_writes_and_cannot_be_removed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RunDir(tmp_path)
    run.partial_cell("x").root.mkdir(parents=True)

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(run.partial))

    monkeypatch.setattr(os, "rmdir", refused)
    with pytest.raises(PermissionError):
        run.clear_partial()
