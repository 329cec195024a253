"""Each cell on machines of an inventory: the same cell-init on each, in namespaces that hold the cell's interfaces.

A machine's other interfaces, its addresses and its routes are never touched. Whatever a cell makes is in namespaces of
one process there, which ends with the connection; then the agent gives the interfaces back as they were.
"""

from __future__ import annotations

import queue
import secrets
import threading
from dataclasses import asdict, replace
from pathlib import Path

import msgspec

from ...core.errors import CellError
from ...core.scratch import scratch
from ...core.types import Cell, Check, Problem
from ...store.run_dir import CellDir
from ...testbed.arguments import archs
from ...testbed.compile import T0_FILE, Compiled, compile_cell
from ...testbed.layout import Devices
from ...testbed.messages import Device
from ..base import Interrupted
from ..host_load import SteadyClock
from ..sandbox import Ended, SandboxBackend
from ..virtual import WALL_CLOCK
from .cell_run import OVER_FILE, CellRun, run_on
from .collect import clocks_of, merge
from .commands import LinkCommands
from .connection import Events, MachineError, MachineLink
from .held_machines import HeldMachines, checked, fetch, on_each
from .inventory import Inventory
from .placement import Placement, lacking, needs_of, place

LAUNCHER = {"init": "bin/cell-init", "bin/netns-exec": "bin/netns-exec"}
"""File in the cell's directory on a machine -> file that is built here."""


