"""One cell on the connected machines: set up everywhere, one T0 for all, until all have ended.

The lines of other machines become comments in a machine's steps: a step keeps its number everywhere, so that the
records of all of them are read as those of one cell.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from ...core.types import Cell
from ...testbed.compile import T0_FILE, Clock, Compiled
from ...testbed.steps import HEADER, Step
from ..sandbox import STALL_WALL_S
from .commands import LinkCommands, Played
from .connection import Event, Events, MachineLink, Watch
from .held_machines import checked, on_each, put_cell
from .placement import Placement

OVER_FILE = "over"
LEAD_NS = 300_000_000
"""For telling every machine when T0 is."""
AFTER_S = 60.0


@dataclass(frozen=True, slots=True)
class CellRun:
    """A cell that has run. t0_ns: on the controller's clock; 0 where a machine ended before. offsets: of each machine's
    clock, before and after, with what they may be wrong by. commands: those of the user's, as they ran.
    """

    t0_ns: int
    offsets: Mapping[str, list[tuple[int, int]]]
    commands: tuple[Played, ...] = ()


def run_on(
    connections: Mapping[str, MachineLink],
    events: Events,
    cell: Cell,
    compiled: Compiled,
    placed: Placement,
    clock: Clock,
    token: str,
    programs: Mapping[str, Path],
    commands: LinkCommands,
    progress: Callable[[float], None],
) -> CellRun:
    """Run it. Raises MachineError: a machine has gone, or refuses, or says nothing for too long."""
    here = {name: placed.namespaces(name, compiled.layout) for name in connections}
    flows = {name: flows_of(compiled, here[name]) for name in connections}

    def prepare(name: str) -> None:
        put_cell(connections[name], token, machine_text(compiled, here[name]), programs)
        for path, data in compiled.files.items():
            connections[name].put(path, data)

    def start(name: str) -> Event:
        return connections[name].ask("start", interfaces=devices_of(compiled, here[name]), flows=flows[name])

    checked(on_each(connections, prepare))
    checked(on_each(connections, start))
    watch = Watch(events, progress)
    if not watch.until("waiting", set(connections), clock.setup_ns / 1e9):
        return CellRun(0, {name: [(0, 0)] for name in connections})  # a machine has ended: its record says why
    offsets = {name: [connections[name].clock()] for name in connections}
    t0_ns = time.time_ns() + LEAD_NS + (clock.t0_after_ready_ns or 0)
    for name, connection in connections.items():
        connection.put(T0_FILE, f"{t0_ns + offsets[name][0][0]}\n".encode())
    with commands.play(cell, t0_ns) as played:
        waited = {name for name in connections if flows[name]}
        watch.until("flows over", waited, cell.duration_ns / 1e9 + AFTER_S + STALL_WALL_S)
        for name, connection in connections.items():
            if name not in watch.ended:
                connection.put(OVER_FILE, b"\n")
        watch.until("ended", set(connections), AFTER_S)
    for name, connection in connections.items():
        offsets[name].append(connection.clock())
    return CellRun(t0_ns, offsets, tuple(played))


def machine_text(compiled: Compiled, here: AbstractSet[int]) -> str:
    """steps.txt for the machine that has the namespaces `here`."""
    lines = [HEADER]
    owners = _owners(compiled)
    for item in compiled.steps:
        namespace = _namespace(item, owners)
        lines.append(item.line() if namespace is None or namespace in here else f"# of another machine: {item.verb}")
    return "\n".join(lines) + "\n"


def devices_of(compiled: Compiled, here: AbstractSet[int]) -> tuple[str, ...]:
    """The machine's interfaces that its namespaces adopt."""
    interfaces = compiled.layout.interfaces()
    return tuple(interface.name for interface in interfaces if interface.is_device and interface.namespace in here)


def flows_of(compiled: Compiled, here: AbstractSet[int]) -> tuple[str, ...]:
    """The ids of the processes there that the end of the cell waits for."""
    spawned = [dict(item.fields) for item in compiled.steps if item.verb == "spawn"]
    return tuple(values["id"] for values in spawned if values.get("flow") == "1" and int(values["ns"]) in here)


def _owners(compiled: Compiled) -> dict[str, int]:
    """Namespace of each process by its id, and of each packet program by its number."""
    owners = {str(program.index): program.interface.namespace for program in compiled.programs}
    spawned = [dict(item.fields) for item in compiled.steps if item.verb == "spawn"]
    return owners | {values["id"]: int(values["ns"]) for values in spawned}


def _namespace(item: Step, owners: dict[str, int]) -> int | None:
    values = dict(item.fields)
    if item.verb == "ns":
        return int(values["index"])
    if "ns" in values:
        return int(values["ns"])
    owner = values.get("id", values.get("index"))
    return None if owner is None else owners[owner]
