"""Runs each cell on this machine's own kernel and clock, in namespaces that one child process holds.

It needs no root if the system permits user namespaces, otherwise root. Everything a cell makes (links, qdiscs, sysctls,
mounts, processes) is inside the namespaces and vanishes when that child ends, however it ends.
"""

from __future__ import annotations

import os
import platform
from dataclasses import replace
from pathlib import Path

from ..core.errors import CellError
from ..core.link_types import Link, LinkImpairment
from ..core.scratch import scratch
from ..core.types import Cell, GuestKernel, Node, Problem
from ..doctor.host import namespaces, netem
from ..store.console import console_tail
from ..store.init_records import End
from ..store.ndjson import last
from ..store.run_dir import CellDir
from ..testbed.compile import compile_cell
from ..testbed.readback import verify
from .cell_verdict import records_left
from .host_load import SteadyClock
from .privileges import User, may_load_programs
from .sandbox import SandboxBackend
from .virtual import WALL_CLOCK, newer_needed

LAUNCHER = "bin/netns-exec"


class NetnsBackend(SandboxBackend):
    """Namespaces on the host's kernel. root: as this machine's root, without a user namespace."""

    name = "netns"
    clock = replace(WALL_CLOCK, sandbox="namespaces")

    def __init__(self, apps: Path, *, root: bool = False) -> None:
        super().__init__(apps)
        self.root = root
        if root:
            self.user = None

    def command(self, cell: Cell, directory: CellDir) -> list[str]:
        """netns-exec, which holds the namespaces."""
        return self._launch(directory.root, as_root=self._as_root(cell))

    def hand_over(self, cell: Cell, directory: CellDir, programs: list[Path]) -> User | None:
        """Nobody takes over the directory of a cell that needs root."""
        return None if self._as_root(cell) else super().hand_over(cell, directory, programs)

    def _as_root(self, cell: Cell) -> bool:
        """True if this machine's root runs the cell: always, or for its packet programs."""
        return self.root or (may_load_programs() and self._has_packet_programs(cell))

    def _has_packet_programs(self, cell: Cell) -> bool:
        return any(step.verb == "bpf" for step in compile_cell(cell, self.clock).steps)

    def refuses(self, cell: Cell) -> str:
        """Refuses tracepoints, which belong to the whole machine and not to a network namespace, and packet programs
        without this machine's root.
        """
        own = GuestKernel(platform.release(), "")
        if newer := newer_needed(cell, own.numbers):
            return f"{newer}, which this machine's Linux {own.release} does not have; use --backend virtual and 7.3"
        if not may_load_programs() and self._has_packet_programs(cell):
            return (
                "bit errors, rules for single packets, longer_than and traces of opportunities need eBPF, which only "
                "this machine's root may load (CAP_BPF and CAP_NET_ADMIN, in no user namespace); use --backend virtual "
                "or guest"
            )
        traced = [flow.name for flow in cell.flows if flow.sender_options.get("tracepoints")]
        return super().refuses(cell) or (
            f"flow {traced[0]}: tracepoints are the whole machine's, and its root's, to switch on; "
            "use --backend virtual or guest, or leave tracepoints out"
            if traced
            else ""
        )

    def _launch(self, directory: Path, *, as_root: bool) -> list[str]:
        arguments = [str(self.apps / LAUNCHER), "--dir", str(directory), "--parent", str(os.getpid())]
        return [*arguments, "--root"] if as_root else arguments

    def check(self) -> list[Problem]:
        """Set up and read back a link with delay, rate and queue, as for a cell; nothing is sent."""
        needed = (LAUNCHER, *(file.path for file in self.files_of(PROBE)))
        if not all((self.apps / path).is_file() for path in needed):
            return [Problem("the programs are not built", "make setup")]
        compiled = compile_cell(PROBE, self.clock)
        with scratch("netwarp-probe-") as place:
            place.chmod(0o711)  # whoever the sandbox is has to get at its own directory
            directory = CellDir(place / "cell")
            self.prepare(directory, PROBE, compiled)
            user = self.hand_over(PROBE, directory, [])
            try:
                ended = self._boot(PROBE, directory, [] if user is None else user.arguments, SteadyClock())
            except CellError as error:
                return [_no_end(str(error))]
            records = records_left(directory.init_log)
            tails = (console_tail(file, 1) for file in (directory.log, directory.console))
            output = next((tail[0] for tail in tails if tail), ended.how)
        end = last(records, End)
        if end is None:
            return [_no_end(output)]
        if end.reason != "completed":
            return [_refused(str(end.message), compiled.steps[(end.step or 2) - 2].command)]
        return [
            Problem(f"{check.check}: {check.detail}", "use --backend virtual")
            for check in verify(compiled, records)[0]
            if not check.ok
        ]


def _no_end(output: str) -> Problem:
    others = "use --backend virtual or guest"
    if "namespaces" in output:
        what = output.removeprefix("netns-exec: ").partition(";")[0]
        return Problem(what, "; or ".join(filter(None, (namespaces().remedy, others))))
    remedy = "set TMPDIR to a directory that this user may write to and that is not mounted noexec"
    return Problem(f"a link cannot be tried ({output})", f"{remedy}; or {others}")


def _refused(message: str, step: str) -> Problem:
    if "netem" in step:
        return Problem(
            f"this kernel has no netem ({message})",
            f"{netem().remedy or 'modprobe sch_netem as root'}; or use --backend virtual or guest",
        )
    return Problem(f"this kernel refuses `{step}` ({message})", "use --backend virtual")


def netns_backend(apps: Path) -> tuple[NetnsBackend, list[Problem]]:
    """The back end with user namespaces, or as root if only that works; and the problems if neither does."""
    user = NetnsBackend(apps)
    problems = user.check()
    if problems and os.geteuid() == 0:
        root = NetnsBackend(apps, root=True)
        problems = root.check()
        return root, problems
    return user, problems


_SHAPE = LinkImpairment(one_way_delay_ns=1_000_000, rate_bit_s=10_000_000, queue_packets=10)
PROBE = Cell(
    spec="probe", experiment="probe", factors={}, repetition=0, seed=1, duration_ns=0,
    nodes=(Node("a", "host"), Node("b", "host")), links=(Link("p1", "a", "b", _SHAPE, _SHAPE),),
    flows=(), timeline=(), captures=(), random=False,
)  # fmt: skip
"""Two hosts and a shaped link."""
