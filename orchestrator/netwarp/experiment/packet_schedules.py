"""Reads a factor whose levels are schedules of packets: `drops = { of = ["p1.forward"], first = 20, together = 2 }`."""

from __future__ import annotations

from ..core.schedules import PacketSchedule, ScheduleAction
from .fields import NAME, read_quantity
from .grammar import SCHEDULE, SCHEDULES
from .problems import Problems, nearest
from .toml_positions import Item

ACTIONS: dict[str, ScheduleAction] = {"drops": "drop", "duplicates": "duplicate", "reorders": "reorder"}
DIRECTIONS = ("forward", "backward")
EXAMPLE = SCHEDULES["drops"].example


def read_schedule(factor: Item, problems: Problems) -> PacketSchedule | None:
    """The schedule of a factor's item; None if it has none, or a wrong one."""
    given = [(key, item) for key in ACTIONS if (item := factor.get(key)) is not None]
    for key, item in given[1:]:
        problems.add(item, f'a factor has one of {", ".join(ACTIONS)}: "{key}" needs a factor of its own')
    if not given:
        return None
    key, item = given[0]
    for other in ("levels", "sets", "usual", "unstated"):
        if (child := factor.get(other)) is not None:
            problems.add(child, f"the levels of a factor with {key} are packets, found while it runs: leave this out")
    first = item.get("first")
    if not isinstance(item.value, dict) or first is None:
        if isinstance(item.value, dict):
            problems.add(item, f"its first is missing: of how many packets? For example {key} = {EXAMPLE}")
        return None
    together, since, number = item.get("together"), item.get("from"), item.integer("first")
    size = 1 if together is None else item.integer("together")
    start = None if since is None else read_quantity(since, SCHEDULE["from"], problems)
    if number is None or size is None:
        return None
    if ACTIONS[key] == "reorder" and size > 1 and together is not None:
        problems.add(together, "only one packet at a time is late by one place: leave this out")
    from_ns = int(start.value) if start is not None else 0
    return PacketSchedule(ACTIONS[key], _directions(item.get("of"), problems), number, size, from_ns)


def _directions(item: Item | None, problems: Problems) -> tuple[str, ...]:
    names = item.texts() if item is not None else ()
    for name in names:
        link, _, direction = name.partition(".")
        if item is not None and (direction not in DIRECTIONS or not NAME.fullmatch(link)):
            said = f'"{name[:40]}" is no direction of a link{nearest(direction, DIRECTIONS)}'
            problems.add(item.part(name), f"{said} For example of = {SCHEDULE['of'].example}")
    return tuple(dict.fromkeys(names))
