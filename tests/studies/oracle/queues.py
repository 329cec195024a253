"""Losses and queue delays between two captures: each packet is looked for behind the path or link by all that stays the
same on its way. docs/metrics.md, Queues and losses.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .cell import CellFiles
from .flows import FlowSeen, Numbers
from .packets import Packet

Json = dict[str, Any]
S = 1e9
ETHERNET = 14


@dataclass
class Passage:
    """A packet before a path or link; arrived: when it came behind it (None: it did not); queue_s: its queue delay."""

    came: int
    ip_bytes: int
    arrived: int | None
    queue_s: float | None
    packet: Packet


def passages(
    files: CellFiles, near: Iterable[Packet], far: Iterable[Packet], hops: Sequence[tuple[str, str]]
) -> list[Passage]:
    """Of packets at the near end in the order of time. hops: links with their directions between the two."""
    before: dict[bytes, list[Packet]] = defaultdict(list)
    for packet in near:
        before[packet.mark].append(packet)
    behind: dict[bytes, list[int]] = defaultdict(list)
    for packet in far:
        behind[packet.mark].append(packet.t)
    found = []
    for mark, sent in before.items():
        arrivals = dict[int, int]()
        taken: set[int] = set()
        for t in sorted(behind.get(mark, ())):  # of equal packets (IPv6 numbers none) the latest that can have come
            able = [
                n for n, packet in enumerate(sent) if n not in taken and packet.t + _least(files, hops, packet) <= t
            ]
            place = (able[-1] if len(behind[mark]) < len(sent) else able[0]) if able else None
            if place is not None:
                taken.add(place)
                arrivals[place] = t
        found += [_passage(files, packet, arrivals.get(n), hops) for n, packet in enumerate(sent)]
    return sorted(found, key=lambda passage: passage.came)


def _least(files: CellFiles, hops: Sequence[tuple[str, str]], packet: Packet) -> int:
    """The least time that a packet takes, in ns, with any jitter at its best."""
    total = 0
    for hop in hops:
        shape = _shape(files, hop, packet)
        total += max(0, shape["one_way_delay_ns"] - 4 * shape["jitter_ns"]) if not shape["reorder_ratio"] else 0
    return total


def _passage(files: CellFiles, packet: Packet, arrived: int | None, hops: Sequence[tuple[str, str]]) -> Passage:
    queue = None
    if arrived is not None:
        queue = (arrived - packet.t) / S - sum(_idle_s(files, hop, packet) for hop in hops)
        if queue < 0:  # a token bucket sends a packet after a pause at once: that is no queue
            queue = min(0.0, queue + sum(_bucket_s(files, hop, packet) for hop in hops))
    return Passage(packet.t, packet.ip_bytes, arrived, queue, packet)


def _bucket_s(files: CellFiles, hop: tuple[str, str], packet: Packet) -> float:
    shape = _shape(files, hop, packet)
    aqm = shape.get("aqm")
    bucket = "burst_bytes" in shape or (shape.get("queue_bytes") is not None if aqm is None else aqm["kind"] != "cake")
    return idle_of(shape | {"one_way_delay_ns": 0}, packet.ip_bytes) if bucket else 0.0


def _idle_s(files: CellFiles, hop: tuple[str, str], packet: Packet) -> float:
    return idle_of(_shape(files, hop, packet), packet.ip_bytes)


def _shape(files: CellFiles, hop: tuple[str, str], packet: Packet) -> Json:
    over = files.shapes(*hop)
    return ([shape for at, shape in over if at <= packet.t][-1:] or [over[0][1]])[0]


def idle_of(shape: Json, ip_bytes: int) -> float:
    """What an idle link takes for a packet: one-way delay and sending time."""
    sending = 0.0
    if shape.get("rate_bit_s"):
        header = ETHERNET if shape["layer"] == "ethernet" else 0
        sending = (ip_bytes + header) * 8 / float(shape["rate_bit_s"])
    return float(shape["one_way_delay_ns"]) / S + sending


def share(values: Sequence[float], part: float) -> float | None:
    """The percentile, linear between two neighbours."""
    if not values:
        return None
    ordered = sorted(values)
    place = part * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def flow_passages(files: CellFiles, seen: FlowSeen) -> list[Passage]:
    """A flow's packets from its sender to its receiver, over each path's own pair of addresses."""
    found: list[Passage] = []
    flow = seen.flow
    for path, route in zip(flow["paths"], files.routes(flow), strict=True):
        pair = (
            files.address(flow["sender"], path["sender_link"]),
            files.address(flow["receiver"], path["receiver_link"]),
        )
        near = (r.packet for r in seen.sender.data if (r.packet.source, r.packet.destination) == pair)
        far = (r.packet for r in seen.receiver.data if (r.packet.source, r.packet.destination) == pair)
        found += passages(files, near, far, route)
    return sorted(found, key=lambda passage: passage.came)


def passage_numbers(found: Sequence[Passage], prefix: str = "") -> Numbers:
    """Metrics of packets over a path or link."""
    names = ("loss_ratio", "queue_delay_mean_s", "queue_delay_p95_s", "queue_delay_p99_s", "queue_delay_max_s")
    if not found:
        return {f"{prefix}{name}": None for name in names}
    waits = [each.queue_s for each in found if each.queue_s is not None]
    return {
        f"{prefix}queue_delay_mean_s": sum(waits) / len(waits) if waits else None,
        f"{prefix}queue_delay_p95_s": share(waits, 0.95),
        f"{prefix}queue_delay_p99_s": share(waits, 0.99),
        f"{prefix}queue_delay_max_s": max(waits, default=None),
    }


def lowest_mean(files: CellFiles, route: Sequence[tuple[str, str]], after: int, until: int) -> float | None:
    """The mean over a time of the lowest rate on a route; None: without any rate for a part of it."""
    moments = sorted({after, until, *(at for hop in route for at, _ in files.shapes(*hop) if after < at < until)})
    total = 0.0
    for begin, end in itertools.pairwise(moments):
        rates = [rate for hop in route if (rate := _rate(files.shapes(*hop), begin)) is not None]
        if not rates:
            return None
        total += min(rates) * (end - begin)
    return total / (until - after) if until > after else None


def _rate(over: Sequence[tuple[int, Json]], at: int) -> float | None:
    shape = ([shape for since, shape in over if since <= at][-1:] or [over[0][1]])[0]
    return shape.get("rate_bit_s")
