"""Joins several captures of one run: what each hop lost, delayed and reordered.

A packet is recognised by its fingerprint, a hash of the fields that no router changes (`identities` of
docs/metrics.md). A packet seen at one point and not at the next is lost; the one-way delay is the difference of its two
times (RFC 7679, RFC 7680); a packet that arrives after one that was sent later is reordered (RFC 4737 3.3).
"""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..core.errors import CaptureError
from ..core.numbers import fixed
from .capture import address_text, point_names, read_captures
from .hop_joins import NOWHERE, Hop, make_hop, match_packets
from .native import Rows

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


def _components(seen: Seen, key: Key, points: int) -> list[list[int]]:
    """Groups of points that share packets of either direction, directly or through other points."""
    ways = (seen[key], seen[key[1], key[0]])

    def share(a: int, b: int) -> bool:
        return any(np.isin(way[a]["fingerprint"], way[b]["fingerprint"]).any() for way in ways)

    groups: list[list[int]] = []
    for point in range(points):
        if any(len(way.get(point, ())) for way in ways):
            joined = [group for group in groups if any(share(point, other) for other in group)]
            groups = [group for group in groups if group not in joined]
            groups.append(sorted([point, *itertools.chain(*joined)]))
    return sorted(group for group in groups if len(group) > 1)


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


TABLES = ("identities",)


@dataclasses.dataclass(frozen=True)
class Point:
    """A capture file. name: unique in the join; trouble: why it was not read to a clean end; "" if it was."""

    name: str
    file: str
    packets: int
    first_ns: int
    last_ns: int
    trouble: str


@dataclasses.dataclass(frozen=True)
class Join:
    """Joined captures. points: in the order given; hops: by path and direction, in the order in which packets pass
    them; alone: points that share no packet with another; one_clock: all points share one clock (those of a cell do).
    """

    points: tuple[Point, ...]
    hops: tuple[Hop, ...]
    alone: tuple[str, ...]
    one_clock: bool
    t0_ns: int

    def as_json(self) -> dict[str, Any]:
        """The keys of docs/analyze.md."""
        return {
            "one_clock": self.one_clock,
            "first_s": self.t0_ns / 1e9,
            "points": [
                {"point": point.name, "file": point.file, "packets": point.packets, "note": point.trouble}
                for point in self.points
            ],
            "alone": list(self.alone),
            "hops": [hop.as_json() for hop in self.hops],
        }


def join_captures(
    files: Sequence[str | os.PathLike[str]],
    *,
    one_clock: bool = False,
    whole: bool = False,
    packet_filter: str | None = None,
) -> Join:
    """Join captures; each file is a capture point of its own.

    one_clock: all points share a clock, so a negative delay is an error of the captures and not of clocks. whole: each
    capture ran from before the first packet to after the last one of all of them, as a cell's captures do; otherwise a
    capture is taken to have run from its own first to its own last packet. A packet whose arrival the next capture may
    have been too short to see counts as unknown, not as lost. packet_filter: see read_captures.

    Raises CaptureError: fewer than two files, a file that cannot be read, or captures that share no packet.
    """
    if len(files) < 2:
        raise CaptureError("joining takes two captures or more: the same packets at different points")
    if len({os.path.realpath(file) for file in files}) < len(files):
        raise CaptureError("one file is given twice: joining takes captures of different points")
    points, seen = _read(files, packet_filter)
    there = [point for point in points if point.packets]
    first, last = min((p.first_ns for p in there), default=0), max((p.last_ns for p in there), default=0)
    hops: list[Hop] = []
    joined: set[int] = set()
    for passing in point_orders(seen, len(points)):
        joined.update(passing.order)
        for here, there_ in itertools.pairwise(passing.order):
            span = (0, last) if whole else (points[there_].first_ns, points[there_].last_ns)
            hops.append(
                make_hop(
                    passing.source, passing.destination, points[here].name, points[there_].name,
                    passing.rows[here], passing.rows[there_], span=span, t0_ns=first,
                )
            )  # fmt: skip
    if not hops:
        raise CaptureError(_nothing_shared(points))
    alone = tuple(point.name for number, point in enumerate(points) if number not in joined)
    return Join(points, _with_clock_offset(tuple(hops)), alone, one_clock, first)


def _read(files: Sequence[str | os.PathLike[str]], packet_filter: str | None) -> tuple[tuple[Point, ...], Seen]:
    points: list[Point] = []
    seen: Seen = {}
    paths = [str(file) for file in files]
    for number, (file, path, name) in enumerate(zip(files, paths, point_names(paths), strict=True)):
        capture = read_captures([file], TABLES, packet_filter=packet_filter)
        source = capture.sources[0]
        points.append(
            Point(name, path, int(source["packets"]), int(source["first_ns"]), int(source["last_ns"]),
                  capture.trouble[0])
        )  # fmt: skip
        for row, ends in enumerate(capture.paths):
            mine = capture.identities[capture.identities["path"] == row]
            for direction, (a, b) in enumerate((("a", "b"), ("b", "a"))):
                key = (address_text(bytes(ends[a])), address_text(bytes(ends[b])))
                sent = mine[mine["path_direction"] == direction]
                seen.setdefault(key, {})[number] = sent[np.argsort(sent["time_ns"], kind="stable")]
    return tuple(points), seen


def _nothing_shared(points: Sequence[Point]) -> str:
    spans = sorted((point.first_ns, point.last_ns, point.name) for point in points if point.packets)
    text = f"{', '.join(point.name for point in points)}: share not one packet"
    if any(not point.packets for point in points):
        return text + f"; empty: {', '.join(point.name for point in points if not point.packets)}"
    apart = [(a, b) for a, b in itertools.pairwise(spans) if a[1] < b[0]]
    if apart:
        a, b = apart[0]
        return text + f"; {b[2]} begins {fixed((b[0] - a[1]) / 1e9, 3)} s after {a[2]} ends: are they of one run?"
    return (
        text + "; are they of one run? Address translation, tunnels, segmentation offload (capture with it off) and"
        " different snapshot lengths below 64 bytes of transport hide that packets are the same"
    )


def _with_clock_offset(hops: tuple[Hop, ...]) -> tuple[Hop, ...]:
    """Adds to each hop the offset its clocks would have if the shortest delays of both directions were equal."""
    shortest = {
        (hop.source, hop.destination, hop.before, hop.after): hop.delay_min_s
        for hop in hops
        if hop.delay_min_s is not None
    }
    corrected = []
    for hop in hops:
        back = shortest.get((hop.destination, hop.source, hop.after, hop.before))
        offset = None if hop.delay_min_s is None or back is None else (hop.delay_min_s - back) / 2
        corrected.append(dataclasses.replace(hop, clock_offset_if_symmetric_s=offset))
    return tuple(corrected)
