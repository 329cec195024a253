"""Calibrates active queue management by its own law, from the captures before and behind the queue.

The cells send datagrams at a constant rate, more than the link carries. They take no notice of losses, so what the
queue does is its own law. The link has no delay line: a packet comes to the queue when it is sent.

What comes too much is dropped, whatever the law; the law says when, and with what probability. Sources:
net/sched/sch_{red,pie,fq_codel,cake}.c and include/net/{red,codel_impl}.h of Linux 6.12. The packet whose turn is next
has left RED only when the link takes it; CoDel, fq_codel and PIE gave it out when the one before it had gone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...captures.native import Bools, Floats, Ints
from ...core.errors import CaptureError
from ...core.link_types import Aqm
from ...core.numbers import given
from ...core.types import Flow
from ...store.probe_rows import ProbeRow
from .datagram_probes import APART_NS, MS, PORTS, START_NS, S, probe_cell, read_link, send_words, sending_flow
from .datagrams import Probe, Way, Z, chi_square, chi_square_bound, share

RATE_BIT_S = 5_000_000
SIZE_BYTES = 1000
SENDING_NS = 8 * 10**9 * SIZE_BYTES // RATE_BIT_S
"""1.6 ms for a packet."""
SMALL_BYTES, LARGE_BYTES = 500, 1500
SETTLED_NS = 20 * S
"""From the first datagram until PIE's probability has settled."""
PIE_DROPS = 0.38
"""Share that cannot pass: PIE's probability is then near 0.61, where the second packet after a drop has the first
chance (PIE_SILENT)."""


DUALPI2_DROPS = 0.1
"""Share that cannot pass the classic queue: the square of DualPI2's probability, which is then 0.32."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Datagrams at a constant rate; drop_share: of them so many are too many for the link."""

    size_bytes: int
    interval_ns: int
    lasts_ns: int

    @property
    def count(self) -> int:
        """Their number."""
        return self.lasts_ns // self.interval_ns


def overload(drop_share: float, lasts_ns: int) -> Stream:
    """Datagrams of which this share cannot pass."""
    return Stream(SIZE_BYTES, round(SENDING_NS * (1 - drop_share)), lasts_ns)


