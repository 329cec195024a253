"""The measurements by cell, for the part of the page where a reader chooses what to plot."""

from __future__ import annotations

from typing import Any

from .axes import level_axis
from .metric_names import GROUP_ORDER
from .run_data import RunData
from .style import OUTCOMES


def explore_data(data: RunData) -> dict[str, Any]:
    """Factors with their axes, metrics, and a row a completed cell: levels by index, values by metric and flow."""
    factors: list[dict[str, Any]] = []
    for factor in data.plan.factors:
        used = {result.cell.factors.get(factor.name, "-") for result in data.cells}
        levels = [level.name for level in factor.levels if level.name in used]
        levels += ["-"] if "-" in used else []
        if len(levels) > 1:
            axis = level_axis(data, factor.name, [level for level in levels if level != "-"])
            factors.append(
                {
                    "name": factor.name,
                    "title": axis.title,
                    "unit": axis.unit,
                    "kind": axis.kind,
                    "levels": levels,
                    "at": axis.at,
                    "titles": [data.level_title(factor.name, level) if level != "-" else "\u2013" for level in levels],
                }
            )
    columns = sorted({(metric, flow) for (_, flow, metric), value in data.values.items() if value is not None})
    order = {name: place for place, name in enumerate(data.metrics)}
    columns.sort(key=lambda column: (GROUP_ORDER.index(data.metrics[column[0]].group), order[column[0]], column[1]))
    cells = [(result.id, result.cell) for result in data.cells if result.outcome == next(iter(OUTCOMES))]
    return {
        "factors": factors,
        "metrics": [
            {
                "name": metric,
                "flow": flow,
                "title": data.metrics[metric].title,
                "group": data.metrics[metric].group,
                "unit": data.metrics[metric].unit,
            }
            for metric, flow in columns
        ],
        "cells": [
            {
                "id": name,
                "levels": [factor["levels"].index(cell.factors.get(factor["name"], "-")) for factor in factors],
                "values": [data.values.get((name, flow, metric)) for metric, flow in columns],
            }
            for name, cell in cells
        ],
    }
