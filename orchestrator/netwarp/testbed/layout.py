"""The network a Cell stands for: namespaces, interfaces, addresses, routes. Pure arithmetic on names and numbers.

A link between two nodes is one veth, or, where it is shaped (or the target of an event) and touches a host, two veths
with a hop in the middle: a router namespace `<link>.hop` whose two egress qdiscs shape both directions. A link with a
policer always has one.
Link number L has the subnets 10.(L//250).(L%250).{0,64,128}/26: first end .1 / .129, hop .2 / .130.
A switch is a namespace with a bridge, and so is the hop of a link to a switch. The hosts and routers on it share the
subnet 10.(L//250).(L%250).192/26 of the first link to it, with the addresses .193, .194 ... in the order of the links.
With IPv6 the subnets are fd00:(L//250):(L%250):{0,64,128,192}::/64, and addresses count from ::1 in each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from ..core.errors import SpecError
from ..core.ip_families import IPV4, IPV6, IpFamily, canonical
from ..core.link_types import DirectionName, Link, LinkImpairment
from ..core.topology import next_edges
from ..core.types import Cell, Flow
from .messages import Device

Devices = Mapping[tuple[str, str, str], Device]
"""(link, node, peer node) -> the interface of a machine that takes the place of this end of a veth. It keeps its
ifindex in the namespace: the kernel would not know another when it gives the interface back.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface(Device):
    """One end of a veth. `ip`/`mac` are its own, `peer_*` those of the other end. `name` is the link's on nodes.

    is_device: an interface of a machine, with a cable to its peer on another machine; `name` is the machine's then.
    On a switch's segment the port has no address (ip ""), and neighbours are those on the segment, not the peer.
    """

    node: str
    link: str
    ip: str
    subnet: str
    mtu_bytes: int
    peer_node: str
    peer_ip: str
    peer_mac: str
    is_device: bool = False
    segment: str = ""
    """The switch whose segment it is on."""
    bridge: Device | None = None
    """The bridge of which it is a port."""
    ip_family: IpFamily = IPV4

    @property
    def speaks_ipv6(self) -> bool:
        """True if it has an address of IPv6."""
        return self.ip_family == IPV6 and bool(self.ip)


@dataclass(frozen=True, slots=True)
class StaticRoute:
    """A static route of one node. gateway "": what it leads to is on the interface's segment."""

    node: str
    subnet: str
    gateway: str
    interface: Interface
    prefix_length: int
    initial_window_packets: int | None = None
    """TCP's initial window for connections by this route (None: the kernel's own)."""
    quick_ack: bool = False
    """True if TCP acknowledges every segment of connections by this route."""


