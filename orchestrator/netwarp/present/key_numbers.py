"""The key numbers of a run in a sentence for each flow, for a spec that asks for no table, and for a report without a
paper: the first headline metrics that have values, and their range over the cells.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..core.metrics.catalogue import HEADLINE
from ..core.numbers import decimals, fixed, scale
from ..core.units import counted
from .metric_names import Metric

SHOWN = 3
"""Metrics of a flow."""


def key_numbers(
    cells: int, measured: Iterable[tuple[str, str, float | None]], metrics: Mapping[str, Metric]
) -> tuple[str, ...]:
    """ "bulk: goodput 1.933 Mbit/s", of several cells "bulk, 6 cells: goodput 1.711 to 1.933 Mbit/s, outage ...".

    cells: how many completed; measured: (flow, metric, value) of all of them.
    """
    values: dict[str, dict[str, array[float]]] = {}
    for flow, metric, value in measured:
        if flow and value is not None and metric in HEADLINE:
            values.setdefault(flow, {}).setdefault(metric, array("d")).append(value)
    among = "" if cells == 1 else f", {counted(cells, 'cell')}"
    return tuple(f"{flow}{among}: {', '.join(_ranges(metrics, known))}" for flow, known in values.items())


def _ranges(metrics: Mapping[str, Metric], known: Mapping[str, Sequence[float]]) -> Iterator[str]:
    for name in [name for name in HEADLINE if name in known][:SHOWN]:
        divisor, unit = scale(known[name], metrics[name].unit)
        least, most = min(known[name]) / divisor, max(known[name]) / divisor
        places = 0 if unit == "packets" else decimals((least, most))
        low, high = fixed(least, places), fixed(most, places)
        said = high if low == high else f"{low} to {high}"
        title = metrics[name].title
        yield f"{title} {said}" if unit in ("", *title.split()) else f"{title} {said} {unit}"
