"""The datagrams of a probe as both hosts captured them, and what to expect of a link by its configuration: delays with
statistical bounds, rows that compare losses, duplicates and altered datagrams with exact binomial bounds, for
Gilbert-Elliott loss with its Markov chain's.

Delays are those of sch_netem.c (tabledist): the delay plus jitter x table / 8192, or uniform; never below 0.
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ...captures.capture import read_captures
from ...captures.hop_joins import NOWHERE, match_packets
from ...captures.native import Bools, Floats, Ints, Rows
from ...core.errors import CaptureError
from ...core.link_types import GilbertElliott, LinkImpairment
from ...core.types import Cell
from ...core.wire import UDP
from ...store.probe_rows import ProbeRow
from ...testbed.netem import distribution_of, quantiles, spread_ns

ALPHA = 1e-5
"""The probability that one row of the calibration fails by chance. Every statistical bound has this level."""
Z = 4.417
"""Two-sided quantile of the normal distribution at ALPHA: change both together."""
UNIFORM_STEPS = 4096
PROBE_BYTES = 100
"""Size of a datagram where none is to wait for another."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A cell and the names of the quantities judged from its captures."""

    name: str
    cell: Cell
    quantities: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Way:
    """The datagrams of one direction. Times in ns since 1970. For each datagram sent: its size, and its row among the
    arrived ones (or NOWHERE).
    """

    sent_ns: Ints
    ip_bytes: Ints
    arrived_ns: Ints
    arrival: Ints
    again: int
    """Arrived a second time."""
    strangers: int
    """Arrived as something that was never sent: corrupted."""
    copies: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """The number of arrivals of each datagram sent."""
    last_arrival: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """The row of its last arrival (or NOWHERE)."""

    @property
    def came(self) -> Bools:
        """The datagrams that arrived."""
        came: Bools = self.arrival != NOWHERE
        return came

    @property
    def delays_s(self) -> Floats:
        """Delays of the datagrams that arrived, in the order sent."""
        came = self.came
        return (self.arrived_ns[self.arrival[came]] - self.sent_ns[came]) / 1e9

    @property
    def overtaken(self) -> int:
        """The number of those that arrived after one that was sent later."""
        order = self.arrival[self.came]
        return int((order < np.maximum.accumulate(order)).sum()) if len(order) else 0


def both_ways(cell_dir: Path) -> tuple[Way, Way]:
    """The datagrams from a to b, and those back. Raises CaptureError if none was sent."""
    near, far = (_identities(cell_dir, node) for node in ("a", "b"))
    there, back = (_way(near, far, 0), _way(far, near, 1))
    if not len(there.sent_ns):
        raise CaptureError(f"calibration: {cell_dir.name}: no datagram was sent")
    return there, back


def _identities(cell_dir: Path, node: str) -> tuple[Rows, Ints]:
    """The `identities` row of every datagram, with its direction: 0 from a to b."""
    capture = read_captures([cell_dir / "capture" / f"{node}-p1.pcap.zst"], ("packets", "identities"))
    rows = capture.identities
    packets = capture.packets[rows["packet"]]
    mine = (packets["protocol"] == UDP) & (rows["path"] < len(capture.paths))
    first_is_a = np.array([is_host_a(capture.address(path, 0)) for path in range(len(capture.paths))], dtype=np.bool_)
    rows = rows[mine]
    return rows, np.where(first_is_a[rows["path"]], rows["path_direction"], 1 - rows["path_direction"]).astype(np.int64)


def is_host_a(address: str) -> bool:
    """True if the address is host a's: of a link's two hosts the one listed first gets the lower address
    (testbed.layout).
    """
    if ":" in address:
        return int(ipaddress.IPv6Address(address)) >> 64 & 0xFFFF == 0
    return address.startswith("10.") and int(address.rsplit(".", 1)[1]) < 64


def _way(near: tuple[Rows, Ints], far: tuple[Rows, Ints], direction: int) -> Way:
    sent, arrived = (rows[way == direction] for rows, way in (near, far))
    matched = match_packets(sent, arrived)
    order = np.argsort(arrived["fingerprint"], kind="stable")
    ordered = arrived["fingerprint"][order]
    first, behind = (np.searchsorted(ordered, sent["fingerprint"], side=side) for side in ("left", "right"))
    known = int(np.isin(arrived["fingerprint"], sent["fingerprint"]).sum())
    return Way(
        sent_ns=sent["time_ns"].astype(np.int64),
        ip_bytes=sent["ip_bytes"].astype(np.int64),
        arrived_ns=arrived["time_ns"].astype(np.int64),
        arrival=matched.place,
        again=matched.again,
        strangers=len(arrived) - known,
        copies=(behind - first).astype(np.int64),
        last_arrival=np.where(behind > first, np.append(order, NOWHERE)[behind - 1], NOWHERE).astype(np.int64),
    )


