"""Compares an inventory with the needs of an experiment's cells; nothing is run, no machine is taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from ..core.types import Problem
from ..plan.types import Plan
from ..sandbox.hosts import (
    HostsBackend,
    InventoryFit,
    ask_machines,
    cannot_run,
    lacking,
    needs_of,
    place,
    read_inventory,
)
from ..testbed.compile import compile_cell


def fit(plan: Plan, inventory: str | Path, *, ask: bool = True) -> InventoryFit:
    """An inventory's lacks for a plan. ask: connect to its machines (where one cannot be reached, that is a problem
    of it). Raises SpecError, BackendUnavailable (no Ansible to read the inventory).
    """
    there = read_inventory(Path(inventory))
    lacks: Counter[str] = Counter()
    notes: Counter[str] = Counter()
    needs: dict[str, dict[str, None]] = {}
    of_cell: list[dict[str, list[str]]] = []
    fitting = 0
    for cell in plan.cells:
        placed = place(cell, there)
        reasons = [cannot_run(cell)] if cannot_run(cell) else list(placed.lacks)
        lacks.update(reasons)
        if reasons:
            continue
        notes.update(placed.notes)
        wanted = needs_of(cell, compile_cell(cell, HostsBackend.clock), placed)
        of_cell.append(wanted)
        for machine, features in wanted.items():
            needs.setdefault(machine, {}).update(dict.fromkeys(features))
    absent: Mapping[str, list[str]] = {}
    problems: list[Problem] = []
    if ask:
        absent, problems = ask_machines(there, {name: list(needs.get(name, ())) for name in there.machines})
    for wanted in of_cell:
        reasons = lacking(wanted, absent)
        lacks.update(reasons)
        fitting += not reasons
    return InventoryFit(
        cells=len(plan.cells),
        fitting=fitting,
        lacks=dict(lacks.most_common()),
        notes=dict(notes.most_common()),
        problems=tuple((problem.what, problem.remedy) for problem in problems),
        needs={machine: tuple(features) for machine, features in needs.items()},
        asked=tuple(absent),
    )
