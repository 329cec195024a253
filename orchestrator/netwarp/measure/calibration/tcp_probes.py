"""Defines the cells that calibrate links by TCP, and the quantities measured in each.

Every cell has two hosts a and b and one shaped link p1, and runs in virtual time: a few milliseconds of wall time per
cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...core.numbers import given
from ...core.types import Action, Capture, Cell, Event, Flow, Link, LinkImpairment, Node, Path

MS = 1_000_000
S = 1_000_000_000
BRACKET_NS = 5_000
"""The time between an event and the connections that start before and after it."""
FAULT_NS, REPAIR_NS = 2 * S, 3 * S
FIRST_PORT = 7001
DENSE_BIT_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Probe:
    """A cell and the names of the quantities judged from its captures (tcp_judge.py)."""

    name: str
    cell: Cell
    quantities: tuple[str, ...]


def probes(seed: int = 1) -> tuple[Probe, ...]:
    """Every probe. The seed only affects losses."""
    cells: list[Probe] = []
    for rate, delay, duration in (
        (500_000, 200 * MS, 20 * S),
        (10_000_000, 50 * MS, 5 * S),
        (100_000_000, MS, S),
        (1_000_000_000, 0, S // 20),
    ):
        shape = LinkImpairment(one_way_delay_ns=delay, rate_bit_s=rate, queue_packets=1000)
        cells.append(_bulk(f"rate {given(rate / 1e6)} Mbit/s, delay {given(delay / 1e6)} ms", shape, duration, seed))
    asymmetric = (
        LinkImpairment(one_way_delay_ns=30 * MS, rate_bit_s=2_000_000, queue_packets=100),
        LinkImpairment(one_way_delay_ns=7 * MS),
    )
    cells.append(_bulk("delay 30 ms there, 7 ms back", asymmetric[0], 5 * S, seed, backward=asymmetric[1]))
    cells.append(
        _bulk(
            "rate of Ethernet frames",
            LinkImpairment(one_way_delay_ns=MS, rate_bit_s=5_000_000, queue_packets=100, layer="ethernet"),
            5 * S,
            seed,
        )
    )
    for loss in (0.001, 0.01, 0.1):
        lossy = LinkImpairment(one_way_delay_ns=5 * MS, loss_ratio=loss)
        duration = 200 * S if loss > 0.05 else 20 * S
        back = LinkImpairment(one_way_delay_ns=5 * MS, rate_bit_s=20_000_000, queue_packets=1000)
        cell = _cell(f"loss {given(loss)}", lossy, back, duration, seed, (_flow("bulk", 0, duration),), randomness=True)
        cells.append(Probe(f"loss {given(100 * loss)} %", cell, ("loss", "mtu")))
    for queue in (1, 20, 50):
        short = LinkImpairment(rate_bit_s=2_000_000, queue_packets=queue)
        cell = _cell(f"queue {queue}", short, LinkImpairment(), 5 * S, seed, (_flow("bulk", 0, 5 * S),))
        cells.append(Probe(f"queue of {queue} packets", cell, ("queue", "rate", "mtu")))
    actions: tuple[Action, ...] = ("cut", "blackhole")
    for action in actions:
        cells.append(Probe(f"fault {action}", _bracketed(action, seed), ("fault", "repair")))
    cells.append(Probe("fault link", _interrupted(seed), ("last_arrival",)))
    return tuple(cells)


def _bulk(
    name: str, forward: LinkImpairment, duration_ns: int, seed: int, *, backward: LinkImpairment | None = None
) -> Probe:
    back = forward if backward is None else backward
    cell = _cell(name, forward, back, duration_ns, seed, (_flow("bulk", 0, duration_ns),))
    return Probe(name, cell, ("rtt", "one_way_delay", "rate", "mtu"))


def _flow(
    name: str, start_ns: int, stop_ns: int | None, port: int = FIRST_PORT, total_bytes: int | None = None
) -> Flow:
    path = Path(name="p1", sender_link="p1", receiver_link="p1", bottleneck_bit_s=None, base_rtt_ns=0)
    return Flow(name, "tcp", "a", "b", (path,), port, start_ns, stop_ns, total_bytes, 1460)


def _bracketed(action: Action, seed: int) -> Cell:
    """Connections begin 5 us before and after the fault, and before and after the repair: of each pair exactly one
    succeeds.
    """
    flows = tuple(
        _flow(f"{edge}-{side}", at + offset, None, FIRST_PORT + number, total_bytes=1460)
        for number, (edge, at, side, offset) in enumerate(
            (edge, at, side, offset)
            for edge, at in (("fault", FAULT_NS), ("repair", REPAIR_NS))
            for side, offset in (("before", -BRACKET_NS), ("after", BRACKET_NS))
        )
    )
    timeline = (Event(FAULT_NS, "fault", action, "p1"), Event(REPAIR_NS, "fault", "repair", "p1"))
    return _cell(f"fault {action}", LinkImpairment(), LinkImpairment(), 10 * S, seed, flows, timeline=timeline)


def _interrupted(seed: int) -> Cell:
    """An interface goes down under a busy link of 1 Gbit/s: the last packet passes at most one packet's sending time
    before.

    A connection that begins after a `link` fault is refused by ICMP at once, so this fault cannot be bracketed by two
    SYNs.
    """
    shape = LinkImpairment(rate_bit_s=DENSE_BIT_S, queue_packets=1000)
    flow = _flow("bulk", FAULT_NS - 20 * MS, FAULT_NS + 10 * MS)
    timeline = (
        Event(FAULT_NS, "fault", "link", "p1", end="p1.hop:b"),
        Event(REPAIR_NS, "fault", "repair", "p1"),
    )
    return _cell("fault link", shape, shape, 5 * S, seed, (flow,), timeline=timeline)


def _cell(
    name: str,
    forward: LinkImpairment,
    backward: LinkImpairment,
    duration_ns: int,
    seed: int,
    flows: tuple[Flow, ...],
    *,
    timeline: tuple[Event, ...] = (),
    randomness: bool = False,
) -> Cell:
    link = Link("p1", "a", "b", forward, backward)
    sysctls = {"net.ipv4.tcp_timestamps": "0"}
    return probe_cell(name, link, flows, duration_ns, seed, timeline, sysctls=sysctls, random=randomness)


def probe_cell(
    name: str,
    link: Link,
    flows: tuple[Flow, ...],
    duration_ns: int,
    seed: int,
    timeline: tuple[Event, ...] = (),
    *,
    sysctls: Mapping[str, str] | None = None,
    random: bool = True,
) -> Cell:
    """A cell of one link between hosts a and b, both captured. sysctls: of both."""
    return Cell(
        spec="calibration",
        experiment="calibration",
        factors={"probe": name},
        repetition=0,
        seed=seed,
        duration_ns=duration_ns,
        nodes=tuple(Node(node, "host", dict(sysctls or {})) for node in "ab"),
        links=(link,),
        flows=flows,
        timeline=timeline,
        captures=tuple(Capture(node, "p1") for node in "ab"),
        random=random,
    )
