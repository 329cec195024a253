"""Each cell on machines of an inventory: the same cell-init on each, in namespaces that hold the cell's interfaces.

A machine's other interfaces, its addresses and its routes are never touched. Whatever a cell makes is in namespaces of
one process there, which ends with the connection; then the agent gives the interfaces back as they were.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import platform
import queue
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from ...core.errors import CellError
from ...core.scratch import scratch
from ...core.types import Cell, Check, Problem
from ...store.run_dir import CellDir
from ...testbed.compile import Clock, Compiled, compile_cell
from ...testbed.layout import Devices, NetworkDevice
from ...testbed.machines import devices_of, flows_of, machine_text
from ...testbed.readback import verify
from ...testbed.steps import to_text
from ..base import Interrupted
from ..cell_verdict import records_left
from ..host_load import SteadyClock
from ..netns import PROBE
from ..sandbox import STALL_WALL_S, SandboxBackend
from ..virtual import WALL_LATENESS_NS, WALL_T0_AFTER_READY_NS, WALL_TICK_NS
from .collect import clock_check, merge
from .connection import GONE, Connection, Event, MachineError
from .inventory import Inventory
from .placement import Placement, place

T0_FILE, OVER_FILE = "t0", "over"
PROGRAMS = {"init": "bin/cell-init", "bin/netns-exec": "bin/netns-exec"}
APPS = {"bin/sender": "bin/sender", "bin/receiver": "bin/receiver"}
"""File in the cell's directory on a machine -> file that is built here."""
ROOM_BYTES = 100_000_000
LEAD_NS = 300_000_000
"""For telling every machine when T0 is."""
AFTER_S = 60.0
T = TypeVar("T")


