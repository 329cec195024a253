"""Checks whether this machine can run netwarp, and gives the remedy for everything that is missing, for this
distribution.

Standard library only, so that the system's Python can run it before there is a virtual environment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..core.lines import columns, lines_text
from . import guest, host, machine
from .finding import Finding
from .guest import memory_dir, wall_kernel_build
from .host import laboratory
from .machine import packages

if TYPE_CHECKING:
    from ..core.types import Problem

__all__ = [
    "Finding",
    "check_guest",
    "check_virtual",
    "examine",
    "findings_text",
    "laboratory",
    "memory_dir",
    "packages",
    "wall_kernel_build",
]  # fmt: skip

_NEEDED = (machine.machine, machine.python, guest.kernel, guest.apps, guest.memory, guest.ptrace)
_OTHERS = (
    guest.personality, machine.disk, machine.cores, machine.installed, machine.unpacked, guest.packaged_kernel,
    host.is_root, host.namespaces, host.captures, host.netem, host.sctp, host.laboratory,
    machine.clock,
)  # fmt: skip


def check_virtual() -> list[Problem]:
    """The problems that prevent the virtual back end from running here; empty: none. Quick: no guest is started."""
    return _problems(_NEEDED)


def check_guest() -> list[Problem]:
    """The same for the back end `guest`, which runs the distribution's kernel if no other is built."""
    return _problems(tuple(guest.wall_kernel if check is guest.kernel else check for check in _NEEDED))


def _problems(checks: tuple[Callable[[], Finding], ...]) -> list[Problem]:
    from ..core.types import Problem

    return [
        Problem(what=f"{f.what}: {f.detail}", remedy=f.remedy)
        for f in (check() for check in checks)
        if f.state == "missing"
    ]


def examine() -> list[Finding]:
    """Run every check; one of them boots a guest."""
    return [check() for check in (*_NEEDED, guest.boot, *_OTHERS)]


def findings_text(findings: list[Finding], can: dict[str, bool]) -> str:
    """The report; `can`: whether each back end can run here."""
    rows = []
    for finding in findings:
        rows.append((finding.what, finding.state, finding.detail))
        if finding.remedy:
            rows.append(("", "", f"-> {finding.remedy}"))
    lines = lines_text(columns(rows)).splitlines()
    able = [name for name, works in can.items() if works]
    unable = [name for name, works in can.items() if not works]
    cannot = f" Cannot: {', '.join(unable)}." if unable else ""
    return "\n".join([*lines, f"Can run here: {', '.join(able) or 'nothing yet'}.{cannot}"])
