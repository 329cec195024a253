"""The order in which the packets of a path pass the capture points."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from .native import Rows
from .packet_matching import NOWHERE, match_packets

Key = tuple[str, str]  # Source and destination address
# For each direction of a path and capture point: its rows of `identities`, sorted by time
Seen = dict[Key, dict[int, Rows]]
PROBE = 20_000  # Number of packets examined to find an order; the order of points does not change within a capture


@dataclasses.dataclass(frozen=True)
class PointOrder:
    """The capture points that see one direction of one path, in the order in which its packets pass them."""

    source: str
    destination: str
    order: tuple[int, ...]
    rows: dict[int, Rows]


def point_orders(seen: Seen, points: int) -> Iterator[PointOrder]:
    """The order of the points for every direction of every path that at least two points share.

    A packet's hop limit falls by one at each router, so it orders points whatever their clocks show. Points with equal
    hop limits are ordered by the sign of the median delay. If the points share no packet of a direction, the reverse of
    the other direction's order is taken, so that a hop that loses all packets is reported as such.
    """
    done: set[Key] = set()
    for key in seen:
        if key in done:
            continue
        back = (key[1], key[0])
        done |= {key, back}
        for members in _components(seen, key, points):
            order, shared = _order(seen[key], members)
            other, other_shared = _order(seen[back], members) if back != key else (order, 0)
            if not shared:
                order = other[::-1]
            elif not other_shared:
                other = order[::-1]
            for way, points_in_order in ((key, order), (back, other)) if back != key else ((key, order),):
                rows = {point: seen[way][point] for point in points_in_order}
                if any(len(rows_at_point) for rows_at_point in rows.values()):  # else nothing ever went that way
                    yield PointOrder(*way, tuple(points_in_order), rows)


def _components(seen: Seen, key: Key, points: int) -> Iterator[list[int]]:
    """Groups of points that share packets of either direction, directly or through other points."""
    back = (key[1], key[0])
    there = [point for point in range(points) if len(seen[key].get(point, ())) or len(seen[back].get(point, ()))]
    left = set(there)
    while left:
        group, edge = [], [min(left)]
        left -= set(edge)
        while edge:
            point = edge.pop()
            group.append(point)
            for other in sorted(left):
                pairs = ((seen[way][point], seen[way][other]) for way in (key, back))
                if any(np.isin(rows["fingerprint"], others["fingerprint"]).any() for rows, others in pairs):
                    left.discard(other)
                    edge.append(other)
        if len(group) > 1:
            yield sorted(group)


def _order(rows: dict[int, Rows], members: Sequence[int]) -> tuple[list[int], int]:
    """The members in order, and the number of packets that the order is based on."""
    wins = dict.fromkeys(members, 0)
    shared = 0
    for place, point in enumerate(members):
        for other in members[place + 1 :]:
            later, packets = _is_later(rows[point], rows[other])
            shared += packets
            wins[point if later else other] += 1
    return sorted(members, key=lambda point: -wins[point]), shared


def _is_later(before: Rows, after: Rows) -> tuple[bool, int]:
    """If packets reach `after` later than `before`, and the number of packets that show it (0: unknown)."""
    before = before[np.isin(before["fingerprint"], after["fingerprint"])][:PROBE]
    place = match_packets(before, after).place
    matched = place != NOWHERE
    packets = int(matched.sum())
    if not packets:
        return True, 0
    limits = np.median(before["hop_limit"][matched].astype(np.int64) - after["hop_limit"][place[matched]])
    if limits:
        return bool(limits > 0), packets
    return bool(np.median(after["time_ns"][place[matched]] - before["time_ns"][matched]) >= 0), packets
