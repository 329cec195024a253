"""Metrics of groups of flows and of their classes of sizes: how many completed, and how long they took. Definitions:
docs/metrics.md, Groups of flows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ...core.subjects import groups_of
from ...core.types import Cell
from .flow_sharing import jain_index

SHARES = {"completion_time_p50_s": 0.5, "completion_time_p90_s": 0.9, "completion_time_p95_s": 0.95,
          "completion_time_p99_s": 0.99, "completion_time_max_s": 1.0}  # fmt: skip
Metrics = Mapping[str, float | None]


def group_metrics(cell: Cell, flows: Mapping[str, Metrics]) -> dict[str, dict[str, float | None]]:
    """The metrics of each group of a cell, from those of its flows."""
    sized = {flow.name for flow in cell.flows if flow.total_bytes is not None}
    return {
        name: _metrics([flows[each] for each in names], sized >= {*names}) for name, names in groups_of(cell).items()
    }


def _metrics(flows: Sequence[Metrics], sized: bool) -> dict[str, float | None]:
    times = sorted(time for flow in flows if (time := flow.get("completion_time_s")) is not None)
    converged = [time for flow in flows if (time := flow.get("convergence_time_s")) is not None]
    rates = [flow.get("goodput_bit_s") for flow in flows]
    metrics: dict[str, float | None] = {
        "group_flows": float(len(flows)),
        "group_jain_index": jain_index(rates),
        "completed_flows": float(len(times)) if sized else None,
        "completion_time_mean_s": math.fsum(times) / len(times) if sized and len(times) == len(flows) else None,
    }
    if any("span_goodput_bit_s" in flow for flow in flows):
        within = [rate for flow in flows if (rate := flow["span_goodput_bit_s"]) is not None]
        metrics["group_span_goodput_bit_s"] = math.fsum(within) if len(within) == len(flows) else None
    for name, share in SHARES.items():
        # a flow that did not complete took longer than every other
        rank = max(1, math.ceil(share * len(flows)))
        metrics[name] = times[rank - 1] if sized and rank <= len(times) else None
    if any("convergence_time_s" in flow for flow in flows):
        metrics["converged_flows"] = float(len(converged))
        metrics["convergence_time_mean_s"] = math.fsum(converged) / len(converged) if converged else None
    return metrics
