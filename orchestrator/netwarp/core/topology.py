"""Which way packets go: shortest routes by number of links, ties to the link listed first. A pure graph, no addresses.

The testbed installs static routes by the same rule; hosts never forward, there is no default route.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from .types import DirectionName


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
    hosts: frozenset[str],
    links: Sequence[Edge],
    source: str,
    destination: str,
    destination_link: str,
    leaving_by: str | None = None,
) -> tuple[Hop, ...]:
    """The links packets from `source` travel to `destination`'s address on `destination_link`.

    hosts: names of the nodes that do not forward. leaving_by: the source's link that a route of its own names (None:
    the shortest way's). Raises NoRoute.
    """
    by_name = {link.name: link for link in links}
    last = by_name.get(destination_link)
    if last is None or destination not in (last.a, last.b):
        raise NoRoute(f"'{destination}' is not on link '{destination_link}'")
    if source == destination:
        raise NoRoute(f"'{source}' would send to itself")
    next_link = next_links(hosts, links, destination, destination_link)
    hops: list[Hop] = []
    here = source
    if leaving_by is not None:
        first = by_name.get(leaving_by)
        if first is None or source not in (first.a, first.b):
            raise NoRoute(f"'{leaving_by}' is no link of '{source}'")
        hops.append(Hop(leaving_by, "forward" if source == first.a else "backward"))
        here = other_end(first, source)
        if here in hosts and here != destination:
            raise NoRoute(f"'{leaving_by}' leads to the host '{here}', which does not forward")
    while here != destination:
        if here not in next_link:
            raise NoRoute(f"no way leads from '{source}' to '{destination}' over its link '{destination_link}'")
        link = by_name[next_link[here]]
        hops.append(Hop(link.name, "forward" if here == link.a else "backward"))
        here = other_end(link, here)
    return tuple(hops)


def next_links(
    hosts: frozenset[str], links: Sequence[Edge], destination: str, destination_link: str
) -> Mapping[str, str]:
    """Node -> the link it sends to `destination`'s address on `destination_link` by; nodes without a way are left out.

    Every node takes, of the links that lead a link nearer, the one listed first.
    """
    last = next(link for link in links if link.name == destination_link)
    entry = other_end(last, destination)
    distance = {destination: 0, entry: 1}
    front = [entry]
    while front:
        node = front.pop(0)
        for link in links if node not in hosts else ():
            if node in (link.a, link.b) and (other := other_end(link, node)) not in distance:
                distance[other] = distance[node] + 1
                front.append(other)
    found = {entry: last.name}
    for link in links:
        for node in (link.a, link.b):
            nearer = other_end(link, node)
            if nearer in hosts or nearer == destination or node in (destination, entry):
                continue
            if node in distance and distance.get(nearer) == distance[node] - 1:
                found.setdefault(node, link.name)
    return found


def other_end(link: Edge, node: str) -> str:
    """The node at the other end of a link."""
    return link.b if node == link.a else link.a