class HostsBackend(SandboxBackend):
    """Machines of an inventory."""

    name = "hosts"
    clock = Clock(
        sandbox="namespaces", t0_after_ready_ns=WALL_T0_AFTER_READY_NS, t0_file=T0_FILE, over_file=OVER_FILE,
        tick_ns=WALL_TICK_NS, late_ns=WALL_LATENESS_NS,
    )  # fmt: skip
    lateness_ns = WALL_LATENESS_NS
    on_this_machine = False
    files = ()

    def __init__(self, apps: Path, inventory: Inventory) -> None:
        super().__init__(apps, problems=self._check)
        self.user = None
        self.inventory = inventory
        self.token = secrets.token_hex(8)
        self.interfaces: dict[str, dict[str, dict[str, Any]]] = {}
        """Machine -> interface -> what its agent says of it."""
        self.kernels: dict[str, tuple[str, str, str]] = {}
        """Machine -> (release, version, processor)."""
        self.left: list[str] = []
        """What a killed run had left and could not be put back."""
        self._leases: list[Connection] = []
        self._owner = os.getpid()
        self._connections: list[Connection] = []
        self._measured: dict[str, object] = {}
        self._clock_check: Check | None = None

    # what a cell needs

    def placement(self, cell: Cell) -> Placement:
        """Where its namespaces are."""
        return place(cell, self.inventory)

    def compile(self, cell: Cell) -> Compiled:
        """With the machines' interfaces in place of veths; without, where the cell does not fit the inventory."""
        placed = self.placement(cell)
        return compile_cell(cell, self.clock, self._secret, {} if placed.lacks else self._devices(placed))

    def refuses(self, cell: Cell) -> str:
        """What the inventory lacks for it."""
        programs = [flow.name for flow in cell.flows if flow.program is not None]
        if programs:
            return f"flow {programs[0]}: programs of the user's own are not brought to machines; use --backend guest"
        if any(flow.sender_options.get("tracepoints") for flow in cell.flows):
            return "tracepoints are the whole machine's to switch on; use --backend virtual or guest"
        lacks = self.placement(cell).lacks
        return f"the inventory lacks something: {lacks[0]}" if lacks else super().refuses(cell)

    def command(self, cell: Cell, directory: CellDir) -> list[str]:
        """No program of this machine."""
        raise NotImplementedError

    def _devices(self, placed: Placement) -> Devices:
        return {
            end: NetworkDevice(interface, str(self.interfaces[machine][interface]["mac"]))
            for end, (machine, interface) in placed.ends.items()
        }

    # before anything runs

    def _check(self) -> list[Problem]:
        """Take every machine for this run, and look whether cells can run there. Nothing is changed."""
        missing = [file for file in (*PROGRAMS.values(), *APPS.values()) if not (self.apps / file).is_file()]
        if missing:
            return [Problem(f"the programs are not built ({', '.join(missing)})", "make setup")]
        problems: list[Problem] = []
        for result in self._on_all(self._lease):
            problems += [result.problem] if isinstance(result, MachineError) else result
        versions = {kernel[2] for kernel in self.kernels.values()}
        if versions - {platform.machine()}:
            problems.append(Problem(f"machines are {', '.join(sorted(versions))}", "use x86-64 machines"))
        if not problems:
            for result in self._on_all(self._probe):
                problems += [result.problem] if isinstance(result, MachineError) else result
        if problems:
            self._release()
        return problems

    def _lease(self, name: str) -> list[Problem]:
        machine = self.inventory.machines[name]
        connection = Connection(machine)
        self._leases.append(connection)
        hello = connection.hello
        self.kernels[name] = (hello["kernel"], hello["version"], hello["machine"])
        who = f"{getpass.getuser()} on {platform.node()}, process {os.getpid()}, since {time.strftime('%F %T %Z')}"
        self.left += connection.ask("lease", token=self.token, who=who)["left"]
        known = connection.ask(
            "check", interfaces=sorted(machine.cables), directory=machine.directory, room_bytes=ROOM_BYTES
        )
        self.interfaces[name] = known["interfaces"]
        return [Problem(f"machine {name}: {what}", remedy) for what, remedy in known["problems"]]

    def _probe(self, name: str) -> list[Problem]:
        """Two hosts and a shaped link in namespaces there, set up and read back; nothing is sent."""
        compiled = compile_cell(PROBE, Clock(sandbox="namespaces", t0_after_ready_ns=1))
        events: queue.SimpleQueue[tuple[str, Event]] = queue.SimpleQueue()
        connection = Connection(self.inventory.machines[name], events)
        try:
            self._prepare(connection, to_text(compiled.steps), {})
            connection.ask("start", interfaces=[], flows=[])
            while (event := events.get(timeout=AFTER_S)[1]).get("event") not in ("ended", GONE):
                pass
            with scratch("netwarp-machine-") as there:
                (there / "cell").mkdir()
                left = self._fetch(connection, there / "cell")
                records = records_left(CellDir(left).init_log)
                console = (left / "console.txt").read_text() if (left / "console.txt").exists() else ""
        except queue.Empty:
            return [Problem(f"machine {name}: a link that is tried there does not end", "look at its load")]
        finally:
            connection.close()
        end = next((record for record in reversed(records) if record.get("record") == "end"), None)
        if end is None:
            said = (console.strip().splitlines() or [f"{event}"])[-1]
            return [Problem(f"machine {name}: cell-init cannot run there ({said})", "it needs root and Linux 5.13")]
        if end["reason"] != "completed":
            step = compiled.steps[(end["step"] or 2) - 2]
            remedy = "modprobe sch_netem (linux-modules-extra on cloud kernels)" if "netem" in step.command else ""
            text = f"machine {name}: its kernel refuses `{step.command or step.verb}` ({end['message']})"
            return [Problem(text, remedy or "boot a newer kernel")]
        return [
            Problem(f"machine {name}: {check.check}: {check.detail}", "boot another kernel")
            for check in verify(compiled, records)[0]
            if not check.ok
        ]

    # a cell

    def _boot(self, cell: Cell, directory: CellDir, more: list[str], steady: SteadyClock) -> str:
        """Run the cell on its machines, and leave in its directory what a sandbox of this machine would."""
        placed = self.placement(cell)
        compiled = self.compile(cell)
        names = [name for name in self.inventory.machines if name in placed.machine_of.values()]
        events: queue.SimpleQueue[tuple[str, Event]] = queue.SimpleQueue()
        connections: dict[str, Connection] = {}
        with self._lock:
            if self._closed.is_set():
                raise Interrupted
        try:
            with scratch("netwarp-machines-") as there:
                try:
                    results = self._on(names, lambda n: self._connect(n, events))
                    connections = {c.machine.name: c for c in results if isinstance(c, Connection)}
                    _checked(results)
                    offsets = self._play(cell, compiled, placed, connections, events)
                    left = {}
                    for name, connection in connections.items():
                        (there / name).mkdir()
                        left[name] = self._fetch(connection, there / name)
                finally:
                    self._finish_machines(connections)
                self._measured, self._clock_check = clock_check(offsets, self.lateness_ns)
                self._measured |= {"namespaces": dict(placed.machine_of), "notes": list(placed.notes)}
                silent = merge(directory, left, self._t0_ns)
        except MachineError:
            if self._closed.is_set():
                raise Interrupted from None
            raise
        if self._closed.is_set():
            raise Interrupted
        return f"no end record of {', '.join(silent)}" if silent else "ended"

    def _connect(self, name: str, events: queue.SimpleQueue[tuple[str, Event]]) -> Connection:
        connection = Connection(self.inventory.machines[name], events)
        with self._lock:
            self._connections.append(connection)
            if self._closed.is_set():
                connection.abandon()
        return connection

    def _prepare(self, connection: Connection, steps: str, more: Mapping[str, str]) -> None:
        connection.ask("cell", token=self.token, directory=connection.machine.directory)
        for path, built in (PROGRAMS | dict(more)).items():
            connection.put(path, (self.apps / built).read_bytes(), executable=True)
        connection.put("steps.txt", steps.encode())

    def _play(
        self,
        cell: Cell,
        compiled: Compiled,
        placed: Placement,
        connections: Mapping[str, Connection],
        events: queue.SimpleQueue[tuple[str, Event]],
    ) -> dict[str, list[tuple[int, int]]]:
        """Set up everywhere, T0 for all, until all have ended; the clocks' offsets before and after."""
        here = {name: placed.namespaces(name, compiled.layout) for name in connections}
        flows = {name: flows_of(compiled, here[name]) for name in connections}

        def start(name: str) -> Event:
            return connections[name].ask("start", interfaces=devices_of(compiled, here[name]), flows=flows[name])

        _checked(self._on(connections, lambda n: self._prepare(connections[n], machine_text(compiled, here[n]), APPS)))
        _checked(self._on(connections, start))
        watch = _Watch(events, self._progress_of(cell))
        if not watch.until("waiting", set(connections), self.clock.setup_ns / 1e9):
            return {name: [(0, 0)] for name in connections}  # a machine has ended: its record says why
        offsets = {name: [connections[name].clock()] for name in connections}
        self._t0_ns = time.time_ns() + LEAD_NS + (self.clock.t0_after_ready_ns or 0)
        for name, connection in connections.items():
            connection.put(T0_FILE, f"{self._t0_ns + offsets[name][0][0]}\n".encode())
        waited = {name for name in connections if flows[name]}
        last_s = cell.duration_ns / 1e9 + AFTER_S + STALL_WALL_S
        watch.until("flows over", waited, last_s)
        for name, connection in connections.items():
            if name not in watch.ended:
                connection.put(OVER_FILE, b"\n")
        watch.until("ended", set(connections), AFTER_S)
        for name, connection in connections.items():
            offsets[name].append(connection.clock())
        return offsets

    _t0_ns = 0

    def _progress_of(self, cell: Cell) -> Callable[[float], None]:
        return lambda seconds: self.progress(cell.id, seconds)

    def _fetch(self, connection: Connection, to: Path) -> Path:
        for path in connection.ask("files")["sizes"]:
            target = to / path
            target.parent.mkdir(parents=True, exist_ok=True)
            connection.get(path, target)
        for name in ("capture", "apps"):
            (to / name).mkdir(exist_ok=True)
        return to

    def _finish_machines(self, connections: Mapping[str, Connection]) -> None:
        """Every machine as it was; a machine that cannot be put back ends the cell with that as its reason."""

        def finish(name: str) -> list[str]:
            connection = connections[name]
            try:
                return [f"machine {name}: {text}" for text in connection.ask("finish")["left"]]
            finally:
                connection.close()

        results = self._on(connections, finish)
        with self._lock:
            self._connections = [each for each in self._connections if each not in connections.values()]
        wrong = [text for result in results if isinstance(result, list) for text in result]
        if wrong:
            raise CellError("; ".join(wrong))

    def clock_check(self, steady: SteadyClock) -> Check | None:
        """Whether the machines' clocks agree well enough."""
        return self._clock_check

    def machines(self) -> dict[str, object] | None:
        """Kernels, interfaces, where the cell's namespaces were, and the clocks."""
        known = {
            name: {"kernel": kernel[0], "kernel_version": kernel[1], "interfaces": self.interfaces[name]}
            for name, kernel in self.kernels.items()
        }
        return {"machines": known, **self._measured}

    # the end

    def close(self) -> None:
        """End every connection: the agents clean up."""
        super().close()
        with self._lock:
            for connection in self._connections:
                connection.abandon()
        self._release()

    def _release(self) -> None:
        if os.getpid() != self._owner:
            return  # a worker: the machines are its parent's
        leases, self._leases = self._leases, []
        for lease in leases:
            with contextlib.suppress(MachineError):
                lease.close()

    # all machines at once

    def _on_all(self, task: Callable[[str], T]) -> list[T | MachineError]:
        return self._on(self.inventory.machines, task)

    def _on(self, names: Mapping[str, object] | Sequence[str], task: Callable[[str], T]) -> list[T | MachineError]:
        def attempt(name: str) -> T | MachineError:
            try:
                return task(name)
            except MachineError as error:
                return error

        with ThreadPoolExecutor(max(1, len(names))) as pool:
            return list(pool.map(attempt, names))


