"""Resolves the nodes and links of a cell. A queue of "1 bdp" is resolved after the flows: it needs the RTT of the paths
that cross it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import get_args

import msgspec

from ..core.ip_families import IPV4, IPV6, FamilyName, IpFamily
from ..core.link_types import SIDES, DirectionName, Firewall, Link, LinkImpairment
from ..core.names import SYSCTL, SYSCTL_VALUE
from ..core.types import Node, NodeKind
from ..experiment.fields import Reader
from ..experiment.grammar import DIRECTION, LINK, NODE
from ..experiment.merge import merge
from ..experiment.problems import Problems, nearest
from ..experiment.profiles import find_profile
from ..experiment.toml_positions import Item
from .impairments import LinkDirection, check_limit, read_direction

NODE_KINDS: tuple[NodeKind, ...] = get_args(NodeKind)
INTERFACE_NAME_MAX = 15
NOT_AN_INTERFACE = frozenset({"lo", "all", "default"})
"""The loopback interface, and the folders of net.ipv4.conf that are no interface."""
MOST_INTERFACES = 62
"""Addresses of a segment's subnet, a /26 (testbed/layout.py)."""
SYSCTL_EXAMPLE = '{ "net.ipv4.tcp_sack" = "1" }'


@dataclass(frozen=True, slots=True)
class UnresolvedLink:
    """A link whose queues are not yet resolved. It has the members that the router needs (core.topology.LinkEnds)."""

    name: str
    a: str
    b: str
    mtu_bytes: int
    forward: LinkDirection
    backward: LinkDirection
    item: Item
    """The link with its profile laid under it."""
    ip_family: IpFamily = IPV4
    firewall: Firewall | None = None

    def side(self, direction: DirectionName) -> LinkDirection:
        """One direction."""
        return self.forward if direction == "forward" else self.backward

    def built(self, forward: LinkImpairment, backward: LinkImpairment) -> Link:
        """The link of the cell."""
        link = Link(name=self.name, a=self.a, b=self.b, forward=forward, backward=backward, mtu_bytes=self.mtu_bytes)
        if self.firewall is not None:
            link = msgspec.structs.replace(link, firewall=self.firewall)
        return msgspec.structs.replace(link, family="ipv6") if self.ip_family is IPV6 else link


