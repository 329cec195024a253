"""The faults of a cell (link, begin, end), and those that a flow meets."""

from __future__ import annotations

import dataclasses

from ..core.topology import NoRoute, find_route
from ..core.types import Cell, Event, Flow, Path

FAULTS = ("cut", "blackhole", "link")
"""The actions of a timeline that begin a fault ("link": the interface goes down)."""


@dataclasses.dataclass(frozen=True)
class Fault:
    """A fault, from its event to its repair (None: never repaired); ns from T0."""

    name: str
    action: str
    link: str
    from_ns: int
    to_ns: int | None


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
        faults.append(Fault(event.name, event.action, event.link, event.at_ns, min(repairs, default=None)))
    return tuple(sorted(faults, key=lambda fault: fault.from_ns))


def links_of(cell: Cell, flow: Flow, path: Path) -> frozenset[str]:
    """The links that a path's packets cross, in both directions."""
    hosts = frozenset(node.name for node in cell.nodes if node.kind == "host")
    links: set[str] = {path.sender_link, path.receiver_link}
    for source, target, entry, leaving in (
        (flow.sender, flow.receiver, path.receiver_link, None),
        (flow.receiver, flow.sender, path.sender_link, path.back_link),
    ):
        try:
            links |= {hop.link for hop in find_route(hosts, cell.links, source, target, entry, leaving)}
        except NoRoute:
            continue  # no route in this direction; the path's links at both ends are in the set already
    return frozenset(links)


def faults_met(cell: Cell, flow: Flow) -> tuple[Fault, ...]:
    """The faults on any link of any of the flow's paths."""
    links = frozenset[str]().union(*(links_of(cell, flow, path) for path in flow.paths))
    return tuple(fault for fault in faults_of(cell.timeline) if fault.link in links)
