"""Runs each cell in a User-Mode-Linux guest of its own, on a virtual clock or on the wall clock.

The guest sees the cell's partial directory as /run/cell; its root is the host's file system, read-only. In virtual time
the clock advances only when all processes of the guest sleep, and the same cell, seed and kernel binary give the same
captures, byte for byte.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Literal

import msgspec

from ..core.built_programs import CELL_FILES
from ..core.errors import CellError, SpecError
from ..core.link_types import LinkImpairment
from ..core.types import Cell, Flow, GuestKernel, Problem
from ..doctor import check_guest, check_virtual, memory_dir
from ..guestkernel import KernelBuild
from ..guestkernel.cache import asks_for_a_root, find_binary, list_kernels
from ..guestkernel.packaged import modules_of
from ..guestkernel.seccomp import mode_of
from ..store.run_dir import CellDir
from ..testbed.compile import Clock
from .capture_slots import CaptureSlots
from .privileges import open_to_all
from .sandbox import SandboxBackend

NEWER_SCHEDULERS = ("fc", "wfq")
"""SCTP's, which Linux 6.1 does not know."""
TCP_ECN = "net.ipv4.tcp_ecn"
SEEDED_NETEM = (6, 6)
"""The first release whose netem has a generator of its own (TCA_NETEM_PRNG_SEED)."""
NEWER_SCHEDULERS_FROM = (6, 4)


def lacks(cell: Cell, kernel: GuestKernel) -> str:
    """The reason why a cell cannot run on a kernel of that release; "" if it can."""
    for flow in cell.flows:
        if scheduler := _unknown_scheduler(flow, kernel):
            return f"flow {flow.name}: Linux {kernel.release} has no stream scheduler {scheduler}"
    if newer := _too_old(cell, kernel):
        return newer
    if kernel.numbers < SEEDED_NETEM:
        changes = (shape for event in cell.timeline for shape in (event.forward, event.backward) if shape is not None)
        shapes = [shape for link in cell.links for shape in (link.forward, link.backward)]
        drawn = next((name for shape in (*shapes, *changes) if (name := drawn_by_netem(shape))), "")
        if drawn:
            return (
                f"{drawn}: netem of Linux {kernel.release} has no seed, so that other kernels would meet other draws; "
                "bit_errors, byte_errors and rules for single packets (drop, duplicate, delay) have their own"
            )
    return ""


DUALPI2_FROM, ACCECN_FROM = (6, 17), (6, 18)
"""The releases that first had them."""


def newer_needed(cell: Cell, numbers: tuple[int, int]) -> str:
    """What a cell has that a kernel of that release does not, in words; "" if there is nothing."""
    shapes = [(link.name, shape) for link in cell.links for shape in (link.forward, link.backward)]
    shapes += [
        (event.link, shape) for event in cell.timeline for shape in (event.forward, event.backward) if shape is not None
    ]
    for name, shape in shapes if numbers < DUALPI2_FROM else ():
        if shape.aqm is not None and shape.aqm.kind == "dualpi2":
            return f"link {name} has aqm dualpi2"
    for node in cell.nodes:
        if node.sysctls.get(TCP_ECN, "").strip() in ("3", "4", "5") and numbers < ACCECN_FROM:
            return f"node {node.name} has AccECN ({TCP_ECN} = {node.sysctls[TCP_ECN]})"
    return ""


def _too_old(cell: Cell, kernel: GuestKernel) -> str:
    newer = newer_needed(cell, kernel.numbers)
    remedy = 'say kernel = "7.3" (netwarp kernel build --second)'
    return newer and f"{newer}, which Linux {kernel.release} does not have; {remedy}"


def _unknown_scheduler(flow: Flow, kernel: GuestKernel) -> str:
    scheduler = str(flow.sender_options.get("scheduler", ""))
    return scheduler if scheduler in NEWER_SCHEDULERS and kernel.numbers < NEWER_SCHEDULERS_FROM else ""


def drawn_by_netem(shape: LinkImpairment) -> str:
    """The first impairment of a direction that netem's generator draws; "" if there is none."""
    drawn = {
        "loss": shape.loss_ratio,
        "burst_loss": shape.burst_loss,
        "jitter": shape.jitter_ns,
        "duplicate": shape.duplicate_ratio,
        "corrupt": shape.corrupt_ratio,
        "reorder": shape.reorder_ratio,
    }
    return next((name for name, value in drawn.items() if value), "")


T0_REALTIME_NS = 1_700_000_000_000_000_000
"""T0 on the guest's clock, 14 November 2023 22:13:20 UTC. The value is arbitrary, but another one gives other
captures.
"""
BOOT_REALTIME_NS = T0_REALTIME_NS - 10_000_000_000
"""The guest boots this long before T0: enough for links, receivers and captures to be ready."""
GUEST_MEMORY_MIB = 256
VIRTUAL_LATENESS_NS = 2_000
WALL_LATENESS_NS = 10_000_000
"""On the wall clock: the cells of a machine that is later than this are INVALID rather than wrong."""
WALL_CLOCK = Clock(
    # time for the senders that begin at T0 to be up; the interval at which a cell measures how late it wakes
    t0_after_ready_ns=600_000_000, tick_ns=20_000_000, late_ns=WALL_LATENESS_NS,
)  # fmt: skip


