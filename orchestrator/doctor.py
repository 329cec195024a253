"""Can this machine run netwarp? Each thing that is missing, with its remedy."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from orchestrator.errors import KernelError
from orchestrator.kernel import KernelBuild, find_kernel
from orchestrator.kernel.cache import kernels_dir
from orchestrator.kernel.recipe import CHECKOUT
from orchestrator.model import Frozen, Problem

State = Literal["ok", "missing", "warning", "note"]

GUEST_ROOM_BYTES = 1 << 30
"""Free room wanted where guests keep their memory: two jobs of 256 MiB guests, twice."""
DISK_BYTES = 2_000_000_000
"""Free room wanted for results: choi2009 and its captures, with a margin."""
APPS = (
    "bin/cell-init", "bin/guest-exec", "bin/netns-exec", "bin/sender", "bin/receiver", "lib/seed.so",
    "lib/libnetwarp_analyzer.so",
)  # fmt: skip
_BOOT_SIGN = "Kernel panic - not syncing: Requested init"


class Finding(Frozen, frozen=True):
    """One line of the report. `missing`: the virtual back end cannot run; `warning`: it can, with a drawback;
    `note`: only other back ends ask for it. `remedy` is empty where nothing has to be done."""

    what: str
    state: State
    found: str
    remedy: str = ""


def check_virtual() -> list[Problem]:
    """What keeps the virtual back end from running here; empty if nothing does. Quick: no guest is started."""
    return [Problem(what=f"{f.what}: {f.found}", remedy=f.remedy) for f in _findings(_NEEDED) if f.state == "missing"]


def examine() -> list[Finding]:
    """Every check, a guest booted on the way."""
    return list(_findings((*_NEEDED, _boot, *_OTHERS)))


def memory_dir() -> Path | None:
    """Where guests keep their memory: /dev/shm or the temporary directory; None if neither has room and allows exec."""
    for place in _memory_places():
        try:
            state = os.statvfs(place)
        except OSError:
            continue
        roomy = state.f_bavail * state.f_frsize >= GUEST_ROOM_BYTES
        if roomy and not state.f_flag & os.ST_NOEXEC and os.access(place, os.W_OK | os.X_OK):
            return place
    return None


def _findings(checks: tuple[Callable[[], Finding], ...]) -> Iterator[Finding]:
    for check in checks:
        yield check()


def _machine() -> Finding:
    machine, system = platform.machine(), platform.system()
    able = (machine, system) == ("x86_64", "Linux")
    remedy = "" if able else "netwarp's guests are x86-64 Linux programs: use such a machine"
    return Finding(what="machine", state="ok" if able else "missing", found=f"{system} {machine}", remedy=remedy)


def _python() -> Finding:
    able = sys.version_info >= (3, 11)
    remedy = "" if able else "install Python 3.11 or newer, then: make setup PYTHON=/usr/bin/python3.11"
    return Finding(what="python", state="ok" if able else "missing", found=platform.python_version(), remedy=remedy)


def _kernel() -> Finding:
    try:
        kernel = find_kernel()
    except KernelError as error:
        return Finding(what="guest kernel", state="missing", found=str(error), remedy="unset NETWARP_KERNEL")
    if kernel is None:
        found = f"none made by this checkout's recipe in {kernels_dir()}"
        remedy = "make kernel   (or: netwarp kernel build)"
        return Finding(what="guest kernel", state="missing", found=found, remedy=remedy)
    return Finding(what="guest kernel", state="ok", found=_named(kernel))


def _named(kernel: KernelBuild) -> str:
    return f"{kernel.release} ({kernel.source}), sha256 {kernel.sha256[:16]}"


def _apps() -> Finding:
    absent = [name for name in APPS if not (CHECKOUT / "build" / name).is_file()]
    if absent:
        found = f"not built: {', '.join(absent)}"
        return Finding(what="apps", state="missing", found=found, remedy="make setup")
    return Finding(what="apps", state="ok", found=f"{len(APPS)} programs and libraries in build/")


def _memory() -> Finding:
    place = memory_dir()
    if place is None:
        found = f"{' and '.join(map(str, _memory_places()))} are small, full, or mounted noexec"
        remedy = f"set TMPDIR to a directory with {GUEST_ROOM_BYTES >> 20} MiB free that allows exec"
        return Finding(what="guest memory", state="missing", found=found, remedy=remedy)
    state = os.statvfs(place)
    return Finding(
        what="guest memory", state="ok", found=f"{place}, {_gigabytes(state.f_bavail * state.f_frsize)} free"
    )


def _memory_places() -> tuple[Path, Path]:
    return Path("/dev/shm"), Path(tempfile.gettempdir())


def _ptrace() -> Finding:
    if _answers_in_child("libc.ptrace(0, 0, 0, 0) == 0"):  # PTRACE_TRACEME
        return Finding(what="ptrace", state="ok", found="a child may ask to be traced")
    remedy = "sysctl kernel.yama.ptrace_scope=1, or run the container with --cap-add=SYS_PTRACE"
    return Finding(what="ptrace", state="missing", found="refused; a guest's processes run under it", remedy=remedy)


def _personality() -> Finding:
    if _answers_in_child("libc.personality(0x0040000) != -1"):  # ADDR_NO_RANDOMIZE
        return Finding(what="personality", state="ok", found="addresses can be fixed")
    remedy = "run the container with --security-opt seccomp=unconfined"
    found = "refused: guests run at random addresses, so equal captures are likely but not certain"
    return Finding(what="personality", state="warning", found=found, remedy=remedy)


def _disk() -> Finding:
    free = shutil.disk_usage(Path.cwd()).free
    if free < DISK_BYTES:
        remedy = f"have {_gigabytes(DISK_BYTES)} free where the results go, or name another place with --out"
        return Finding(what="disk", state="warning", found=f"{_gigabytes(free)} free here", remedy=remedy)
    return Finding(what="disk", state="ok", found=f"{_gigabytes(free)} free here")


def _cores() -> Finding:
    return Finding(what="cores", state="ok", found=f"{len(os.sched_getaffinity(0))}: so many cells run at once")


def _packages() -> Finding:
    """Packages are needed to build; what is built runs without most of them, so a missing one is a warning."""
    wanted = packages("run")
    try:
        query = ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *wanted]
        answer = subprocess.run(query, capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        return Finding(
            what="packages", state="note", found="no dpkg here; setup/packages.txt lists what has to be there"
        )
    lines = [line.split() for line in answer.splitlines()]
    installed = {line[0] for line in lines if line[1:] == ["installed"]}
    absent = [name for name in wanted if name not in installed]
    if absent:
        remedy = f"apt-get install --no-install-recommends {' '.join(absent)}"
        return Finding(what="packages", state="warning", found=f"{len(absent)} not installed", remedy=remedy)
    return Finding(what="packages", state="ok", found=f"all {len(wanted)} installed")


def packages(kind: str) -> list[str]:
    """The Debian packages of setup/packages.txt of one kind (`run` or `test`)."""
    lines = [line.split() for line in (CHECKOUT / "setup/packages.txt").read_text().splitlines()]
    return [line[1] for line in lines if line and line[0] == kind]


def _user_namespaces() -> Finding:
    if _answers_in_child("libc.unshare(0x10000000 | 0x40000000) == 0"):  # CLONE_NEWUSER | CLONE_NEWNET
        return Finding(what="host namespaces", state="ok", found="user and network namespaces can be made")
    found = "refused; only a back end on this machine's own kernel would ask for them"
    return Finding(what="host namespaces", state="note", found=found)


def _host_kernel() -> Finding:
    """Loaded or built in; a module that could be loaded counts as well. Only for back ends on the host's kernel."""
    release = platform.release()
    listed = ""
    for name in ("modules.builtin", "modules.dep"):
        path = Path("/lib/modules") / release / name
        if path.is_file():
            listed += path.read_text(errors="replace")
    has = {
        "SCTP": Path("/proc/sys/net/sctp").is_dir() or "/sctp.ko" in listed,
        "netem": Path("/sys/module/sch_netem").is_dir() or "/sch_netem.ko" in listed,
    }
    words = ", ".join(f"{name} {'yes' if there else 'no'}" for name, there in has.items())
    if has["SCTP"] or not has["netem"]:
        return Finding(what="host kernel", state="note", found=f"{release}: {words} (guests bring their own)")
    remedy = "for SCTP with --backend netns: modprobe sctp as root (RHEL: it is in kernel-modules-extra)"
    return Finding(what="host kernel", state="note", found=f"{release}: {words}", remedy=remedy)