def apply_route_overrides(
    flows: Sequence[Flow],
    routes: Sequence[StaticRoute],
    interfaces: Sequence[Interface],
    gateways: Mapping[tuple[str, str], str] = MappingProxyType({}),
) -> tuple[StaticRoute, ...]:
    """The routes with the overrides of the flows applied: the receiver's link, initial windows, quick ACKs.

    gateways: (switch, subnet) -> the router on the switch's segment that leads there. Raises SpecError if an end of a
    flow has no route that could carry the override.
    """
    interface_of = {(interface.node, interface.link): interface for interface in interfaces}
    routes_by_subnet = {(route.node, route.subnet): route for route in routes}

    def route_to(node: str, to: Interface) -> StaticRoute:
        on_segment = [own for own in interfaces if own.node == node and own.segment and own.segment == to.segment]
        if (
            on_segment
        ):  # the kernel's own route leads to the subnet by the first of them; one to the address goes before
            there = routes_by_subnet.get((node, to.ip))
            return there or StaticRoute(node, to.ip, "", on_segment[0], to.ip_family.address_length)
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
) -> tuple[tuple[StaticRoute, ...], dict[tuple[str, str], str]]:
    """The shortest route from every node to every subnet that is not its own (core.topology); and the gateways on
    segments: (switch, subnet) -> address.

    There is no default route: if the way to a subnet is cut, its packets cannot silently take another one.
    """
    nodes_on: dict[str, list[str]] = {}
    family: dict[str, IpFamily] = {}
    for near, far in veths:
        nodes_on.setdefault(near.subnet, []).extend((near.node, far.node))
        family[near.subnet] = near.ip_family
    # a link counts two: a veth of a hop is half of one
    edges_of = {
        each: [
            (number, (near.node, far.node, 1 if ".hop" in near.node + far.node else 2))
            for number, (near, far) in enumerate(veths)
            if near.ip_family == each
        ]
        for each in {near.ip_family for near, _ in veths}
    }
    routes, gateways = [], {}
    for subnet, at in nodes_on.items():
        edges = edges_of[family[subnet]]
        chosen = next_edges(hosts, [edge for _, edge in edges], at)
        next_edge = {node: edges[number][0] for node, number in chosen.items()}
        for node, edge in next_edge.items():
            interface = next(end for end in veths[edge] if end.node == node)
            entry = next(end for end in veths[edge] if end.node != node)
            while entry.node in bridging:  # the gateway is across the segment
                entry = next(end for end in veths[next_edge[entry.node]] if end.node != entry.node)
            if node in bridging:
                gateways[node, subnet] = entry.ip
            else:
                routes.append(StaticRoute(node, subnet, entry.ip, interface, interface.ip_family.subnet_length))
    return tuple(routes), gateways


FIRST_IFINDEX = 10
SEGMENT_BASE = 192
"""Of the last byte of a segment's subnet."""
BRIDGE = "bridge"
"""The name of the bridge in a switch's namespace."""
INTERFACE_NAME_MAX = 15
LINKS_MAX = 250 * 250


@dataclass(frozen=True, slots=True)
class Layout:
    """Everything about the network of one cell. Namespaces are numbered in the order of `namespaces`."""

    namespaces: tuple[str, ...]
    routers: frozenset[str]
    veths: tuple[tuple[Interface, Interface], ...]
    routes: tuple[StaticRoute, ...]
    shaped: dict[tuple[str, DirectionName], Interface] = field(default_factory=dict)
    """(link, direction) -> the interface whose egress qdiscs shape it."""
    bridges: dict[int, Device] = field(default_factory=dict)
    """Namespace of a switch, or of a hop on its segment -> its bridge."""

    def interfaces(self) -> tuple[Interface, ...]:
        """Every interface, in creation order."""
        return tuple(interface for pair in self.veths for interface in pair)

    def families(self, namespace: int) -> frozenset[IpFamily]:
        """The families of a namespace's interfaces."""
        return frozenset(each.ip_family for each in self.interfaces() if each.namespace == namespace)

    def free_ifindex(self) -> int:
        """The first number of which no interface is, nor any after it."""
        taken = (device.ifindex for device in (*self.interfaces(), *self.bridges.values()))
        return max((FIRST_IFINDEX - 1, *taken)) + 1

    def neighbours(self, interface: Interface) -> tuple[tuple[str, str], ...]:
        """(address, MAC) of every neighbour of an interface: the other end of its link; on a segment all of the other
        nodes; of a port none.
        """
        if not interface.segment:
            return ((interface.peer_ip, interface.peer_mac),)
        others = (other for other in self.interfaces() if other.segment == interface.segment and other.ip)
        return tuple((other.ip, other.mac) for other in others if interface.ip and other.node != interface.node)

    def behind(self, port: Interface) -> tuple[str, ...]:
        """The MACs of the interfaces to which a port of a switch leads."""
        ends = (end for end in self.interfaces() if end.segment == port.node and end.link == port.link and end.ip)
        return tuple(end.mac for end in ends)

    def interface(self, node: str, link: str) -> Interface:
        """The interface of a node on a link; raises SpecError if there is none."""
        for candidate in self.interfaces():
            if candidate.node == node and candidate.link == link:
                return candidate
        raise SpecError(f"node '{node}' has no interface on link '{link}'")

    def link_end(self, link: str, end: str) -> Interface:
        """The interface named by a `link` event: a node of the link, or `<link>.hop:<node>`, the hop's towards it."""
        owner, _, towards = end.partition(":")
        for candidate in self.interfaces():
            if candidate.link == link and candidate.node == owner and towards in ("", candidate.peer_node):
                return candidate
        ends = [
            f"{i.node}:{i.peer_node}" if i.node.endswith(".hop") else i.node
            for i in self.interfaces()
            if i.link == link
        ]
        raise SpecError(f"link '{link}' has no end '{end}'; it has: {', '.join(ends)}")


