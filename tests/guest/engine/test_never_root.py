"""A bundle's program never runs as root: it writes the user that it is on this machine, past its guest's walls."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.checkout import ROOT

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has another user to become")
SPEC = """
format = 1
name = "owner"
duration = "2 s"
[node.a]
[node.b]
[link.p1]
between = ["a", "b"]
rate = "1 Mbit/s"
queue = "50 packets"
one_way_delay = "20 ms"
[flow.f]
from = "a"
to = "b"
protocol = "tcp"
paths = ["p1"]
[flow.f.program]
sender = ["/bin/sh", "-c", "mkdir -p m && mount -t hostfs none m && : >mDROP/$$.$(date +%N)"]
receiver = ["/bin/sleep", "1"]
"""


def _netwarp(*words: object, cwd: Path, temporary: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "netwarp", *map(str, words)], cwd=cwd, capture_output=True, text=True, check=False,
        env=os.environ | {"TMPDIR": str(temporary), "PYTHONPATH": str(ROOT / "orchestrator")},
    )  # fmt: skip
    return done.stdout + done.stderr


@pytest.fixture
def folder() -> Iterator[Path]:
    """A directory that every user may enter; pytest closes its own to others whenever one of its processes begins."""
    with tempfile.TemporaryDirectory(prefix="netwarp-never-root-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_a_bundle_s_program_is_not_root(folder: Path) -> None:
    """Neither where another user can do it, nor where only root reaches the bundle: then the cell fails."""
    drop = folder / "drop"
    drop.mkdir()
    drop.chmod(0o1777)
    (folder / "p.toml").write_text(SPEC.replace("DROP", str(drop)))
    said = _netwarp("run", "p.toml", "--backend", "virtual", "--out", "run", cwd=folder, temporary=folder)
    (made,) = drop.iterdir()
    assert made.stat().st_uid != 0, said
    _netwarp("archive", "bundle", "run", "--out", "run.tar.xz", cwd=folder, temporary=folder)
    verify = ("archive", "verify", "run.tar.xz", "--allow-programs")

    made.unlink()
    said = _netwarp(*verify, cwd=folder, temporary=folder)
    owners = [path.stat().st_uid for path in drop.iterdir()]
    assert owners and 0 not in owners, said

    shutil.rmtree(drop)
    drop.mkdir()
    drop.chmod(0o1777)
    closed = folder / "closed"
    closed.mkdir(mode=0o700)
    said = _netwarp(*verify, cwd=folder, temporary=closed)
    assert list(drop.iterdir()) == [] and "root" in said, said