@dataclass(frozen=True, slots=True)
class Delays:
    """A distribution of delays: equally likely values in s, ascending, and its moments."""

    values_s: Floats

    @property
    def mean_s(self) -> float:
        """Mean."""
        return float(self.values_s.mean())

    @property
    def deviation_s(self) -> float:
        """Standard deviation."""
        return float(self.values_s.std())

    @property
    def width_s(self) -> float:
        """Largest minus smallest delay."""
        return float(self.values_s[-1] - self.values_s[0])

    def mean_bound_s(self, count: int) -> float:
        """The most by which the mean of `count` draws may differ from the distribution's mean."""
        return Z * self.deviation_s / math.sqrt(count)

    def deviation_bound_s(self, count: int) -> float:
        """The most by which the standard deviation of `count` draws may be off: sqrt((m4 - sd^4) / n) / (2 sd), by the
        delta method, times the quantile.
        """
        sd = self.deviation_s
        fourth = float(((self.values_s - self.mean_s) ** 4).mean())
        return Z * math.sqrt(max(fourth - sd**4, 0.0) / count) / (2 * sd) if sd else 0.0

    def distance(self, measured_s: Floats, slack_s: float) -> float:
        """Kolmogorov-Smirnov distance of the measured delays from this distribution.

        Lateness of up to slack_s is not counted, nor earliness of up to slack_s / 10.
        """
        measured = np.sort(measured_s)
        steps = np.arange(len(measured) + 1) / len(measured)
        early = np.searchsorted(self.values_s, measured + slack_s / 10, side="right") / len(self.values_s)
        late = np.searchsorted(self.values_s, measured - slack_s, side="left") / len(self.values_s)
        return float(max((steps[1:] - early).max(), (late - steps[:-1]).max(), 0.0))


def distance_bound(count: int) -> float:
    """The bound of Dvoretzky, Kiefer and Wolfowitz (with Massart's constant): P(D > bound) <= ALPHA for every
    distribution.
    """
    return math.sqrt(math.log(2 / ALPHA) / (2 * count))


def delays_of(shape: LinkImpairment) -> Delays:
    """The distribution of delays of an impairment's delay line."""
    spread, delay = spread_ns(shape), shape.one_way_delay_ns
    name = distribution_of(shape)
    if not spread:
        values = np.array([float(delay)])
    elif name == "uniform":
        values = delay - spread + 2 * spread * (np.arange(UNIFORM_STEPS) + 0.5) / UNIFORM_STEPS
    else:
        values = delay + spread * np.array(quantiles(name)) / 8192
    return Delays(np.maximum(values, 0.0) / 1e9)


def binomial_bound(count: int, ratio: float) -> float:
    """The most by which the share of successes in `count` tries may differ from `ratio`: the exact binomial quantiles
    at ALPHA / 2, the farther of the two.
    """
    if not count or ratio in (0.0, 1.0):
        return 0.0
    k = np.arange(count + 1)
    logs = np.cumsum(np.log(np.arange(1, count + 1, dtype=np.float64)))
    factorial = np.concatenate([[0.0], logs])
    mass = np.exp(factorial[-1] - factorial - factorial[::-1] + k * math.log(ratio) + (count - k) * math.log1p(-ratio))
    below = np.cumsum(mass)
    low = int(np.searchsorted(below, ALPHA / 2))
    high = int(np.searchsorted(below, 1 - ALPHA / 2))
    return max(ratio - low / count, high / count - ratio)


def chain_bound(count: int, p: float, r: float) -> float:
    """The most by which the mean loss of a two-state Markov chain (Gilbert's model) may differ from p / (p + r) in
    `count` packets: its variance is that of independent losses times (1 + c) / (1 - c), c = 1 - p - r.
    """
    mean, c = p / (p + r), 1 - p - r
    return Z * math.sqrt(mean * (1 - mean) * (1 + c) / (1 - c) / count)


def chi_square_bound(freedom: int) -> float:
    """The quantile of chi-square at 1 - ALPHA, one-sided, by bisection."""
    low, high = 0.0, 1000.0
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _above(middle, freedom) > ALPHA else (low, middle)
    return high


def _above(x: float, freedom: int) -> float:
    """P(chi-square > x), by the finite sums for even and odd degrees of freedom."""
    term = math.sqrt(2 * x / math.pi) * math.exp(-x / 2) if freedom % 2 else math.exp(-x / 2)
    probability = math.erfc(math.sqrt(x / 2)) if freedom % 2 else 0.0
    for degree in range(1 if freedom % 2 else 0, freedom - 1, 2):
        probability += term
        term *= x / (degree + 2)
    return probability


