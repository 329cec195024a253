"""A profile measured against itself: rows with bounds from arithmetic or statistics, and the curves behind them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...core.numbers import given
from ...core.types import Event, Frozen, GilbertElliott, LinkImpairment
from ...testbed.delays import overtakers
from .datagrams import Way, both_ways
from .expected_delays import Delays, Floats, binomial_bound, chain_bound, chi_square_bound, delays_of, distance_bound
from .probes import Probe
from .profile_probes import BRACKET_NS, PROBE_BYTES, sending_ns
from .row import Row

CURVE_POINTS = 101
LONGEST_RUN = 6
FOUND_BITS = 8 * (62 + 13 + 1 + 2) + 14
"""Bits of a probe's frame whose flip makes another packet of it: 62 bytes of UDP and payload and 13 of the IP header in
its fingerprint (apps/analyzer/identity.c), IP's version and the Ethernet type, and what makes a fragment of it. Not
found: MAC addresses, TOS, TTL, IP's and UDP's checksum, the end of the payload."""


@dataclass(frozen=True, slots=True)
class Clock:
    """late_s: by how much a time may be late. In virtual time that is the granularity of timers, else the host's."""

    late_s: float


VIRTUAL = Clock(late_s=10e-6)
WALL = Clock(late_s=10e-3)
"""What is later than that is INVALID anyhow (backends: lateness_ns)."""


class Curve(Frozen, frozen=True):
    """Two lines for the eye: measured and configured over x."""

    probe: str
    title: str
    x_label: str
    y_label: str
    x: tuple[float, ...]
    measured: tuple[float, ...]
    configured: tuple[float, ...]
    bars: bool = False


def judge_profile(probe: Probe, cell_dir: Path, t0_realtime_ns: int, clock: Clock) -> tuple[list[Row], list[Curve]]:
    """Judge one finished cell of a profile. Raises CaptureError where there is nothing to judge."""
    return judge_ways(probe, both_ways(cell_dir), t0_realtime_ns, clock)


def judge_ways(probe: Probe, ways: tuple[Way, Way], t0_realtime_ns: int, clock: Clock) -> tuple[list[Row], list[Curve]]:
    """The same from the datagrams there and back."""
    link = probe.cell.links[0]
    rows: list[Row] = []
    curves: list[Curve] = []
    (kind,) = probe.quantities
    for name, way, shape in zip(("there", "back"), ways, (link.forward, link.backward), strict=True):
        if kind == "echoes":
            rows += _delays(probe, name, way, shape, clock)
            if not link.forward.corrupt_ratio:
                rows += _losses(probe, name, way, shape)
            elif name == "there":
                rows += _altered(probe, way, shape)
            rows += _order(probe, name, way, shape)
            curves += _curves(probe, name, way, shape)
        elif kind == "bursts" and len(way.sent_ns):
            rows += _queue(probe, name, way, shape, clock)
        elif kind == "events" and name == "there":
            rows += _events(probe, way, t0_realtime_ns, clock)
    if kind == "echoes":
        rows += _rtt(probe, ways, (link.forward, link.backward), clock)
    return rows, curves


def _row(probe: Probe, quantity: str, configured: float, measured: float | None, bound: float, unit: str) -> Row:
    return Row.of(probe.name, quantity, configured, measured, bound, unit)


def _extra_s(shape: LinkImpairment) -> float:
    """What a lonely datagram needs beside the delay line: its sending time, which a token bucket does not take."""
    return 0.0 if shape.queue_bytes is not None else sending_ns(shape, PROBE_BYTES) / 1e9


