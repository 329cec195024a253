"""One cell on the connected machines: set up everywhere, one T0 for all, until all have ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ...core.types import Cell
from ...testbed.compile import Clock, Compiled
from ...testbed.machines import devices_of, flows_of, machine_text
from ..sandbox import STALL_WALL_S
from .commands import LinkCommands, Played
from .connection import Event, Events, MachineLink, Watch
from .held_machines import checked, on_each, put_cell
from .placement import Placement

T0_FILE, OVER_FILE = "t0", "over"
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
