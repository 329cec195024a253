"""The router: static routes, shortest by number of links; of equally short ones the link listed first. Hosts never
forward, and there is no default route. Packets stay on links of their own IP family.

It works on a graph without addresses. The planner routes over a cell's links, the testbed over its veths; both call
`next_edges`, so that they agree.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from .ip_families import IpFamily
from .link_types import DirectionName


class LinkEnds(Protocol):
    """A link as the router needs it: its name and the two nodes it joins; `forward` leads from a to b
    (`link_types.Link` is one).
    """

    @property
    def name(self) -> str:
        """Unique name."""

    @property
    def a(self) -> str:
        """The node at one end."""

    @property
    def b(self) -> str:
        """The node at the other end."""

    @property
    def ip_family(self) -> IpFamily:
        """The family of the packets on it."""


@dataclass(frozen=True, slots=True)
class DirectedLink:
    """One link of a route, and the direction in which packets cross it."""

    link: str
    direction: DirectionName


class NoRoute(ValueError):
    """No route exists; the text says why."""


def find_route(
    hosts: frozenset[str],
    links: Sequence[LinkEnds],
    source: str,
    destination: str,
    destination_link: str,
    leaving_by: str | None = None,
) -> tuple[DirectedLink, ...]:
    """The links that packets cross from `source` to the address of `destination` on `destination_link`.

    hosts: names of the nodes that do not forward. leaving_by: the source's link that a route override names (None: the
    first link of the shortest route). Raises NoRoute.
    """
    by_name = {link.name: link for link in links}
    last = by_name.get(destination_link)
    if last is None or destination not in (last.a, last.b):
        raise NoRoute(f"'{destination}' is not on link '{destination_link}'")
    if source == destination:
        raise NoRoute(f"'{source}' would send to itself")
    same = [link for link in links if link.ip_family == last.ip_family]
    edges = [(link.a, link.b, 1) for link in same]
    entry = _other_end(last, destination)
    next_link = {node: same[edge] for node, edge in next_edges(hosts | {destination}, edges, (last.a, last.b)).items()}
    next_link[entry] = last
    route: list[DirectedLink] = []
    node = source
    if leaving_by is not None:
        first = by_name.get(leaving_by)
        if first is None or source not in (first.a, first.b):
            raise NoRoute(f"'{leaving_by}' is no link of '{source}'")
        if first.ip_family != last.ip_family:
            raise NoRoute(f"'{leaving_by}' carries {first.ip_family.title}, '{last.name}' {last.ip_family.title}")
        route.append(_leaving(first, source))
        node = _other_end(first, source)
        if node in hosts and node != destination:
            raise NoRoute(f"'{leaving_by}' leads to the host '{node}', which does not forward")
    while node != destination:
        if node not in next_link:
            on = "" if len(same) == len(links) else f", on links of {last.ip_family.title}"
            raise NoRoute(f"no way leads from '{source}' to '{destination}' over its link '{destination_link}'{on}")
        link = next_link[node]
        route.append(_leaving(link, node))
        node = _other_end(link, node)
    return tuple(route)


@dataclass(frozen=True, slots=True)
class Crossing:
    """A link of a route, and the interfaces, as (node, link), that see a packet right before it and right behind it."""

    hop: DirectedLink
    before: tuple[str, str]
    after: tuple[str, str]


def crossings(links: Sequence[LinkEnds], source: str, route: Sequence[DirectedLink]) -> tuple[Crossing, ...]:
    """The links of a route from `source`. Before a node's link a packet is seen where it comes to that node; at the
    source, where it leaves.
    """
    by_name = {link.name: link for link in links}
    node, came, crossed = source, "", []
    for hop in route:
        to = _other_end(by_name[hop.link], node)
        crossed.append(Crossing(hop, (node, came or hop.link), (to, hop.link)))
        node, came = to, hop.link
    return tuple(crossed)


def next_edges(hosts: Collection[str], edges: Sequence[tuple[str, str, int]], at: Collection[str]) -> dict[str, int]:
    """Node -> index of the edge to take on the shortest way to the nodes `at`. Those nodes, and nodes without a way,
    are left out.

    edges: (node, node, length). hosts: nodes that do not forward. Of equally short ways the edge listed first is taken.
    """
    edges_of: dict[str, list[tuple[str, int]]] = {}
    for a, b, length in edges:
        edges_of.setdefault(a, []).append((b, length))
        edges_of.setdefault(b, []).append((a, length))
    distance = dict.fromkeys(at, 0)
    queue = [(0, node) for node in at]
    heapq.heapify(queue)
    while queue:
        cost, node = heapq.heappop(queue)
        if cost > distance[node] or node in hosts:
            continue
        for neighbour, length in edges_of.get(node, ()):
            if cost + length < distance.get(neighbour, cost + length + 1):
                distance[neighbour] = cost + length
                heapq.heappush(queue, (cost + length, neighbour))
    chosen: dict[str, int] = {}
    for edge, (a, b, length) in enumerate(edges):
        for node, neighbour in ((a, b), (b, a)):
            if distance.get(node) and neighbour not in hosts and distance.get(neighbour) == distance[node] - length:
                chosen.setdefault(node, edge)
    return chosen


def _leaving(link: LinkEnds, node: str) -> DirectedLink:
    return DirectedLink(link.name, "forward" if node == link.a else "backward")


def _other_end(link: LinkEnds, node: str) -> str:
    return link.b if node == link.a else link.a