LONGEST_RUN = 6
KNOWN_BITS = 8 * (62 + 13 + 1 + 2) + 14
"""Bits of a probe's frame whose flip makes another packet of it: 62 bytes of UDP and payload and 13 of the IP header in
its fingerprint (apps/analyzer/identity.c), IP's version and the Ethernet type, and what makes a fragment of it. Not
known: MAC addresses, TOS, TTL, IP's and UDP's checksum, the end of the payload."""


def losses(probe: Probe, name: str, way: Way, shape: LinkImpairment) -> Iterator[ProbeRow]:
    """Rows for lost and duplicated datagrams of a direction."""
    came, sent = way.came, len(way.sent_ns)
    lost = int(sent - came.sum())
    if shape.burst_loss is not None:
        yield from _gilbert_elliott(probe, name, ~came, shape.burst_loss)
    else:
        yield from share(probe, f"loss {name} of {sent} packets", shape.loss_ratio, lost, sent)
    if shape.duplicate_ratio:
        yield from share(probe, f"duplicated {name}", shape.duplicate_ratio, way.again, sent)
    else:
        yield ProbeRow.of(probe.name, f"twice or altered {name}", 0, way.again + way.strangers, 0, "packets")


def share(probe: Probe, quantity: str, ratio: float, seen: int, tries: int) -> Iterator[ProbeRow]:
    """A row that compares a share with its ratio. No row if so few are expected that zero would pass as well: that
    would measure nothing (on the wall clock there is little time).
    """
    bound = binomial_bound(tries, ratio)
    if tries and (bound < ratio or not ratio):
        yield ProbeRow.of(probe.name, quantity, ratio, seen / tries, bound, "ratio")


def altered(probe: Probe, way: Way, shape: LinkImpairment) -> Iterator[ProbeRow]:
    """netem flips one bit anywhere in the frame; the measured ones are those flips that make the packet's fingerprint
    unknown.
    """
    sent, ratio = len(way.sent_ns), shape.corrupt_ratio * KNOWN_BITS / (8 * (PROBE_BYTES + 14))
    yield from share(probe, "altered there, where it shows", ratio, sent - int(way.came.sum()), sent)


def _gilbert_elliott(probe: Probe, name: str, lost: np.ndarray, model: GilbertElliott) -> Iterator[ProbeRow]:
    """If every packet is lost in the bad state and none in the good one, each packet shows the state of the chain: its
    two transition probabilities are counted, and the runs of lost packets are geometric.
    """
    p, r, count = model.p_ratio, model.r_ratio, len(lost)
    lost_share = (p * model.bad_loss_ratio + r * model.good_loss_ratio) / (p + r)
    bound = max(model.bad_loss_ratio, 1 - model.good_loss_ratio) * chain_bound(count, p, r)
    if bound >= lost_share:
        return
    yield ProbeRow.of(probe.name, f"loss {name} of {count} packets", lost_share, float(lost.mean()), bound, "ratio")
    if (model.bad_loss_ratio, model.good_loss_ratio) != (1.0, 0.0):
        return
    before, after = lost[:-1], lost[1:]
    for what, state, ratio in (("good to bad", ~before, p), ("bad to good", before, r)):
        turned = int((state & (after != before)).sum())
        yield from share(probe, f"{what} {name}", ratio, turned, int(state.sum()))
    runs = run_lengths(lost)
    yield ProbeRow.of(
        probe.name, f"mean run of losses {name}", 1 / r, float(runs.mean()), _run_bound(r, len(runs)), "packets"
    )
    statistic, freedom = chi_square(runs, r)
    if freedom:
        yield ProbeRow.of(
            probe.name,
            f"runs of losses {name}, chi-square of {len(runs)}",
            0,
            statistic,
            chi_square_bound(freedom),
            "ratio",
        )


def _run_bound(r: float, count: int) -> float:
    """The bound for the mean of `count` geometric runs: mean 1 / r, variance (1 - r) / r^2. 1.5 times the normal bound,
    since the distribution has a long tail.
    """
    return 1.5 * 4.417 * math.sqrt((1 - r) / count) / r if count else 0.0


def run_lengths(lost: np.ndarray) -> np.ndarray:
    """The lengths of the runs of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], lost, [False]]).astype(np.int8)))
    return edges[1::2] - edges[::2]


def chi_square(runs: np.ndarray, r: float) -> tuple[float, int]:
    """(statistic, degrees of freedom) of run lengths against the geometric distribution; long runs are pooled until
    each class expects at least 5.
    """
    count, classes = len(runs), 0
    while count * (1 - r) ** classes * r >= 5 and classes < LONGEST_RUN and count * (1 - r) ** (classes + 1) >= 5:
        classes += 1
    if not classes:
        return 0.0, 0
    ratios = [r * (1 - r) ** k for k in range(classes)]
    expected = count * np.array([*ratios, 1 - sum(ratios)])
    seen = np.array([*((runs == k + 1).sum() for k in range(classes)), (runs > classes).sum()])
    return float(((seen - expected) ** 2 / expected).sum()), classes
