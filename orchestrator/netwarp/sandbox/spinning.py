"""Finds the program that keeps a guest's CPU, where virtual time stands still because it never waits.

A guest's process is a process of the host without a name of its own: what it runs stands at the top of its stack, where
the guest's kernel put it (fs/exec.c: the file's name last, before it environment and arguments).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
STACK_BYTES = 8192
"""Of a stack's top, in which its program's name and environment stand."""
MOST = 0.9
"""Share of a guest's CPU time that one of its programs has alone; else the guest's kernel is busy itself."""
_MAPPING = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) rw.s ", re.MULTILINE)
_NAMED = re.compile(rb"\0([\x20-\x7e]+)\0{9,}$")
_END_OF_FLOW = re.compile(rb"\0NETWARP_SPUN=[^\0]*/apps/([^\0/]+)\.spun\0")
"""testbed/arguments.py gives a program's processes that name."""


@dataclass(frozen=True, slots=True)
class Spinning:
    """A program that keeps the CPU: the file it was started as, and the end of a flow that it is ("web.sender")."""

    file: str
    end: str


def cpu_ticks(sandbox: int) -> dict[int, int]:
    """User time of a guest's processes on the host, of the one that is its kernel with the system's, in clock ticks."""
    ticks: dict[int, int] = {}
    waiting = [sandbox]
    while waiting:
        pid = waiting.pop()
        with contextlib.suppress(OSError, ValueError, IndexError):  # it ended meanwhile
            words = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
            ticks[pid] = int(words[11]) + (int(words[12]) if pid == sandbox else 0)
            for task in (PROC / str(pid) / "task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
    return ticks


def spinning_program(sandbox: int, before: Mapping[int, int]) -> Spinning | None:
    """The program that has had nearly all of a guest's CPU time since `before` (cpu_ticks); None if there is none."""
    used = {pid: ticks - before.get(pid, 0) for pid, ticks in cpu_ticks(sandbox).items()}
    busiest = max(used, key=lambda pid: used[pid], default=sandbox)
    if busiest == sandbox or not used[busiest] or used[busiest] < MOST * sum(used.values()):
        return None
    with contextlib.suppress(OSError, ValueError):
        return _program(busiest)
    return None


def _program(pid: int) -> Spinning | None:
    """What the top of its stack says: of its shared pages (all of a guest's memory is) the highest that ends so."""
    mappings = _MAPPING.findall((PROC / str(pid) / "maps").read_text())
    with open(PROC / str(pid) / "mem", "rb", buffering=0) as memory:
        for begin, end in reversed(mappings):
            size = min(int(end, 16) - int(begin, 16), STACK_BYTES)
            memory.seek(int(end, 16) - size)
            top = memory.read(size)
            file, of = _NAMED.search(top), _END_OF_FLOW.search(top)
            if file is not None and of is not None:
                return Spinning(file[1].decode(), of[1].decode(errors="replace"))
    return None
