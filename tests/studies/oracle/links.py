"""Directions of links, losses and what waits, and numbers by windows of time: docs/metrics.md, Queues and losses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .cell import CellFiles
from .counters import qdiscs
from .data import protocol_number
from .flows import FlowSeen, Numbers
from .packets import Packet
from .queues import Passage, lowest_mean, passages, share
from .shared import jain

Json = dict[str, Any]
Hop = tuple[str, str]
Series = dict[tuple[str, str], list[float | None]]
S = 1e9
ROOT = 0xFFFFFFFF
PLACES = {"goodput_bit_s": 3, "throughput_bit_s": 3, "share_ratio": 6, "retransmitted_packets": 0, "lost_packets": 0,
          "loss_ratio": 6, "queue_delay_mean_s": 9, "queue_delay_p95_s": 9, "utilization_ratio": 6,
          "jain_index": 6, "running_flows": 0}  # fmt: skip
"""To how many decimal places a series of windows.csv is rounded."""


def held(files: CellFiles) -> dict[Hop, int] | None:
    """The packets that the qdiscs of each direction of a link hold at the end; None: other qdiscs hold some too."""
    kinds = {node["name"]: node["kind"] for node in files.cell["nodes"]}
    where: dict[tuple[str, str], Hop] = {}
    for name, link in files.links.items():
        if "host" in (kinds[link["a"]], kinds[link["b"]]):  # a hop of its own, between the two ends
            where |= {(f"{name}.hop", "b"): (name, "forward"), (f"{name}.hop", "a"): (name, "backward")}
        else:
            where |= {(link["a"], name): (name, "forward"), (link["b"], name): (name, "backward")}
    found = dict.fromkeys(where.values(), 0)
    for qdisc in qdiscs(files):
        if qdisc["parent"] != ROOT or not qdisc["waiting"]:
            continue
        hop = where.get((qdisc["namespace"], qdisc["interface"]))
        if hop is None:
            return None
        found[hop] += qdisc["waiting"]
    return found


def over_link(files: CellFiles, flows: Sequence[FlowSeen], hop: Hop) -> list[Passage] | None:
    """The packets of all flows, both ways, that cross a direction of a link; None: a point was not captured."""
    found: list[Passage] = []
    for seen in flows:
        flow = seen.flow
        for path in flow["paths"]:
            if path.get("back_link"):
                return None
            ends = (flow["sender"], path["sender_link"]), (flow["receiver"], path["receiver_link"])
            for (near, near_link), (far, far_link) in (ends, ends[::-1]):
                route = files.route(near, far, far_link)
                if hop not in route:
                    continue
                at = route.index(hop)
                node = near
                for name, side in route[:at]:
                    node = files.links[name]["b" if side == "forward" else "a"]
                behind = files.links[hop[0]]["b" if hop[1] == "forward" else "a"]
                here = files.capture(node, route[at - 1][0] if at else near_link)
                there = files.capture(behind, hop[0])
                if here is None or there is None:
                    return None
                pair = (files.address(near, near_link), files.address(far, far_link))
                towards = near == flow["sender"]
                mine = [[each for each in packets if _is_of(each, flow, pair, towards)] for packets in (here, there)]
                found += passages(files, *mine, [hop])
    return sorted(found, key=lambda passage: passage.came)


def _is_of(packet: Packet, flow: Json, pair: tuple[str, str], towards: bool) -> bool:
    port = packet.dport if towards else packet.sport
    return (
        (packet.source, packet.destination) == pair and port == flow["port"]
        and packet.protocol == protocol_number(flow["protocol"])
    )  # fmt: skip


def lost_numbers(found: Sequence[Passage], waiting: int | None, prefix: str = "") -> Numbers:
    """Of packets before a path or link, of which so many wait when the cell ends; None: how many is not known."""
    if waiting is None:
        return {}
    if not found:
        return {f"{prefix}{name}": None for name in ("lost_packets", "loss_ratio", "waiting_packets")}
    gone = sum(each.arrived is None for each in found)
    lost, through = gone - waiting, len(found) - waiting
    numbers: Numbers = {"lost_packets": lost, "loss_ratio": lost / through if through else None,
                        "waiting_packets": waiting}  # fmt: skip
    return {f"{prefix}{name}": value for name, value in numbers.items()}


def waiting_of_flow(files: CellFiles, seen: FlowSeen, kept: dict[Hop, int] | None) -> int | None:
    """How many packets of a flow wait on its way: what its links hold, if they are of no other flow."""
    if kept is None:
        return None
    mine = {hop for route in files.routes(seen.flow) for hop in route}
    total = sum(kept[hop] for hop in mine)
    if not total:
        return 0
    return total if len(files.cell["flows"]) == 1 and not _both_ways(files, seen, mine) else None


def _both_ways(files: CellFiles, seen: FlowSeen, mine: set[Hop]) -> bool:
    """True if what the flow's peer sends crosses one of these directions, too."""
    back = {hop for path in seen.flow["paths"]
            for hop in files.route(seen.flow["receiver"], seen.flow["sender"], path["sender_link"])}  # fmt: skip
    return bool(back & mine)


