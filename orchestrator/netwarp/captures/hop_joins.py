"""Loss, delay and reordering of one direction of one path between two neighbouring capture points."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from .native import Bools, Floats, Ints, Rows
from .packet_matching import NOWHERE, match_packets


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
    join's t0; delay NaN: lost.
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

    def as_json(self) -> dict[str, Any]:
        """The keys of docs/analyze.md: all members except the values per packet."""
        values = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name not in ("packet_s", "packet_delay_s", "packet_bytes")
        }
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
    before: Rows, after: Rows, *, span: tuple[int, int], t0_ns: int,
) -> Hop:  # fmt: skip
    """Compute a hop. before, after: rows of `identities`, sorted by time. span: (from, to) in ns during which `after`
    certainly captured.
    """
    matches = match_packets(before, after)
    there = matches.place != NOWHERE
    sent_ns = before["time_ns"]
    delay_ns = after["time_ns"][matches.place[there]] - sent_ns[there]
    known = there | _covered(sent_ns, delay_ns, span)
    lost = known & ~there
    delay = np.full(len(before), np.nan)
    delay[there] = delay_ns / 1e9
    low, median, p95, high = _quantiles(delay[there])
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
        delay_min_s=low,
        delay_median_s=median,
        delay_p95_s=p95,
        delay_max_s=high,
        negative_packets=int((delay_ns < 0).sum()),
        reordered_packets=_reordered(matches.place[there]),
        routers=int(np.median(limits)) if len(limits) else None,
        clock_offset_if_symmetric_s=None,
        packet_s=(sent_ns[known] - t0_ns) / 1e9,
        packet_delay_s=delay[known],
        packet_bytes=ip_bytes[known],
    )


def _covered(sent_ns: Ints, delay_ns: Ints, span: tuple[int, int]) -> Bools:
    """The packets that the next point would have captured if they had arrived: it was capturing when they were due."""
    shortest, longest = (int(delay_ns.min()), int(delay_ns.max())) if len(delay_ns) else (0, 0)
    return (sent_ns + shortest >= span[0]) & (sent_ns + longest <= span[1])


def _quantiles(delays: Floats) -> tuple[float | None, float | None, float | None, float | None]:
    if not len(delays):
        return None, None, None, None
    low, median, p95, high = np.quantile(delays, (0, 0.5, 0.95, 1)).tolist()
    return low, median, p95, high


def _bursts(lost: Bools) -> dict[int, int]:
    """Length of a run of True -> number of such runs."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], lost, [False]]).astype(np.int8)))
    lengths, counts = np.unique(edges[1::2] - edges[::2], return_counts=True)
    return dict(zip(lengths.tolist(), counts.tolist(), strict=True))


def _reordered(place: Ints) -> int:
    """Packets that arrive after one that was sent later (RFC 4737 3.3)."""
    sent = np.argsort(place, kind="stable")  # by arrival: the order in which they were sent
    return int((sent < np.maximum.accumulate(sent)).sum()) if len(sent) else 0
