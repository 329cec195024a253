"""Describes the differences between the plan of a run and another plan: seed, selection of cells, parameters of
cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ..core.types import Cell
from .types import Plan

MOST = 12
OF_CELLS = ("seed", "parameters", "repetition", "spec", "experiment", "factors")
"""Fields of a cell that are said once, of the whole plan."""
COMPUTED = ("metrics", "metric_units")
"""Fields of a cell that say what is computed from it."""
Change = tuple[str, str, str]
"""What, how it is in the run, how it was asked for."""


def plan_changes(before: Plan, now: Plan) -> list[str]:
    """One line per difference, the most important first."""
    changes = [*_of_the_whole(before, now), *_of_cells(before, now)] or list(_of_outputs(before, now))
    lines = [f"{what}: {old} in the run, asked for: {new}" for what, old, new in changes[:MOST]]
    return lines + ([f"... and {len(changes) - MOST} more"] if len(changes) > MOST else [])


def cell_changes(before: Sequence[Cell], now: Sequence[Cell]) -> list[str]:
    """One line per difference between pairs of cells; fields that only name a cell are ignored."""
    counts: dict[Change, int] = {}
    for old, new in zip(before, now, strict=True):
        for change in _between("", _fields(old), _fields(new)):
            if change[0].split(".")[0] not in COMPUTED:
                counts[change] = counts.get(change, 0) + 1
    lines = [f"{what}: {old} in the run, asked for: {new} ({n} cells)" for (what, old, new), n in counts.items()]
    return lines[:MOST] + ([f"... and {len(lines) - MOST} more"] if len(lines) > MOST else [])


def _of_the_whole(before: Plan, now: Plan) -> Iterator[Change]:
    for what, old, new in (
        ("spec", before.name, now.name),
        ("seed", before.seed, now.seed),
        ("repetitions", before.repetitions, now.repetitions),
        ("choice of cells", *(" and ".join(plan.filters) or "everything" for plan in (before, now))),
    ):
        if old != new:
            yield what, str(old), str(new)
    for name in dict.fromkeys([*before.parameters, *now.parameters]):
        old, new = (plan.parameters.get(name, "none") for plan in (before, now))
        if old != new:
            yield f"parameter {name}", old, new


def _of_cells(before: Plan, now: Plan) -> Iterator[Change]:
    """Differing fields, each once however many cells differ in it; then combinations of levels that only one
    plan has.
    """
    old, new = ({_place(cell): cell for cell in plan.cells} for plan in (before, now))
    changed: dict[Change, list[Cell]] = {}
    for place, cell in old.items():
        if place in new and new[place] != cell:
            for change in _between("", _fields(cell), _fields(new[place])):
                changed.setdefault(change, []).append(cell)
    for (what, old_value, new_value), cells in changed.items():
        yield what, old_value, f"{new_value} (in {len(cells)} of {len(old)} cells, e.g. {cells[0].id})"
    if before.filters == now.filters and before.repetitions == now.repetitions and old.keys() != new.keys():
        yield "cells", _first(old, new), _first(new, old)


def _first(mine: Mapping[Any, Cell], other: Mapping[Any, Cell]) -> str:
    """Up to 3 items that the other plan lacks, e.g. 10s_tcp_r0_..."""
    alone = [cell for place, cell in mine.items() if place not in other]
    return f"{len(alone)} others, e.g. {alone[0].id}" if alone else "no others"


def _place(cell: Cell) -> tuple[frozenset[tuple[str, str]], int]:
    return frozenset(cell.factors.items()), cell.repetition


def _fields(cell: Cell) -> dict[str, Any]:
    return {name: value for name, value in msgspec.to_builtins(cell).items() if name not in OF_CELLS}


def _of_outputs(before: Plan, now: Plan) -> Iterator[Change]:
    """Differences in tables, figures, claims and titles, which do not affect cells."""
    ours, theirs = (
        {name: value for name, value in msgspec.to_builtins(plan).items() if name != "cells"} for plan in (before, now)
    )
    yield from _between("", ours, theirs)


def _between(where: str, old: Any, new: Any) -> Iterator[Change]:
    """Differing leaves of two JSON values by dotted path; list items are identified by name, if they have one."""
    if isinstance(old, list | tuple) and isinstance(new, list | tuple):
        old, new = _named(old), _named(new)
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            yield from _between(f"{where}.{key}" if where else str(key), old.get(key), new.get(key))
    elif old != new:
        yield where, _said(old), _said(new)


def _named(items: Sequence[Any]) -> dict[str, Any]:
    """Items by name or id, otherwise by position."""
    names = [str(item.get("name", item.get("id", ""))) if isinstance(item, dict) else "" for item in items]
    if all(names) and len(set(names)) == len(names):
        return dict(zip(names, items, strict=True))
    return {str(number): item for number, item in enumerate(items)}


def _said(value: Any) -> str:
    if isinstance(value, dict | list | tuple):
        return "another" if value else "none"
    return "none" if value is None else str(value)