RED = '{ kind = "red", min = "20 kB", max = "80 kB", max_p = "50 %", average = 7 }'
AQMS: dict[str, tuple[str, str, tuple[Stream, ...]]] = {
    **{
        f"red, {given(100 * share)} % too much": ("400 packets", RED, (overload(share, 30 * S),))
        for share in (0.03, 0.1, 0.2)
    },
    "codel": ("2000 packets", '{ kind = "codel", target = "5 ms", interval = "100 ms" }', (overload(0.1, 10 * S),)),
    "pie": (
        "2000 packets",
        '{ kind = "pie", target = "15 ms", update = "15 ms", alpha = 2, beta = 20 }',
        (overload(PIE_DROPS, 80 * S),),
    ),
    "fq_codel": (
        "20000 packets",
        '{ kind = "fq_codel", target = "200 ms", interval = "2 s", quantum = "1514 B" }',
        (Stream(LARGE_BYTES, 5 * MS // 2, 10 * S), Stream(SMALL_BYTES, MS, 10 * S)),
    ),
    "cake": ("8 MiB", '{ kind = "cake", rtt = "100 ms" }', (overload(0.1, 10 * S),)),
    "dualpi2": ("2000 packets", '{ kind = "dualpi2" }', (overload(DUALPI2_DROPS, 80 * S),)),
}
"""Name -> its hard limit, what a spec says, and what is sent. RED: so that the average stays between its thresholds.
fq_codel: a target that both flows' queues stay above, so that neither is ever empty."""


def aqm_probes(program: Path, seed: int = 1) -> tuple[Probe, ...]:
    """Every cell."""
    probes = []
    for name, (queue, aqm, streams) in AQMS.items():
        keys = f'[link.p1.forward]\nrate = "{RATE_BIT_S} bit/s"\nqueue = "{queue}"\naqm = {aqm}'
        link, _ = read_link(keys)
        assert link.forward.aqm is not None
        kind = link.forward.aqm.kind
        flows: list[Flow] = []
        end = START_NS + max(stream.lasts_ns for stream in streams) + 5 * S
        for port, stream in zip(PORTS, streams, strict=False):
            send = send_words(port, (stream.size_bytes,), stream.count, stream.interval_ns, START_NS, end)
            spawned_ns = len(flows) * APART_NS
            flows.append(sending_flow(f"datagrams-{port}", "a", "b", port, program, send, "sink", end, spawned_ns))
        cell = probe_cell(f"aqm {name}", link, tuple(flows), end, seed)
        probes.append(Probe(f"aqm: {name}", cell, (kind,)))
    return tuple(probes)


PIE_SILENT = 1
"""Packets after a drop that PIE never drops at a probability of 0.425 to 0.85: until their sum has reached 0.85."""
PIE_BOUND_S = 1.5e-3
"""Of PIE's mean: (0.425 + 1.25/s 30 ms) / (0.125/s 3,750 updates) is 1.0 ms: the probability may end as far from where
it began as its range of 0.425 to 0.85 is wide, and the delay 30 ms. The rest is for what is between two updates."""


def judge_aqm(probe: Probe, way: Way, t0_ns: int, late_s: float) -> Iterator[ProbeRow]:
    """Rows of one probe. way: the datagrams there. late_s: by how much a time may be late."""
    aqm = probe.cell.links[0].forward.aqm
    assert aqm is not None
    match aqm.kind:
        case "red":
            yield from _red(probe, way, aqm)
        case "codel":
            yield from _codel(probe, way, aqm, late_s)
        case "pie":
            yield from _pie(probe, way, aqm, t0_ns)
        case "dualpi2":
            yield from _dualpi2(probe, way, aqm, t0_ns)
        case "fq_codel":
            yield from _fairness(probe, way, aqm, t0_ns)
    yield from _rate(probe, way, t0_ns, late_s)


def _leaves_ns(way: Way) -> Ints:
    """The time at which each packet that came left the queue's link, in the order of arrival at the queue."""
    leaves: Ints = way.arrived_ns[way.arrival[way.came]]
    return leaves


def _given_out_ns(way: Way) -> Ints:
    """The time at which the queue gave out each packet that came: as the one before it had left, or at once."""
    before = np.concatenate([[0], _leaves_ns(way)[:-1]])
    given_out: Ints = np.maximum(before, way.sent_ns[way.came])
    return given_out


def _rate(probe: Probe, way: Way, t0_ns: int, late_s: float) -> Iterator[ProbeRow]:
    """Of what left from one second after the first datagram until the last was sent."""
    rate = float(probe.cell.links[0].forward.rate_bit_s or 0)
    leaves = np.sort(_leaves_ns(way))
    sizes = way.ip_bytes[way.came][np.argsort(_leaves_ns(way), kind="stable")]
    busy = (leaves > t0_ns + START_NS + S) & (leaves < way.sent_ns[-1])
    if busy.sum() < 100:
        raise CaptureError(f"calibration: {probe.name}: {int(busy.sum())} packets are too few to measure a rate")
    took = float(leaves[busy][-1] - leaves[busy][0]) / 1e9
    bits = 8 * float(sizes[busy][1:].sum())
    yield ProbeRow.of(probe.name, "rate (ip)", rate, bits / took, rate * 2 * late_s / took, "bit/s")


def _red(probe: Probe, way: Way, aqm: Aqm) -> Iterator[ProbeRow]:
    """The average of each packet as red_calc_qavg() makes it of the queue in the captures; between the thresholds a
    packet is dropped as soon as (average - min) x (packets since the last drop) reaches a number drawn evenly from
    0 to (max - min) / max_p. Given that it was not reached before, each packet's probability is known; the drops less
    the sum of these is a martingale, whose variance is the sum of p (1 - p).
    """
    low, high, weight = (int(aqm.settings[name]) for name in ("min_bytes", "max_bytes", "average"))
    drawn = 2**32 // (round(aqm.settings["max_p_ratio"] * 2**32) // (high - low))
    came = way.came
    average, since, reached = 0, -1, -1
    tries = dropped = below = above = 0
    expected = variance = 0.0
    for waiting, passed in zip(_waiting_bytes(way).tolist(), came.tolist(), strict=True):
        average += waiting - (average >> weight)
        if average < low << weight:
            since, below = -1, below + (not passed)
        elif average >= high << weight:
            since, above = -1, above + passed
        else:
            since += 1
            if not since:
                reached = -1
            chance = max(0, ((average - (low << weight)) >> weight) * since - reached) if since else 0
            ratio = min(1.0, chance / max(1, drawn - 1 - reached))
            reached += chance
            tries, expected, variance = tries + 1, expected + ratio, variance + ratio * (1 - ratio)
            if not passed:
                dropped, since, reached = dropped + 1, 0, -1
    yield ProbeRow.of(probe.name, "dropped below the lower threshold", 0, below, 0, "packets")
    yield ProbeRow.of(probe.name, "passed above the upper threshold", 0, above, 0, "packets")
    quantity = f"probability of a drop, mean of {tries} packets"
    bound = Z * math.sqrt(variance) / max(1, tries)
    yield ProbeRow.of(
        probe.name, quantity, expected / max(1, tries), dropped / tries if tries else None, bound, "ratio"
    )


def _waiting_bytes(way: Way) -> Ints:
    """Bytes in the queue when each packet comes to it, the one that is being sent included."""
    sizes = np.where(way.came, way.ip_bytes, 0)
    taken = np.cumsum(sizes) - sizes
    left = np.concatenate([[0], np.cumsum(way.ip_bytes[way.came])])
    waiting: Ints = taken - left[np.searchsorted(_leaves_ns(way), way.sent_ns, side="right")]
    return waiting


def _codel(probe: Probe, way: Way, aqm: Aqm, late_s: float) -> Iterator[ProbeRow]:
    """The first time that CoDel drops: an interval after the sojourn time went above the target, and from there on
    after interval / sqrt(n) each, at the next packet given out.
    """
    target_s, interval_s = (aqm.settings[f"{name}_ns"] / 1e9 for name in ("target", "interval"))
    at_s, sojourn_s = _sojourn_s(way)
    dropped = np.flatnonzero(~way.came)
    if not len(dropped):
        raise CaptureError(f"calibration: {probe.name}: nothing was dropped")
    first = int(dropped[0])
    under = np.flatnonzero(sojourn_s[:first] < target_s)
    above_s = at_s[under[-1] + 1]
    after = np.flatnonzero((sojourn_s < target_s) & way.came & (np.arange(len(at_s)) > first))
    dropped = dropped[dropped < (after[0] if len(after) else len(at_s))]
    slot_s = SENDING_NS / 1e9
    bound_s = slot_s / 2 + late_s
    began = float(at_s[first] - above_s) - slot_s / 2
    yield ProbeRow.of(probe.name, "sojourn time above the target until the first drop", interval_s, began, bound_s, "s")
    due_s = at_s[first] + _control_law_s(interval_s, len(dropped))
    late = (at_s[dropped[1:]] - due_s[: len(dropped) - 1] - slot_s / 2).tolist()
    quantity = f"{len(late)} drops after it, the farthest from interval / sqrt(n)"
    farthest = max(late, key=abs) if late else None
    yield ProbeRow.of(probe.name, quantity, 0, farthest, bound_s, "s")
    early = int((sojourn_s[~way.came] < target_s - late_s).sum())
    yield ProbeRow.of(probe.name, "dropped with a sojourn time below the target", 0, early, 0, "packets")


def _control_law_s(interval_s: float, count: int) -> Floats:
    """The sums of interval / sqrt(n) for n = 1, 2, ..., as the kernel has them: in steps of 1024 ns, and the root by
    one step of Newton's for each n, of 16 bits (codel_Newton_step).
    """
    interval, root, sums = int(interval_s * 1e9) >> 10, 0xFFFF, [0]
    for n in range(2, count + 2):
        sums.append(sums[-1] + (interval * (root << 16) >> 32))
        wide = root << 16
        value = ((3 << 32) - n * (wide * wide >> 32)) >> 2
        root = (value * wide >> 31) >> 16
    return np.array(sums[1:]) * 1024 / 1e9


def _sojourn_s(way: Way) -> tuple[Floats, Floats]:
    """The time at which each packet came out of the queue, s from the first datagram, and its time in it. One that was
    dropped at its head came out with the next that was not.
    """
    out = np.full(len(way.came), np.iinfo(np.int64).max)
    out[way.came] = _given_out_ns(way)
    out = np.minimum.accumulate(out[::-1])[::-1]
    never = out == np.iinfo(np.int64).max
    out[never] = out[~never].max()
    return (out - way.sent_ns[0]) / 1e9, (out - way.sent_ns) / 1e9


def _pie(probe: Probe, way: Way, aqm: Aqm, t0_ns: int) -> Iterator[ProbeRow]:
    """The mean sojourn time is the target: the probability is its integral and stays within its range. A packet is
    dropped with the probability p once the p of all since the last drop have come to 0.85, so the packets between two
    drops, less those that never are, have a geometric distribution; p follows from their mean, which is 1 / share.
    """
    settled: Bools = way.sent_ns > t0_ns + START_NS + SETTLED_NS
    sojourn = (_given_out_ns(way) - way.sent_ns[way.came])[settled[way.came]] / 1e9
    mean = float(sojourn.mean()) if len(sojourn) else None
    yield ProbeRow.of(probe.name, "sojourn time, mean", aqm.settings["target_ns"] / 1e9, mean, PIE_BOUND_S, "s")
    gaps = np.diff(np.flatnonzero(~way.came & settled))
    ratio = 1 / (1 / PIE_DROPS - PIE_SILENT)
    soon = int((gaps <= PIE_SILENT).sum())
    yield ProbeRow.of(probe.name, f"dropped within {PIE_SILENT} packets of the last", 0, soon, 0, "packets")
    at_once = int((gaps == PIE_SILENT + 1).sum())
    quantity = f"of {len(gaps)} drops, {PIE_SILENT + 1} packets after the last"
    yield from share(probe, quantity, ratio, at_once, len(gaps))
    statistic, freedom = chi_square(gaps - PIE_SILENT, ratio)
    bound = chi_square_bound(freedom) if freedom else 0
    yield ProbeRow.of(probe.name, "packets between two drops, chi-square", 0, statistic, bound, "ratio")


DUALPI2_BOUND_S = 1.5e-3
"""Of DualPI2's mean: its probability sums (delay - target) x 0.16 Hz each 16 ms, 3,750 times; it and 3.2 Hz x delay end
within 0.2 of where they began, which is 0.33 ms. Its delay is that of the packet at the head, up to 1.6 ms younger.
"""


def _dualpi2(probe: Probe, way: Way, aqm: Aqm, t0_ns: int) -> Iterator[ProbeRow]:
    """The classic queue (RFC 9332 2.4): the mean sojourn time is the target, as the probability is its integral; each
    packet is dropped on its own, with its square, so the packets from drop to drop have a geometric distribution.
    """
    settled: Bools = way.sent_ns > t0_ns + START_NS + SETTLED_NS
    sojourn = (_given_out_ns(way) - way.sent_ns[way.came])[settled[way.came]] / 1e9
    mean, target_s = float(sojourn.mean()) if len(sojourn) else None, aqm.settings["target_ns"] / 1e9
    yield ProbeRow.of(probe.name, "sojourn time, mean", target_s, mean, DUALPI2_BOUND_S, "s")
    gaps = np.diff(np.flatnonzero(~way.came & settled))
    yield from share(
        probe, f"of {len(gaps)} drops, the packet after the last", DUALPI2_DROPS, int((gaps == 1).sum()), len(gaps)
    )
    statistic, freedom = chi_square(gaps, DUALPI2_DROPS)
    bound = chi_square_bound(freedom) if freedom else 0
    yield ProbeRow.of(probe.name, "packets between two drops, chi-square", 0, statistic, bound, "ratio")


def _fairness(probe: Probe, way: Way, aqm: Aqm, t0_ns: int) -> Iterator[ProbeRow]:
    """Two flows of which both always wait, one of large packets and one of small: neither gets ahead by more than two
    packets and a quantum (Shreedhar and Varghese 1995, fairness of deficit round robin).
    """
    leaves = _leaves_ns(way)
    order = np.argsort(leaves, kind="stable")
    sizes = way.ip_bytes[way.came][order]
    both = (leaves[order] > t0_ns + START_NS + S) & (leaves[order] < way.sent_ns[-1])
    ahead = np.cumsum(np.where(sizes == LARGE_BYTES, sizes, -sizes)[both])
    bound = 2 * LARGE_BYTES + aqm.settings["quantum_bytes"]
    for what, value in (("large", ahead.max() - ahead[0]), ("small", ahead[0] - ahead.min())):
        quantity = f"bytes by which the flow of {what} packets gets ahead"
        yield ProbeRow.of(probe.name, quantity, 0, float(value), bound, "byte")
    few = int(min((sizes[both] == size).sum() for size in (LARGE_BYTES, SMALL_BYTES)) < 1000)
    yield ProbeRow.of(probe.name, "flows of which fewer than 1000 packets came", 0, few, 0, "packets")
