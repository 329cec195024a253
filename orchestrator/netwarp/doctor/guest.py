"""Checks what guests need: the kernel, the programs, memory, ptrace; and boots one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from ..core import invocation
from ..core.built_programs import BUILD, BUILT_FILES
from ..core.checkout import INSTALLED
from ..core.errors import KernelError
from ..guestkernel import KernelBuild, find_kernel
from ..guestkernel.cache import kernels_dir
from ..guestkernel.packaged import PACKAGE, distribution_kernel, is_distribution, time_travels
from ..guestkernel.recipe import PACKAGE_NAMES, load_recipe
from ..guestkernel.seccomp import Mode, boot_bare, mode_of
from . import distribution
from .finding import Finding, answers_in_child, gigabytes

GUEST_ROOM_BYTES = 1 << 30
"""Free room required for guests' memory: two jobs of 256 MiB guests, twice."""
_BOOT_SIGN = "Kernel panic - not syncing: Requested init"


def memory_dir() -> Path | None:
    """The directory of guests' memory: /dev/shm or TMPDIR, whichever has room and allows exec; else None."""
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
    """The newest kernel built from this checkout's recipe, or NETWARP_KERNEL."""
    try:
        newest = find_kernel()
    except KernelError as error:
        return Finding("guest kernel", "missing", str(error), "unset NETWARP_KERNEL")
    if newest is None:
        detail = f"none built from this checkout's recipe in {kernels_dir()}"
        remedy = f"make kernel   (or: {invocation.command('kernel', 'build')})"
        if INSTALLED:
            remedy = distribution.wheel("netwarp-kernel")
        elif not distribution.packs(load_recipe().package):
            remedy = f"{invocation.command('kernel', 'build', '--source', 'linux-6.12.tar.xz')}   (from kernel.org)"
        return Finding("guest kernel", "missing", detail, remedy)
    if not time_travels(newest.binary):
        detail = f"{_named(newest)} has no virtual clock: it can only run --backend guest"
        return Finding("guest kernel", "missing", detail, "unset NETWARP_KERNEL, then make kernel")
    return Finding("guest kernel", "ok", _named(newest))


def wall_kernel_build() -> KernelBuild | None:
    """The kernel of the back end `guest`: the one built for the virtual clock, otherwise the distribution's. Raises
    KernelError.
    """
    return find_kernel() or distribution_kernel()


def wall_kernel() -> Finding:
    """The kernel that --backend guest runs."""
    try:
        build = wall_kernel_build()
    except KernelError as error:
        return Finding("guest kernel", "missing", str(error), "unset NETWARP_KERNEL")
    if build is None:
        detail = f"none built from this checkout's recipe in {kernels_dir()}, and no {PACKAGE} installed"
        remedy = "make kernel"
        if distribution.packs(PACKAGE):
            remedy += f"; or, without a build: {distribution.install([PACKAGE])}"
        return Finding("guest kernel", "missing", detail, remedy)
    return Finding("guest kernel", "ok", _named(build))


def packaged_kernel() -> Finding:
    """The distribution's User-Mode Linux: for --backend guest if no kernel is built."""
    build = distribution_kernel()
    if build is not None:
        return Finding("packaged kernel", "ok", f"{_named(build)}; --backend guest can run it without a build")
    detail = "no User-Mode Linux package installed; with it --backend guest needs no kernel build (wall clock only)"
    remedy = distribution.install([PACKAGE]) if distribution.packs(PACKAGE) else ""
    return Finding("packaged kernel", "note", detail, remedy)


def _named(kernel: KernelBuild) -> str:
    return f"{kernel.release} ({kernel.source}), sha256 {kernel.sha256[:16]}"


def apps() -> Finding:
    """The programs that `make apps` builds."""
    absent = [file.path for file in BUILT_FILES if not (BUILD / file.path).is_file()]
    if absent:
        detail = f"not built: {', '.join(absent)}"
        return Finding("apps", "missing", detail, "install netwarp's wheel again" if INSTALLED else "make setup")
    return Finding("apps", "ok", f"{len(BUILT_FILES)} programs and libraries in {BUILD}")


def memory() -> Finding:
    """Checks that there is space for guests' memory."""
    place = memory_dir()
    if place is None:
        detail = f"{' and '.join(map(str, _memory_places()))} are small, full, or mounted noexec"
        remedy = f"set TMPDIR to a directory with {GUEST_ROOM_BYTES >> 20} MiB free that allows exec"
        return Finding("guest memory", "missing", detail, remedy)
    state = os.statvfs(place)
    return Finding("guest memory", "ok", f"{place}, {gigabytes(state.f_bavail * state.f_frsize)} free")


def _memory_places() -> tuple[Path, Path]:
    return Path("/dev/shm"), Path(tempfile.gettempdir())


def ptrace() -> Finding:
    """Checks that a process may be traced: a guest kernel traces its processes, unless it has the seccomp mode."""
    if answers_in_child("libc.ptrace(0, 0, 0, 0) == 0"):  # PTRACE_TRACEME
        return Finding("ptrace", "ok", "a child process can be traced")
    if _mode() == "seccomp":
        return Finding("ptrace", "note", "refused; this kernel runs its programs with seccomp filters instead")
    recipe = load_recipe()
    second = recipe.second.removeprefix(PACKAGE_NAMES)
    get = distribution.wheel(f"netwarp-kernel-{second}") if INSTALLED else "netwarp kernel build --second"
    remedy = f"a kernel that traces nothing: {get}, then NETWARP_KERNEL={second}; or "
    remedy += distribution.as_root("sysctl -w kernel.yama.ptrace_scope=1")
    remedy += "; in a container: run it with --cap-add=SYS_PTRACE"
    detail = f"refused; a guest kernel of {recipe.release} traces its processes"
    return Finding("ptrace", "missing", detail, remedy)


def _mode() -> Mode:
    """The way in which guests of the kernel that runs use would run their programs here."""
    try:
        kernel = find_kernel()
        return "ptrace" if kernel is None else mode_of(kernel.binary, memory_dir())
    except KernelError:
        return "ptrace"


def personality() -> Finding:
    """Checks that address randomisation can be turned off, for equal captures."""
    if answers_in_child("libc.personality(0x0040000) != -1"):  # ADDR_NO_RANDOMIZE
        return Finding("personality", "ok", "address randomisation can be turned off")
    remedy = "run the container with --security-opt seccomp=unconfined"
    detail = "address randomisation cannot be turned off: captures of equal cells may differ"
    return Finding("personality", "warning", detail, remedy)


def boot() -> Finding:
    """Boots a guest until it looks for its first program; without a program a guest gets no further."""
    what = "guest boots"
    try:
        kernel = find_kernel()
    except KernelError:
        kernel = None
    place = memory_dir()
    if kernel is None or place is None or is_distribution(kernel):
        return Finding(what, "note", "not tried: needs a guest kernel with a virtual clock, and guest memory")
    console = boot_bare(kernel.binary, place, "/proc/self/cwd/none", *(["seccomp=on"] if _mode() == "seccomp" else []))
    if _BOOT_SIGN in console:
        return Finding(what, "ok", "up to its first program")
    last = " / ".join(console.strip().splitlines()[-3:]) or "no output"
    remedy = f"{invocation.command('kernel', 'build')}; a container may forbid ptrace"
    return Finding(what, "missing", last, remedy)
