"""Metrics of flows side by side, of spans and of groups: docs/metrics.md, Flows side by side, Groups of flows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .flows import FlowSeen, Numbers

Json = dict[str, Any]
S = 1e9


def jain(values: Sequence[float]) -> float | None:
    """Jain's index (DEC-TR-301); none below two flows, or where nothing was delivered at all."""
    if len(values) < 2 or not any(values):
        return None
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


def all_run(flows: Sequence[FlowSeen]) -> tuple[dict[str, Numbers], Numbers]:
    """Metrics of flows while all run, and of the cell."""
    of_flows: dict[str, Numbers] = {flow.name: {} for flow in flows}
    if len(flows) < 2:
        return of_flows, {}
    begin = None if any(flow.first is None for flow in flows) else max(flow.first or 0 for flow in flows)
    ends = [flow.end for flow in flows if flow.end is not None]
    end = min(ends, default=None)
    if begin is None or end is None or len(ends) < len(flows) or end <= begin:
        none: Numbers = {"goodput_all_run_bit_s": None, "share_all_run_ratio": None}
        return {name: dict(none) for name in of_flows}, {"all_run_s": None, "jain_all_run_index": None}
    rates = {flow.name: flow.new_within(begin, end) * 8 * S / (end - begin) for flow in flows}
    total = sum(rates.values())
    for name, rate in rates.items():
        of_flows[name] = {"goodput_all_run_bit_s": rate, "share_all_run_ratio": rate / total if total else None}
    return of_flows, {"all_run_s": (end - begin) / S, "jain_all_run_index": jain(list(rates.values()))}


def span(flows: Sequence[FlowSeen], after: int, until: int) -> tuple[dict[str, Numbers], Numbers]:
    """Metrics of a span of [measure]: what arrives in it, over its length."""
    length = until - after
    if any(not flow.receiver.data and not flow.receiver.back for flow in flows):
        return {flow.name: {} for flow in flows}, {}
    numbers: dict[str, Numbers] = {}
    for flow in flows:
        rows = [row for row in flow.receiver.data if after < row.packet.t <= until]
        numbers[flow.name] = {
            "span_goodput_bit_s": sum(row.new_bytes for row in rows) * 8 * S / length,
            "span_throughput_bit_s": sum(row.packet.ip_bytes for row in rows) * 8 * S / length,
        }
    runs = [
        flow.name for flow in flows if flow.first is not None and flow.first <= after and (flow.end or until) >= until
    ]
    rates = [each["span_goodput_bit_s"] or 0.0 for each in numbers.values()]
    total = sum(rates)
    for each in numbers.values():
        each["span_share_ratio"] = (each["span_goodput_bit_s"] or 0.0) / total if total else None
    return numbers, {"span_jain_index": jain([numbers[name]["span_goodput_bit_s"] or 0.0 for name in runs])}


def groups(flows: Sequence[Json], numbers: dict[str, Numbers]) -> dict[str, Numbers]:
    """Metrics of groups and of their classes of sizes."""
    members: dict[str, list[Json]] = {}
    for flow in flows:
        if flow.get("group"):
            members.setdefault(flow["group"], []).append(flow)
            if flow.get("size_class"):
                members.setdefault(f"{flow['group']}.{flow['size_class']}", []).append(flow)
    found: dict[str, Numbers] = {}
    for name, group in members.items():
        result: Numbers = {"group_flows": len(group)}
        times = [numbers[flow["name"]].get("completion_time_s") for flow in group if flow["name"] in numbers]
        if len(times) == len(group) and all(flow["total_bytes"] is not None for flow in group):
            known = sorted(time for time in times if time is not None)
            result["completed_flows"] = len(known)
            result["completion_time_mean_s"] = sum(known) / len(known) if len(known) == len(group) else None
            for word, part in (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("max", 1.0)):
                place = max(1, math.ceil(part * len(group) - 1e-9))
                result[f"completion_time_{word}_s"] = known[place - 1] if place <= len(known) else None
        found[name] = result
    return found
