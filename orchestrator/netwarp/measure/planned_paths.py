"""A flow's paths by the plan: the faults that it meets, and the capacity over time."""

from __future__ import annotations

import dataclasses

import numpy as np

from ..core.link_types import Opportunities
from ..core.topology import DirectedLink, NoRoute, find_route
from ..core.types import FAULTS, Cell, Event, Flow, Path


@dataclasses.dataclass(frozen=True)
class Fault:
    """A fault, from its event to its repair (None: never repaired); ns from T0. link: "" where it is of none."""

    name: str
    action: str
    link: str
    from_ns: int
    to_ns: int | None
    node: str = ""
    """The only host that it happens to."""
    flow: str = ""
    """The only flow that it happens to."""


def faults_of(timeline: tuple[Event, ...]) -> tuple[Fault, ...]:
    """Every fault with the first later repair of the same name, sorted by time.

    Events of a link's profile (a satellite's handovers; `of_the_link`) belong to the path and are no faults under test.
    """
    faults = []
    for event in timeline:
        if event.action not in FAULTS or event.of_the_link:
            continue
        repairs = [
            other.at_ns
            for other in timeline
            if other.action == "repair" and other.name == event.name and other.at_ns >= event.at_ns
        ]
        where = event.link, event.at_ns, min(repairs, default=None), event.node or "", event.flow or ""
        faults.append(Fault(event.name, event.action, *where))
    return tuple(sorted(faults, key=lambda fault: fault.from_ns))


def route_of(cell: Cell, source: str, target: str, entry: str, leaving: str | None = None) -> tuple[DirectedLink, ...]:
    """The hops between two hosts, by the link that enters the target; () if there is no route."""
    hosts = frozenset(node.name for node in cell.nodes if node.kind == "host")
    try:
        return find_route(hosts, cell.links, source, target, entry, leaving)
    except NoRoute:
        return ()


def links_of(cell: Cell, flow: Flow, path: Path) -> frozenset[str]:
    """The links that a path's packets cross, in both directions."""
    there = route_of(cell, flow.sender, flow.receiver, path.receiver_link)
    back = route_of(cell, flow.receiver, flow.sender, path.sender_link, path.back_link)
    return frozenset({path.sender_link, path.receiver_link, *(hop.link for hop in (*there, *back))})


def faults_met(cell: Cell, flow: Flow) -> tuple[Fault, ...]:
    """The faults on any link of any of the flow's paths, at one of its hosts, or of itself."""
    links = frozenset[str]().union(*(links_of(cell, flow, path) for path in flow.paths))

    def meets(fault: Fault) -> bool:
        of_hosts = not fault.node or fault.node in (flow.sender, flow.receiver)
        return of_hosts and fault.flow in ("", flow.name) and (not fault.link or fault.link in links)

    return tuple(fault for fault in faults_of(cell.timeline) if meets(fault))


def killed_ns(cell: Cell, node: str) -> tuple[int, ...]:
    """When a host or its processes are killed, from T0."""
    restarts = (fault for fault in faults_of(cell.timeline) if fault.action == "restart")
    return tuple(fault.from_ns for fault in restarts if fault.node == node)


def unheard_ns(cell: Cell, flow: Flow) -> int | None:
    """When the receiver of a flow first hears no more all that arrives, from T0: it lost an address, so that packets
    meet no socket, or its process was stopped and still is at the flow's stop, which takes what it has not read.
    """
    faults = faults_of(cell.timeline)
    times = [fault.from_ns for fault in faults if fault.action == "address" and fault.node == flow.receiver]
    for fault in faults:
        of_flow = fault.action == "stop_reading" and fault.flow == flow.name
        if of_flow and (fault.to_ns is None or (flow.stop_ns is not None and fault.to_ns >= flow.stop_ns)):
            times.append(fault.from_ns)
    return min(times, default=None)


def address_removed(cell: Cell, node: str) -> bool:
    """True if a host loses an address."""
    return any(fault.action == "address" and fault.node == node for fault in faults_of(cell.timeline))


def capacity_bit_s(cell: Cell, flow: Flow, path: Path, from_ns: int, to_ns: int) -> float | None:
    """The lowest rate on the route to the receiver, its mean over that time; None if there is a time without any, and
    of a flow's other direction (reversed_flow).
    """
    if flow.is_back:
        return None
    route = route_of(cell, flow.sender, flow.receiver, path.receiver_link)
    shapes = cell.shapes
    served = [
        opportunities_bit_s(traced, from_ns, to_ns)
        for hop in route
        if isinstance(traced := shapes[hop.link, hop.direction].opportunities, Opportunities)
    ]
    rates = {(hop.link, hop.direction): shapes[hop.link, hop.direction].rate_bit_s for hop in route}
    changes = sorted(
        (event.at_ns, number, (event.link, name), shape.rate_bit_s)
        for number, event in enumerate(cell.timeline)
        for name in event.directions
        if (shape := event.side(name)) is not None and (event.link, name) in rates
    )
    if served:  # the mean of the lowest is at most the lowest mean
        constant = [rate for rate in rates.values() if rate is not None]
        mean_bit_s: float = min([*served, *constant])
        return mean_bit_s
    if all(rate == rates[where] for _, _, where, rate in changes):
        return min((rate for rate in rates.values() if rate is not None), default=None)
    bits, since = 0, from_ns
    for at_ns, _, where, rate in (*changes, (to_ns, 0, None, None)):
        until = min(max(at_ns, since), to_ns)
        lowest = min((each for each in rates.values() if each is not None), default=None)
        if lowest is None and until > since:
            return None
        bits, since = bits + (lowest or 0) * (until - since), until
        if where is not None:
            rates[where] = rate
    return bits / (to_ns - from_ns) if to_ns > from_ns else None


def opportunities_bit_s(traced: Opportunities, from_ns: int, to_ns: int) -> float:
    """What opportunities can deliver in a time (from it on, up to and with its end), as a rate."""
    if to_ns <= from_ns:
        return 0.0
    times_ns = np.cumsum(np.array(traced.gaps_ms, np.int64)) * 1_000_000
    count = 0
    for period in range(1 if traced.period_ns is None else to_ns // traced.period_ns + 1):
        shift = period * (traced.period_ns or 0)
        count += int(((times_ns + shift > from_ns) & (times_ns + shift <= to_ns)).sum())
    return 8e9 * count * traced.bytes / (to_ns - from_ns)
