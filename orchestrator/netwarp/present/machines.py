"""The machines of a cell of the back end hosts: what ran where, and what their clocks are worth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.numbers import fixed
from ..core.units import counted
from ..store.environment import Environment
from ..store.run_dir import read_json
from .run_data import RunData


def machines_view(machines: Mapping[str, Any]) -> dict[str, Any]:
    """rows: a machine each, for a table. notes: sentences about the placement and the clocks."""
    clocks: Mapping[str, Mapping[str, int]] = machines.get("clocks", {})
    places: Mapping[str, str] = machines.get("namespaces", {})
    rows = []
    for name, machine in machines.get("machines", {}).items():
        clock = clocks.get(name)
        rows.append(
            {
                "machine": name,
                "kernel": machine.get("kernel", ""),
                "nodes and hops": ", ".join(node for node, where in places.items() if where == name) or "none",
                "interfaces": ", ".join(
                    f"{interface} ({facts.get('driver') or 'unknown driver'})"
                    for interface, facts in machine.get("interfaces", {}).items()
                ),
                "clock, against the controller's": "" if clock is None else _milliseconds(clock["offset_ns"]),
                "wrong by at most": "" if clock is None else _milliseconds(clock["bound_ns"]),
                "drift in the cell": "" if clock is None else _milliseconds(clock["drift_ns"]),
            }
        )
    return {"rows": rows, "notes": machine_notes(machines)}


def run_notes(data: RunData) -> Sequence[str]:
    """The same for a whole run, each note with the number of cells that it is true of; the clocks at their worst."""
    if data.manifest.backend != "hosts":
        return ()
    cells: Counter[str] = Counter()
    worst_ns = 0
    for result in data.cells:
        path = data.run.cell(result.id).environment
        machines = (read_json(path, Environment).machines if path.exists() else None) or {}
        worst_ns = max(worst_ns, machines.get("clock_error_ns", 0))
        cells.update(machine_notes({"notes": machines.get("notes", ())}))
    notes = [f"{counted(count, 'cell')}: {note}" for note, count in cells.most_common()]
    if worst_ns:
        notes.append(
            f"Times of two machines may be wrong against each other by at most {_milliseconds(worst_ns)}: "
            "a metric that needs more has no value."
        )
    return notes


def machine_notes(machines: Mapping[str, Any]) -> Sequence[str]:
    """Notes on the machines that a cell ran on, for a reader of its numbers."""
    notes = [f"{note[:1].upper()}{note[1:]}." for note in machines.get("notes", ())]
    if "clock_error_ns" in machines:
        error = _milliseconds(machines["clock_error_ns"])
        notes.append(
            f"Times of two machines may be wrong against each other by {error}: a metric that needs more has no value."
        )
    for command in machines.get("commands", ()):
        took = _milliseconds(command["ended_ns"] - command["began_ns"])
        notes.append(f"Link {command['link']} went {command['action']} by a command, which took {took}.")
    return notes


def _milliseconds(ns: int) -> str:
    return f"{fixed(ns / 1e6, 3)} ms"
