"""Resolves the nodes and links of a cell. A queue of "1 bdp" is resolved after the flows: it needs the RTT of the paths
that cross it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

import msgspec

from ..core.types import DirectionName, Distribution, GilbertElliott, Link, LinkImpairment, Node, NodeKind
from ..core.units import Quantity
from ..experiment.fields import check_keys, read_quantity
from ..experiment.grammar import DIRECTION, LINK, NODE, PROFILE, RATIO
from ..experiment.merge import merge
from ..experiment.problems import Problems, nearest
from ..experiment.profiles import find_profile
from ..experiment.reader import Reader
from ..experiment.toml_positions import Item
from .packet_rules import read_packet_rules
from .queue_management import limit_of, read_aqm, with_limits

SIDES: tuple[DirectionName, DirectionName] = ("forward", "backward")
INTERFACE_NAME_MAX = 15
LONGEST_SPREAD_NS = 2**31 - 1
"""netem caps its jitter there (sch_netem.c: netem_change)."""
NOT_AN_INTERFACE = frozenset({"lo", "all", "default"})
"""The loopback interface, and the folders of net.ipv4.conf that are no interface."""
MOST_INTERFACES = 62
"""Addresses of a segment's subnet, a /26 (testbed/layout.py)."""
SYSCTL = re.compile(r"net(\.[A-Za-z0-9_-]+)+", re.ASCII)
SYSCTL_VALUE = re.compile(r"[A-Za-z0-9_ .:,+-]{1,64}", re.ASCII)
SYSCTL_EXAMPLE = '{ "net.ipv4.tcp_sack" = "1" }'


@dataclass(frozen=True, slots=True)
class LinkDirection:
    """One direction of a link; the queue is still as written ("1 bdp" is not yet a number of packets)."""

    shape: LinkImpairment
    queue: Quantity | None
    reader: Reader


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

    def side(self, direction: DirectionName) -> LinkDirection:
        """One direction."""
        return self.forward if direction == "forward" else self.backward


