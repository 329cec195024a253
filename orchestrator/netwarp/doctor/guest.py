"""Checks what guests need: the kernel, the programs, memory, ptrace; and boots one."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from ..core import invocation
from ..core.built_programs import BUILD, BUILT_FILES
from ..core.errors import KernelError
from ..core.scratch import scratch
from ..guestkernel import KernelBuild, find_kernel
from ..guestkernel.cache import kernels_dir
from ..guestkernel.packaged import PACKAGE, distribution_kernel, is_distribution, time_travels
from ..guestkernel.recipe import load_recipe
from . import distribution
from .finding import Finding, answers_in_child, gigabytes

GUEST_ROOM_BYTES = 1 << 30
"""Free room wanted where guests keep their memory: two jobs of 256 MiB guests, twice."""
_BOOT_SIGN = "Kernel panic - not syncing: Requested init"


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


def kernel() -> Finding:
    """The newest one made by this checkout's recipe, or NETWARP_KERNEL."""
    try:
        newest = find_kernel()
    except KernelError as error:
        return Finding(what="guest kernel", state="missing", found=str(error), remedy="unset NETWARP_KERNEL")
    if newest is None:
        found = f"none made by this checkout's recipe in {kernels_dir()}"
        remedy = f"make kernel   (or: {invocation.command('kernel', 'build')})"
        if not distribution.packs(load_recipe().package):
            remedy = f"{invocation.command('kernel', 'build', '--source', 'linux-6.12.tar.xz')}   (from kernel.org)"
        return Finding(what="guest kernel", state="missing", found=found, remedy=remedy)
    if not time_travels(newest.binary):
        found = f"{_named(newest)} has no virtual clock: it can only run --backend guest"
        return Finding(
            what="guest kernel", state="missing", found=found, remedy="unset NETWARP_KERNEL, then make kernel"
        )
    return Finding(what="guest kernel", state="ok", found=_named(newest))


def wall_kernel_build() -> KernelBuild | None:
    """The kernel of the back end `guest`: the virtual one's, else the distribution's. Raises KernelError."""
    return find_kernel() or distribution_kernel()


def wall_kernel() -> Finding:
    """What --backend guest runs."""
    try:
        found = wall_kernel_build()
    except KernelError as error:
        return Finding(what="guest kernel", state="missing", found=str(error), remedy="unset NETWARP_KERNEL")
    if found is None:
        said = f"none made by this checkout's recipe in {kernels_dir()}, and no {PACKAGE} installed"
        remedy = "make kernel"
        if distribution.packs(PACKAGE):
            remedy += f"; or, with nothing to build: {distribution.install([PACKAGE])}"
        return Finding(what="guest kernel", state="missing", found=said, remedy=remedy)
    return Finding(what="guest kernel", state="ok", found=_named(found))


def packaged_kernel() -> Finding:
    """The distribution's User-Mode-Linux: for --backend guest where no kernel is built."""
    what = "packaged kernel"
    found = distribution_kernel()
    if found is not None:
        return Finding(what=what, state="ok", found=f"{_named(found)}; --backend guest can run it, nothing to build")
    said = "no User-Mode Linux installed; with it --backend guest needs no kernel build (wall clock only)"
    remedy = distribution.install([PACKAGE]) if distribution.packs(PACKAGE) else ""
    return Finding(what=what, state="note", found=said, remedy=remedy)


def _named(kernel: KernelBuild) -> str:
    return f"{kernel.release} ({kernel.source}), sha256 {kernel.sha256[:16]}"


def apps() -> Finding:
    """What `make apps` builds."""
    absent = [file.path for file in BUILT_FILES if not (BUILD / file.path).is_file()]
    if absent:
        found = f"not built: {', '.join(absent)}"
        return Finding(what="apps", state="missing", found=found, remedy="make setup")
    return Finding(what="apps", state="ok", found=f"{len(BUILT_FILES)} programs and libraries in build/")


def memory() -> Finding:
    """Where guests keep theirs."""
    place = memory_dir()
    if place is None:
        found = f"{' and '.join(map(str, _memory_places()))} are small, full, or mounted noexec"
        remedy = f"set TMPDIR to a directory with {GUEST_ROOM_BYTES >> 20} MiB free that allows exec"
        return Finding(what="guest memory", state="missing", found=found, remedy=remedy)
    state = os.statvfs(place)
    return Finding(what="guest memory", state="ok", found=f"{place}, {gigabytes(state.f_bavail * state.f_frsize)} free")


def _memory_places() -> tuple[Path, Path]:
    return Path("/dev/shm"), Path(tempfile.gettempdir())


def ptrace() -> Finding:
    """A guest's processes run under it."""
    if answers_in_child("libc.ptrace(0, 0, 0, 0) == 0"):  # PTRACE_TRACEME
        return Finding(what="ptrace", state="ok", found="a child may ask to be traced")
    remedy = distribution.as_root("sysctl -w kernel.yama.ptrace_scope=1")
    remedy += "; in a container: run it with --cap-add=SYS_PTRACE"
    return Finding(what="ptrace", state="missing", found="refused; a guest's processes run under it", remedy=remedy)


def personality() -> Finding:
    """Equal addresses for equal captures."""
    if answers_in_child("libc.personality(0x0040000) != -1"):  # ADDR_NO_RANDOMIZE
        return Finding(what="personality", state="ok", found="addresses can be fixed")
    remedy = "run the container with --security-opt seccomp=unconfined"
    found = "refused: guests run at random addresses, so equal captures are likely but not certain"
    return Finding(what="personality", state="warning", found=found, remedy=remedy)


def boot() -> Finding:
    """Boot a guest up to where it looks for its first program, which is as far as one without a program gets."""
    what = "guest boots"
    try:
        found = find_kernel()
    except KernelError:
        found = None
    place = memory_dir()
    if found is None or place is None or is_distribution(found):
        return Finding(what=what, state="note", found="not tried")
    with scratch("netwarp-doctor-") as folder:
        command = [str(found.binary), "mem=64M", "rootfstype=hostfs", "rootflags=/", "ro", "init=/proc/self/cwd/none",
                   "con0=null,fd:1", "con=null", "panic=-1", "time-travel=inf-cpu"]  # fmt: skip
        environment = {"TMPDIR": str(place), "HOME": str(folder), "PATH": os.defpath}
        try:
            guest = subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                   capture_output=True, timeout=60, check=False)  # fmt: skip
            console = (guest.stdout + guest.stderr).decode(errors="replace")
        except (OSError, subprocess.TimeoutExpired) as error:
            console = str(error)
    if _BOOT_SIGN in console:
        return Finding(what=what, state="ok", found="up to its first program")
    last = " / ".join(console.strip().splitlines()[-3:]) or "it said nothing"
    remedy = f"{invocation.command('kernel', 'build')}; a container may forbid ptrace"
    return Finding(what=what, state="missing", found=last, remedy=remedy)