def is_shaped(shape: LinkImpairment) -> bool:
    """True if the impairment changes anything for packets."""
    return shape != LinkImpairment()


def hop_name(link: str) -> str:
    """The name of the namespace of a link's hop."""
    return f"{link}.hop"


def make_layout(cell: Cell, devices: Devices = MappingProxyType({})) -> Layout:
    """Lay out the network of a cell; raises SpecError where names or numbers do not fit the kernel's limits.

    devices: of pairs that are no veth but a cable between two machines; both ends of such a pair are there.
    """
    if len(cell.links) > LINKS_MAX:
        raise SpecError(f"{len(cell.links)} links; at most {LINKS_MAX} can be addressed")
    for name in [link.name for link in cell.links]:
        if len(name) > INTERFACE_NAME_MAX:
            raise SpecError(f"link '{name}': its interfaces have this name, so at most {INTERFACE_NAME_MAX} characters")
    hosts = {node.name for node in cell.nodes if node.kind == "host"}
    touched = {event.link for event in cell.timeline} | {link.name for link in cell.links if link.firewall}
    hops = {
        link.name
        for link in cell.links
        if (is_shaped(link.forward) or is_shaped(link.backward) or link.name in touched)
        and (link.a in hosts or link.b in hosts or link.forward.policer or link.backward.policer)
    }
    names = [node.name for node in cell.nodes] + [hop_name(link.name) for link in cell.links if link.name in hops]
    segment_of = _segments(cell)
    bridging = {*segment_of.values(), *(hop_name(name) for name in hops & set(segment_of))}
    routers = {node.name for node in cell.nodes if node.kind == "router"}
    routers |= {hop_name(name) for name in hops} - bridging
    index = {name: number for number, name in enumerate(names)}
    first = max([FIRST_IFINDEX, *(device.ifindex + 1 for device in devices.values())])
    veths: list[tuple[Interface, Interface]] = []
    shaped: dict[tuple[str, DirectionName], Interface] = {}
    for number, link in enumerate(cell.links):
        a, b, hop = (link.a, link.name), (link.b, link.name), hop_name(link.name)
        ends = [(0, a, (hop, "a")), (128, b, (hop, "b"))] if link.name in hops else [(64, a, b)]
        pairs: list[tuple[Interface, Interface]] = []
        for base, near, far in ends:
            pairs.append(_veth(link, number, base, (near, far), index, first + 2 * len(veths + pairs), devices))
        veths += pairs
        if link.name in hops or is_shaped(link.forward) or is_shaped(link.backward) or link.name in touched:
            # what leaves towards b goes out by the far end's peer in a hop, else by a's own end
            forward = pairs[1][1] if link.name in hops else pairs[0][0]
            shaped[link.name, "forward"], shaped[link.name, "backward"] = forward, pairs[0][1]
    bridges = {
        index[name]: Device(BRIDGE, first + 2 * len(veths) + number, index[name])
        for number, name in enumerate(sorted(bridging))
    }
    if bridges:
        veths, shaped = _on_segments(cell, segment_of, bridges, veths, shaped)
    routes, gateways = static_routes(hosts, veths, bridging)
    routes = apply_route_overrides(cell.flows, routes, [end for pair in veths for end in pair], gateways)
    return Layout(tuple(names), frozenset(routers), tuple(veths), routes, shaped, bridges)