class Network:
    """Reads nodes and links. Profiles are read once."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._profiles: dict[str, Item | None] = {}

    def nodes(self, items: Mapping[str, Item], context: str) -> dict[str, Node]:
        """Every node with the sysctls the spec gives it."""
        nodes: dict[str, Node] = {}
        for name, item in items.items():
            reader = Reader(item, NODE, self._problems, context)
            kinds: dict[str | None, NodeKind] = {"router": "router", "switch": "switch"}
            kind = kinds.get(reader.text("kind"), "host")
            nodes[name] = Node(name=name, kind=kind, sysctls=self._sysctls(reader))
        return nodes

    def links(self, items: Mapping[str, Item], nodes: Mapping[str, Node], context: str) -> dict[str, UnresolvedLink]:
        """Every link, in order."""
        links: dict[str, UnresolvedLink] = {}
        for name, item in items.items():
            draft = self._link(name, Reader(item, LINK, self._problems, context), nodes)
            if draft is not None:
                links[name] = draft
        return links

    def directions(self, reader: Reader) -> tuple[LinkDirection, LinkDirection] | None:
        """Both directions of the table of a link (or an event); None if it is wrong, after collecting the problem."""
        table = reader.item.table()
        common = {key: child for key, child in table.items() if key in DIRECTION}
        sides: list[LinkDirection] = []
        for side in SIDES:
            own = table[side].table() if side in table else {}
            if "rtt" in table and ("one_way_delay" in common or "one_way_delay" in own):
                reader.problem(
                    "rtt", 'rtt and one_way_delay both stand here; give one, for example one_way_delay = "100 ms"'
                )
                return None
            merged = merge(reader.item.with_value(common), reader.item.with_value(own))
            sides.append(self._direction(reader.below(merged, DIRECTION), reader))
        return sides[0], sides[1]

    def _link(self, name: str, reader: Reader, nodes: Mapping[str, Node]) -> UnresolvedLink | None:
        before = len(self._problems)
        if len(name) > INTERFACE_NAME_MAX:
            reader.problem(
                "", f"\"{name}\" is too long: a link's name is an interface's, {INTERFACE_NAME_MAX} characters"
            )
        if name in NOT_AN_INTERFACE:
            reader.problem("", f'"{name}" cannot name an interface: the kernel has its own use for it')
        ends = reader.names("between") if reader.need("between") else ()
        if reader.has("between") and len(ends) != 2:
            reader.problem("between", f"a link has two different ends; for example between = {LINK['between'].example}")
        for end in ends:
            if end not in nodes:
                place = (reader.item.get("between") or reader.item).part(end)
                self._problems.add(place, f'there is no node "{end}"{nearest(end, nodes)}', context=reader.context)
        profile = self._profile(reader)
        item = reader.item if profile is None else merge(profile, reader.item)
        both = self.directions(reader.below(item))
        for side in both or ():
            self._check_queue(side, reader.whole("mtu") or 1500)
        if both is None or len(self._problems) > before:
            return None
        return UnresolvedLink(name, ends[0], ends[1], reader.whole("mtu") or 1500, both[0], both[1], item)

    @staticmethod
    def _check_queue(side: LinkDirection, mtu_bytes: int) -> None:
        """Reports a queue in bytes that cannot hold a whole packet."""
        queue, largest = side.queue, mtu_bytes + (14 if side.shape.layer == "ethernet" else 0)
        if queue is not None and queue.kind == "data" and not largest <= queue.value < 1 << 31:
            side.reader.problem(
                "queue", f'must hold the largest packet, {largest} B, and less than 2 GiB; for example queue = "64 KiB"'
            )
        if side.shape.aqm is not None and queue is not None:
            limit_of(side.shape.aqm, queue.kind, side.reader)

    def _profile(self, reader: Reader) -> Item | None:
        name = reader.item.get("profile")
        if name is None or reader.text("profile") is None:
            return None
        text = str(name.value)
        if text not in self._profiles:
            profile = find_profile(name, self._problems)
            if profile is not None:
                check_keys(profile, PROFILE, self._problems)
                profile = profile.with_value({k: v for k, v in profile.table().items() if k not in ("title", "source")})
            self._profiles[text] = profile
        return self._profiles[text]

    def _direction(self, reader: Reader, link: Reader) -> LinkDirection:
        delay = reader.whole("one_way_delay") or 0
        if link.has("rtt"):
            rtt = link.whole("rtt") or 0
            delay = rtt // 2
            if rtt % 2:
                link.problem("rtt", 'must be an even number of ns, half of it each way; for example rtt = "200 ms"')
        rate, queue = reader.whole("rate"), reader.quantity("queue")
        if reader.has("rate") and not reader.has("queue"):
            reader.problem("rate", 'a rate needs its queue; for example queue = "50 packets"')
        if reader.has("queue") and not reader.has("rate"):
            reader.problem("queue", 'without a rate nothing queues; for example rate = "10 Mbit/s"')
        jitter = reader.whole("jitter") or 0
        if jitter > delay:
            reader.wrong("jitter", "is more than the one-way delay; what would be negative, netem makes 0")
        reorder = reader.ratio("reorder") or 0.0
        if reorder and not delay:
            reader.problem("reorder", 'needs a delay to overtake; for example one_way_delay = "10 ms"')
        if reorder and (jitter or reader.switch("in_order")):
            reader.problem(
                "reorder",
                "stands alone: jitter overtakes by itself, and with in_order nothing may; leave one of them out",
            )
        if max(jitter, delay if reorder else 0) > LONGEST_SPREAD_NS:
            reader.problem("reorder" if reorder else "jitter", "spreads delays by more than netem can: 2.147 s")
        for key, needs in (("jitter_correlation", "jitter"), ("distribution", "jitter"), ("loss_correlation", "loss")):
            if reader.has(key) and not reader.has(needs):
                reader.problem(key, f"means nothing without {needs}; for example {needs} = {DIRECTION[needs].example}")
        if reader.has("loss") and reader.has("burst_loss"):
            reader.problem("loss", "loss and burst_loss both stand here; netem has one loss model: give one")
        if reader.has("bit_errors") and reader.has("byte_errors"):
            reader.problem("bit_errors", "bit_errors and byte_errors are two readings of one thing: give one")
        duplicate = reader.item.get("duplicate")
        if reader.has("aqm") and rate is None:
            reader.problem("aqm", 'manages the queue of a rate; for example rate = "10 Mbit/s", queue = "100 packets"')
        shape = LinkImpairment(
            one_way_delay_ns=delay,
            jitter_ns=jitter,
            jitter_correlation_ratio=reader.ratio("jitter_correlation") or 0.0,
            distribution=self._distribution(reader),
            loss_ratio=reader.ratio("loss") or 0.0,
            loss_correlation_ratio=reader.ratio("loss_correlation") or 0.0,
            burst_loss=self._burst_loss(reader),
            duplicate_ratio=0.0
            if duplicate is None or not isinstance(duplicate.value, str)
            else self._duplicate(reader),
            corrupt_ratio=reader.ratio("corrupt") or 0.0,
            reorder_ratio=reorder,
            rate_bit_s=rate,
            layer="ethernet" if reader.text("layer") == "ethernet" else "ip",
            keeps_order=reader.switch("in_order") is True,
            bit_error_ratio=self._errors("bit_errors", reader),
            byte_error_ratio=self._errors("byte_errors", reader),
            packet_rules=read_packet_rules(reader),
            aqm=read_aqm(reader),
        )
        return LinkDirection(shape, queue, reader)

    @staticmethod
    def _errors(key: str, reader: Reader) -> float:
        ratio = reader.ratio(key) or 0.0
        if ratio >= 1.0:
            reader.problem(key, f'must be below 1: with it nothing arrives; for example {key} = "1e-5"')
        return ratio

    @staticmethod
    def _duplicate(reader: Reader) -> float:
        ratio = read_quantity(reader.item.table()["duplicate"], RATIO, reader.problems)
        return 0.0 if ratio is None else float(ratio.value)

    def _distribution(self, reader: Reader) -> Distribution:
        text = reader.text("distribution")
        return next((name for name in get_args(Distribution) if name == text), "uniform")

    def _burst_loss(self, reader: Reader) -> GilbertElliott | None:
        item = reader.item.get("burst_loss")
        if item is None:
            return None
        inner = reader.below(item, DIRECTION["burst_loss"].fields)
        p, r = (inner.ratio(key) if inner.need(key) else None for key in ("p", "r"))
        bad, good = inner.ratio("bad_loss"), inner.ratio("good_loss")
        return GilbertElliott(p or 0.0, r or 0.0, 1.0 if bad is None else bad, good or 0.0)

    def _sysctls(self, reader: Reader) -> dict[str, str]:
        item = reader.item.get("sysctl")
        if item is not None and not isinstance(item.value, dict):
            reader.problem("sysctl", f"must be a table; for example {SYSCTL_EXAMPLE}")
        sysctls: dict[str, str] = {}
        for name, child in item.table().items() if item is not None else ():
            text = str(child.value) if isinstance(child.value, (str, int)) else ""
            if isinstance(child.value, dict):
                said = f'dots stand between keys here; write its name in quotes, "{_joined(name, child)}"'
                self._problems.add(child, f"{said}; for example {SYSCTL_EXAMPLE}")
            elif not SYSCTL.fullmatch(name):
                self._problems.add(child, f'"{name[:60]}" is no sysctl below net; for example {SYSCTL_EXAMPLE}')
            elif isinstance(child.value, bool) or not SYSCTL_VALUE.fullmatch(text):
                self._problems.add(child, f"must be the text to write there; for example {SYSCTL_EXAMPLE}")
            else:
                sysctls[name] = text
        return sysctls


def _joined(name: str, item: Item) -> str:
    """The dotted name of the first keys of nested tables."""
    while item.table():
        key, item = next(iter(item.table().items()))
        name += f".{key}"
    return name[:60]


def check_linked(
    nodes: Mapping[str, Item], links: Mapping[str, UnresolvedLink], problems: Problems, context: str
) -> None:
    """Reports a node without any link: its link was probably forgotten."""
    linked = {node for link in links.values() for node in (link.a, link.b)}
    new = next(name for number in itertools.count(1) if (name := f"p{number}") not in links)
    for name, item in nodes.items():
        if name not in linked:
            other = next((node for node in nodes if node != name), "b")
            said = f'has no link; for example [link.{new}] with between = ["{name}", "{other}"]'
            problems.add(item, said, context=context)


def check_switches(
    nodes: Mapping[str, Node],
    items: Mapping[str, Item],
    links: Mapping[str, UnresolvedLink],
    problems: Problems,
    context: str,
) -> None:
    """Reports links between switches, packets that would not fit a port, and more interfaces than addresses."""
    for name, node in nodes.items():
        if node.kind != "switch":
            continue
        ports = [link for link in links.values() if name in (link.a, link.b)]
        for link in ports:
            other = link.b if link.a == name else link.a
            if nodes[other].kind == "switch":
                said = f'joins the switches "{link.a}" and "{link.b}": one switch is a whole segment; make them one'
                problems.add(link.item, said, context=context)
            if link.mtu_bytes != ports[0].mtu_bytes:
                said = f'has another MTU than "{ports[0].name}": a switch drops what does not fit a port; give both one'
                problems.add(link.item, said, context=context)
        if len(ports) > MOST_INTERFACES:
            problems.add(
                items[name], f"has {len(ports)} links; at most {MOST_INTERFACES} fit its subnet", context=context
            )


def bdp_bytes(rate_bit_s: int, rtt_ns: int) -> int:
    """Bandwidth-delay product in bytes, rounded up."""
    return -(-rate_bit_s * rtt_ns // (8 * 10**9))


def finish(direction: LinkDirection, rtt_ns: int, mtu_bytes: int) -> LinkImpairment:
    """The impairment with its queue in packets, rounded up. rtt_ns: the longest RTT of the paths that cross it."""
    queue = direction.queue
    if queue is None:
        return direction.shape
    if queue.kind == "data":
        return with_limits(msgspec.structs.replace(direction.shape, queue_bytes=int(queue.value)), mtu_bytes)
    packets = int(queue.value)
    if queue.kind == "bdp":
        bdp = round(queue.value * bdp_bytes(direction.shape.rate_bit_s or 0, rtt_ns))
        packets = max(1, -(-bdp // mtu_bytes))
    return with_limits(msgspec.structs.replace(direction.shape, queue_packets=packets), mtu_bytes)


def build_link(draft: UnresolvedLink, forward: LinkImpairment, backward: LinkImpairment) -> Link:
    """The core.types.Link of an unresolved link."""
    return Link(name=draft.name, a=draft.a, b=draft.b, forward=forward, backward=backward, mtu_bytes=draft.mtu_bytes)