class _Watch:
    """The events of a cell's machines."""

    def __init__(self, events: queue.SimpleQueue[tuple[str, Event]], progress: Callable[[float], None]) -> None:
        self._events = events
        self._progress = progress
        self._seen: dict[str, set[str]] = {}
        self.ended: set[str] = set()

    def until(self, what: str, machines: set[str], limit_s: float) -> bool:
        """Wait for an event of each of them; False where a machine has ended before. Raises MachineError: one has gone,
        or says nothing for too long."""
        deadline = time.monotonic() + limit_s
        while True:
            seen = self._seen.setdefault(what, set())
            if machines <= seen | self.ended:
                return machines <= seen or what == "ended"
            if what == "waiting" and self.ended:
                return False
            for name, event in self._take(deadline, what, machines - seen):
                if event["event"] == GONE:
                    raise MachineError(name, "the connection ended in the middle of the cell", "is it up?")
                if event["event"] == "time":
                    self._progress(event["seconds"])
                if event["event"] == "ended":
                    self.ended.add(name)
                self._seen.setdefault(event["event"], set()).add(name)

    def _take(self, deadline: float, what: str, missing: set[str]) -> Iterator[tuple[str, Event]]:
        try:
            yield self._events.get(timeout=max(0.01, deadline - time.monotonic()))
        except queue.Empty:
            text = f"`{what}` did not come"
            raise MachineError(", ".join(sorted(missing)), text, "is it overloaded?") from None


def _checked(results: Sequence[object]) -> None:
    for result in results:
        if isinstance(result, MachineError):
            raise result
