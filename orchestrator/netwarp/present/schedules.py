"""The report's section on schedules of packets: a map of what each cost, the most expensive ones, clusters by cause."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ..core.numbers import fixed, given, with_unit
from ..core.schedules import BETWEEN
from ..results.schedule_costs import NAME, has_schedules
from ..store.tables import number, read_rows
from .run_data import Row, RunData

WORST = 10
LEAST_S, MOST_S = 0.001, 10.0
"""Costs at which the map's colours begin and end."""
SHADES = 9


@dataclass(frozen=True, slots=True)
class Spot:
    """A schedule in a map. shade: 0 (it cost nothing) to SHADES; -1: it has no cost, it did not complete."""

    cell: str
    title: str
    text: str
    shade: int


@dataclass(frozen=True, slots=True)
class ScheduleMap:
    """The schedules of one combination: a row for each first packet, alone and then with each packet after it."""

    title: str
    rows: tuple[tuple[str, tuple[Spot, ...]], ...]
    schedules: int


@dataclass(frozen=True, slots=True)
class Schedules:
    """clusters: cause, number, median and largest cost. worst: title, schedule, cost, cause, cell."""

    maps: tuple[ScheduleMap, ...]
    worst: tuple[tuple[str, str, str, str, str], ...]
    clusters: tuple[tuple[str, str, int, str, str], ...]
    number: int
    failed: int


def make_schedules(data: RunData) -> Schedules | None:
    """The section's content; None where the run has no schedules."""
    if not has_schedules(data.plan):
        return None
    rows = read_rows(data.run.tables / f"{NAME}.csv")
    if not rows:
        return None
    by_map: dict[str, list[Row]] = {}
    for row in rows:
        by_map.setdefault(_title(data, row), []).append(row)
    costly = sorted((row for row in rows if number(row["cost_s"]) is not None), key=_cost, reverse=True)
    worst = [(_title(data, row), row["schedule"], _s(_cost(row)), row["cause"], row["cell_id"]) for row in costly]
    return Schedules(
        maps=tuple(_map(title, some) for title, some in by_map.items()),
        worst=tuple(worst[:WORST]),
        clusters=tuple((title, *cluster) for title, some in by_map.items() for cluster in _clusters(some)),
        number=len(rows),
        failed=sum(row["outcome"] != "COMPLETED" for row in rows),
    )


def _title(data: RunData, row: Row) -> str:
    """The experiment, and the levels by which its maps differ."""
    experiment = next((each for each in data.plan.experiments if each.name == row["experiment"]), None)
    varied = [name for name in (experiment.factors if experiment else ()) if name != row["factor"] and row[name] != "-"]
    levels = ", ".join(data.level_title(name, row[name]) for name in varied)
    title = (experiment.title or experiment.name) if experiment else row["experiment"]
    return f"{levels}: {title}" if levels else title


def _cost(row: Row) -> float:
    return number(row["cost_s"]) or 0.0


def _s(seconds: float) -> str:
    return with_unit(seconds, "s") if seconds >= LEAST_S else "none"


def _map(title: str, rows: Sequence[Row]) -> ScheduleMap:
    first: dict[str, list[Row]] = {}
    for row in rows:
        first.setdefault(row["schedule"].split(BETWEEN)[0], []).append(row)
    return ScheduleMap(
        title, tuple((name, tuple(_spot(row) for row in some)) for name, some in first.items()), len(rows)
    )


def _spot(row: Row) -> Spot:
    cost = number(row["cost_s"])
    if cost is None:
        return Spot(row["cell_id"], f"{row['schedule']}: {row['outcome']}, no cost", "!", -1)
    return Spot(row["cell_id"], f"{row['schedule']}: {_s(cost)}; {row['cause']}", _short(cost), _shade(cost))


def _short(cost: float) -> str:
    return "\u00b7" if cost < LEAST_S else given(cost, 2) if cost < 10 else fixed(cost, 0)


def _shade(cost: float) -> int:
    if cost < LEAST_S:
        return 0
    share = math.log(min(cost, MOST_S) / LEAST_S) / math.log(MOST_S / LEAST_S)
    return 1 + min(SHADES - 1, int(share * SHADES))


def _clusters(rows: Sequence[Row]) -> list[tuple[str, int, str, str]]:
    causes: dict[str, list[float]] = {}
    for row in rows:
        if row["cause"]:
            causes.setdefault(row["cause"], []).append(_cost(row))
    ordered = sorted(causes.items(), key=lambda cause: -statistics.median(cause[1]))
    return [(cause, len(costs), _s(statistics.median(costs)), _s(max(costs))) for cause, costs in ordered]
