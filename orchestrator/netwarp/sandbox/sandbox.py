"""Runs one cell in a sandbox of this machine: prepares its directory, watches it, judges it, and keeps its files.

A sandbox is one process. Its working directory is the cell's partial directory, and cell-init carries out steps.txt in
it.
"""

from __future__ import annotations

import abc
import contextlib
import errno
import logging
import os
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ..core.built_programs import CELL_FILES, BuiltFile
from ..core.errors import CellError, DiskFull, StoreError
from ..core.frozen import to_json
from ..core.inside import inside
from ..core.numbers import given
from ..core.types import Cell, CellOutcome, Check, Outcome, Problem
from ..store import init_records as init
from ..store.compressed import compress
from ..store.console import console_tail
from ..store.environment import Environment, HostLoad, Kernel
from ..store.ndjson import last, of_kind
from ..store.run_dir import NO_ROOM, CellDir, RunDir, no_room, write_atomic, write_json
from ..testbed.compile import Clock, Compiled, compile_cell
from ..testbed.readback import verify
from ..testbed.steps import to_text
from .base import Interrupted
from .capture_slots import CaptureSlots
from .cell_verdict import (
    Verdict,
    check_captures,
    check_memory,
    check_ticks,
    check_times,
    judge,
    records_left,
)
from .children import Children, NoMoreChildren, until_end
from .host_load import HostState, SteadyClock, host_state
from .privileges import User, hand_over, take_back, unprivileged
from .spinning import Spinning, cpu_ticks, spinning_program
from .user_programs import arch_used, check_spinning, install_arch, missing_arch, missing_program, programs_used

log = logging.getLogger(__name__)

