"""Checks the machine: processor, Python, disk, cores, packages, clock."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sys
from pathlib import Path

from ..core.checkout import CHECKOUT
from . import distribution
from .finding import Finding, gigabytes

DISK_BYTES = 2_000_000_000
"""Free room wanted for results: choi2009 and its captures, with a margin."""
MODULES = ("msgspec", "numpy", "pyroute2", "zstandard")
"""Of the Python packages in requirements.lock, those without which nothing runs."""
GOOD_CLOCKS = ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter")


def machine() -> Finding:
    """x86-64 Linux?"""
    kind, system = platform.machine(), platform.system()
    able = (kind, system) == ("x86_64", "Linux")
    remedy = "" if able else "netwarp's guests are x86-64 Linux programs: use such a machine"
    found = f"{system} {kind}, {distribution.name()}"
    return Finding(what="machine", state="ok" if able else "missing", found=found, remedy=remedy)


def python() -> Finding:
    """New enough, and with the packages of requirements.lock."""
    if sys.version_info < (3, 11):
        remedy = distribution.python_remedy()
        return Finding(what="python", state="missing", found=platform.python_version(), remedy=remedy)
    absent = [name for name in MODULES if importlib.util.find_spec(name) is None]
    if absent:
        found = f"{platform.python_version()}, without {', '.join(absent)}"
        return Finding(what="python", state="missing", found=found, remedy="make setup   (it makes .venv)")
    return Finding(what="python", state="ok", found=platform.python_version())


def disk() -> Finding:
    """Room for results here."""
    free = shutil.disk_usage(Path.cwd()).free
    if free < DISK_BYTES:
        remedy = f"have {gigabytes(DISK_BYTES)} free where the results go, or name another place with --out"
        return Finding(what="disk", state="warning", found=f"{gigabytes(free)} free here", remedy=remedy)
    return Finding(what="disk", state="ok", found=f"{gigabytes(free)} free here")


def cores() -> Finding:
    """How many cells run at once."""
    return Finding(what="cores", state="ok", found=f"{len(os.sched_getaffinity(0))}: so many cells run at once")


def installed() -> Finding:
    """Packages are needed to build; what is built runs without most of them, so a missing one is a warning."""
    wanted = packages("run")
    absent = distribution.missing(wanted)
    if absent is None:
        found = f"nobody to ask here ({distribution.name()})"
        return Finding(what="packages", state="note", found=found, remedy=distribution.install(wanted))
    if absent:
        found = f"{len(absent)} not installed: {' '.join(distribution.local_names(absent))}"
        return Finding(what="packages", state="warning", found=found, remedy=distribution.install(absent))
    return Finding(what="packages", state="ok", found=f"all {len(wanted)} installed")


def packages(kind: str) -> list[str]:
    """The Debian packages of setup/packages.txt of one kind (`run` or `test`)."""
    lines = [line.split() for line in (CHECKOUT / "setup/packages.txt").read_text().splitlines()]
    return [line[1] for line in lines if line and line[0] == kind]


def clock() -> Finding:
    """What wall-clock cells are timed by."""
    try:
        source = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource").read_text().strip()
    except OSError as error:
        return Finding(what="clock source", state="note", found=f"unknown: {error.strerror}")
    found = f"{source} (wall-clock back ends only)"
    if source in GOOD_CLOCKS:
        return Finding(what="clock source", state="ok", found=found)
    remedy = "wall-clock cells pay a system call for every look at it; boot with clocksource=tsc where the CPU allows"
    return Finding(what="clock source", state="note", found=found, remedy=remedy)
