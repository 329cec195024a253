"""A laboratory of an ordinary user: bridges, taps and machines in that user's namespaces, and nothing left after."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from netwarp.core.checkout import CHECKOUT
from netwarp.guestkernel import find_kernel
from netwarp.sandbox.privileges import User
from support.laboratory import BIN, CHOI, MACHINES
from support.leftovers import settle

NOBODY = User(65534, 65534)
PROGRAM = CHECKOUT / "ansible" / "lab" / "lab.py"


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory of nobody's, with the guest kernel in it, and taps for everybody, as most distributions have them."""
    path = Path(tempfile.mkdtemp(prefix="netwarp-lab-", dir="/var/tmp"))
    kernel = find_kernel()
    assert kernel is not None
    shutil.copy(kernel.binary, path / "linux")
    for each in (path, path / "linux"):
        each.chmod(0o755)
        os.chown(each, NOBODY.uid, NOBODY.gid)
    os.mknod(path / "tun", stat.S_IFCHR | 0o666, os.stat("/dev/net/tun").st_rdev)
    (path / "tun").chmod(0o666)
    yield path
    shutil.rmtree(path)


def processes_in(path: Path) -> list[str]:
    """Those whose working directory is below it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink().is_relative_to(path):
                found.append((process / "cmdline").read_text())
        except OSError:
            continue  # gone meanwhile
    return found


@pytest.mark.root(reason="the laboratory of these tests is an ordinary user's already")
def test_nobody_makes_and_ends_a_laboratory(place: Path) -> None:
    """Where this kernel permits it; where not, the reason is what doctor says. /dev/net/tun is everybody's for them."""
    if not NOBODY.may_run(Path(sys.executable)) or not all(map(NOBODY.may_pass, PROGRAM.parents)):
        pytest.skip(f"nobody may not read {CHECKOUT}")
    environment = {"PATH": os.environ["PATH"], "HOME": str(place), "NETWARP_KERNEL": str(place / "linux"),
                   "NETWARP_LAB": str(place / "lab"), "PYTHONDONTWRITEBYTECODE": "1"}  # fmt: skip

    def nobody(*words: object) -> subprocess.CompletedProcess[str]:
        become = f"mount --bind {place}/tun /dev/net/tun; exec setpriv --reuid={NOBODY.uid} --regid={NOBODY.gid}"
        return subprocess.run(
            ["unshare", "--mount", "sh", "-ec", f'{become} --clear-groups "$@"', "sh", *map(str, words)], cwd=place,
            env=environment, capture_output=True, text=True, check=False, timeout=240,
        )  # fmt: skip

    lacks = nobody(sys.executable, PROGRAM, "problems").stdout
    if lacks:
        assert "kernel" not in lacks, lacks
        doctor = nobody(BIN / "netwarp", "doctor").stdout
        assert "laboratory" in doctor, doctor
        pytest.skip(f"no laboratory for an ordinary user here: {lacks}")
    links = Path("/sys/class/net")
    before = sorted(links.iterdir())
    try:
        made = nobody(sys.executable, PROGRAM, "up")
        assert made.returncode == 0, made.stdout + made.stderr
        assert len(processes_in(place)) >= len(MACHINES)
        planned = nobody(
            BIN / "netwarp", "plan", *CHOI, "--where", "fault=link", "--backend", "hosts", "--allow-programs",
            "--inventory", place / "lab" / "inventory.yml",
        )  # fmt: skip
        assert planned.returncode == 0, planned.stdout + planned.stderr
        assert "1 of 1 cell can run on these machines" in planned.stdout
    finally:
        ended = nobody(sys.executable, PROGRAM, "down")
    assert ended.returncode == 0, ended.stderr
    assert settle(lambda: processes_in(place)) == []
    assert sorted(links.iterdir()) == before
