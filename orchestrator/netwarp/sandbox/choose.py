"""Chooses the back end that runs a plan, and says why it was chosen."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from ..core.built_programs import BUILD
from ..core.errors import BackendUnavailable, SpecError
from ..core.invocation import command
from ..core.types import Cell, Problem
from ..doctor import check_guest, check_virtual, memory_dir, wall_kernel_build
from ..guestkernel import KernelBuild, find_kernel
from ..guestkernel.cache import find_binary
from ..guestkernel.packaged import distribution_kernel, is_distribution
from ..guestkernel.seccomp import mode_of
from ..guestkernel.variant import DEBUG
from ..store.manifest import identity_of
from . import DistributionBackend, GuestBackend, SandboxBackend, VirtualBackend, netns_backend
from .hosts import HostsBackend, read_inventory
from .virtual import VIRTUAL_LATENESS_NS, WALL_LATENESS_NS

BACKENDS = ("auto", "virtual", "guest", "netns", "hosts")
HOST_KERNEL = "host"
"""Stands for the digest of a kernel that no file of this machine is known to be."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A back end that can run here. kernel: the guest's kernel; None: this machine's own. why: for `auto` the reason in
    a sentence, otherwise "".
    """

    backend: SandboxBackend
    kernel: KernelBuild | None
    why: str = ""
    machines: tuple[str, str] | None = None
    """Of other machines: their kernels, and a digest of those."""
    kernels: tuple[KernelBuild, ...] = ()
    """The kernels that the cells run on, where cells name kernels of their own."""

    @property
    def identity(self) -> tuple[str, str]:
        """(release, sha256) of the kernel under test; of several, all releases and a digest of their hashes."""
        if self.machines is not None:
            return self.machines
        if self.kernels:
            return identity_of((build.release, build.sha256) for build in self.kernels)
        if self.kernel is None:
            return f"{platform.release()} {platform.version()}", HOST_KERNEL
        return self.kernel.release, self.kernel.sha256

    @property
    def uml_mode(self) -> dict[str, str]:
        """Release of each guest kernel -> ptrace or seccomp: the way in which it runs programs on this machine."""
        builds = self.kernels or (() if self.kernel is None else (self.kernel,))
        return {build.release: mode_of(build.binary, memory_dir()) for build in builds}


def choose(name: str, inventory: Path | None = None, *, allow_programs: bool = False) -> Chosen:
    """The back end of that name (of BACKENDS). inventory: of `hosts`, whose machines are taken until it is closed;
    allow_programs: it may name programs that run here.

    Raises BackendUnavailable with every remedy where it cannot run here; SpecError where the inventory is wrong.
    """
    if name == "hosts":
        return hosts(inventory, allow_programs=allow_programs)
    if inventory is not None:
        raise SpecError(f"--inventory is of --backend hosts, not of {name}")
    if name == "netns":
        backend, problems = netns_backend(BUILD)
        if problems:
            raise BackendUnavailable(cannot("netns", problems))
        return Chosen(backend, None)
    if name == "guest":
        return guest()
    problems = check_virtual()
    kernel = None if problems else find_kernel()
    if kernel is not None:
        return Chosen(VirtualBackend(kernel.binary, BUILD), kernel)
    said = cannot("virtual", problems)
    if name == "auto":
        other, more = netns_backend(BUILD)
        if not more:
            return Chosen(other, None, f"{said}\nso cells run on this machine's own kernel, on the wall clock (netns)")
        said += "\n" + cannot("netns", more)
        if distribution_kernel() is not None and not check_guest():
            # another kernel on another clock is the user's choice, not a fallback
            said += "\nwithout a build, on the wall clock: --backend guest runs on this distribution's own kernel"
    raise BackendUnavailable(said)


def with_kernels(chosen: Chosen, cells: Sequence[Cell]) -> Chosen:
    """The same back end, with every kernel that these cells run on, if they name any. Raises BackendUnavailable where
    one is not built.
    """
    kernels = dict.fromkeys(cell.kernel for cell in cells)
    if chosen.kernel is None or all(isinstance(kernel, msgspec.UnsetType) for kernel in kernels):
        return chosen
    builds: dict[str, KernelBuild] = {}
    absent = []
    for kernel in kernels:
        if isinstance(kernel, msgspec.UnsetType):
            builds[chosen.kernel.sha256] = chosen.kernel
            continue
        build = find_binary(kernel.sha256) if kernel.sha256 else None
        if build is None:
            absent.append(kernel.release)
        else:
            builds[build.sha256] = build
    if absent:
        chosen.backend.close()
        raise BackendUnavailable("\n".join(map(not_built, absent)))
    return replace(chosen, kernels=tuple(sorted(builds.values(), key=lambda build: (build.release, build.sha256))))


def not_built(name: str) -> str:
    """What is said of a kernel that a spec names and that is not there: the command that builds it."""
    release, _, label = ("", "", "") if "/" in name else name.partition("+")
    options = ["--source", f"linux-source-{'.'.join(release.split('.')[:2])}" if release else name]
    for part in label.split("+") if label else ():
        options += ["--debug"] if part == DEBUG else _file_of(part)
    return f"the kernel {name} is not built; `{command('kernel', 'build', *options)}` builds it"


def _file_of(label: str) -> list[str]:
    """The option of a variant that is a file of the user's; congestion controls are called so in net/ipv4."""
    return ["--congestion", f"{label}.c"] if label.startswith("tcp_") else ["--patch", f"{label}.patch"]


def hosts(inventory: Path | None, *, allow_programs: bool = False) -> Chosen:
    """The machines of an inventory."""
    if inventory is None:
        raise SpecError(
            "--backend hosts needs --inventory FILE (docs/physical-hosts.md); `make lab` makes machines to try"
        )
    backend = HostsBackend(BUILD, read_inventory(inventory, allow_programs=allow_programs))
    problems = backend.check()
    if problems:
        raise BackendUnavailable(cannot("hosts", problems))
    kernels = sorted({f"{release} {version}" for release, version, _ in backend.held.kernels.values()})
    digest = hashlib.sha256("\n".join(kernels).encode()).hexdigest()
    left = (
        f"what a killed run had left could not all be put back: {'; '.join(backend.held.left)}"
        if backend.held.left
        else ""
    )
    return Chosen(backend, None, left, (", ".join(kernels), digest))


def guest() -> Chosen:
    """The back end `guest`: with the kernel built here, otherwise with the distribution's (and then `why` says so)."""
    problems = check_guest()
    kernel = None if problems else wall_kernel_build()
    if kernel is None:
        raise BackendUnavailable(cannot("guest", problems))
    if is_distribution(kernel):
        backend = DistributionBackend(kernel, BUILD)
        chosen = Chosen(backend, kernel)
        why = f"cells run on {_named(chosen)}: its timers are 10 ms grained, and losses need not follow the seed"
        return replace(chosen, why=why)
    return Chosen(GuestBackend(kernel.binary, BUILD), kernel)


def lateness_s(backend: str) -> float:
    """The lateness allowed to a step of a cell on that back end's clock before the cell is INVALID, in seconds."""
    return (VIRTUAL_LATENESS_NS if backend == "virtual" else WALL_LATENESS_NS) / 1e9


def _named(chosen: Chosen) -> str:
    return "this machine's own kernel" if chosen.kernel is None else f"{chosen.kernel.source} ({chosen.kernel.release})"


def cannot(name: str, problems: Sequence[Problem]) -> str:
    """The reason why a back end cannot run here, and every remedy."""
    text = "\n".join(f"  {problem.what}\n    {problem.remedy}" for problem in problems)
    return f"the {name} back end cannot run here:\n{text}"
