"""Computes the routes of a flow: the links of each of its paths in both directions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from ..core.topology import DirectedLink, NoRoute, find_route
from ..core.types import DirectionName, Flow, Path, Protocol
from ..experiment.grammar import FLOW
from ..experiment.problems import Problems, nearest
from ..experiment.reader import Reader
from ..experiment.toml_positions import Item
from .network import SIDES, UnresolvedLink
from .phases import draw_phase


@dataclass(frozen=True, slots=True)
class Route:
    """A path of a flow, and the links it uses in each direction."""

    path: Path
    there: tuple[DirectedLink, ...]
    back: tuple[DirectedLink, ...]
    mtu_bytes: int


@dataclass(frozen=True, slots=True)
class Routed:
    """A flow and its routes."""

    flow: Flow
    routes: tuple[Route, ...]
    phase: tuple[int, int] | None = None
    """The flow's start is delayed by a uniform draw between these (ns, inclusive)."""

    def drawn(self, seed: int) -> Flow:
        """The flow with its start drawn."""
        # the text is hashed for the draw: another one gives other starts for the same seed
        start = self.flow.start_ns + draw_phase(self.phase, f"{seed}/start/{self.flow.name}")
        return msgspec.structs.replace(self.flow, start_ns=start)


class Routes:
    """Reads the paths of the flows of one cell."""

    def __init__(
        self, hosts: frozenset[str], links: Mapping[str, UnresolvedLink], problems: Problems, context: str
    ) -> None:
        self._hosts, self._links, self._problems, self._context = hosts, links, problems, context

    def read(self, sender: str, receiver: str, protocol: Protocol, reader: Reader) -> tuple[Route, ...]:
        """The routes of a flow's `paths`; empty if any of them is wrong (problems are collected)."""
        item = reader.item.get("paths")
        texts = reader.names("paths")
        if item is None or not texts:
            reader.problem("paths", f"a flow has at least one path; for example paths = {FLOW['paths'].example}")
            return ()
        if protocol == "tcp" and len(texts) > 1 and not reader.has("program"):
            reader.problem("paths", 'tcp has one path; several need protocol = "sctp" or "mptcp"')
        before = len(self._problems)
        routes = [self._route(child, sender, receiver) for child in item.items()]
        known = tuple(route for route in routes if route is not None)
        return known if len(self._problems) == before else ()

    def _route(self, item: Item, sender: str, receiver: str) -> Route | None:
        """The route of a text: `"p1"`; `"up>down"`: the link at the sender and the link at the receiver;
        `"up>down<back"`: and the receiver's link on which its own packets leave.
        """
        first, arrow, last = str(item.value).partition(">")
        last, turned, leaving = last.partition("<")
        for link in (first, *((last,) if arrow else ()), *((leaving,) if turned else ())):
            if link not in self._links:
                self._say(item, f'there is no link "{link}"{nearest(link, self._links)}')
                return None
        if not self._touches(first, sender):
            self._say(item, f'link "{first}" does not touch the sender "{sender}"; it has: {self._at(sender)}')
            return None
        if not arrow:
            at_receiver = [name for name in self._links if self._touches(name, receiver)]
            if first in at_receiver:
                last = first
            elif len(at_receiver) == 1:
                last = at_receiver[0]
            else:
                self._say(item, f'which link of "{receiver}"? write "{first}>LINK" with one of: {self._at(receiver)}')
                return None
        if not self._touches(last, receiver):
            self._say(item, f'link "{last}" does not touch the receiver "{receiver}"; it has: {self._at(receiver)}')
            return None
        if turned and not self._touches(leaving, receiver):
            self._say(item, f'link "{leaving}" does not touch the receiver "{receiver}"; it has: {self._at(receiver)}')
            return None
        links = list(self._links.values())
        try:
            there = find_route(self._hosts, links, sender, receiver, last)
            back = find_route(self._hosts, links, receiver, sender, first, leaving if turned else None)
        except NoRoute as error:
            self._say(item, f"the path does not exist: {error}{self._through_hosts(sender, receiver, last)}")
            return None
        for node, hops, link in ((sender, there, first), (receiver, back, leaving or last)):
            if hops[0].link != link:
                hint = "" if node == sender else f'; to have it so, write "{first}>{last}<{last}"'
                reached = f'"{node}" reaches the other end over link "{hops[0].link}", not over "{link}" as written'
                self._say(item, reached + hint)
                return None
        rates = [rate for hop in there if (rate := self._links[hop.link].side(hop.direction).shape.rate_bit_s)]
        delay = sum(self._links[hop.link].side(hop.direction).shape.one_way_delay_ns for hop in (*there, *back))
        path = Path(
            name=first if first == last else f"{first}-{last}",
            sender_link=first,
            receiver_link=last,
            bottleneck_bit_s=min(rates, default=None),
            base_rtt_ns=delay,
            back_link=leaving or None,
        )
        return Route(path, there, back, min(self._links[hop.link].mtu_bytes for hop in (*there, *back)))

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
                        f'and over "{link}" for another; write the same "<{link}" or "<{known}" at all of them',
                    )
                    return

    def _touches(self, link: str, node: str) -> bool:
        return node in (self._links[link].a, self._links[link].b)

    def _at(self, node: str) -> str:
        return ", ".join(name for name in self._links if self._touches(name, node)) or "none"

    def _say(self, item: Item, text: str) -> None:
        self._problems.add(item, text, context=self._context)


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
