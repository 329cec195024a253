"""Obstacles between an ordinary user and `make lab`, as doctor and the laboratory say them on this machine's kernel."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from netwarp.core.checkout import CHECKOUT
from netwarp.sandbox.privileges import User

NOBODY = User(65534, 65534)
PROGRAM = CHECKOUT / "ansible" / "lab" / "lab.py"
ASK = "from netwarp.doctor import laboratory as f; print(f().state, f().detail, f().remedy, sep='\\n')"
AS_NOBODY = "setpriv --reuid=65534 --regid=65534 --clear-groups"

needs_root = pytest.mark.root(reason="only root may change mounts and be nobody")


def told(change: str, before: str = "") -> tuple[list[str], str]:
    """(state, detail, remedy) and what the laboratory lacks, as nobody is told them after `change`, commands of a shell
    in a mount namespace that goes with it. before: words before the program.
    """
    for reason, not_here in (
        ("no mount namespaces here", subprocess.run(["unshare", "--mount", "true"], check=False).returncode != 0),
        (f"nobody may not read {CHECKOUT}",
         not NOBODY.may_run(Path(sys.executable)) or not all(map(NOBODY.may_pass, PROGRAM.parents))),
    ):  # fmt: skip
        if not_here:
            pytest.skip(reason)
    python = f"{before} {AS_NOBODY} {shlex.quote(sys.executable)}"
    script = f"{change}\n{python} -c {shlex.quote(ASK)}\necho ---\n{python} {shlex.quote(str(PROGRAM))} problems"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-ec", script], capture_output=True, text=True, check=False,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    finding, _, lacks = done.stdout.partition("---\n")
    return finding.splitlines(), lacks


@needs_root
@pytest.mark.parametrize(
    ("change", "detail", "remedy"),
    [
        ("mount -t tmpfs tmpfs /dev/net", "there is no /dev/net/tun", "modprobe tun"),
        ("touch {place}/tun; chmod 600 {place}/tun; mount --bind {place}/tun /dev/net/tun",
         "/dev/net/tun cannot be opened", "chmod 0666 /dev/net/tun; or run it as root"),
    ],
    ids=["no tun", "tun is root's"],
)  # fmt: skip
def test_without_taps(tmp_path: Path, change: str, detail: str, remedy: str) -> None:
    (state, said, todo), lacks = told(change.format(place=tmp_path))
    if "namespaces" in said:
        pytest.skip("nobody may make no namespaces here, which is said first")
    assert state == "note"
    assert said == f"make lab needs taps; {detail}"
    assert remedy in todo
    assert f"{said}: {todo}" in lacks


@needs_root
def test_without_namespaces(tmp_path: Path) -> None:
    """In a chroot the kernel refuses user namespaces."""
    (state, said, todo), lacks = told(f"mount --rbind / {tmp_path}", f"chroot {tmp_path}")
    assert (state, said) == ("note", "make lab needs namespaces of its own")
    assert "run it as root" in todo
    assert f"{said}: {todo}" in lacks
