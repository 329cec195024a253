"""Grows the plan of a run by schedules of packets, from the packets of its finished cells (docs/decisions/0014)."""

from __future__ import annotations

from collections.abc import Collection

from ..core.errors import SpecError
from ..core.schedules import PacketPosition
from ..core.types import Cell, Outcome
from ..core.units import counted
from ..plan.make import MOST_CELLS
from ..plan.schedules import ScheduledCell, children, directions_of, scheduled_cells, with_cells
from ..plan.types import Plan
from ..store import compressed
from ..store.run_dir import RunDir, read_json
from .cell_tasks import keep_positions
from .events import Notice, Progress


def to_expand(plan: Plan) -> frozenset[str]:
    """Ids of the cells below which there may be further schedules."""
    return frozenset(each.cell.id for each in scheduled_cells(plan) if each.size < each.schedule.together)


def grown(plan: Plan, run: RunDir, tried: Collection[str], progress: Progress) -> Plan:
    """The plan with the schedules that follow from its cells. tried: ids of cells whose schedules it has already.

    Below a cell that did not complete nothing is added, and nothing below one whose captures equal those of another of
    its combination. Raises SpecError if there would be too many.
    """
    first: dict[tuple[tuple[str, ...], tuple[tuple[str, str], ...]], str] = {}
    new: list[Cell] = []
    equal = failed = 0
    for each in sorted(scheduled_cells(plan), key=lambda scheduled: scheduled.size):
        name = each.cell.id
        if each.size >= each.schedule.together:
            continue
        directory = run.cell(name)
        if directory.read_outcome().outcome is not Outcome.COMPLETED:
            failed += name not in tried
            continue
        digests = tuple(sorted(read_json(directory.packets, dict[str, str]).items()))
        if first.setdefault((each.combination, digests), name) != name:
            equal += name not in tried
            continue
        if name not in tried:
            new += children(each, _positions(each, run))
    if len(plan.cells) + len(new) > MOST_CELLS:
        raise SpecError(
            f"{len(plan.cells) + len(new)} cells with all schedules of packets, at most {MOST_CELLS}: lower `first` or "
            "`together` of the schedule"
        )
    skipped = [
        text
        for number, text in (
            (equal, "whose packets are those of another cell"),
            (failed, "that did not complete"),
        )
        if number
        for text in [f"nothing below {counted(number, 'cell')} {text}"]
    ]
    if new:
        progress(Notice("; ".join([f"{counted(len(new), 'schedule')} of packets more, from what ran", *skipped])))
    return with_cells(plan, [*plan.cells, *new])


def _positions(each: ScheduledCell, run: RunDir) -> list[PacketPosition]:
    """The packets of the schedule's directions, in the order of sending."""
    directory = run.cell(each.cell.id)
    there = compressed.exists(directory.positions)
    every = read_json(directory.positions, list[PacketPosition]) if there else keep_positions(directory)
    wanted = {(link.name, side) for link, side in directions_of(each.schedule, each.cell)}
    return [position for position in every if (position.link, position.direction) in wanted]
