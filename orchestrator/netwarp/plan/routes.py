"""Computes the routes of a flow, the links of each of its paths in both directions; and draws phases from the seed.

flows.py reads paths and phases with it, timeline.py phases; cell.py makes the cells of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from ..core.ip_families import IpFamily
from ..core.link_types import SIDES, DirectionName
from ..core.topology import DirectedLink, NoRoute, find_route
from ..core.types import Flow, Path, Protocol
from ..experiment.arrivals import Arrivals
from ..experiment.fields import Reader, read_span
from ..experiment.grammar import FLOW, PATH, PHASE
from ..experiment.problems import Problems, nearest
from ..experiment.toml_positions import Item
from .kinds import FLOW_KINDS
from .network import UnresolvedLink

PATH_EXAMPLE = '{ sender = "p1", receiver = "p2" }'


@dataclass(frozen=True, slots=True)
class Route:
    """A path of a flow, and the links it uses in each direction."""

    path: Path
    there: tuple[DirectedLink, ...]
    back: tuple[DirectedLink, ...]
    mtu_bytes: int
    ip_family: IpFamily


@dataclass(frozen=True, slots=True)
class Routed:
    """A flow and its routes."""

    flow: Flow
    routes: tuple[Route, ...]
    phase: tuple[int, int] | None = None
    """The flow's start is delayed by a uniform draw between these (ns, inclusive)."""
    arrivals: Arrivals | None = None
    """Of a pattern of flows that arrive at random (arrivals.py)."""
    classes: Mapping[str, int] = field(default_factory=dict)
    """Of its group: class of sizes -> the largest size in it."""

    def drawn(self, seed: int) -> Flow:
        """The flow with its start drawn."""
        # the text is hashed for the draw: another one gives other starts for the same seed
        start = self.flow.start_ns + draw_phase(self.phase, f"{seed}/start/{self.flow.name}")
        return msgspec.structs.replace(self.flow, start_ns=start)


def read_phase(key: str, reader: Reader) -> tuple[int, int] | None:
    """The bounds (from, to) in ns, inclusive; None if there is no phase or it is wrong (the problem is collected)."""
    item = reader.item.get(key)
    if item is None:
        return None
    return read_span(item.get("uniform") or item, PHASE["uniform"].example, reader.problems)


def draw_phase(phase: tuple[int, int] | None, name: str) -> int:
    """A uniform draw, bounds included; each name has an independent draw."""
    if phase is None:
        return 0
    low, high = phase
    digest = hashlib.sha256(name.encode()).digest()
    return low + int.from_bytes(digest[:16], "big") * (high - low + 1) // (1 << 128)


