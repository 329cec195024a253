"""The key numbers of a run in a sentence for each flow, for a spec that asks for no table, and for a report without a
paper: the first headline metrics that have values, and their range over the cells.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..core.metrics.catalogue import HEADLINE
from ..core.numbers import decimals, fixed, scale
from ..core.units import counted
from .run_data import RunData

COMPLETED = "COMPLETED"
SHOWN = 3
"""Metrics of a flow."""


def key_numbers(data: RunData) -> tuple[str, ...]:
    """ "bulk: goodput 1.933 Mbit/s", of several cells "bulk, 6 cells: goodput 1.711 to 1.933 Mbit/s, outage ..."."""
    values: dict[str, dict[str, list[float]]] = {}
    cells = [result for result in data.cells if result.outcome == COMPLETED]
    for result in cells:
        for flow, metric, value in data.measured.get(result.id, ()):
            if flow and value is not None and metric in HEADLINE:
                values.setdefault(flow, {}).setdefault(metric, []).append(value)
    among = "" if len(cells) == 1 else f", {counted(len(cells), 'cell')}"
    return tuple(f"{flow}{among}: {', '.join(_ranges(data, known))}" for flow, known in values.items())


def _ranges(data: RunData, known: dict[str, list[float]]) -> Iterator[str]:
    for name in [name for name in HEADLINE if name in known][:SHOWN]:
        divisor, unit = scale(known[name], data.metrics[name].unit)
        least, most = min(known[name]) / divisor, max(known[name]) / divisor
        places = 0 if unit == "packets" else decimals((least, most))
        low, high = fixed(least, places), fixed(most, places)
        said = high if low == high else f"{low} to {high}"
        title = data.metrics[name].title
        yield f"{title} {said}" if unit in ("", *title.split()) else f"{title} {said} {unit}"
