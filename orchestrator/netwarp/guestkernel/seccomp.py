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
from ..core.executables import output_of
from ..core.scratch import scratch, write_whole
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
    if release_numbers(recorded or output_of(binary, "--version")) < FIRST_RELEASE:
        return "ptrace"
    if recorded and _kept(binary) == _machine():
        return "seccomp"
    if not _works(binary, memory):
        return "ptrace"
    if recorded:
        with contextlib.suppress(OSError):  # another user's cache: it is asked again
            write_whole(binary.parent / ANSWER, json.dumps(_machine()) + "\n")
    return "seccomp"


def _wanted() -> bool:
    value = os.environ.get(SWITCH, "") or "on"
    if value not in ("on", "off"):
        raise KernelError(f"{SWITCH}={value}: is on (the default: where a kernel can) or off")
    return value == "on"


@functools.cache
def _works(binary: Path, memory: Path) -> bool:
    """Boots the kernel: True if it does so with seccomp=on and runs a program. A kernel that does not know that
    parameter ignores it and says nothing of a filter.
    """
    console = boot_bare(binary, memory, "/bin/true", "seccomp=on")
    return _FILTER_TRIED in console and _PROGRAM_RAN in console


def boot_bare(binary: Path, memory: Path, init: str, *more: str) -> str:
    """Boot a kernel with this first program and no directory of a cell; returns its console, or why there is none."""
    with scratch("netwarp-boot-") as folder:
        command = [str(binary), "mem=64M", "rootfstype=hostfs", "rootflags=/", "ro", f"init={init}", "con0=null,fd:1",
                   "con=null", "panic=-1", "time-travel=inf-cpu", *more]  # fmt: skip
        environment = {"TMPDIR": str(memory), "HOME": str(folder), "PATH": os.defpath}
        try:
            guest = subprocess.run(
                command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=BOOT_S,
                check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    return (guest.stdout + guest.stderr).decode(errors="replace")


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
