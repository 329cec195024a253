"""The report's section on schedules of packets: a map of what each cost, the most expensive ones, clusters by cause."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

from ..core.numbers import fixed, given, with_unit
from ..core.schedule_levels import BETWEEN
from ..results.schedule_costs import NAME, has_schedules
from ..store.tables import number, read_rows
from .run_data import Row, RunData

WORST = 10
LEAST_S, MOST_S = 0.001, 10.0
"""Costs at which the map's colours begin and end."""
SHADES = 9


def make_schedules(data: RunData) -> dict[str, Any] | None:
    """The section's content, as schedules.html.j2 takes it; None where the run has no schedules. maps: title, number of
    schedules, and a row for each first packet, alone and then with each packet after it. worst: title, schedule, cost,
    cause, cell. clusters: title, cause, number, median and largest cost.
    """
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
    return {
        "maps": [(title, len(some), _map(some)) for title, some in by_map.items()],
        "worst": worst[:WORST],
        "clusters": [(title, *cluster) for title, some in by_map.items() for cluster in _clusters(some)],
        "number": len(rows),
        "failed": sum(row["outcome"] != "COMPLETED" for row in rows),
    }


def _title(data: RunData, row: Row) -> str:
    """The experiment, and the levels by which its maps differ."""
    experiment = next((each for each in data.plan.experiments if each.name == row["experiment"]), None)
    varied = [name for name in (experiment.factors if experiment else ()) if name != row["factor"] and row[name] != "-"]
    levels = ", ".join(data.plan.level_title(name, row[name]) for name in varied)
    title = (experiment.title or experiment.name) if experiment else row["experiment"]
    return f"{levels}: {title}" if levels else title


def _cost(row: Row) -> float:
    return number(row["cost_s"]) or 0.0


def _s(seconds: float) -> str:
    return with_unit(seconds, "s") if seconds >= LEAST_S else "none"


def _map(rows: Sequence[Row]) -> list[tuple[str, list[dict[str, Any]]]]:
    first: dict[str, list[Row]] = {}
    for row in rows:
        first.setdefault(row["schedule"].split(BETWEEN)[0], []).append(row)
    return [(name, [_spot(row) for row in some]) for name, some in first.items()]


def _spot(row: Row) -> dict[str, Any]:
    """A schedule in a map. shade: 0 (it cost nothing) to SHADES; -1: it has no cost, it did not complete."""
    cost = number(row["cost_s"])
    if cost is None:
        title, text, shade = f"{row['outcome']}, no cost", "!", -1
    else:
        text = "\u00b7" if cost < LEAST_S else given(cost, 2) if cost < 10 else fixed(cost, 0)
        title, shade = f"{_s(cost)}; {row['cause']}", _shade(cost)
    return {"cell": row["cell_id"], "title": f"{row['schedule']}: {title}", "text": text, "shade": shade}


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
