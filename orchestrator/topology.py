"""Which way packets go: shortest routes by number of links, ties to the link listed first. A pure graph, no addresses.

The testbed installs static routes by the same rule; hosts never forward, there is no default route.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from .model import DirectionName


class Edge(Protocol):
    """What routing needs of a link: its name and its two ends (`model.Link` is one)."""

    @property
    def name(self) -> str:
        """Unique name."""

    @property
    def a(self) -> str:
        """One end's node; `forward` leads from here."""

    @property
    def b(self) -> str:
        """The other end's node."""


@dataclass(frozen=True, slots=True)
class Hop:
    """One link of a way, and the direction it is travelled in."""

    link: str
    direction: DirectionName


class NoRoute(ValueError):
    """There is no way; the text says why."""


def way(
    hosts: frozenset[str], links: Sequence[Edge], source: str, destination: str, destination_link: str
) -> tuple[Hop, ...]:
    """The links packets from `source` travel to `destination`'s address on `destination_link`.

    hosts: names of the nodes that do not forward. Raises NoRoute.
    """
    by_name = {link.name: link for link in links}
    last = by_name.get(destination_link)
    if last is None or destination not in (last.a, last.b):
        raise NoRoute(f"'{destination}' is not on link '{destination_link}'")
    if source == destination:
        raise NoRoute(f"'{source}' would send to itself")
    next_link = _next_links(hosts, links, destination, last)
    hops: list[Hop] = []
    here = source
    while here != destination:
        link = by_name[next_link[here]] if here in next_link else None
        if link is None:
            raise NoRoute(f"no way leads from '{source}' to '{destination}' over its link '{destination_link}'")
        hops.append(Hop(link.name, "forward" if here == link.a else "backward"))
        here = link.b if here == link.a else link.a
    return tuple(hops)


def _next_links(hosts: frozenset[str], links: Sequence[Edge], destination: str, last: Edge) -> Mapping[str, str]:
    """Node -> the link it sends to the destination's address by (Dijkstra from the destination, over its link only)."""
    order = {link.name: number for number, link in enumerate(links)}
    around: dict[str, list[Edge]] = {}
    for link in links:
        around.setdefault(link.a, []).append(link)
        around.setdefault(link.b, []).append(link)
    entry = last.b if last.a == destination else last.a
    distance = {destination: 0, entry: 1}
    next_link = {entry: last.name}
    queue = [(1, order[last.name], entry)]
    while queue:
        cost, _, node = heapq.heappop(queue)
        if cost > distance[node] or node in hosts:
            continue
        for link in around[node]:
            other = link.b if link.a == node else link.a
            if cost + 1 < distance.get(other, len(links) + 2):
                distance[other] = cost + 1
                next_link[other] = link.name
                heapq.heappush(queue, (cost + 1, order[link.name], other))
    return next_link
