"""Machines simulated by a PATH of stand-in programs, and the Makefile's targets."""

import os
import subprocess
from pathlib import Path

import pytest
from netwarp.core.checkout import CHECKOUT
from netwarp.core.executables import find_executable

SCRIPT = CHECKOUT / "setup/packages.sh"


def stand_in(folder: Path, name: str, body: str) -> None:
    """A program of that name."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A PATH with the tools every machine has, an ordinary user, and no package installed."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("bash", "sh", "awk", "grep", "dirname", "cat", "env", "flock", "sleep"):
        found = find_executable(name)
        assert found is not None
        (folder / name).symlink_to(found)
    stand_in(folder, "id", "echo 1000")
    stand_in(folder, "dpkg-query", "exit 1")
    stand_in(folder, "apt-get", f'echo "$@" >> {tmp_path}/apt')
    return folder


def run(path: Path, *kinds: str, script: Path = SCRIPT, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", str(script), *(kinds or ("run",))], env={"PATH": str(path), **more}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def make(*arguments: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "ARGS"))}
    done = subprocess.run(
        ["make", "-C", str(CHECKOUT), *arguments], env=kept, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
