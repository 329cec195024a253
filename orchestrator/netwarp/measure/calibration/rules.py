"""Calibrates losses by the packet: bit errors against their formula for each length; rules for single packets and
packets that are too long, exactly. Datagrams on a link without a rate, so that each takes its one-way delay and nothing
else.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ...core.link_types import Link, LinkImpairment, PacketRange, PacketRule
from ...core.types import Event
from ...store.probe_rows import ProbeRow
from .datagram_probes import BRACKET_NS, MS, PORTS, START_NS, Budget, S, probe_cell, send_words, sending_flow
from .datagrams import Probe, Way, share

SIZES = (64, 576, 1500)
APART_NS = MS
DELAY_NS = 5 * MS
DROPPED, COPIED, LATE_NS = (3, 7, 500, 501, 999), (5, 7, 600), {9: 30 * MS, 600: 2 * MS, 700: 9 * MS}
"""Numbers of packets, and by how much they are late. 7 is dropped and copied (a drop wins), 600 copied and late."""
COUNT = 1000
EVERY = PacketRange(100, None, 100)
SOME = PacketRange(31, 38, 1)
LONGEST_BYTES = 848
HOLE_NS, REPAIR_NS = 2 * S + APART_NS // 2, 3 * S + APART_NS // 2
"""Between two datagrams."""
ERRORS: dict[str, LinkImpairment] = {
    "bit errors 1e-4": LinkImpairment(one_way_delay_ns=DELAY_NS, bit_error_ratio=1e-4),
    "bit errors 1e-5": LinkImpairment(one_way_delay_ns=DELAY_NS, bit_error_ratio=1e-5),
    "byte errors 1e-4 of frames": LinkImpairment(one_way_delay_ns=DELAY_NS, byte_error_ratio=1e-4, layer="ethernet"),
}


def rule_probes(program: Path, budget: Budget, seed: int = 1) -> tuple[Probe, ...]:
    """Every cell."""
    probes = []
    for name, shape in ERRORS.items():
        count = budget.datagrams(len(SIZES) * budget.many, APART_NS)
        probes.append(_probe(name, "errors", shape, SIZES, count, program, seed))
    rules = (
        PacketRule("drop", DROPPED),
        PacketRule("duplicate", COPIED),
        *(PacketRule("delay", (number,), "", late_ns) for number, late_ns in LATE_NS.items()),
    )
    exact = LinkImpairment(one_way_delay_ns=DELAY_NS, packet_rules=rules)
    probes.append(_probe("single packets", "rules", exact, (100,), COUNT, program, seed))
    periodic = LinkImpairment(
        one_way_delay_ns=DELAY_NS, packet_rules=(PacketRule("drop", (), "data", ranges=(EVERY, SOME)),)
    )
    probes.append(_probe("every 100 packets", "ranges", periodic, (100,), COUNT, program, seed))
    hole = (
        Event(HOLE_NS, "hole", "blackhole", "p1", ("forward",), longer_than_bytes=LONGEST_BYTES),
        Event(REPAIR_NS, "hole", "repair", "p1", ("forward",), longer_than_bytes=LONGEST_BYTES),
    )
    moments = [at + side for at in (HOLE_NS, REPAIR_NS) for side in (-BRACKET_NS, BRACKET_NS)]
    plain = LinkImpairment(one_way_delay_ns=DELAY_NS)
    sizes = (LONGEST_BYTES + 1, LONGEST_BYTES, 64, 1500)
    name = f"longer than {LONGEST_BYTES} B"
    probes.append(_probe(name, "longer", plain, sizes, 4 * COUNT, program, seed, hole, moments))
    return tuple(probes)


def _probe(
    name: str,
    quantity: str,
    shape: LinkImpairment,
    sizes: tuple[int, ...],
    count: int,
    program: Path,
    seed: int,
    timeline: tuple[Event, ...] = (),
    moments: list[int] | None = None,
) -> Probe:
    link = Link("p1", "a", "b", shape, LinkImpairment(one_way_delay_ns=MS))
    until = START_NS + count * APART_NS + S
    send = send_words(PORTS[0], sizes, count, APART_NS, START_NS, until, moments or ())
    flow = sending_flow("datagrams", "a", "b", PORTS[0], program, send, "sink", until)
    cell = probe_cell(f"{name} {quantity}", link, (flow,), until, seed, timeline)
    return Probe(f"rules: {name}", cell, (quantity,))


def judge_rules(probe: Probe, way: Way, t0_ns: int, late_s: float) -> Iterator[ProbeRow]:
    """Rows of one probe. way: the datagrams there. late_s: by how much a time may be late."""
    match probe.quantities:
        case ("errors",):
            yield from _errors(probe, way)
        case ("rules",):
            yield from _single_packets(probe, way, late_s)
        case ("ranges",):
            yield from _ranges(probe, way)
        case _:
            yield from _longer(probe, way, t0_ns)


def _errors(probe: Probe, way: Way) -> Iterator[ProbeRow]:
    """1 - (1 - BER)^(8 L), or 1 - (1 - p)^L, of each length L at the layer of the rate."""
    shape = probe.cell.links[0].forward
    for size in np.unique(way.ip_bytes):
        these = way.ip_bytes == size
        sent, length = int(these.sum()), int(size) + shape.header_bytes
        survives = (1 - shape.bit_error_ratio) ** (8 * length) * (1 - shape.byte_error_ratio) ** length
        lost = int((these & ~way.came).sum())
        yield from share(probe, f"loss of {sent} packets of {size} B", 1 - survives, lost, sent)


def _single_packets(probe: Probe, way: Way, late_s: float) -> Iterator[ProbeRow]:
    """By number, from 1: which did not arrive, which arrived twice, and how late each was."""
    numbers = np.arange(1, len(way.came) + 1)
    lost, twice = set(numbers[~way.came].tolist()), set(numbers[way.copies == 2].tolist())
    copied = set(COPIED) - set(DROPPED)
    yield ProbeRow.of(probe.name, "packets lost", len(DROPPED), len(lost), 0, "packets")
    yield ProbeRow.of(probe.name, "packets lost that no rule names", 0, len(lost - set(DROPPED)), 0, "packets")
    yield ProbeRow.of(probe.name, "packets that came twice", len(copied), len(twice), 0, "packets")
    yield ProbeRow.of(probe.name, "packets that came twice and no rule names", 0, len(twice - copied), 0, "packets")
    arrived_ns = way.arrived_ns[way.last_arrival[way.came]]
    delays = np.full(len(way.came), np.nan)
    delays[way.came] = (arrived_ns - way.sent_ns[way.came]) / 1e9
    base = probe.cell.links[0].forward.one_way_delay_ns
    for number, late_ns in LATE_NS.items():
        quantity = f"delay of packet {number}"
        yield ProbeRow.of(probe.name, quantity, (base + late_ns) / 1e9, float(delays[number - 1]), late_s, "s")
    others = delays[way.came & ~np.isin(numbers, list(LATE_NS))]
    for what, value in (("least", others.min()), ("greatest", others.max())):
        yield ProbeRow.of(probe.name, f"delay of the others, {what}", base / 1e9, float(value), late_s, "s")


def _ranges(probe: Probe, way: Way) -> Iterator[ProbeRow]:
    """Periodic losses and a range of them, by number."""
    lost = set((np.flatnonzero(~way.came) + 1).tolist())
    asked = {*range(EVERY.first, COUNT + 1, EVERY.step), *range(SOME.first, (SOME.last or 0) + 1)}
    yield ProbeRow.of(probe.name, "packets lost", len(asked), len(lost), 0, "packets")
    yield ProbeRow.of(probe.name, "packets lost that no range names", 0, len(lost - asked), 0, "packets")


def _longer(probe: Probe, way: Way, t0_ns: int) -> Iterator[ProbeRow]:
    """Longer packets vanish between the fault and its repair, and no others ever do. The first size is sent right
    before and right after both moments.
    """
    at = way.sent_ns - t0_ns
    longer = way.ip_bytes > LONGEST_BYTES
    inside = (at >= HOLE_NS) & (at < REPAIR_NS)
    taken = longer & inside
    near = (np.abs(at - HOLE_NS) <= 2 * BRACKET_NS) | (np.abs(at - REPAIR_NS) <= 2 * BRACKET_NS)
    yield ProbeRow.of(probe.name, "longer packets that passed", 0, int((taken & way.came).sum()), 0, "packets")
    yield ProbeRow.of(probe.name, "other packets that vanished", 0, int((~taken & ~way.came).sum()), 0, "packets")
    yield ProbeRow.of(probe.name, "longer packets beside the two moments", 4, int((near & longer).sum()), 0, "packets")
    yield ProbeRow.of(probe.name, "longer packets that vanished (any)", 1, float((taken & ~way.came).any()), 0, "ratio")