def _segments(cell: Cell) -> dict[str, str]:
    """Link -> the switch that it leads to. Raises SpecError where a segment's subnet has too few addresses."""
    switches = {node.name for node in cell.nodes if node.kind == "switch"}
    segments = {link.name: end for link in cell.links for end in (link.a, link.b) if end in switches}
    for switch in switches:
        if list(segments.values()).count(switch) > (1 << IPV4.address_length - IPV4.subnet_length) - 2:
            raise SpecError(f"switch '{switch}' has more links than its subnet has addresses")
    return segments


def _on_segments(
    cell: Cell,
    segment_of: Mapping[str, str],
    bridges: Mapping[int, Device],
    veths: Sequence[tuple[Interface, Interface]],
    shaped: Mapping[tuple[str, DirectionName], Interface],
) -> tuple[list[tuple[Interface, Interface]], dict[tuple[str, DirectionName], Interface]]:
    """The veths and shaped interfaces with the ports and addresses of the segments."""
    numbers = [link.name for link in cell.links]
    members: dict[str, list[str]] = {}
    for link, switch in segment_of.items():
        members.setdefault(switch, []).append(link)
    moved: dict[tuple[int, int], Interface] = {}

    def move(end: Interface) -> Interface:
        switch = segment_of.get(end.link)
        if switch is None:
            return end
        first = numbers.index(members[switch][0])
        port = bridges.get(end.namespace)
        number = 1 + members[switch].index(end.link)
        ip = "" if port is not None else _address(end.ip_family, first, SEGMENT_BASE, number)
        subnet = _address(end.ip_family, first, SEGMENT_BASE, 0)
        end_on_segment = replace(end, ip=ip, subnet=subnet, peer_ip="", segment=switch, bridge=port)
        return moved.setdefault((end.namespace, end.ifindex), end_on_segment)

    pairs = [(move(near), move(far)) for near, far in veths]
    return pairs, {key: moved.get((end.namespace, end.ifindex), end) for key, end in shaped.items()}


def _address(family: IpFamily, link: int, base: int, number: int) -> str:
    """Address `number` of a link's subnet with that base; 0: the subnet's own."""
    if family == IPV6:
        return canonical(f"fd00:{link // 250}:{link % 250}:{base}::{number:x}")
    return f"10.{link // 250}.{link % 250}.{base + number}"


def _veth(
    link: Link,
    number: int,
    base: int,
    ends: tuple[tuple[str, str], tuple[str, str]],
    index: dict[str, int],
    ifindex: int,
    devices: Devices,
) -> tuple[Interface, Interface]:
    """The pair between two ends (node, name of the interface), whose addresses follow `base`."""
    family = link.ip_family
    ips = (_address(family, number, base, 1), _address(family, number, base, 2))
    device_ends = []
    for own, (node, name) in enumerate(ends):
        mac = "02:00:" + ":".join(f"{byte:02x}" for byte in (ifindex + own).to_bytes(4, "big"))
        made = Device(name, ifindex + own, mac=mac)
        device_ends.append(replace(devices.get((link.name, node, ends[1 - own][0]), made), namespace=index[node]))

    def build(own: int) -> Interface:
        device, other = device_ends[own], 1 - own
        node, peer_node = ends[own][0], ends[other][0]
        return Interface(
            device.name, device.ifindex, device.namespace, device.mac, node=node, link=link.name, ip=ips[own],
            subnet=_address(family, number, base, 0), mtu_bytes=link.mtu_bytes, peer_node=peer_node,
            peer_ip=ips[other], peer_mac=device_ends[other].mac, is_device=(link.name, node, peer_node) in devices,
            ip_family=family,
        )  # fmt: skip

    return build(0), build(1)
