"""The distribution's own User-Mode Linux kernel: it needs no build, but has no virtual time, and its features are
modules.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path

from ..core.executables import output_of
from .cache import KernelBuild
from .source import file_sha256

PACKAGE = "user-mode-linux"
BINARY = Path("/usr/bin/linux.uml")
MODULES = Path("/usr/lib/uml/modules")
"""Debian's places."""
KIND = "distribution"
NEEDED = (
    "veth", "sch_netem", "ipv6", "hmac", "sctp",
    "sch_tbf", "sch_htb", "sch_ingress", "cls_matchall", "cls_fw", "act_mirred", "act_skbedit",
)  # fmt: skip
"""Modules in Debian's kernel that cells need: ipv6, which every cell switches off, is among them; hmac is for SCTP's
cookies; those of net/sched are for queues in bytes and for rates that change.
"""
CONGESTION = "tcp_"
_VIRTUAL = b"time-travel="


def distribution_kernel() -> KernelBuild | None:
    """The kernel of the package; None if it is not installed or its modules are missing."""
    if not BINARY.is_file():
        return None
    release = output_of(BINARY, "--version")
    if not release or not (MODULES / release / "modules.dep").is_file():
        return None
    version = output_of("dpkg-query", "-W", "-f", "${Version}", PACKAGE)
    return KernelBuild(
        key="", binary=BINARY, include=None, release=release, sha256=file_sha256(BINARY),
        source=f"{PACKAGE} {version}".strip(), kind=KIND, compiler="", recipe="", config_sha256="", built_at="",
    )  # fmt: skip


def is_distribution(kernel: KernelBuild) -> bool:
    """True if this is the distribution's kernel, chosen automatically or named by NETWARP_KERNEL."""
    return kernel.kind == KIND or (BINARY.is_file() and kernel.binary.resolve() == BINARY.resolve())


def time_travels(binary: Path) -> bool:
    """True if a kernel has UML's virtual clock (CONFIG_UML_TIME_TRAVEL_SUPPORT): its binary contains the option's name
    then.
    """
    return _knows(binary, binary.stat().st_mtime_ns)


@functools.cache
def _knows(binary: Path, changed_ns: int) -> bool:
    return _VIRTUAL in binary.read_bytes()


def modules_of(release: str, folder: Path = MODULES) -> tuple[Path, ...]:
    """The module files to load, in this order: those that cells need, and every TCP congestion control.

    Raises FileNotFoundError without a modules.dep. Built-in features are not listed.
    """
    depends: dict[str, list[str]] = {}
    for line in (folder / release / "modules.dep").read_text().splitlines():
        name, _, rest = line.partition(":")
        depends[name] = rest.split()
    wanted = [
        name
        for name in depends
        if (stem := Path(name).name.partition(".")[0]) in NEEDED or stem.startswith(CONGESTION)
        if "/ipv4/" in name or stem in NEEDED
    ]
    return tuple(folder / release / name for name in _ordered(wanted, depends))


def _ordered(wanted: Iterable[str], depends: dict[str, list[str]]) -> list[str]:
    """Dependencies first: modules.dep(5) lists them so that the last is to be loaded first."""
    order: dict[str, None] = {}
    for name in wanted:
        for package in (*reversed(depends[name]), name):
            order.setdefault(package)
    return list(order)
