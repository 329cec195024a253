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
GRAIN = 2000
"""Of times, in ns."""


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
    behind: dict[bytes, list[tuple[int, int]]] = defaultdict(list)
    for place, packet in enumerate(sorted(far, key=lambda each: each.t)):
        behind[packet.mark].append((place, packet.t))
    pairs: dict[bytes, dict[int, int]] = {}
    known: list[tuple[int, int]] = []
    """(Place behind, time before) of packets that no other resembles, or that all came."""
    for mark, sent in before.items():
        came = behind.get(mark, [])
        if len(came) == len(sent):
            pairs[mark] = {n: t for n, (_, t) in enumerate(came)}
            known += [(place, packet.t) for (place, _), packet in zip(came, sent, strict=True)]
    known.sort()
    in_order = all(one <= other for (_, one), (_, other) in itertools.pairwise(known))
    for mark, sent in before.items():
        if mark not in pairs:
            last = known if in_order else []
            pairs[mark] = _equal_packets(files, hops, sent, behind.get(mark, []), last)
    return sorted(
        (_passage(files, packet, pairs[mark].get(n), hops) for mark, sent in before.items()
         for n, packet in enumerate(sent)),
        key=lambda passage: passage.came,
    )  # fmt: skip


def _equal_packets(
    files: CellFiles, hops: Sequence[tuple[str, str]], sent: list[Packet], came: list[tuple[int, int]],
    others: list[tuple[int, int]],
) -> dict[int, int]:  # fmt: skip
    """Packets that nothing tells apart (IPv6 has no identification): number of each that came -> when. The last that
    came is the last that can be it: neither too late for the least delay, nor after another packet that it preceded.
    """
    found: dict[int, int] = {}
    ready = [packet.t + _least(files, hops, packet) - GRAIN * len(hops) for packet in sent]
    if len(came) > len(sent):  # copies that a link or an agent made: the first of them is the packet
        left = [t for _, t in came]
        for n, earliest in enumerate(ready):
            able = [t for t in left if t >= earliest]
            if able:
                found[n] = able[0]
                left = [t for t in left if t > able[0]]
        return found
    free = list(range(len(sent)))
    for place, t in reversed(came):
        bound = min((before for behind, before in others if behind > place), default=None)
        able = [n for n in free if ready[n] <= t and (bound is None or sent[n].t <= bound)]
        if able:
            found[able[-1]] = t
            free = [n for n in free if n < able[-1]]
    return found


def _least(files: CellFiles, hops: Sequence[tuple[str, str]], packet: Packet) -> int:
    """The least time that a packet takes, in ns, whatever the links do meanwhile, with any jitter at its best."""
    total = 0.0
    for hop in hops:
        times = []
        for _, shape in files.shapes(*hop):
            spread = shape["jitter_ns"] * (1 if shape["distribution"] == "uniform" else 4)
            delay = 0 if shape["reorder_ratio"] else max(0, shape["one_way_delay_ns"] - spread)
            sending = 0.0 if shape.get("slots") or _is_bucket(shape) else _sending_s(shape, packet.ip_bytes)
            times.append(delay + sending * S)
        total += min(times)
    return int(total)


def _passage(files: CellFiles, packet: Packet, arrived: int | None, hops: Sequence[tuple[str, str]]) -> Passage:
    queue = None
    if arrived is not None:
        queue = (arrived - packet.t) / S - sum(_idle_s(files, hop, packet) for hop in hops)
        if queue < 0:  # a token bucket sends a packet after a pause at once: that is no queue
            queue = min(0.0, queue + sum(_bucket_s(files, hop, packet) for hop in hops))
    return Passage(packet.t, packet.ip_bytes, arrived, queue, packet)


def _bucket_s(files: CellFiles, hop: tuple[str, str], packet: Packet) -> float:
    shape = _shape(files, hop, packet)
    return _sending_s(shape, packet.ip_bytes) if _is_bucket(shape) else 0.0


def _is_bucket(shape: Json) -> bool:
    """tbf makes the rate: of a burst, of a queue in bytes, below an AQM other than cake."""
    aqm = shape.get("aqm")
    return "burst_bytes" in shape or (shape.get("queue_bytes") is not None if aqm is None else aqm["kind"] != "cake")


def _idle_s(files: CellFiles, hop: tuple[str, str], packet: Packet) -> float:
    return idle_of(_shape(files, hop, packet), packet.ip_bytes)


def _shape(files: CellFiles, hop: tuple[str, str], packet: Packet) -> Json:
    over = files.shapes(*hop)
    return ([shape for at, shape in over if at <= packet.t][-1:] or [over[0][1]])[0]


def idle_of(shape: Json, ip_bytes: int) -> float:
    """What an idle link takes for a packet: one-way delay and sending time."""
    return float(shape["one_way_delay_ns"]) / S + _sending_s(shape, ip_bytes)


def _sending_s(shape: Json, ip_bytes: int) -> float:
    if not shape.get("rate_bit_s"):
        return 0.0
    header = ETHERNET if shape["layer"] == "ethernet" else 0
    return (ip_bytes + header) * 8 / float(shape["rate_bit_s"])


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


def told_apart(found: Sequence[Passage]) -> bool:
    """False if some of equal packets came: where others wait, nothing tells which of them."""
    came: dict[bytes, set[bool]] = defaultdict(set)
    for each in found:
        came[each.packet.mark].add(each.arrived is None)
    return all(len(kinds) == 1 for kinds in came.values())


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