def _delays(probe: Probe, name: str, way: Way, shape: LinkImpairment, clock: Clock) -> Iterator[Row]:
    measured, expected = way.delays_s - _extra_s(shape), delays_of(shape)
    count = len(measured)
    if not expected.width_s:
        yield _row(probe, f"one-way delay {name}, least", expected.mean_s, _least(measured), clock.late_s, "s")
        if clock is VIRTUAL:
            yield _row(
                probe, f"one-way delay {name}, greatest", expected.mean_s, _greatest(measured), clock.late_s, "s"
            )
        else:  # one datagram in thousands may meet a host that is busy
            middle = float(np.median(measured)) if count else None
            yield _row(probe, f"one-way delay {name}, median", expected.mean_s, middle, clock.late_s, "s")
        return
    mean = float(measured.mean()) if count else None
    deviation = float(measured.std()) if count else None
    yield _row(
        probe, f"one-way delay {name}, mean", expected.mean_s, mean, expected.mean_bound_s(count) + clock.late_s, "s"
    )
    yield _row(
        probe, f"one-way delay {name}, standard deviation", expected.deviation_s, deviation,
        expected.deviation_bound_s(count) + clock.late_s, "s",
    )  # fmt: skip
    distance = expected.distance(measured, clock.late_s) if count else None
    yield _row(probe, f"delays {name}, distance from the distribution", 0, distance, distance_bound(count), "ratio")


def _least(values: Floats) -> float | None:
    return float(values.min()) if len(values) else None


def _greatest(values: Floats) -> float | None:
    return float(values.max()) if len(values) else None


def _losses(probe: Probe, name: str, way: Way, shape: LinkImpairment) -> Iterator[Row]:
    came, sent = way.came, len(way.sent_ns)
    lost = int(sent - came.sum())
    if shape.burst_loss is not None:
        yield from _gilbert(probe, name, ~came, shape.burst_loss)
    else:
        yield from _share(probe, f"loss {name} of {sent} packets", shape.loss_ratio, lost, sent)
    if shape.duplicate_ratio:
        yield from _share(probe, f"duplicated {name}", shape.duplicate_ratio, way.again, sent)
    else:
        yield _row(probe, f"twice or altered {name}", 0, way.again + way.strangers, 0, "packets")


def _share(probe: Probe, quantity: str, ratio: float, seen: int, tries: int) -> Iterator[Row]:
    """A share against its ratio. Left out where so few are expected that none at all would pass as well: that would
    measure nothing (on the wall clock there is little time)."""
    bound = binomial_bound(tries, ratio)
    if tries and (bound < ratio or not ratio):
        yield _row(probe, quantity, ratio, seen / tries, bound, "ratio")


def _altered(probe: Probe, way: Way, shape: LinkImpairment) -> Iterator[Row]:
    """netem flips one bit anywhere in the frame; found are those flips by which the packet is not known again."""
    sent, ratio = len(way.sent_ns), shape.corrupt_ratio * FOUND_BITS / (8 * (PROBE_BYTES + 14))
    yield from _share(probe, "altered there, where it shows", ratio, sent - int(way.came.sum()), sent)


def _gilbert(probe: Probe, name: str, lost: np.ndarray, model: GilbertElliott) -> Iterator[Row]:
    """With all lost in the bad state and none in the good one, each packet's fate is the chain's state: its two
    probabilities are counted, and the runs of lost packets are geometric."""
    p, r, count = model.p_ratio, model.r_ratio, len(lost)
    share = (p * model.bad_loss_ratio + r * model.good_loss_ratio) / (p + r)
    bound = max(model.bad_loss_ratio, 1 - model.good_loss_ratio) * chain_bound(count, p, r)
    if bound >= share:
        return
    yield _row(probe, f"loss {name} of {count} packets", share, float(lost.mean()), bound, "ratio")
    if (model.bad_loss_ratio, model.good_loss_ratio) != (1.0, 0.0):
        return
    before, after = lost[:-1], lost[1:]
    for what, state, ratio in (("good to bad", ~before, p), ("bad to good", before, r)):
        turned = int((state & (after != before)).sum())
        yield from _share(probe, f"{what} {name}", ratio, turned, int(state.sum()))
    runs = run_lengths(lost)
    yield _row(probe, f"mean run of losses {name}", 1 / r, float(runs.mean()), _run_bound(r, len(runs)), "packets")
    statistic, freedom = chi_square(runs, r)
    if freedom:
        yield _row(
            probe, f"runs of losses {name}, chi-square of {len(runs)}", 0, statistic, chi_square_bound(freedom), "ratio"
        )


