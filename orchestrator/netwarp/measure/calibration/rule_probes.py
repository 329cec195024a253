"""Defines the cells that calibrate losses by the packet: bit errors, rules for single packets, and packets that are too
long. Datagrams on a link without a rate, so that each takes its one-way delay and nothing else.
"""

from __future__ import annotations

from pathlib import Path

from ...core.types import Event, Link, LinkImpairment, PacketRule
from .datagram_probes import BRACKET_NS, MS, PORTS, START_NS, Budget, S, send_words, sending_flow
from .tcp_probes import Probe, probe_cell

SIZES = (64, 576, 1500)
APART_NS = MS
DELAY_NS = 5 * MS
DROPPED, COPIED, LATE_NS = (3, 7, 500, 501, 999), (5, 7, 600), {9: 30 * MS, 600: 2 * MS, 700: 9 * MS}
"""Numbers of packets, and by how much they are late. 7 is dropped and copied (a drop wins), 600 copied and late."""
COUNT = 1000
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
