"""The static routes of a cell's nodes, and the overrides that its flows ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from types import MappingProxyType

from ..core.errors import SpecError
from ..core.topology import next_edges
from ..core.types import Flow
from .interface import Interface

PREFIX_LENGTH = 26
"""Of every subnet."""
ADDRESS_LENGTH = 32


@dataclass(frozen=True, slots=True)
class Route:
    """A static route of one node. gateway "": what it leads to is on the interface's segment."""

    node: str
    subnet: str
    gateway: str
    interface: Interface
    prefix_length: int = PREFIX_LENGTH
    initial_window_packets: int | None = None
    """TCP's initial window for connections by this route (None: the kernel's own)."""
    quick_ack: bool = False
    """True if TCP acknowledges every segment of connections by this route."""


def apply_route_overrides(
    flows: Sequence[Flow],
    routes: Sequence[Route],
    interfaces: Sequence[Interface],
    gateways: Mapping[tuple[str, str], str] = MappingProxyType({}),
) -> tuple[Route, ...]:
    """The routes with the overrides of the flows applied: the receiver's link, initial windows, quick ACKs.

    gateways: (switch, subnet) -> the router on the switch's segment that leads there. Raises SpecError if an end of a
    flow has no route that could carry the override.
    """
    interface_of = {(interface.node, interface.link): interface for interface in interfaces}
    routes_by_subnet = {(route.node, route.subnet): route for route in routes}

    def route_to(node: str, to: Interface) -> Route:
        on_segment = [own for own in interfaces if own.node == node and own.segment and own.segment == to.segment]
        if (
            on_segment
        ):  # the kernel's own route leads to the subnet by the first of them; one to the address goes before
            there = routes_by_subnet.get((node, to.ip))
            return there or Route(node, to.ip, "", on_segment[0], ADDRESS_LENGTH)
        if (node, to.subnet) not in routes_by_subnet:
            raise SpecError(f"'{node}' has no route to '{to.node}' over '{to.link}': that link has no hop")
        return routes_by_subnet[node, to.subnet]

    for flow in flows:
        window = flow.sender_options.get("initial_window_packets")
        for path in flow.paths:
            if path.back_link is not None:
                back = route_to(flow.receiver, interface_of[flow.sender, path.sender_link])
                leaving = interface_of[flow.receiver, path.back_link]
                if back.gateway:
                    gateway = leaving.peer_ip if not leaving.segment else gateways[leaving.segment, back.subnet]
                    routes_by_subnet[back.node, back.subnet] = replace(back, interface=leaving, gateway=gateway)
                elif back.interface != leaving:
                    routes_by_subnet[back.node, back.subnet] = replace(back, interface=leaving)
            if window is not None:
                out = route_to(flow.sender, interface_of[flow.receiver, path.receiver_link])
                routes_by_subnet[out.node, out.subnet] = replace(out, initial_window_packets=int(window))
            if flow.receiver_options.get("quick_ack"):
                back = route_to(flow.receiver, interface_of[flow.sender, path.sender_link])
                routes_by_subnet[back.node, back.subnet] = replace(back, quick_ack=True)
    return tuple(routes_by_subnet.values())


def static_routes(
    hosts: set[str], veths: Sequence[tuple[Interface, Interface]], bridging: AbstractSet[str]
) -> tuple[tuple[Route, ...], dict[tuple[str, str], str]]:
    """The shortest route from every node to every subnet that is not its own (core.topology); and the gateways on
    segments: (switch, subnet) -> address.

    There is no default route: if the way to a subnet is cut, its packets cannot silently take another one.
    """
    # a link counts two: a veth of a hop is half of one
    edges = [(near.node, far.node, 1 if ".hop" in near.node + far.node else 2) for near, far in veths]
    nodes_on: dict[str, list[str]] = {}
    for near, far in veths:
        nodes_on.setdefault(near.subnet, []).extend((near.node, far.node))
    routes, gateways = [], {}
    for subnet, at in nodes_on.items():
        next_edge = next_edges(hosts, edges, at)
        for node, edge in next_edge.items():
            interface = next(end for end in veths[edge] if end.node == node)
            entry = next(end for end in veths[edge] if end.node != node)
            while entry.node in bridging:  # the gateway is across the segment
                entry = next(end for end in veths[next_edge[entry.node]] if end.node != entry.node)
            if node in bridging:
                gateways[node, subnet] = entry.ip
            else:
                routes.append(Route(node, subnet, entry.ip, interface))
    return tuple(routes), gateways