def _run_bound(r: float, count: int) -> float:
    """A geometric run has the mean 1 / r and the variance (1 - r) / r^2. 1.5 times the normal bound: a long tail."""
    return 1.5 * 4.417 * math.sqrt((1 - r) / count) / r if count else 0.0


def run_lengths(lost: np.ndarray) -> np.ndarray:
    """The lengths of the runs of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], lost, [False]]).astype(np.int8)))
    return edges[1::2] - edges[::2]


def chi_square(runs: np.ndarray, r: float) -> tuple[float, int]:
    """(statistic, degrees of freedom) of run lengths against the geometric distribution; longer ones are put together
    until 5 are expected in every class."""
    count, classes = len(runs), 0
    while count * (1 - r) ** classes * r >= 5 and classes < LONGEST_RUN and count * (1 - r) ** (classes + 1) >= 5:
        classes += 1
    if not classes:
        return 0.0, 0
    ratios = [r * (1 - r) ** k for k in range(classes)]
    expected = count * np.array([*ratios, 1 - sum(ratios)])
    seen = np.array([*((runs == k + 1).sum() for k in range(classes)), (runs > classes).sum()])
    return float(((seen - expected) ** 2 / expected).sum()), classes


def _order(probe: Probe, name: str, way: Way, shape: LinkImpairment) -> Iterator[Row]:
    if shape.reorder_ratio:
        ratio = overtakers(shape.reorder_ratio) / 4096
        early = int((way.delays_s < shape.one_way_delay_ns / 2e9).sum())
        yield from _share(probe, f"overtaking {name}", ratio, early, int(way.came.sum()))
    elif shape.keeps_order or not shape.jitter_ns:
        yield _row(probe, f"overtaken {name}", 0, way.overtaken, 0, "packets")


def _rtt(
    probe: Probe, ways: tuple[Way, Way], shapes: tuple[LinkImpairment, LinkImpairment], clock: Clock
) -> Iterator[Row]:
    """From sent at a to its echo back at a. The k-th that came to b is the k-th that b sends."""
    there, back = ways
    if there.again or there.strangers:
        return
    echo = there.place[there.came]
    home = back.place[echo[echo < len(back.place)]]
    sent = there.sent_ns[there.came][: len(home)][home >= 0]
    rtt = (back.arrived_ns[home[home >= 0]] - sent) / 1e9
    one, other = (delays_of(shape) for shape in shapes)
    configured = one.mean_s + other.mean_s + sum(_extra_s(shape) for shape in shapes)
    count = max(1, len(rtt))
    bound = math.hypot(one.mean_bound_s(count), other.mean_bound_s(count)) + 2 * clock.late_s
    yield _row(probe, "RTT, mean", configured, float(rtt.mean()) if len(rtt) else None, bound, "s")


def _queue(probe: Probe, name: str, way: Way, shape: LinkImpairment, clock: Clock) -> Iterator[Row]:
    """What waits in the hop as each packet of the burst comes to it, after the delay line."""
    came = way.came
    enters = way.sent_ns + shape.one_way_delay_ns
    leaves = way.arrived_ns[way.place[came]]
    sizes = way.ip_bytes + (14 if shape.layer == "ethernet" else 0)
    gone = np.searchsorted(leaves, enters, side="right")
    dropped = ~came
    rate = float(shape.rate_bit_s or 0)
    if clock is not VIRTUAL and not dropped.any():
        took = (int(way.sent_ns[-1]) - int(way.sent_ns[0])) / 1e9
        sending = f"sending took this host {given(1e3 * took, 3)} ms, too long to fill the queue"
        said = f"INVALID: queue and rate {name}: {sending}"
        yield _row(probe, said, 1, None, 0, "completed")
        return
    # how many packets leave in the time by which any time may be late; in virtual time not one
    slack = 0 if clock is VIRTUAL else math.ceil(rate * clock.late_s / 8 / float(sizes.mean()))
    if shape.queue_bytes is None:
        inside = np.cumsum(came) - came - gone - 1
        limit, unit = float(shape.queue_packets or 0), "packets"
        least = float(inside[dropped].min()) if dropped.any() else None
        yield _row(probe, f"queue {name}, fewest waiting when one was dropped", limit, least, slack, unit)
        yield _row(probe, f"queue {name}, most ever waiting", limit, float(inside.max()), slack, unit)
    else:
        left = np.concatenate([[0], np.cumsum(sizes[came])])[gone]
        inside = np.cumsum(np.where(came, sizes, 0)) - np.where(came, sizes, 0) - left + sizes
        limit = float(shape.queue_bytes)
        wrong, taken = int((inside[dropped] <= limit).sum()), int((inside[came] > limit).sum())
        yield _row(probe, f"queue {name}, dropped though there was room", 0, wrong, slack, "packets")
        yield _row(probe, f"queue {name}, taken though there was none", 0, taken, slack, "packets")
        most, bound = float(inside[came].max()), float(sizes.min() + slack * sizes.mean())
        yield _row(probe, f"queue {name}, most bytes ever waiting", limit, most, bound, "byte")
        yield _row(probe, f"queue {name}, packets dropped (any)", 1, float(dropped.any()), 0, "ratio")
    first = 1 if shape.queue_bytes is None else 2  # the first two of a token bucket come together
    bits, took = 8 * float(sizes[came][first:].sum()), (int(leaves[-1]) - int(leaves[first - 1])) / 1e9
    yield _row(probe, f"rate {name} ({shape.layer})", rate, bits / took, rate * 2 * clock.late_s / took, "bit/s")
    if shape.queue_bytes is None:
        largest = float(way.ip_bytes[came].max())
        yield _row(probe, f"largest packet {name}", probe.cell.links[0].mtu_bytes, largest, 0, "byte")


def _events(probe: Probe, way: Way, t0_ns: int, clock: Clock) -> Iterator[Row]:
    """Of the two datagrams 5 us beside a moment just one got through; of a changed delay, each has its own."""
    at = way.sent_ns - t0_ns
    delays = np.where(way.came, (way.arrived_ns[way.place] - way.sent_ns) / 1e9, np.nan)
    shape = probe.cell.links[0].forward
    for event in probe.cell.timeline:
        beside = [_nearest(at, event.at_ns + side) for side in (-BRACKET_NS, BRACKET_NS)]
        farther = max(abs(int(at[index]) - event.at_ns) for index in beside) / 1e9
        through = [bool(way.came[index]) for index in beside]
        if event.action in ("blackhole", "cut"):
            ok = through == [True, False]
            yield _row(probe, _moment(event, "the last before it arrived, the first after it not"), 0,
                       farther if ok else None, clock.late_s, "s")  # fmt: skip
        elif event.action == "repair":
            ok = through == [False, True]
            yield _row(probe, _moment(event, "the last before it was lost, the first after it not"), 0,
                       farther if ok else None, clock.late_s, "s")  # fmt: skip
        elif event.forward is not None:
            later = [one.at_ns for one in probe.cell.timeline if one.action == "change" and one.at_ns > event.at_ns]
            until = min(later, default=int(at.max()))
            settled = event.at_ns + shape.one_way_delay_ns + 10**9
            phase = delays[(at > settled) & (at < until)]
            phase = phase[~np.isnan(phase)] - _extra_s(event.forward)
            if len(phase) < 2 or any(
                one.action == "change" and one.at_ns == event.at_ns and one is not event for one in _after(probe, event)
            ):
                continue  # another change of the same instant has the last word
            delay = event.forward.one_way_delay_ns / 1e9
            for what, value in (("least", float(phase.min())), ("greatest", float(phase.max()))):
                yield _row(probe, _moment(event, f"delay from then on, {what}"), delay, value, clock.late_s, "s")


def _after(probe: Probe, event: Event) -> Iterator[Event]:
    seen = False
    for one in probe.cell.timeline:
        if seen:
            yield one
        seen = seen or one is event


def _moment(event: Event, what: str) -> str:
    return f"{event.name} {event.action} at {given(event.at_ns / 1e9)} s: {what}"


def _nearest(at_ns: np.ndarray, moment_ns: int) -> int:
    return int(np.abs(at_ns - moment_ns).argmin())


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