STALL_WALL_S = 120.0
"""A sandbox whose clock does not reach the next second within this time has hung. A busy virtual one needs well under
10 s.
"""
FULL_BYTES = 1 << 16
WOULD_BE_ROOT = (
    "it would run as root, which nothing from elsewhere does: the user that root becomes cannot reach its directory, "
    "the kernel, the guest's memory or a program of it; call netwarp as an ordinary user, or set TMPDIR to a directory "
    "that all may pass"
)
COMPRESSED = ("capture/*.pcap", "apps/*.ndjson", "init.ndjson", "counters.bin")
PROGRAM_FILES = ("init", "bin", "seed.so", ".uml", "t0")
Progress = Callable[[str, float], None]


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a sandbox: that of its process in words, and the length of each capture that did not become a file."""

    how: str
    lengths: Mapping[str, int] = field(default_factory=dict)


class SandboxBackend(abc.ABC):
    """Runs cells in sandboxes of one kind. `apps` is the directory of the built programs (build/)."""

    name: str
    clock: Clock
    wall_clock = True
    """True if the host's load can make a cell late."""
    on_this_machine = True
    """True if cells run here: it is this machine's load that counts, and programs are put into a cell's directory."""
    any_kernel = False
    """True if a cell can have a kernel of its own."""
    never_root = False
    """True for cells of a stranger's: one that would run as root is refused."""
    files: tuple[BuiltFile, ...] = tuple(file for file in CELL_FILES if not file.guest_only)

    def __init__(self, apps: Path) -> None:
        self.apps = apps
        # in virtual time equal cells have equal captures; elsewhere a payload belongs to one run
        self._secret = os.urandom(16) if self.wall_clock else b""
        self.progress: Progress = lambda cell_id, virtual_s: None
        self.user = unprivileged()
        self.children = Children()

    @abc.abstractmethod
    def command(self, cell: Cell, directory: CellDir) -> list[str]:
        """The program that becomes the cell's sandbox, as the child of this process. Raises CellError."""

    def compile(self, cell: Cell) -> Compiled:
        """The cell's steps. Raises SpecError."""
        return compile_cell(cell, self.clock, self._secret)

    def capture_slots(self, cell: Cell, directory: CellDir) -> CaptureSlots | None:
        """What takes the cell's captures while its sandbox runs; None: the sandbox writes them as files."""
        return None

    def clock_check(self, steady: SteadyClock) -> Check | None:
        """Checks that the clock of the cell's times was steady; None: nobody can set it."""
        # the host's own; a guest goes by its host's CLOCK_MONOTONIC
        return steady.check() if self.clock.sandbox == "namespaces" else None

    def machines(self) -> dict[str, object] | None:
        """Of the cell that ran last, what is known of the machines it ran on, where they are not this one."""
        return None

    @abc.abstractmethod
    def check(self) -> list[Problem]:
        """The problems that prevent its sandboxes from running here."""

    def refuses(self, cell: Cell) -> str:
        """The reason why this back end cannot run this cell, in one sentence with the remedy; "" if it can."""
        if not self.any_kernel and cell.kernel is not msgspec.UNSET:
            return f"its kernel is a guest's, Linux {cell.kernel.release}: use --backend virtual or guest"
        return missing_program(cell) or missing_arch(cell, self.apps)

    def check_place(self, directory: Path) -> None:  # noqa: B027  most see all that the host sees
        """Raise SpecError if its sandboxes would not see a cell in this directory."""

    def hand_over(self, cell: Cell, directory: CellDir, programs: list[Path]) -> User | None:
        """Give the cell's directory to the user who is to run it; None if root stays root."""
        return hand_over(directory.root, self.user, programs)

    def close(self) -> None:
        """Kill every sandbox at once; their cells are dropped."""
        self.children.stop()

    def run_cell(self, cell: Cell, run: RunDir) -> CellOutcome:
        """Start a sandbox, wait for its end, judge it and keep its files. See Backend.run_cell."""
        started = time.monotonic()
        directory = run.partial_cell(cell.id)
        try:
            directory.root.remove_tree(ignore_errors=True)
            compiled = self.compile(cell)
            self.prepare(directory, cell, compiled)
            try:
                if refused := self.refuses(cell):  # which may ask machines, and get no answer
                    return self._finish(cell, directory, run, Verdict(Outcome.UNSUPPORTED, refused), started)
                before, steady = host_state(), SteadyClock()
                programs = [
                    Path(program["path"]) for program in programs_used(cell).values() if program["path"] is not None
                ]
                owner = directory.root.stat()
                user = self.hand_over(cell, directory, programs)
                if self.never_root and user is None and os.geteuid() == 0:
                    raise CellError(WOULD_BE_ROOT)
                try:
                    ended = self._boot(cell, directory, [] if user is None else user.arguments, steady)
                finally:
                    if user is not None:
                        take_back(directory.root, owner)
                verdict = self._settle(cell, directory, compiled, ended, before, steady)
            except CellError as error:
                verdict = Verdict(Outcome.FAILED, str(error))
            return self._finish(cell, directory, run, verdict, started)
        except (OSError, StoreError) as error:
            return self._give_up(cell, run, error, started)
        finally:
            directory.root.remove_tree(ignore_errors=True)

    def _give_up(self, cell: Cell, run: RunDir, error: Exception, started: float) -> CellOutcome:
        """Called when a file of the cell could not be written: remove its files, keep the reason as its outcome.

        Raises DiskFull if the disk is full: the next cell could not be written either.
        """
        directory = run.partial_cell(cell.id)
        # names only: tables of equal runs hold no path of a machine
        reason = str(error).replace(f"{directory.root}/", "")
        if isinstance(error, OSError) and error.strerror:
            reason = error.strerror + (f" ({Path(os.fsdecode(error.filename)).name})" if error.filename else "")
        reason = f"its files could not be written: {reason}"
        outcome = CellOutcome(Outcome.FAILED, reason, None, round(time.monotonic() - started, 3))
        run.keep_outcome(cell, outcome)
        if no_room(error):
            raise DiskFull(f"{run.root}: {reason} (cell {cell.id})") from error
        return outcome

    def prepare(self, directory: CellDir, cell: Cell, compiled: Compiled) -> None:
        """Fill a cell's new directory: programs, cell.json, steps.txt."""
        for path in (directory.capture, directory.apps, directory.root / "bin"):
            path.mkdir(parents=True)
        if self.on_this_machine:
            for file in self.files_of(cell):
                (directory.root / file.in_cell).write_bytes((self.apps / file.path).read_bytes())
                (directory.root / file.in_cell).chmod(0o755)
            install_arch(cell, self.apps, directory.root)
        directory.cell.write_bytes(to_json(cell) + b"\n")
        directory.steps.write_text(to_text(compiled.steps))
        for name, data in compiled.files.items():
            (directory.root / name).parent.mkdir(exist_ok=True)
            (directory.root / name).write_bytes(data)

    def files_of(self, cell: Cell) -> list[BuiltFile]:
        """The programs that its sandbox needs."""
        agents = any(node.agent is not None for node in cell.nodes)
        pages = any(flow.is_page for flow in cell.flows)
        programs = any(flow.program is not None for flow in cell.flows)
        return [
            file
            for file in self.files
            if (agents or not file.agents_only)
            and (pages or not file.pages_only)
            and (programs or not file.programs_only)
        ]

    def _boot(self, cell: Cell, directory: CellDir, more: list[str], steady: SteadyClock) -> Ended:
        """Run the sandbox to its end. Raises Interrupted, CellError (hang), OSError (captures cannot be written)."""
        arguments = [*self.command(cell, directory), *more]
        lengths: dict[str, int] = {}
        with contextlib.ExitStack() as stack:
            if (slots := self.capture_slots(cell, directory)) is not None:
                stack.callback(lambda: lengths.update(slots.finish()))
                arguments += ["--capture-slots", ":".join(map(str, slots.descriptors))]
            try:
                with self.children.running(arguments, directory.log, slots.descriptors if slots else ()) as sandbox:
                    hung = self._watch(cell, directory, sandbox, steady)
            except NoMoreChildren:
                raise Interrupted from None
        if self.children.stopped:
            raise Interrupted
        if hung:
            raise CellError(hung)
        status = sandbox.returncode
        return Ended(f"killed by signal {-status}" if status < 0 else f"exit status {status}", lengths)

    def _watch(self, cell: Cell, directory: CellDir, sandbox: subprocess.Popen[bytes], steady: SteadyClock) -> str:
        """Read the console's progress marks until the sandbox ends. Returns the reason why it was given up, or ""."""
        virtual_s, moved = -1.0, time.monotonic()
        used: dict[int, int] = {}
        for _ in until_end(sandbox):
            steady.look()
            now = last_mark(directory.console)
            if now is not None and now > virtual_s:
                virtual_s, moved, used = now, time.monotonic(), {}
                self.progress(cell.id, virtual_s)
            elif not used and time.monotonic() - moved > STALL_WALL_S / 2:
                used = cpu_ticks(sandbox.pid)
            elif time.monotonic() - moved > STALL_WALL_S:
                spins = None if self.wall_clock else spinning_program(sandbox.pid, used)
                return _stalled(virtual_s, spins)
        return ""

    def _settle(
        self, cell: Cell, directory: CellDir, compiled: Compiled, ended: Ended, before: HostState, steady: SteadyClock
    ) -> Verdict:
        """Judge what the sandbox left: its end, its apps, its captures, its read-backs."""
        records = records_left(directory.init_log)
        verdict = judge(cell, directory, records, ended.how)
        if verdict.outcome is not Outcome.COMPLETED and is_full(directory.root):
            # then cell-init's own words, its end record and the console may all be missing
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        try:
            checks, network = verify(compiled, records)
        except (ValueError, KeyError, IndexError) as error:
            checks, network = [Check("read-backs", False, f"cannot be decoded: {error}")], {}
        checks += check_captures(cell, directory, records, ended.lengths)
        checks += check_times(cell, directory, records, self.clock.late_ns)
        host = None
        if self.wall_clock:  # in virtual time the host plays no part, and equal cells have equal files
            ticks, late_ticks = check_ticks(records)
            checks += late_ticks
            if self.on_this_machine:
                host, late = host_state().since(before)
                host = msgspec.structs.replace(host, **ticks)
                checks += late
            elif ticks:
                host = msgspec.structs.replace(HostLoad(), **ticks)
        elif verdict.outcome is Outcome.COMPLETED:
            checks.append(check_memory(records))
            checks += check_spinning(cell, directory.root, self.clock.t0_realtime_ns or 0)
        clock = self.clock_check(steady)
        if clock is not None:
            checks.append(clock)
            if not clock.ok:  # whatever else came of it
                verdict = Verdict(Outcome.INVALID, f"clock: {clock.detail}")
        start = last(records, init.Start)
        environment = Environment(
            backend=self.name,
            kernel=Kernel(start.kernel, start.kernel_version, start.machine) if start else Kernel(None, None, None),
            network=network,
            programs=programs_used(cell) | arch_used(cell, self.apps) or None,
            host=host,
            machines=self.machines(),
            checks=tuple(checks),
        )
        write_json(directory.environment, environment)
        failed = [check for check in checks if not check.ok]
        unwritten = next((file for file in of_kind(records, init.Capture) if file.errno or file.fsync_errno), None)
        if unwritten is not None:
            number, where = unwritten.errno or unwritten.fsync_errno, unwritten.on
            if number in NO_ROOM and where is None:
                raise OSError(number, os.strerror(number), unwritten.file)
            file = unwritten.file if where is None else f"machine {where}: {unwritten.file}"
            verdict = Verdict(Outcome.FAILED, f"{file} could not be written: {os.strerror(number)}")
        if verdict.outcome is Outcome.COMPLETED and failed:
            more = f" (and {len(failed) - 1} more, see environment.json)" if len(failed) > 1 else ""
            verdict = Verdict(Outcome.INVALID, f"{failed[0].check}: {failed[0].detail}{more}")
        return verdict

    def remove_programs(self, directory: CellDir) -> None:
        """Remove the files that are needed only while the sandbox runs."""
        for name in PROGRAM_FILES:
            with contextlib.suppress(FileNotFoundError):
                (directory.root / name).remove_tree()

    def _finish(self, cell: Cell, directory: CellDir, run: RunDir, verdict: Verdict, started: float) -> CellOutcome:
        """Compress, clean, write the outcome, move into place."""
        end = last(records_left(directory.init_log, "end"), init.End)
        for name in COMPRESSED:
            for path in sorted(directory.root.glob(name)):
                if not path.is_symlink() and path.is_file():  # a program of the user's own may have left anything there
                    compress(path, sync=path.suffix == ".pcap")
        self.remove_programs(directory)
        outcome = CellOutcome(
            outcome=verdict.outcome,
            reason=verdict.reason,
            # a cell that ended while it was set up: before T0, after no second of its own
            virtual_s=None if end is None or end.t_ns is None else max(0.0, end.t_ns / 1e9),
            wall_s=round(time.monotonic() - started, 3),
            console_tail=() if verdict.outcome is Outcome.COMPLETED else console_tail(directory.console),
            host_load_1min=os.getloadavg()[0],
        )
        write_atomic(directory.outcome, to_json(outcome) + b"\n")
        run.install(cell.id)
        return outcome


def _stalled(virtual_s: float, spins: Spinning | None) -> str:
    """Why a cell was given up at a time from T0 (negative: before it). spins: the program that kept its CPU."""
    at = "before T0 + 1 s" if virtual_s < 0 else f"at T0 + {given(virtual_s)} s"
    why = f"no virtual second passed in {given(STALL_WALL_S)} s"
    if spins is None:
        return f"the sandbox hung {at}, or its links carry more than can be simulated: {why}"
    return (
        f"{spins.end}: {spins.file} spins {at}: {why}, in which it kept the guest's CPU; a program that waits has to"
        " sleep, or to read the clock by its C library (docs/limitations.md)"
    )


def is_full(place: Path) -> bool:
    """True if the file system has no space for one more small file."""
    state = os.statvfs(place)
    return state.f_bavail * state.f_frsize < FULL_BYTES


def last_mark(console: Path) -> float | None:
    """The last progress mark `@<seconds>` of a console."""
    try:
        with inside(console).open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 400))
            tail = file.read()
    except FileNotFoundError:
        return None
    for line in reversed(tail.split(b"\n")[:-1]):
        if line.startswith(b"@"):
            with contextlib.suppress(ValueError):
                return float(line[1:])
    return None
