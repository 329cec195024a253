"""Judges losses, duplicates and altered datagrams of a link against the configured shares: with exact binomial bounds,
and for Gilbert-Elliott loss with those of its Markov chain.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ...core.types import GilbertElliott, LinkImpairment
from ...store.calibration import Row
from .datagram_probes import PROBE_BYTES
from .datagrams import Way
from .expected_delays import binomial_bound, chain_bound, chi_square_bound
from .tcp_probes import Probe

LONGEST_RUN = 6
KNOWN_BITS = 8 * (62 + 13 + 1 + 2) + 14
"""Bits of a probe's frame whose flip makes another packet of it: 62 bytes of UDP and payload and 13 of the IP header in
its fingerprint (apps/analyzer/identity.c), IP's version and the Ethernet type, and what makes a fragment of it. Not
known: MAC addresses, TOS, TTL, IP's and UDP's checksum, the end of the payload."""


def losses(probe: Probe, name: str, way: Way, shape: LinkImpairment) -> Iterator[Row]:
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
        yield Row.of(probe.name, f"twice or altered {name}", 0, way.again + way.strangers, 0, "packets")


def share(probe: Probe, quantity: str, ratio: float, seen: int, tries: int) -> Iterator[Row]:
    """A row that compares a share with its ratio. No row if so few are expected that zero would pass as well: that
    would measure nothing (on the wall clock there is little time).
    """
    bound = binomial_bound(tries, ratio)
    if tries and (bound < ratio or not ratio):
        yield Row.of(probe.name, quantity, ratio, seen / tries, bound, "ratio")


def altered(probe: Probe, way: Way, shape: LinkImpairment) -> Iterator[Row]:
    """netem flips one bit anywhere in the frame; the measured ones are those flips that make the packet's fingerprint
    unknown.
    """
    sent, ratio = len(way.sent_ns), shape.corrupt_ratio * KNOWN_BITS / (8 * (PROBE_BYTES + 14))
    yield from share(probe, "altered there, where it shows", ratio, sent - int(way.came.sum()), sent)


def _gilbert_elliott(probe: Probe, name: str, lost: np.ndarray, model: GilbertElliott) -> Iterator[Row]:
    """If every packet is lost in the bad state and none in the good one, each packet shows the state of the chain: its
    two transition probabilities are counted, and the runs of lost packets are geometric.
    """
    p, r, count = model.p_ratio, model.r_ratio, len(lost)
    lost_share = (p * model.bad_loss_ratio + r * model.good_loss_ratio) / (p + r)
    bound = max(model.bad_loss_ratio, 1 - model.good_loss_ratio) * chain_bound(count, p, r)
    if bound >= lost_share:
        return
    yield Row.of(probe.name, f"loss {name} of {count} packets", lost_share, float(lost.mean()), bound, "ratio")
    if (model.bad_loss_ratio, model.good_loss_ratio) != (1.0, 0.0):
        return
    before, after = lost[:-1], lost[1:]
    for what, state, ratio in (("good to bad", ~before, p), ("bad to good", before, r)):
        turned = int((state & (after != before)).sum())
        yield from share(probe, f"{what} {name}", ratio, turned, int(state.sum()))
    runs = run_lengths(lost)
    yield Row.of(
        probe.name, f"mean run of losses {name}", 1 / r, float(runs.mean()), _run_bound(r, len(runs)), "packets"
    )
    statistic, freedom = chi_square(runs, r)
    if freedom:
        yield Row.of(
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
