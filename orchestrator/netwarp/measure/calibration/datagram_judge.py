"""Judges links by datagrams: rows of measured against configured values, with bounds from arithmetic or statistics, and
the curves behind them. netem's options and the link profiles are measured this way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ...captures.native import Floats
from ...core.link_types import LinkImpairment
from ...core.numbers import given
from ...store.init_records import Ticks
from ...store.probe_rows import Curve, ProbeRow
from ...testbed.netem import overtakers
from .aqm import judge_aqm
from .buckets import judge_buckets
from .datagram_probes import BRACKET_NS, CHANGED_NS, sending_ns
from .datagrams import (
    PROBE_BYTES,
    Delays,
    Probe,
    Way,
    altered,
    both_ways,
    delays_of,
    distance_bound,
    losses,
    run_lengths,
    share,
)
from .rules import judge_rules

CURVE_POINTS = 101


@dataclass(frozen=True, slots=True)
class ProbeClock:
    """The clock of the back end. late_s: by how much times may be late: in virtual time the granularity of timers,
    otherwise the host's lateness. once_s: a few of them.
    """

    late_s: float
    once_s: float


VIRTUAL = ProbeClock(late_s=10e-6, once_s=10e-6)
WALL = ProbeClock(late_s=10e-3, once_s=10e-3)
"""A cell that is later than this at an event, or at one wake in 50, is INVALID already (WALL_LATENESS_NS)."""
CALM_NS = 2_000_000


def wall_clock(ticks: Ticks | None) -> ProbeClock:
    """The wall clock of a cell whose wakes were so late. The host that wakes it late stood still for as long, and for
    up to one tick more, and what was due then came late by as much.
    """
    if ticks is None or ticks.worst_ns <= CALM_NS:
        return WALL
    return replace(WALL, once_s=max(WALL.once_s, (ticks.worst_ns + ticks.every_ns) / 1e9))


def judge_profile(
    probe: Probe, cell_dir: Path, t0_realtime_ns: int, clock: ProbeClock
) -> tuple[list[ProbeRow], list[Curve]]:
    """Judge one finished cell of a profile. Raises CaptureError if its captures hold nothing to judge."""
    return judge_ways(probe, both_ways(cell_dir), t0_realtime_ns, clock)


def judge_ways(
    probe: Probe, ways: tuple[Way, Way], t0_realtime_ns: int, clock: ProbeClock
) -> tuple[list[ProbeRow], list[Curve]]:
    """The same, from the datagrams in both directions."""
    link = probe.cell.links[0]
    rows: list[ProbeRow] = []
    curves: list[Curve] = []
    (kind,) = probe.quantities
    if kind in ("errors", "rules", "ranges", "longer"):
        return list(judge_rules(probe, ways[0], t0_realtime_ns, clock.late_s)), []
    if kind == "buckets":
        return list(judge_buckets(probe, ways[0], t0_realtime_ns, clock.late_s)), []
    if link.forward.aqm is not None:
        return list(judge_aqm(probe, ways[0], t0_realtime_ns, clock.late_s)), []
    for name, way, shape in zip(("there", "back"), ways, (link.forward, link.backward), strict=True):
        if kind == "echoes":
            rows += _delays(probe, name, way, shape, clock)
            if clock is not VIRTUAL and (at_once := _waiting(way, shape)) > _room(shape):
                sent = f"this host sent {at_once} more at once than can be sent on, and the queue does not hold them"
                rows.append(ProbeRow.of(probe.name, f"INVALID: losses {name}: {sent}", 1, None, 0, "completed"))
            elif not link.forward.corrupt_ratio:
                rows += losses(probe, name, way, shape)
            elif name == "there":
                rows += altered(probe, way, shape)
            rows += _order(probe, name, way, shape)
            curves += _curves(probe, name, way, shape)
        elif kind == "bursts" and len(way.sent_ns):
            rows += _queue(probe, name, way, shape, clock)
        elif kind == "events" and name == "there":
            rows += _events(probe, way, t0_realtime_ns, clock)
        elif kind == "changes" and name == "there":
            rows += _rates(probe, way, t0_realtime_ns, clock)
    if kind == "echoes":
        rows += _rtt(probe, ways, (link.forward, link.backward), clock)
    return rows, curves


def _extra_s(shape: LinkImpairment) -> float:
    """The time that a single datagram needs beside the delay line: its sending time at the rate; 0 for a token bucket
    (queue_bytes), which has tokens for a single packet.
    """
    return 0.0 if shape.queue_bytes is not None else sending_ns(shape, PROBE_BYTES) / 1e9


def _waiting(way: Way, shape: LinkImpairment) -> int:
    """The most datagrams that have to wait at once, by when they were sent: a host that stood still sends together all
    that were due meanwhile.
    """
    each_ns, wait_ns, longest_ns = sending_ns(shape, PROBE_BYTES), 0, 0
    for gap_ns in np.diff(way.sent_ns):
        wait_ns = max(0, wait_ns + each_ns - int(gap_ns))
        longest_ns = max(longest_ns, wait_ns)
    return -(-longest_ns // each_ns) if each_ns else 0


def _room(shape: LinkImpairment) -> float:
    """The number of datagrams that its queue holds."""
    if shape.queue_bytes is not None:
        return shape.queue_bytes // (PROBE_BYTES + shape.header_bytes)
    return math.inf if shape.queue_packets is None else shape.queue_packets


def _delays(probe: Probe, name: str, way: Way, shape: LinkImpairment, clock: ProbeClock) -> Iterator[ProbeRow]:
    measured, expected = way.delays_s - _extra_s(shape), delays_of(shape)
    count = len(measured)

    def delay_row(
        what: str, configured_s: float, measured_s: float, bound_s: float, late_s: float = clock.late_s
    ) -> ProbeRow:
        value = float(measured_s) if count else None
        return ProbeRow.of(probe.name, f"one-way delay {name}, {what}", configured_s, value, bound_s + late_s, "s")

    if not expected.width_s:
        yield delay_row("least", expected.mean_s, measured.min(initial=np.inf), 0.0)
        if clock is VIRTUAL:
            yield delay_row("greatest", expected.mean_s, measured.max(initial=-np.inf), 0.0)
        else:  # one datagram in thousands may meet a host that is busy
            yield delay_row("median", expected.mean_s, np.median(measured) if count else 0.0, 0.0)
        return
    mean, deviation = (measured.mean(), measured.std()) if count else (0.0, 0.0)
    yield delay_row("mean", expected.mean_s, mean, expected.mean_bound_s(count))
    bound_s = expected.deviation_bound_s(count)
    yield delay_row("standard deviation", expected.deviation_s, deviation, bound_s, clock.once_s)
    distance = expected.distance(measured, clock.late_s) if count else None
    yield ProbeRow.of(
        probe.name, f"delays {name}, distance from the distribution", 0, distance, distance_bound(count), "ratio"
    )


def _order(probe: Probe, name: str, way: Way, shape: LinkImpairment) -> Iterator[ProbeRow]:
    if shape.reorder_ratio:
        ratio = overtakers(shape.reorder_ratio) / 4096
        early = int((way.delays_s < shape.one_way_delay_ns / 2e9).sum())
        yield from share(probe, f"overtaking {name}", ratio, early, int(way.came.sum()))
    elif shape.keeps_order or not shape.jitter_ns:
        yield ProbeRow.of(probe.name, f"overtaken {name}", 0, way.overtaken, 0, "packets")


def _rtt(
    probe: Probe, ways: tuple[Way, Way], shapes: tuple[LinkImpairment, LinkImpairment], clock: ProbeClock
) -> Iterator[ProbeRow]:
    """Round-trip times, from sending at host a to the arrival of the echo at a. The k-th datagram that arrived at b is
    paired with the k-th that b sent.
    """
    there, back = ways
    if there.again or there.strangers:
        return
    echo = there.arrival[there.came]
    home = back.arrival[echo[echo < len(back.arrival)]]
    sent = there.sent_ns[there.came][: len(home)][home >= 0]
    rtt = (back.arrived_ns[home[home >= 0]] - sent) / 1e9
    there_delays, back_delays = (delays_of(shape) for shape in shapes)
    configured = there_delays.mean_s + back_delays.mean_s + sum(_extra_s(shape) for shape in shapes)
    count = max(1, len(rtt))
    bound = math.hypot(there_delays.mean_bound_s(count), back_delays.mean_bound_s(count)) + 2 * clock.late_s
    yield ProbeRow.of(probe.name, "RTT, mean", configured, float(rtt.mean()) if len(rtt) else None, bound, "s")


def _queue(probe: Probe, name: str, way: Way, shape: LinkImpairment, clock: ProbeClock) -> Iterator[ProbeRow]:
    """The number of packets waiting in the hop when each packet of the burst arrives there, after the delay line."""
    came = way.came
    enters = way.sent_ns + shape.one_way_delay_ns
    leaves = way.arrived_ns[way.arrival[came]]
    sizes = way.ip_bytes + shape.header_bytes
    gone = np.searchsorted(leaves, enters, side="right")
    dropped = ~came
    rate = float(shape.rate_bit_s or 0)
    if clock is not VIRTUAL and not dropped.any():
        took = (int(way.sent_ns[-1]) - int(way.sent_ns[0])) / 1e9
        sending = f"sending took this host {given(1e3 * took, 3)} ms, too long to fill the queue"
        quantity = f"INVALID: queue and rate {name}: {sending}"
        yield ProbeRow.of(probe.name, quantity, 1, None, 0, "completed")
        return
    # how many packets leave in the time by which any time may be late; in virtual time not one
    slack = 0 if clock is VIRTUAL else math.ceil(rate * clock.once_s / 8 / float(sizes.mean()))
    if shape.queue_bytes is None:
        inside = np.cumsum(came) - came - gone - 1
        limit, unit = float(shape.queue_packets or 0), "packets"
        least = float(inside[dropped].min()) if dropped.any() else None
        yield ProbeRow.of(probe.name, f"queue {name}, fewest waiting when one was dropped", limit, least, slack, unit)
        yield ProbeRow.of(probe.name, f"queue {name}, most ever waiting", limit, float(inside.max()), slack, unit)
    else:
        left = np.concatenate([[0], np.cumsum(sizes[came])])[gone]
        inside = np.cumsum(np.where(came, sizes, 0)) - np.where(came, sizes, 0) - left + sizes
        limit = float(shape.queue_bytes)
        wrong, taken = int((inside[dropped] <= limit).sum()), int((inside[came] > limit).sum())
        yield ProbeRow.of(probe.name, f"queue {name}, dropped though there was room", 0, wrong, slack, "packets")
        yield ProbeRow.of(probe.name, f"queue {name}, taken though there was none", 0, taken, slack, "packets")
        most, bound = float(inside[came].max()), float(sizes.min() + slack * sizes.mean())
        yield ProbeRow.of(probe.name, f"queue {name}, most bytes ever waiting", limit, most, bound, "byte")
        yield ProbeRow.of(probe.name, f"queue {name}, packets dropped (any)", 1, float(dropped.any()), 0, "ratio")
    first = 1 if shape.queue_bytes is None else 2  # the first two of a token bucket come together
    bits, took = 8 * float(sizes[came][first:].sum()), (int(leaves[-1]) - int(leaves[first - 1])) / 1e9
    yield ProbeRow.of(
        probe.name, f"rate {name} ({shape.layer})", rate, bits / took, rate * 2 * clock.once_s / took, "bit/s"
    )
    if shape.queue_bytes is None:
        largest = float(way.ip_bytes[came].max())
        yield ProbeRow.of(probe.name, f"largest packet {name}", probe.cell.links[0].mtu_bytes, largest, 0, "byte")


def _rates(probe: Probe, way: Way, t0_ns: int, clock: ProbeClock) -> Iterator[ProbeRow]:
    """The rate at which equal packets that wait leave, from each change on. The first is sent at the rate of before,
    and so is what leaves until a late change: the bound is of the higher rate.
    """
    leaves = np.sort(way.arrived_ns) - t0_ns
    until = [*list(CHANGED_NS)[1:], int(leaves[-1]) + 1]
    before = 0
    for (since, rate), end in zip(CHANGED_NS.items(), until, strict=True):
        inside = leaves[(leaves > since) & (leaves < end)]
        took = float(inside[-1] - inside[0]) / 1e9 if len(inside) > 1 else math.nan
        bits = 8.0 * probe.cell.links[0].mtu_bytes * (len(inside) - 1)
        bound, before = max(rate, before) * 2 * clock.once_s / took, rate
        quantity = f"rate there from {given(since / 1e9)} s on"
        yield ProbeRow.of(probe.name, quantity, rate, bits / took if len(inside) > 1 else None, bound, "bit/s")


def _events(probe: Probe, way: Way, t0_ns: int, clock: ProbeClock) -> Iterator[ProbeRow]:
    """Of the two datagrams 5 us before and after an event exactly one must arrive; after a changed delay each has its
    own delay.
    """
    at = way.sent_ns - t0_ns
    delays = np.where(way.came, (way.arrived_ns[way.arrival] - way.sent_ns) / 1e9, np.nan)
    shape = probe.cell.links[0].forward
    for number, event in enumerate(probe.cell.timeline):
        beside = [int(np.abs(at - event.at_ns - side).argmin()) for side in (-BRACKET_NS, BRACKET_NS)]
        farther = max(abs(int(at[index]) - event.at_ns) for index in beside) / 1e9
        through = [bool(way.came[index]) for index in beside]
        moment = f"{event.name} {event.action} at {given(event.at_ns / 1e9)} s"
        if event.action in ("blackhole", "cut", "link", "repair"):
            word, ok = ("was lost", [False, True]) if event.action == "repair" else ("arrived", [True, False])
            quantity = f"{moment}: the last before it {word}, the first after it not"
            yield ProbeRow.of(probe.name, quantity, 0, farther if through == ok else None, clock.late_s, "s")
        elif event.forward is not None:
            changes = [other.at_ns for other in probe.cell.timeline if other.action == "change"]
            until = min((at_ns for at_ns in changes if at_ns > event.at_ns), default=int(at.max()))
            settled = event.at_ns + shape.one_way_delay_ns + 10**9
            phase = delays[(at > settled) & (at < until)]
            phase = phase[~np.isnan(phase)] - _extra_s(event.forward)
            following = [other.at_ns for other in probe.cell.timeline[number + 1 :] if other.action == "change"]
            if len(phase) < 2 or event.at_ns in following:
                continue  # another change of the same instant has the last word
            delay = event.forward.one_way_delay_ns / 1e9
            for what, value in (("least", float(phase.min())), ("greatest", float(phase.max()))):
                yield ProbeRow.of(probe.name, f"{moment}: delay from then on, {what}", delay, value, clock.late_s, "s")


def _curves(probe: Probe, name: str, way: Way, shape: LinkImpairment) -> Iterator[Curve]:
    expected, measured = delays_of(shape), way.delays_s - _extra_s(shape)
    if expected.width_s and len(measured) and not shape.reorder_ratio:
        yield _cumulative(probe.name, name, expected, measured)
    if shape.burst_loss is not None and (runs := run_lengths(~way.came)).size:
        r = shape.burst_loss.r_ratio
        lengths = range(1, min(int(runs.max()), 12) + 1)
        yield Curve(
            probe=probe.name,
            title=f"Runs of lost packets {name}",
            x_label="packets in a row",
            y_label="share of runs",
            x=tuple(map(float, lengths)),
            measured=tuple(float((runs == length).mean()) for length in lengths),
            configured=tuple(r * (1 - r) ** (length - 1) for length in lengths),
            bars=True,
        )


def _cumulative(probe: str, name: str, expected: Delays, measured: Floats) -> Curve:
    low, high = (float(edge) for edge in (expected.values_s[0], expected.values_s[-1]))
    x = np.linspace(low - 0.02 * (high - low), high + 0.02 * (high - low), CURVE_POINTS)
    ordered = np.sort(measured)
    return Curve(
        probe=probe,
        title=f"One-way delay {name}",
        x_label="ms",
        y_label="share of packets not above",
        x=tuple(float(value) for value in 1e3 * x),
        measured=tuple(float(v) for v in np.searchsorted(ordered, x, side="right") / len(ordered)),
        configured=tuple(
            float(v) for v in np.searchsorted(expected.values_s, x, side="right") / len(expected.values_s)
        ),
    )