class Network:
    """Reads nodes and links. Profiles are read once."""

    def __init__(self, problems: Problems, files: Mapping[str, bytes] = MappingProxyType({})) -> None:
        """files: those that the spec names, by their names."""
        self._problems, self._files = problems, files
        self._profiles: dict[str, Item | None] = {}

    def nodes(self, items: Mapping[str, Item]) -> dict[str, Node]:
        """Every node with the sysctls the spec gives it."""
        nodes: dict[str, Node] = {}
        for name, item in items.items():
            kind = Reader(item, NODE, self._problems).choice("kind", NODE_KINDS, "host")
            nodes[name] = Node(name, kind, self._sysctls(item.get("sysctl")))
        return nodes

    def links(self, items: Mapping[str, Item], nodes: Mapping[str, Node]) -> dict[str, UnresolvedLink]:
        """Every link, in order."""
        drafts = [self._link(name, Reader(item, LINK, self._problems), nodes) for name, item in items.items()]
        return {draft.name: draft for draft in drafts if draft is not None}

    def directions(
        self, reader: Reader, kept: Mapping[DirectionName, LinkDirection] = MappingProxyType({})
    ) -> tuple[LinkDirection, LinkDirection] | None:
        """Both directions of the table of a link (or an event); None if it is wrong, after collecting the problem.

        kept: those that are not read from it.
        """
        table = reader.item.table()
        common = {key: child for key, child in table.items() if key in DIRECTION}
        sides: list[LinkDirection] = []
        for side in SIDES:
            if side in kept:
                sides.append(kept[side])
                continue
            own = reader.item.under(side)
            if "rtt" in table and ("one_way_delay" in common or "one_way_delay" in own):
                said = 'rtt and one_way_delay both stand here; give one, for example one_way_delay = "100 ms"'
                reader.problem("rtt", said)
                return None
            merged = merge(reader.item.with_value(common), reader.item.with_value(own))
            sides.append(read_direction(reader.below(merged, DIRECTION), reader, self._files))
        return sides[0], sides[1]

    def _link(self, name: str, reader: Reader, nodes: Mapping[str, Node]) -> UnresolvedLink | None:
        before = len(self._problems)
        if len(name) > INTERFACE_NAME_MAX:
            said = f"\"{name}\" is too long: a link's name is an interface's, {INTERFACE_NAME_MAX} characters"
            reader.problem("", said)
        if name in NOT_AN_INTERFACE:
            reader.problem("", f'"{name}" cannot name an interface: the kernel has its own use for it')
        ends = reader.names("between") if reader.need("between") else ()
        if reader.has("between") and len(ends) != 2:
            reader.problem("between", f"a link has two different ends; for example between = {LINK['between'].example}")
        for end in ends:
            if end not in nodes:
                place = (reader.item.get("between") or reader.item).part(end)
                self._problems.add(place, f'there is no node "{end}"{nearest(end, nodes)}')
        profile, mtu = self._profile(reader), reader.whole("mtu") or 1500
        family = IPV6 if reader.choice("family", get_args(FamilyName), "ipv4") == "ipv6" else IPV4
        if mtu < family.least_mtu_bytes:
            reader.wrong("mtu", f'IPv6 needs an MTU of {family.least_mtu_bytes} B (RFC 8200, 5); for example "1280 B"')
        item = reader.item if profile is None else merge(profile, reader.item)
        both = self.directions(reader.below(item))
        for side in both or ():
            check_limit(side, mtu)
        if both is None or len(self._problems) > before:
            return None
        firewall = next((word for word in get_args(Firewall) if word == reader.text("firewall")), None)
        kinds = {nodes[end].kind for end in ends}
        if firewall is not None and ("host" not in kinds or "switch" in kinds):
            said = "stands on the hop of a link between a host and a host or router; give it to such a link"
            reader.problem("firewall", said)
        return UnresolvedLink(name, ends[0], ends[1], mtu, both[0], both[1], item, family, firewall)

    def _profile(self, reader: Reader) -> Item | None:
        name, text = reader.item.get("profile"), reader.text("profile")
        if name is None or text is None:
            return None
        if text not in self._profiles:
            profile = find_profile(name, self._problems)
            if profile is not None:
                profile = profile.with_value({k: v for k, v in profile.table().items() if k not in ("title", "source")})
            self._profiles[text] = profile
        return self._profiles[text]

    def _sysctls(self, item: Item | None) -> dict[str, str]:
        if item is None:
            return {}
        example = f"for example {SYSCTL_EXAMPLE}"
        if not isinstance(item.value, dict):
            self._problems.add(item, f"must be a table; {example}")
        sysctls: dict[str, str] = {}
        for name, child in item.table().items():
            text = str(child.value) if isinstance(child.value, (str, int)) else ""
            if isinstance(child.value, dict):
                said = f'dots stand between keys here; write its name in quotes, "{_joined(name, child)}"'
                self._problems.add(child, f"{said}; {example}")
            elif not SYSCTL.fullmatch(name):
                self._problems.add(child, f'"{name[:60]}" is no sysctl below net; {example}')
            elif isinstance(child.value, bool) or not SYSCTL_VALUE.fullmatch(text):
                self._problems.add(child, f"must be the text to write there; {example}")
            else:
                sysctls[name] = text
        return sysctls


def _joined(name: str, item: Item) -> str:
    """The dotted name of the first keys of nested tables."""
    while item.table():
        key, item = next(iter(item.table().items()))
        name += f".{key}"
    return name[:60]


def check_linked(nodes: Mapping[str, Item], links: Mapping[str, UnresolvedLink], problems: Problems) -> None:
    """Reports a node without any link: its link was probably forgotten."""
    linked = {node for link in links.values() for node in (link.a, link.b)}
    new = next(name for number in itertools.count(1) if (name := f"p{number}") not in links)
    for name, item in nodes.items():
        if name not in linked:
            other = next((node for node in nodes if node != name), "b")
            problems.add(item, f'has no link; for example [link.{new}] with between = ["{name}", "{other}"]')


def check_switches(
    nodes: Mapping[str, Node], items: Mapping[str, Item], links: Mapping[str, UnresolvedLink], problems: Problems
) -> None:
    """Reports links between switches, packets that would not fit a port, and more interfaces than addresses."""
    for name, node in nodes.items():
        ports = [link for link in links.values() if name in (link.a, link.b)] if node.kind == "switch" else []
        for link in ports:
            if nodes[link.a].kind == nodes[link.b].kind == "switch":
                said = f'joins the switches "{link.a}" and "{link.b}": one switch is a whole segment; make them one'
                problems.add(link.item, said)
            if link.ip_family != ports[0].ip_family:
                said = f'has another family than "{ports[0].name}": a switch is one subnet; give both one'
                problems.add(link.item, said)
            if link.mtu_bytes != ports[0].mtu_bytes:
                said = f'has another MTU than "{ports[0].name}": a switch drops what does not fit a port; give both one'
                problems.add(link.item, said)
        if len(ports) > MOST_INTERFACES:
            problems.add(items[name], f"has {len(ports)} links; at most {MOST_INTERFACES} fit its subnet")
