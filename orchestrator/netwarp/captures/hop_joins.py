"""The packets of two neighbouring capture points matched, and from that loss, delay and reordering of the hop."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from .native import Bools, Floats, Ints, Rows

NOWHERE = -1


@dataclasses.dataclass(frozen=True)
class PacketMatches:
    """The matches of one direction of a path. place: for each row of the first capture its row in the second, -1: not
    there. by_time: number of rows whose fingerprint is not unique and occurs a different number of times in the two
    captures, so that only times tell which is which. again: rows of the second capture left over although the first has
    that packet (it was duplicated in between).
    """

    place: Ints
    by_time: int
    again: int


def match_packets(before: Rows, after: Rows, least_ns: Ints | None = None) -> PacketMatches:
    """Match rows of `identities`. Both must be sorted by time and hold one direction of one path.

    A transport may send equal packets twice, so fingerprints need not be unique. If both captures have a fingerprint
    equally often, the rows are paired in order. Otherwise each row of the second capture is paired with the latest row
    of the first that can have arrived by then: that was sent at least `least_ns` (one value a row; None: the shortest
    delay of the other packets) before it and, if all other packets came in order, before each of them that came later.
    If there are more copies behind than before, each row of the first is paired with the earliest that can be it.
    """
    place = np.full(len(before), NOWHERE, dtype=np.int64)
    if not len(before) or not len(after):
        return PacketMatches(place, 0, 0)
    _, group = np.unique(np.concatenate([before["fingerprint"], after["fingerprint"]]), return_inverse=True)
    here, there = group[: len(before)], group[len(before) :]
    groups = int(group.max()) + 1
    many_here, many_there = np.bincount(here, minlength=groups), np.bincount(there, minlength=groups)
    alike = (many_here == many_there)[here]
    _pair_in_order(place, here, there, np.flatnonzero(alike))
    unlike = (many_here != many_there) & (many_here > 0) & (many_there > 0)
    rows_here, rows_there = np.flatnonzero(unlike[here]), np.flatnonzero(unlike[there])
    if not len(rows_here):
        return PacketMatches(place, 0, 0)
    ready_ns = before["time_ns"] + (_least_delays_ns(before, after, place) if least_ns is None else least_ns)
    followed_by = _first_sent_of_those_behind(place, len(after))
    sent, came = (_by_group(rows, numbers[rows]) for rows, numbers in ((rows_here, here), (rows_there, there)))
    taken = 0
    for number, rows in sent.items():
        times = after["time_ns"][came[number]].tolist()
        pairs = _pairs(rows, ready_ns[rows].tolist(), came[number], times, followed_by[came[number]].tolist())
        for row, other in pairs:
            place[row] = other
        taken += len(pairs)
    return PacketMatches(
        place, len(rows_here), int(np.maximum(many_there - many_here, 0)[unlike].sum()) if taken else 0
    )


def _by_group(rows: Ints, groups: Ints) -> dict[int, list[int]]:
    """Group -> its rows, ascending."""
    found: dict[int, list[int]] = {}
    for row, number in zip(rows.tolist(), groups.tolist(), strict=True):
        found.setdefault(number, []).append(row)
    return found


def _pairs(
    rows: list[int], ready: list[int], others: list[int], times: list[int], followed_by: list[int]
) -> list[tuple[int, int]]:
    """The pairs of one group: (row before, row after). Both kinds of rows are ascending."""
    pairs = []
    if len(others) > len(rows):
        at = 0
        for row, earliest in zip(rows, ready, strict=True):
            while at < len(others) and times[at] < earliest:
                at += 1
            if at < len(others):
                pairs.append((row, others[at]))
                at += 1
        return pairs
    at = len(rows) - 1
    for other, time, bound in zip(reversed(others), reversed(times), reversed(followed_by), strict=True):
        while at >= 0 and (ready[at] > time or rows[at] >= bound):
            at -= 1
        if at >= 0:
            pairs.append((rows[at], other))
            at -= 1
    return pairs


def _least_delays_ns(before: Rows, after: Rows, place: Ints) -> Ints:
    """The least delay of each row before: the shortest of all that are paired, and less for shorter packets, by what
    the delays of the shortest and of the longest ones tell of the time that a byte takes.
    """
    paired = np.flatnonzero(place != NOWHERE)
    if not len(paired):
        return np.zeros(len(before), dtype=np.int64)
    delays = after["time_ns"][place[paired]].astype(np.int64) - before["time_ns"][paired].astype(np.int64)
    sizes = before["ip_bytes"].astype(np.int64)
    known = sizes[paired]
    short, long = int(known.min()), int(known.max())
    of_a_byte = 0.0
    if long > short:
        of_a_byte = max(0.0, float(delays[known == long].min() - delays[known == short].min()) / (long - short))
    fastest = int(delays.argmin())
    shorter = np.maximum(int(known[fastest]) - sizes, 0)
    least: Ints = int(delays[fastest]) - np.ceil(shorter * of_a_byte).astype(np.int64)
    return least


def _first_sent_of_those_behind(place: Ints, arrivals: int) -> Ints:
    """For each row after: the first row before of all paired ones that came later; if the paired ones came out of order
    anywhere, a row that is none.
    """
    paired = np.flatnonzero(place != NOWHERE)
    nothing = np.full(arrivals, len(place), dtype=np.int64)
    if (np.diff(place[paired]) < 0).any():
        return nothing
    nothing[place[paired]] = paired
    first: Ints = np.minimum.accumulate(nothing[::-1])[::-1]
    return first


def _pair_in_order(place: Ints, here: Ints, there: Ints, rows: Ints) -> None:
    """Pair the k-th row of a group in the first capture with the k-th one in the second."""
    in_groups = np.zeros(int(max(here.max(), there.max())) + 1, dtype=np.bool_)
    in_groups[here[rows]] = True
    other = np.flatnonzero(in_groups[there])
    place[rows[np.argsort(here[rows], kind="stable")]] = other[np.argsort(there[other], kind="stable")]


@dataclasses.dataclass(frozen=True)
class Hop:
    """One direction of one path between two neighbouring capture points.

    packets, ip_bytes: packets seen at `before` at times that the capture at `after` covers; lost: those of them that
    `after` lacks. unknown: packets at `before` whose arrival `after` may have been too short to capture; unseen:
    packets seen at `after` only; again: packets seen more often at `after`; by_time: packets that only their times tell
    apart.

    Delays in seconds, None if no packet was seen at both points; negative: how many are below 0. reordered: packets
    that arrived after one that was sent later. bursts: length of a run of consecutive losses -> how many such runs.
    routers: by how much the hop limit falls. clock_offset_if_symmetric_s: by how much the clock of `after` is ahead if
    the shortest delays of both directions are in truth equal; None if only one direction was seen.

    packet_s, packet_delay_s, packet_bytes: one value per packet, in the order at `before`; times in seconds from the
    join's t0; delay NaN: lost. packet_row: where it stands in the table of packets.
    """

    source: str
    destination: str
    before: str
    after: str
    packets: int
    ip_bytes: int
    lost_packets: int
    lost_bytes: int
    unknown_packets: int
    unseen_packets: int
    again_packets: int
    by_time_packets: int
    bursts: dict[int, int]
    delay_min_s: float | None
    delay_median_s: float | None
    delay_p95_s: float | None
    delay_max_s: float | None
    negative_packets: int
    reordered_packets: int
    routers: int | None
    clock_offset_if_symmetric_s: float | None
    packet_s: Floats = dataclasses.field(repr=False, compare=False)
    packet_delay_s: Floats = dataclasses.field(repr=False, compare=False)
    packet_bytes: Ints = dataclasses.field(repr=False, compare=False)
    packet_row: Ints = dataclasses.field(repr=False, compare=False)

    def as_json(self) -> dict[str, Any]:
        """The keys of docs/analyze.md: all members except the values per packet."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.compare}
        return values | {"loss_ratio": self.loss_ratio, "burst_mean_packets": self.burst_mean_packets}

    @property
    def loss_ratio(self) -> float | None:
        """Lost packets divided by packets seen before; None if there were none."""
        return self.lost_packets / self.packets if self.packets else None

    @property
    def burst_mean_packets(self) -> float | None:
        """Mean length of a run of losses; None without loss."""
        runs = sum(self.bursts.values())
        return self.lost_packets / runs if runs else None