class HostsBackend(SandboxBackend):
    """Machines of an inventory."""

    name = "hosts"
    clock = replace(WALL_CLOCK, sandbox="namespaces", t0_file=T0_FILE, over_file=OVER_FILE)
    on_this_machine = False

    def __init__(self, apps: Path, inventory: Inventory) -> None:
        super().__init__(apps)
        self.user = None
        self.inventory = inventory
        self.commands = LinkCommands(inventory.commands, inventory.path.absolute().parent)
        self.token = secrets.token_hex(8)
        self.held = HeldMachines(inventory, self.token, {name: apps / file for name, file in LAUNCHER.items()})
        self._lock = threading.Lock()
        self._connections: list[MachineLink] = []
        self._measured: dict[str, object] = {}
        self._clock_check: Check | None = None

    # what a cell needs

    def compile(self, cell: Cell) -> Compiled:
        """With the machines' interfaces in place of veths; without, where the cell does not fit the inventory."""
        placed = place(cell, self.inventory)
        devices = {} if placed.lacks else self._devices(placed)
        return compile_cell(cell, self.clock, self._secret, devices, frozenset(self.commands.commands))

    def refuses(self, cell: Cell) -> str:
        """The reasons against it: parts that hosts cannot run, lacks of the inventory and of the kernels."""
        placed = place(cell, self.inventory)
        if refused := cannot_run(cell):
            return refused
        if placed.lacks:
            return f"the inventory lacks something: {placed.lacks[0]}"
        needs = needs_of(cell, self.compile(cell), placed)
        lacks = lacking(needs, self.held.absent(needs))
        return lacks[0] if lacks else ""

    def command(self, cell: Cell, directory: CellDir) -> list[str]:
        """No program of this machine."""
        raise NotImplementedError

    def _devices(self, placed: Placement) -> Devices:
        devices = {}
        for end, (machine, interface) in placed.ends.items():
            known = self.held.interfaces[machine][interface]
            devices[end] = Device(interface, int(known["ifindex"]), mac=str(known["mac"]))
        return devices

    def check(self) -> list[Problem]:
        """What is not built here, and what the machines lack; they are held from now on."""
        missing = [file for file in LAUNCHER.values() if not (self.apps / file).is_file()]
        missing += [file.path for file in self.files if not (self.apps / file.path).is_file()]
        if missing:
            return [Problem(f"the programs are not built ({', '.join(sorted(set(missing)))})", "make setup")]
        return self.held.take()

    # a cell

    def _boot(self, cell: Cell, directory: CellDir, more: list[str], steady: SteadyClock) -> Ended:
        """Run the cell on its machines, and leave in its directory what a sandbox of this machine would."""
        placed = place(cell, self.inventory)
        names = [name for name in self.inventory.machines if name in placed.machine_of.values()]
        events: Events = queue.SimpleQueue()
        connections: dict[str, MachineLink] = {}
        if self.children.stopped:
            raise Interrupted
        try:
            with scratch("netwarp-machines-") as there:
                reasons: list[str] = []
                try:
                    results = on_each(names, lambda name: self._connect(name, events))
                    connections = {each.machine.name: each for each in results if isinstance(each, MachineLink)}
                    checked(results)
                    ran = self._run(cell, placed, connections, events)
                    left = {}
                    for name, connection in connections.items():
                        (there / name).mkdir()
                        left[name] = fetch(connection, there / name)
                except CellError as error:
                    reasons.append(str(error))
                finally:
                    reasons += [text for text in self._finish_machines(connections) if text not in reasons]
                if reasons:
                    raise CellError("; ".join(reasons))
                clocks = clocks_of(ran, self.clock.late_ns)
                self._measured, self._clock_check = clocks.shown, clocks.check
                self._measured |= {"namespaces": dict(placed.machine_of), "notes": list(placed.notes)}
                self._measured |= {"commands": [asdict(each) for each in ran.commands]} if ran.commands else {}
                try:
                    silent = merge(directory, left, ran.t0_ns, clocks.error_ns, ran.commands)
                except (ArithmeticError, ValueError) as error:
                    raise CellError(f"what the machines left cannot be put together: {error}") from error
        except CellError:
            if self.children.stopped:  # then the machines are gone because we let them go
                raise Interrupted from None
            raise
        if self.children.stopped:
            raise Interrupted
        return Ended(f"no end record of {', '.join(silent)}" if silent else "ended")

    def _run(self, cell: Cell, placed: Placement, connections: dict[str, MachineLink], events: Events) -> CellRun:
        programs = dict(self.held.launcher)
        programs |= {file.in_cell: self.apps / file.path for file in self.files_of(cell)}
        return run_on(
            connections, events, cell, self.compile(cell), placed, self.clock, self.token, programs, self.commands,
            lambda seconds: self.progress(cell.id, seconds),
        )  # fmt: skip

    def _connect(self, name: str, events: Events) -> MachineLink:
        connection = MachineLink(self.inventory.machines[name], events)
        with self._lock:
            self._connections.append(connection)
            if self.children.stopped:
                connection.abandon()
        return connection

    def _finish_machines(self, connections: dict[str, MachineLink]) -> list[str]:
        """Every machine as it was; returns why the cell failed: what could not be put back, and who does not answer."""

        def finish(name: str) -> list[str]:
            connection = connections[name]
            try:
                if connection.ended:
                    return [f"machine {name}: whether it was put back is not known: the next run looks"]
                return [f"machine {name}: {text}" for text in connection.ask("finish")["left"]]
            finally:
                connection.close()

        results = on_each(connections, finish)
        with self._lock:
            self._connections = [each for each in self._connections if each not in connections.values()]
        return [text for result in results for text in ([str(result)] if isinstance(result, MachineError) else result)]

    def clock_check(self, steady: SteadyClock) -> Check | None:
        """Checks that the machines' clocks agree well enough."""
        return self._clock_check

    def machines(self) -> dict[str, object] | None:
        """Kernels, interfaces, where the cell's namespaces were, and the clocks."""
        known = {
            name: {"kernel": kernel[0], "kernel_version": kernel[1], "interfaces": self.held.interfaces[name]}
            for name, kernel in self.held.kernels.items()
        }
        return {"machines": known, **self._measured}

    def close(self) -> None:
        """End every connection: the agents clean up."""
        super().close()
        with self._lock:
            for connection in self._connections:
                connection.abandon()
        self.held.release()


def cannot_run(cell: Cell) -> str:
    """The reason why no inventory can run a cell; "" where one can."""
    programs = [flow.name for flow in cell.flows if flow.program is not None]
    if programs:
        return f"flow {programs[0]}: programs of the user's own are not brought to machines; use --backend guest"
    if switches := [node.name for node in cell.nodes if node.kind == "switch"]:
        return f"node {switches[0]}: a switch of metal cannot be verified; use --backend virtual, guest or netns"
    if any(flow.sender_options.get("tracepoints") for flow in cell.flows):
        return "tracepoints are the whole machine's to switch on; use --backend virtual or guest"
    if cell.kernel is not msgspec.UNSET:
        return f"its kernel is a guest's, Linux {cell.kernel.release}: use --backend virtual or guest"
    if foreign := archs(cell):
        return f"senders for {foreign[0]} run under an emulator, which is not brought to machines; use --backend guest"
    return ""