def guest_command(
    apps: Path, kernel: Path, directory: Path, seed: int, memory_mib: int, mode: Literal["virtual", "wall"]
) -> list[str]:
    """guest-exec, which becomes a guest's kernel. Raises CellError if there is no space for the guest's memory."""
    place = memory_dir()
    if place is None:
        raise CellError(
            "no directory has space for the guest's memory any more: free some in /dev/shm or TMPDIR"
            " (see `netwarp doctor`)"
        )
    special = ["--no-root"] if asks_for_a_root(kernel) else []
    special += ["--seccomp"] if mode_of(kernel, place) == "seccomp" else []
    return [
        str(apps / "bin" / "guest-exec"), "--kernel", str(kernel), *special, "--dir", str(directory),
        "--seed", str(seed), "--memory", f"{memory_mib}M", "--mode", mode, "--tmpdir", str(place),
        "--parent", str(os.getpid()),
    ]  # fmt: skip


class GuestBackend(SandboxBackend):
    """Guests on the wall clock. `kernel` is a UML binary, for the cells that name none."""

    name = "guest"
    mode: Literal["virtual", "wall"] = "wall"
    clock = WALL_CLOCK
    files = CELL_FILES
    any_kernel = True

    def __init__(self, kernel: Path, apps: Path) -> None:
        super().__init__(apps)
        self.kernel = kernel
        self._named: dict[str, Path] = {}
        place = memory_dir()
        if self.user is not None and place is not None and not open_to_all(place, kernel, apps / "lib" / "seed.so"):
            self.user = None  # root's own umask or TMPDIR shuts others out

    def check(self) -> list[Problem]:
        """The lacks of this machine for guests."""
        return check_guest()

    def command(self, cell: Cell, directory: CellDir) -> list[str]:
        """guest-exec, which becomes the kernel."""
        command = guest_command(
            self.apps, self._kernel_of(cell), directory.root, cell.seed, GUEST_MEMORY_MIB, self.mode
        )
        return [*command, "--start-ns", str(BOOT_REALTIME_NS)]

    def check_place(self, directory: Path) -> None:
        """Raise SpecError if a directory lies below /dev (/dev/shm): a guest's own /dev hides that of the host, and its
        kernel would end in a panic, without its init.
        """
        if directory.resolve().is_relative_to("/dev"):
            raise SpecError(
                f"{directory}: lies below /dev, of which a guest sees nothing; take a directory elsewhere (for files "
                "in memory: a tmpfs that is mounted elsewhere)"
            )

    def refuses(self, cell: Cell) -> str:
        """Refuses what the cell's own kernel lacks."""
        if not isinstance(cell.kernel, msgspec.UnsetType):
            return lacks(cell, cell.kernel) or super().refuses(cell)
        asks = newer_needed(cell, (0, 0))
        own = next((build for build in list_kernels() if build.binary == self.kernel), None) if asks else None
        newer = "" if own is None else _too_old(cell, GuestKernel(own.release, own.sha256))
        return newer or super().refuses(cell)

    def _kernel_of(self, cell: Cell) -> Path:
        """The binary that the cell runs on. Raises CellError if the spec names one that is no longer built."""
        if isinstance(cell.kernel, msgspec.UnsetType):
            return self.kernel
        digest = cell.kernel.sha256
        if digest not in self._named:
            build = find_binary(digest)
            if build is None:
                raise CellError(f"no built kernel has the SHA-256 {digest[:16]} (Linux {cell.kernel.release})")
            self._named[digest] = build.binary
        return self._named[digest]


class VirtualBackend(GuestBackend):
    """Guests in virtual time."""

    name = "virtual"
    mode = "virtual"
    clock = Clock(t0_realtime_ns=T0_REALTIME_NS, late_ns=VIRTUAL_LATENESS_NS)
    wall_clock = False

    def capture_slots(self, cell: Cell, directory: CellDir) -> CaptureSlots | None:
        """Its captures go through memory: a guest that waits for it waits in no virtual time."""
        return CaptureSlots(directory.capture, len(cell.captures)) if cell.captures else None

    def check(self) -> list[Problem]:
        """The lacks of this machine for the virtual clock."""
        return check_virtual()


class DistributionBackend(GuestBackend):
    """The back end `guest` with that kernel: its modules are loaded before a cell's network is made."""

    any_kernel = False

    def __init__(self, kernel: KernelBuild, apps: Path) -> None:
        super().__init__(kernel.binary, apps)
        self.release = kernel.release
        self.clock = replace(self.clock, modules=tuple(str(path) for path in modules_of(kernel.release)))

    def refuses(self, cell: Cell) -> str:
        """Refuses what this kernel was built without (Debian's 6.1: no MPTCP, no tracepoints, older stream
        schedulers).
        """
        for flow in cell.flows:
            lacking = ""
            if flow.protocol == "mptcp":
                lacking = "no MPTCP"
            elif flow.sender_options.get("tracepoints"):
                lacking = "no tracepoints"
            elif scheduler := _unknown_scheduler(flow, GuestKernel(self.release, "")):
                lacking = f"no stream scheduler {scheduler}"
            if lacking:
                return (
                    f"flow {flow.name}: the distribution's kernel {self.release} has {lacking}; build one: make kernel"
                )
        return super().refuses(cell)