def make_hop(
    source: str, destination: str, before_name: str, after_name: str,
    before: Rows, after: Rows, *, span: tuple[int, int], t0_ns: int, least_ns: Ints | None = None,
) -> Hop:  # fmt: skip
    """Compute a hop. before, after: rows of `identities`, sorted by time. span: (from, to) in ns during which `after`
    certainly captured. least_ns: the least delay of each row, where it is known.
    """
    matches = match_packets(before, after, least_ns)
    there = matches.place != NOWHERE
    sent_ns = before["time_ns"]
    delay_ns = after["time_ns"][matches.place[there]] - sent_ns[there]
    known = there | _covered(sent_ns, delay_ns, span)
    lost = known & ~there
    delay = np.full(len(before), np.nan)
    delay[there] = delay_ns / 1e9
    quantiles = np.quantile(delay[there], (0, 0.5, 0.95, 1)).tolist() if there.any() else (None,) * 4
    limits = before["hop_limit"][there].astype(np.int64) - after["hop_limit"][matches.place[there]]
    ip_bytes = before["ip_bytes"].astype(np.int64)
    return Hop(
        source=source,
        destination=destination,
        before=before_name,
        after=after_name,
        packets=int(known.sum()),
        ip_bytes=int(ip_bytes[known].sum()),
        lost_packets=int(lost.sum()),
        lost_bytes=int(ip_bytes[lost].sum()),
        unknown_packets=int((~known).sum()),
        unseen_packets=len(after) - int(there.sum()) - matches.again,
        again_packets=matches.again,
        by_time_packets=matches.by_time,
        bursts=_bursts(lost[known]),
        **dict(zip(("delay_min_s", "delay_median_s", "delay_p95_s", "delay_max_s"), quantiles, strict=True)),
        negative_packets=int((delay_ns < 0).sum()),
        reordered_packets=_reordered(matches.place[there]),
        routers=int(np.median(limits)) if len(limits) else None,
        clock_offset_if_symmetric_s=None,
        packet_s=(sent_ns[known] - t0_ns) / 1e9,
        packet_delay_s=delay[known],
        packet_bytes=ip_bytes[known],
        packet_row=before["packet"][known].astype(np.int64),
    )


def _covered(sent_ns: Ints, delay_ns: Ints, span: tuple[int, int]) -> Bools:
    """The packets that the next point would have captured if they had arrived: it was capturing when they were due."""
    shortest, longest = (int(delay_ns.min()), int(delay_ns.max())) if len(delay_ns) else (0, 0)
    return (sent_ns + shortest >= span[0]) & (sent_ns + longest <= span[1])


def _bursts(lost: Bools) -> dict[int, int]:
    """Length of a run of True -> number of such runs."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], lost, [False]]).astype(np.int8)))
    lengths, counts = np.unique(edges[1::2] - edges[::2], return_counts=True)
    return dict(zip(lengths.tolist(), counts.tolist(), strict=True))


def _reordered(place: Ints) -> int:
    """Packets that arrive after one that was sent later (RFC 4737 3.3)."""
    sent = np.argsort(place, kind="stable")  # by arrival: the order in which they were sent
    return int((sent < np.maximum.accumulate(sent)).sum())
