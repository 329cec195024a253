"""User-Mode Linux's two ways to run a guest's programs: traced by ptrace(2), or (from Linux 6.16 on) with a seccomp
filter whose signals hand each system call to the kernel. The second takes less CPU and needs no ptrace; the guest
computes the same.

Which one a kernel runs in is found out by booting it, and kept beside the kernel.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Literal

from ..core.errors import KernelError
from ..core.scratch import scratch
from .cache import recorded_release
from .recipe import release_numbers

Mode = Literal["ptrace", "seccomp"]
SWITCH = "NETWARP_SECCOMP"
"""Environment variable: "off" keeps guests on ptrace."""
FIRST_RELEASE = (6, 16)
ANSWER = "seccomp.json"
"""Beside a kernel of the cache, for one state of the machine; never exported."""
BOOT_S = 60
_FILTER_TRIED = "seccomp filters can be installed...OK"
_PROGRAM_RAN = "Attempted to kill init! exitcode=0x00000000"


def mode_of(binary: Path, memory: Path | None) -> Mode:
    """The way in which this kernel runs programs here. memory: directory of guests' memory (None: no guest starts).

    Boots the kernel once if it may have the seccomp mode. Raises KernelError if NETWARP_SECCOMP is not on or off.
    """
    if not _wanted() or memory is None:
        return "ptrace"
    recorded = recorded_release(binary)
    if release_numbers(recorded or _stated_release(binary)) < FIRST_RELEASE:
        return "ptrace"
    if recorded and _kept(binary) == _machine():
        return "seccomp"
    if not _works(binary, memory):
        return "ptrace"
    if recorded:
        _keep(binary)
    return "seccomp"


def _wanted() -> bool:
    value = os.environ.get(SWITCH, "") or "on"
    if value not in ("on", "off"):
        raise KernelError(f"{SWITCH}={value}: is on (the default: where a kernel can) or off")
    return value == "on"


@functools.cache
def _stated_release(binary: Path) -> str:
    """The release that the kernel states itself: for one that no record lies beside."""
    try:
        return subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=20, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


@functools.cache
def _works(binary: Path, memory: Path) -> bool:
    """Boots the kernel: True if it does so with seccomp=on and runs a program. A kernel that does not know that
    parameter ignores it and says nothing of a filter.
    """
    with scratch("netwarp-seccomp-") as folder:
        command = [str(binary), "mem=64M", "rootfstype=hostfs", "rootflags=/", "ro", "init=/bin/true", "con0=null,fd:1",
                   "con=null", "panic=-1", "time-travel=inf-cpu", "seccomp=on"]  # fmt: skip
        environment = {"TMPDIR": str(memory), "HOME": str(folder), "PATH": os.defpath}
        try:
            guest = subprocess.run(
                command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=BOOT_S,
                check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            return False
    console = (guest.stdout + guest.stderr).decode(errors="replace")
    return _FILTER_TRIED in console and _PROGRAM_RAN in console


def _machine() -> dict[str, str]:
    """All that may change the answer: the machine's kernel, and the filters that a container puts on its processes."""
    lines = Path("/proc/self/status").read_text(errors="replace").splitlines()
    filters = [line.partition(":")[2].strip() for line in lines if line.startswith("Seccomp")]
    return {"host_kernel": platform.release(), "filters": " ".join(filters)}


def _kept(binary: Path) -> dict[str, str] | None:
    with contextlib.suppress(OSError, ValueError):
        found = json.loads((binary.parent / ANSWER).read_bytes())
        return found if isinstance(found, dict) else None
    return None


def _keep(binary: Path) -> None:
    place = binary.parent / ANSWER
    temporary = place.with_name(f".{ANSWER}.{os.getpid()}")
    with contextlib.suppress(OSError):  # another user's cache: it is asked again
        temporary.write_text(json.dumps(_machine()) + "\n")
        temporary.replace(place)
