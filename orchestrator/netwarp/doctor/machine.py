"""Checks the machine: processor, Python, disk, cores, packages, clock."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sys
from pathlib import Path

from ..core.checkout import CHECKOUT, INSTALLED
from ..core.unpacked import UNPACKED_PACKAGES
from . import distribution
from .finding import Finding, gigabytes

DISK_BYTES = 2_000_000_000
"""Free room required for results: choi2009 and its captures, with a margin."""
MODULES = ("msgspec", "numpy", "pyroute2", "zstandard")
"""Of the Python packages in requirements.lock, those without which nothing runs."""
GOOD_CLOCKS = ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter")


def machine() -> Finding:
    """Processor and system: x86-64 Linux is required."""
    kind, system = platform.machine(), platform.system()
    able = (kind, system) == ("x86_64", "Linux")
    remedy = "" if able else "netwarp's guests are x86-64 Linux programs: use such a machine"
    detail = f"{system} {kind}, {distribution.name()}"
    return Finding("machine", "ok" if able else "missing", detail, remedy)


def python() -> Finding:
    """Python: its version, and the packages of requirements.lock."""
    if sys.version_info < (3, 11):
        remedy = distribution.python_remedy()
        return Finding("python", "missing", platform.python_version(), remedy)
    absent = [name for name in MODULES if importlib.util.find_spec(name) is None]
    if absent:
        detail = f"{platform.python_version()}, without {', '.join(absent)}"
        return Finding("python", "missing", detail, "make setup   (it makes .venv)")
    return Finding("python", "ok", platform.python_version())


def disk() -> Finding:
    """Free disk space for results in the working directory."""
    free = shutil.disk_usage(Path.cwd()).free
    if free < DISK_BYTES:
        remedy = f"free {gigabytes(DISK_BYTES)}, or name a directory on another disk with --out"
        return Finding("disk", "warning", f"{gigabytes(free)} free here", remedy)
    return Finding("disk", "ok", f"{gigabytes(free)} free here")


def cores() -> Finding:
    """The number of cores, which is the number of cells that run at once."""
    return Finding("cores", "ok", f"{len(os.sched_getaffinity(0))}; as many cells run at once")


def installed() -> Finding:
    """Checks that the packages are installed. They are needed to build; what is built runs without most of them, so a
    missing one is a warning.
    """
    if INSTALLED:
        return Finding("packages", "ok", "none needed: netwarp was installed from its wheel, with all that is built")
    required = packages("run")
    absent = distribution.missing(required)
    if absent is None:
        detail = f"unknown: no package manager that netwarp knows ({distribution.name()})"
        return Finding("packages", "note", detail, distribution.install(required))
    if absent:
        detail = f"{len(absent)} not installed: {' '.join(distribution.local_names(absent))}"
        return Finding("packages", "warning", detail, distribution.install(absent))
    return Finding("packages", "ok", f"all {len(required)} installed")


def unpacked() -> Finding:
    """Checks that the programs are there that specs take from packages without installing them."""
    what = "unpacked programs"
    if INSTALLED:
        return Finding(what, "note", "none in a wheel: flows of QUIC need a checkout, or a program of your own")
    marker = UNPACKED_PACKAGES / ".unpacked"
    absent = set(packages("unpacked")) - set(marker.read_text().split() if marker.exists() else ())
    if absent:
        detail = (
            f"{len(absent)} packages not unpacked: cells of QUIC, and others with programs of packages, are UNSUPPORTED"
        )
        return Finding(what, "note", detail, "make programs")
    return Finding(what, "ok", "ngtcp2 (QUIC), web servers, signalling daemons")


def packages(kind: str) -> list[str]:
    """The Debian packages of setup/packages.txt of one kind (`run`, `test` or `unpacked`)."""
    lines = [line.split() for line in (CHECKOUT / "setup/packages.txt").read_text().splitlines()]
    return [line[1] for line in lines if line and line[0] == kind]


def clock() -> Finding:
    """The kernel's clock source, which times wall-clock cells."""
    try:
        source = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource").read_text().strip()
    except OSError as error:
        return Finding("clock source", "note", f"unknown: {error.strerror}")
    detail = f"{source} (wall-clock back ends only)"
    if source in GOOD_CLOCKS:
        return Finding("clock source", "ok", detail)
    remedy = "reading it takes a system call; boot with clocksource=tsc where the CPU allows"
    return Finding("clock source", "note", detail, remedy)
