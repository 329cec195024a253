"""Draws changes of a schedule: packets, faults, settings. The same generator, cell and packets give the same ones."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from ..core.link_types import SIDES
from ..core.schedule_levels import PacketPosition
from ..core.types import Cell
from .changes import Change, FaultChange, PacketAction, PacketChange, SettingChange, joined
from .settings import settings_of

MS, S = 10**6, 10**9
MOST_CHANGES = 12
"""Of a schedule: with more, what it shows takes long to make small."""
ACTIONS: tuple[PacketAction, ...] = ("drop", "drop", "drop", "duplicate", "delay")
DELAYS_NS = (1 * MS, 10 * MS, 60 * MS, 300 * MS, 1100 * MS, 4 * S)
LENGTHS_NS = (50 * MS, 300 * MS, 1 * S, 3 * S, 10 * S)
"""Of faults: below and above the initial timeouts of TCP and SCTP."""
BURSTS = (1, 1, 1, 2, 4, 8, 16)
LATEST_NS = 200 * S
BOTH_ENDS = 0.7
"""Probability that a sysctl is set at every host."""


@dataclass(frozen=True, slots=True)
class Parent:
    """A schedule that ran: its cell, its changes, the packets that its hosts sent."""

    cell: Cell
    changes: tuple[Change, ...]
    packets: Sequence[PacketPosition]


def mutated(parent: Parent, others: Sequence[tuple[Change, ...]], draw: random.Random) -> tuple[Change, ...]:
    """The changes of a new schedule. others: changes of schedules of the same cell, of which some may be taken over."""
    changes = parent.changes
    for _ in range(1 + _geometric(draw)):
        what = draw.random()
        if changes and what < 0.12:
            gone = draw.randrange(len(changes))
            changes = changes[:gone] + changes[gone + 1 :]
        elif others and what < 0.20:
            other = draw.choice(others)
            if other:
                changes = joined(changes, draw.sample(other, min(len(other), 1 + _geometric(draw))))
        elif what < 0.65 and parent.packets:
            changes = joined(changes, _packets(parent, draw))
        elif what < 0.80:
            changes = joined(changes, [_fault(parent, draw)])
        else:
            for _ in range(1 + _geometric(draw)):  # much of a protocol needs several
                changes = joined(changes, _setting(parent.cell, draw))
    return changes[-MOST_CHANGES:]


def _geometric(draw: random.Random) -> int:
    count = 0
    while count < 4 and draw.random() < 0.4:
        count += 1
    return count


def _packets(parent: Parent, draw: random.Random) -> list[Change]:
    """One packet, or several of a direction in a row. Each kind of packet is as likely as any other, so that the few of
    a handshake are not lost among the data.
    """
    kinds: dict[str, list[PacketPosition]] = {}
    for packet in parent.packets:
        kinds.setdefault(packet.name.rstrip("0123456789 "), []).append(packet)
    first = draw.choice(kinds[draw.choice(sorted(kinds))])
    action = draw.choice(ACTIONS)
    delay_ns = draw.choice(DELAYS_NS) if action == "delay" else 0
    row = [
        packet
        for packet in parent.packets
        if (packet.link, packet.direction) == (first.link, first.direction) and packet.number >= first.number
    ]
    return [
        PacketChange(action, packet.link, packet.direction, packet.number, packet.name, delay_ns)
        for packet in row[: draw.choice(BURSTS)]
    ]


def _fault(parent: Parent, draw: random.Random) -> FaultChange:
    """Something fails at about the time of a packet, and is repaired."""
    cell = parent.cell
    times = [packet.t_ns for packet in parent.packets if 0 <= packet.t_ns < LATEST_NS]
    at_ns = (draw.choice(times) if times else 0) + draw.choice((0, 1000, 20 * MS, 500 * MS))
    when = {"at": f"{at_ns // 1000} us", "for": f"{draw.choice(LENGTHS_NS) // MS} ms"}
    link, flow = draw.choice(cell.links), draw.choice(cell.flows)
    kind = draw.choice(("cut", "cut", "blackhole", "long", "link", "mtu", "stop_reading", "restart", "address", "rate"))
    tables: dict[str, dict[str, str]] = {
        "cut": {"action": "cut", "link": link.name},
        "blackhole": {"action": "blackhole", "link": link.name},
        "long": {"action": "blackhole", "link": link.name, "longer_than": draw.choice(("100 B", "200 B", "600 B"))},
        "link": {"action": "link", "link": link.name, "end": draw.choice((link.a, link.b))},
        "mtu": {"action": "mtu", "link": link.name, "mtu": draw.choice(("600 B", "1000 B", "1280 B"))},
        "stop_reading": {"action": "stop_reading", "flow": flow.name},
        "restart": {
            "action": "restart",
            "node": draw.choice((flow.sender, flow.receiver)),
            "killed": draw.choice(("host", "process")),
        },
        "address": {"action": "address", "node": draw.choice((link.a, link.b)), "link": link.name},
        "rate": {"action": "change", "link": link.name, "one_way_delay": draw.choice(("1 ms", "100 ms", "600 ms"))},
    }
    name = f"x{draw.randrange(10**6)}"
    return FaultChange(name, tables[kind] | when)


def _setting(cell: Cell, draw: random.Random) -> list[SettingChange]:
    """A setting; a sysctl often at every host, for much of a protocol needs both ends."""
    every = settings_of(cell)
    groups: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for path in every:  # each part of the spec is as likely as any other
        groups.setdefault((path[0], *path[2:-1]), []).append(path)
    path = draw.choice(groups[draw.choice(sorted(groups))])
    value = draw.choice(every[path])
    paths = [path]
    if path[0] == "node" and draw.random() < BOTH_ENDS:
        paths = [other for other in every if (other[0], *other[2:]) == ("node", *path[2:])]
    return [SettingChange(each, value) for each in paths]


def directions(cell: Cell) -> list[tuple[str, str]]:
    """Every direction of the cell's links that a host sends into."""
    hosts = {node.name for node in cell.nodes if node.kind == "host"}
    return [
        (link.name, side) for link in cell.links for side in SIDES if (link.a if side == "forward" else link.b) in hosts
    ]