def link_numbers(files: CellFiles, hop: Hop, found: Sequence[Passage], waiting: int | None) -> Numbers:
    """Metrics of a direction of a link, but queue delays."""
    numbers = lost_numbers(found, waiting)
    duration = files.cell["duration_ns"]
    rate = lowest_mean(files, [hop], 0, duration)
    came = sum(each.ip_bytes for each in found if each.arrived is not None and each.arrived <= duration)
    numbers["link_utilization_ratio"] = came * 8 * S / duration / rate if rate else None
    return numbers


def in_windows(
    files: CellFiles, flows: Sequence[FlowSeen], paths: dict[str, list[Passage]], links: dict[Hop, list[Passage]],
    exact: set[str],
) -> Series:  # fmt: skip
    """tables/windows.csv: (flow or direction, series) -> a value a window. exact: those of which nothing waits."""
    length, duration = files.cell["measure"]["window_ns"], files.cell["duration_ns"]
    bins = duration // length
    found: Series = {}
    rates: dict[str, list[float]] = {}
    runs: dict[str, list[bool]] = {}
    sized = [flow for flow in flows if flow.flow["total_bytes"] is not None]
    if all(flow in sized or flow.protocol == "udp" for flow in flows):
        sized = []
    for flow in flows:
        rows = flow.receiver.data
        wire = _bins([(row.packet.t, row.packet.ip_bytes) for row in rows], length, bins)
        found[flow.name, "throughput_bit_s"] = [each * 8 * S / length for each in wire]
        if flow.protocol == "udp":
            new = _bins([(row.packet.t, row.new_bytes) for row in rows], length, bins)
            found[flow.name, "goodput_bit_s"] = [each * 8 * S / length for each in new]
            continue
        again = [(row.packet.t, int(row.repeats)) for row in flow.sender.data]
        found[flow.name, "retransmitted_packets"] = [float(each) for each in _bins(again, length, bins)]
        first = next((row.packet.t for row in rows if row.new_bytes > 0), None)  # also behind the flow's stop
        if first is None or flow in sized:
            continue
        rates[flow.name] = [
            each * 8 * S / length for each in _bins([(row.packet.t, row.new_bytes) for row in rows], length, bins)
        ]
        end = duration if flow.end is None else flow.end
        runs[flow.name] = [first <= n * length and (n + 1) * length <= end for n in range(bins)]
        found[flow.name, "goodput_bit_s"] = [*rates[flow.name]]
    totals = [sum(each[n] for each in rates.values()) for n in range(bins)]
    for name, mine in rates.items():
        found[name, "share_ratio"] = [
            mine[n] / totals[n] if totals[n] > 0 and runs[name][n] else None for n in range(bins)
        ]
    if len(runs) > 1:
        found["", "running_flows"] = [float(sum(each[n] for each in runs.values())) for n in range(bins)]
        found["", "jain_index"] = [jain([rates[name][n] for name in runs if runs[name][n]]) for n in range(bins)]
    for name, passed in paths.items():
        found |= _passed(name, passed, length, bins, lost=name in exact)
    for hop, passed in links.items():
        name = ".".join(hop)
        wire = _bins([(each.arrived, each.ip_bytes) for each in passed if each.arrived is not None], length, bins)
        found[name, "throughput_bit_s"] = [each * 8 * S / length for each in wire]
        means = [lowest_mean(files, [hop], n * length, (n + 1) * length) for n in range(bins)]
        if any(means):
            found[name, "utilization_ratio"] = [
                each * 8 * S / length / mean if mean else None for each, mean in zip(wire, means, strict=True)
            ]
        found |= _passed(name, passed, length, bins, lost=name in exact)
    return found


def _bins(amounts: Sequence[tuple[int, int]], length: int, bins: int) -> list[int]:
    sums = [0] * bins
    for t, amount in amounts:
        if 0 <= t // length < bins:
            sums[t // length] += amount
    return sums


def _passed(name: str, found: Sequence[Passage], length: int, bins: int, *, lost: bool) -> Series:
    series: Series = {}
    inside = [[each for each in found if each.came // length == n] for n in range(bins)]
    waits = [[each.queue_s for each in these if each.queue_s is not None] for these in inside]
    series[name, "queue_delay_mean_s"] = [sum(these) / len(these) if these else None for these in waits]
    series[name, "queue_delay_p95_s"] = [share(these, 0.95) for these in waits]
    if lost:
        gone = [sum(each.arrived is None for each in these) for these in inside]
        series[name, "lost_packets"] = [
            float(count) if these else None for count, these in zip(gone, inside, strict=True)
        ]
        series[name, "loss_ratio"] = [
            count / len(these) if these else None for count, these in zip(gone, inside, strict=True)
        ]
    return series


def managed(files: CellFiles) -> Iterator[tuple[str, float]]:
    """Metrics of the cell's AQM qdiscs, by their own counters, where no event made them anew."""
    sides = [link[side] for link in files.links.values() for side in ("forward", "backward")]
    count = sum(side.get("aqm") is not None for side in sides)
    if not count or any(event["action"] in ("cut", "link") for event in files.cell["timeline"]):
        return
    kinds = ("red", "codel", "fq_codel", "pie", "cake")
    found = [qdisc for qdisc in qdiscs(files) if qdisc["kind"] in kinds]
    if len(found) == count:
        yield "aqm_dropped_packets", float(sum(qdisc["drops"] for qdisc in found))
        marks = [qdisc["marks"] for qdisc in found]
        if None not in marks:
            yield "aqm_marked_packets", float(sum(marks))