class Routes:
    """Reads the paths of the flows of one cell."""

    def __init__(self, hosts: frozenset[str], links: Mapping[str, UnresolvedLink], problems: Problems) -> None:
        self._hosts, self._links, self._problems = hosts, links, problems

    def read(self, sender: str, receiver: str, protocol: Protocol, reader: Reader) -> tuple[Route, ...]:
        """The routes of a flow's `paths`; empty if any of them is wrong (problems are collected)."""
        reader.names("paths")
        paths = reader.item.listed("paths")
        if not paths:
            reader.problem("paths", f"a flow has at least one path; for example paths = {FLOW['paths'].example}")
            return ()
        kind = FLOW_KINDS[protocol]
        single = not kind.several_paths and not kind.only_programs
        if single and len(paths) > 1 and not reader.has("program"):
            reader.problem("paths", f'{protocol} has one path; several need protocol = "sctp" or "mptcp"')
        before = len(self._problems)
        routes = [self._route(child, sender, receiver) for child in paths]
        known = tuple(route for route in routes if route is not None)
        return known if len(self._problems) == before else ()

    def _route(self, item: Item, sender: str, receiver: str) -> Route | None:
        """The route of a path: the link at both ends, or a table of links; the receiver's may be the only one there."""
        ends = {key: part for key in PATH if (part := item.get(key)) is not None}
        if not isinstance(item.value, dict):
            ends = {"sender": item}
        for part in ends.values():
            if part.value not in self._links:
                self._problems.add(part, f'there is no link "{part.value}"{nearest(str(part.value), self._links)}')
                return None
        for key, part in ends.items():
            role, node = ("sender", sender) if key == "sender" else ("receiver", receiver)
            if part.value not in self._at(node):
                has = ", ".join(self._at(node)) or "none"
                self._problems.add(part, f'link "{part.value}" does not touch the {role} "{node}"; it has: {has}')
                return None
        first, last, leaving = (str(ends[key].value) if key in ends else "" for key in PATH)
        if not first:
            self._problems.add(item, f"its sender is missing; for example {PATH_EXAMPLE}")
            return None
        if not last:
            near = self._at(receiver)
            if first not in near and len(near) != 1:
                which = ", ".join(near) or "none"
                table = f'{{ sender = "{first}", receiver = LINK }}'
                self._problems.add(item, f'which link of "{receiver}"? write {table} with one of: {which}')
                return None
            last = first if first in near else near[0]
        families = {link: self._links[link].ip_family for link in (first, last)}
        if families[first] != families[last]:
            said = f'link "{first}" carries {families[first].title}, "{last}" {families[last].title}'
            self._problems.add(item, f"{said}, and no packet changes its family on the way; give both one")
            return None
        links = list(self._links.values())
        try:
            there = find_route(self._hosts, links, sender, receiver, last)
            back = find_route(self._hosts, links, receiver, sender, first, leaving or None)
        except NoRoute as error:
            hosts = self._through_hosts(sender, receiver, last)
            self._problems.add(item, f"the path does not exist: {error}{hosts}")
            return None
        for node, hops, link in ((sender, there, first), (receiver, back, leaving or last)):
            if hops[0].link != link:
                table = f'{{ sender = "{first}", receiver = "{last}", back = "{last}" }}'
                hint = "" if node == sender else f"; to have it so, write {table}"
                reached = f'"{node}" reaches the other end over link "{hops[0].link}", not over "{link}" as written'
                self._problems.add(item, reached + hint)
                return None
        rates = [rate for hop in there if (rate := self._links[hop.link].side(hop.direction).nominal_bit_s)]
        delay = sum(self._links[hop.link].side(hop.direction).shape.one_way_delay_ns for hop in (*there, *back))
        path = Path(
            name=first if first == last else f"{first}-{last}",
            sender_link=first,
            receiver_link=last,
            bottleneck_bit_s=min(rates, default=None),
            base_rtt_ns=delay,
            back_link=leaving or None,
        )
        mtu = min(self._links[hop.link].mtu_bytes for hop in (*there, *back))
        return Route(path, there, back, mtu, families[first])

    def _through_hosts(self, sender: str, receiver: str, last: str) -> str:
        """The hosts that would have to forward packets for a route to exist; "" if even that would not help."""
        try:
            hops = find_route(frozenset(), list(self._links.values()), sender, receiver, last)
        except NoRoute:
            return ""
        between = {node for hop in hops for node in (self._links[hop.link].a, self._links[hop.link].b)}
        hosts = sorted(between & self._hosts - {sender, receiver})
        return "".join(
            f'; "{node}" is a host, and hosts do not forward; write kind = "router" under [node.{node}]'
            for node in hosts
        )

    def check_one_way_back(self, routed: Sequence[Routed], reader: Reader) -> None:
        """Reports paths that disagree on the receiver's link for its answers: a host has one route per address."""
        leaves: dict[tuple[str, str], tuple[str, bool]] = {}
        for each in routed:
            for route in each.routes:
                ends = (each.flow.receiver, route.path.sender_link)
                link, said = route.back[0].link, route.path.back_link is not None
                known, known_said = leaves.setdefault(ends, (link, said))
                if known != link and (said or known_said):
                    reader.problem(
                        "paths",
                        f'"{ends[0]}" has one route to "{ends[1]}": packets cannot leave over "{known}" for one path '
                        f'and over "{link}" for another; write the same back = "{link}" or "{known}" at all',
                    )
                    return

    def _at(self, node: str) -> list[str]:
        """The links at a node."""
        return [link.name for link in self._links.values() if node in (link.a, link.b)]


def rtt_of_links(routed: Sequence[Routed], links: Mapping[str, UnresolvedLink]) -> dict[tuple[str, DirectionName], int]:
    """(link, direction) -> the longest base RTT (ns) of the paths that cross the link in that direction; without one,
    the link's own RTT.
    """
    longest: dict[tuple[str, DirectionName], int] = {}
    for each in routed:
        for route in each.routes:
            for hop in (*route.there, *route.back):
                key = (hop.link, hop.direction)
                longest[key] = max(longest.get(key, 0), route.path.base_rtt_ns)
    for name, draft in links.items():
        own = draft.forward.shape.one_way_delay_ns + draft.backward.shape.one_way_delay_ns
        for side in SIDES:
            longest.setdefault((name, side), own)
    return longest
