"""The spec's own promises in an exploration: its claims about every schedule, judged where they were made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from ..core.outputs import ANY_LEVEL, Levels
from ..core.schedule_levels import PacketSchedule, ScheduleAction
from ..core.types import Cell
from ..plan.types import Plan
from ..results import Results
from ..results.claims import violations
from .changes import Change, PacketAction, PacketChange
from .oracles import Wrong

_ACTIONS: dict[ScheduleAction, PacketAction] = {"drop": "drop", "duplicate": "duplicate", "reorder": "delay"}


def broken(plan: Plan, results: Results, cell: Cell, changes: Sequence[Change]) -> Iterator[Wrong]:
    """The promises that a cell breaks. A claim that names a factor of packets is of that many packets, lost, doubled or
    late as the factor says; a claim that names none is of every schedule.
    """
    schedules = {factor.name: factor.schedule for factor in plan.factors if factor.schedule is not None}
    for claim in plan.claims:
        if claim.kind != "every" or not claim.tested:
            continue
        selectors = tuple(each for each in claim.a if _within(each, schedules, changes))
        if not selectors:
            continue
        for of, value in violations(msgspec.structs.replace(claim, a=selectors), results):
            if of is cell or of.id == cell.id:
                text = f"{claim.id}: {claim.metric} is {value:g}; {claim.text}"
                yield Wrong("promise", text, claim.id)
                break


def _within(selector: Levels, schedules: dict[str, PacketSchedule], changes: Sequence[Change]) -> bool:
    named = [schedules[name] for name, levels in selector.items() if name in schedules and ANY_LEVEL in levels]
    return all(_covers(schedule, changes) for schedule in named)


def _covers(schedule: PacketSchedule, changes: Sequence[Change]) -> bool:
    packets = [each for each in changes if isinstance(each, PacketChange)]
    return (
        len(packets) == len(changes) <= schedule.together
        and all(each.action == _ACTIONS[schedule.action] for each in packets)
        and all(not schedule.of or f"{each.link}.{each.side}" in schedule.of for each in packets)
        and schedule.action != "reorder"  # a packet here may be later than its successor
    )