def _clock() -> Finding:
    """What wall-clock cells are timed by."""
    try:
        source = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource").read_text().strip()
    except OSError as error:
        return Finding(what="clock source", state="note", found=f"unknown: {error.strerror}")
    found = f"{source} (wall-clock back ends only)"
    if source in ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"):
        return Finding(what="clock source", state="ok", found=found)
    remedy = "wall-clock cells pay a system call for every look at it; boot with clocksource=tsc where the CPU allows"
    return Finding(what="clock source", state="note", found=found, remedy=remedy)


def _boot() -> Finding:
    """Boot a guest up to where it looks for its first program, which is as far as one without a program gets."""
    what = "guest boots"
    try:
        kernel = find_kernel()
    except KernelError:
        kernel = None
    place = memory_dir()
    if kernel is None or place is None:
        return Finding(what=what, state="note", found="not tried")
    with tempfile.TemporaryDirectory(prefix="netwarp-doctor-") as folder:
        command = [str(kernel.binary), "mem=64M", "rootfstype=hostfs", "rootflags=/", "ro", "init=/proc/self/cwd/none",
                   "con0=null,fd:1", "con=null", "panic=-1", "time-travel=inf-cpu"]  # fmt: skip
        environment = {"TMPDIR": str(place), "HOME": folder, "PATH": os.defpath}
        try:
            guest = subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                   capture_output=True, timeout=60, check=False)  # fmt: skip
            console = (guest.stdout + guest.stderr).decode(errors="replace")
        except (OSError, subprocess.TimeoutExpired) as error:
            console = str(error)
    if _BOOT_SIGN in console:
        return Finding(what=what, state="ok", found="up to its first program")
    last = " / ".join(console.strip().splitlines()[-3:]) or "it said nothing"
    return Finding(what=what, state="missing", found=last, remedy="netwarp kernel build; a container may forbid ptrace")


def _answers_in_child(expression: str) -> bool:
    """Whether an expression over `libc` is true in a process of its own, which it may change for good."""
    code = f"import ctypes; libc = ctypes.CDLL(None); raise SystemExit(not ({expression}))"
    return subprocess.run([sys.executable, "-ISc", code], stdin=subprocess.DEVNULL, check=False).returncode == 0


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB"


_NEEDED = (_machine, _python, _kernel, _apps, _memory, _ptrace)
_OTHERS = (_personality, _disk, _cores, _packages, _user_namespaces, _host_kernel, _clock)
