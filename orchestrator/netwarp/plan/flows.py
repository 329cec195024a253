"""The flows of a cell: their paths through the network, times, sizes and options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from ..core.topology import DirectedLink, NoRoute, find_route
from ..core.types import DirectionName, Flow, Node, OptionValue, Path, PrimarySwitch, Protocol
from ..experiment.grammar import FLOW, SWITCH
from ..experiment.options import read_options
from ..experiment.problems import Problems, nearest
from ..experiment.schedule import SCHEDULE, read_schedule
from ..experiment.toml_positions import Item
from .network import SIDES, UnresolvedLink, bdp_bytes
from .phases import draw_phase, read_phase
from .programs import check_datagrams_differ, own_program
from .reader import Reader

FIRST_PORT = 5001
IP_BYTES, TCP_BYTES, SCTP_BYTES, CHUNK_BYTES = 20, 20, 12, 16
"""Header sizes without options: RFC 791, RFC 9293, RFC 9260 sections 3 and 3.3.1."""
SCTP_SNDBUF_BYTES = 212_992
"""net.core.wmem_default, and so the largest SCTP message without a sndbuf of its own (socket.c: EMSGSIZE)."""


@dataclass(frozen=True, slots=True)
class Route:
    """A path of a flow and the links it takes, there and back."""

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
    """Uniform from, to (ns), inclusive; added to the flow's start."""

    def drawn(self, seed: int) -> Flow:
        """The flow with its start drawn."""
        start = self.flow.start_ns + draw_phase(self.phase, f"{seed}/start/{self.flow.name}")
        return msgspec.structs.replace(self.flow, start_ns=start)


class Flows:
    """Reads the flows of one cell."""

    def __init__(
        self,
        nodes: Mapping[str, Node],
        links: Mapping[str, UnresolvedLink],
        duration_ns: int,
        problems: Problems,
        context: str,
    ) -> None:
        self._nodes, self._links, self._duration_ns = nodes, links, duration_ns
        self._hosts = frozenset(node.name for node in nodes.values() if node.kind == "host")
        self._problems, self._context = problems, context

    def read(self, items: Mapping[str, Item]) -> tuple[Routed, ...]:
        """Every flow in order; what is wrong is collected."""
        read_so_far: list[Routed] = []
        ports: dict[tuple[str, int], str] = {}
        for number, (name, item) in enumerate(items.items()):
            reader = Reader(item, FLOW, self._problems, self._context)
            routed = self._flow(name, FIRST_PORT + number, reader)
            if routed is None:
                continue
            place = (routed.flow.receiver, routed.flow.port)
            if place in ports:
                reader.problem("port", f'flow "{ports[place]}" has this port at "{place[0]}" already; give another')
            ports[place] = name
            check_datagrams_differ((each.flow for each in read_so_far), routed.flow, reader)
            self._one_way_back([*read_so_far, routed], reader)
            read_so_far.append(routed)
        return tuple(read_so_far)

    def _flow(self, name: str, port: int, reader: Reader) -> Routed | None:
        before = len(self._problems)
        sender, receiver = (reader.text(key) if reader.need(key) else None for key in ("from", "to"))
        for key, node in (("from", sender), ("to", receiver)):
            if node is not None and node not in self._nodes:
                reader.wrong(key, f'there is no node "{node}"{nearest(node, self._nodes)}')
            elif node is not None and node not in self._hosts:
                reader.wrong(key, f'"{node}" is a router; flows run between hosts{nearest(node, self._hosts)}')
        if sender is not None and sender == receiver:
            reader.wrong("to", f'"{receiver}" would send to itself; a flow has two hosts')
        protocol = self._protocol(reader)
        reader.need("paths")
        if len(self._problems) > before or sender is None or receiver is None or protocol is None:
            return None
        routes = self._routes(sender, receiver, protocol, reader)
        if not routes:
            return None
        if reader.has("program"):
            return self._program(Flow(name, protocol, sender, receiver, (), port, 0, None, None, 0), routes, reader)
        first = routes[0]
        mtu = min(route.mtu_bytes for route in routes)
        bdp = (
            None
            if first.path.bottleneck_bit_s is None
            else bdp_bytes(first.path.bottleneck_bit_s, first.path.base_rtt_ns)
        )
        options = {
            role: read_options(reader.item.get(role), role, protocol, bdp, self._problems)
            for role in ("sender", "receiver")
        }
        self._check_mss(options, protocol, mtu, reader)
        start, stop, total = self._times(reader)
        scheduled = any(reader.item.get("sender", key) is not None for key in SCHEDULE)
        if (
            stop is not None
            and total is None
            and not scheduled
            and any(route.path.bottleneck_bit_s is None for route in routes)
        ):
            reader.problem(
                "paths",
                "a flow that ends by time needs a rate on every path: where sending takes no time, virtual time stands "
                'still and it never ends; for example rate = "1 Gbit/s" on the link, or bytes = "1 MB" on the flow',
            )
        message = self._message(protocol, mtu, options["sender"], reader)
        schedule = read_schedule(reader.item.get("sender"), message, self._problems)
        self._check_burst(protocol, schedule, options["sender"], reader)
        flow = Flow(
            name=name,
            protocol=protocol,
            sender=sender,
            receiver=receiver,
            paths=tuple(route.path for route in routes),
            port=reader.integer("port") or port,
            start_ns=start,
            stop_ns=stop,
            total_bytes=total,
            message_bytes=message,
            switches=self._switches(protocol, routes, start, reader),
            sender_options=options["sender"] | schedule,
            receiver_options=options["receiver"],
        )
        return Routed(flow, routes, self._phase(start, stop, reader))

    def _program(self, flow: Flow, routes: Sequence[Route], reader: Reader) -> Routed | None:
        start, stop, _ = self._times(reader)
        program = own_program(flow.protocol, len(routes), start, stop, reader)
        if program is None:
            return None
        paths, port = tuple(route.path for route in routes), reader.integer("port") or flow.port
        whole = {"paths": paths, "port": port, "start_ns": start, "stop_ns": stop, "program": program}
        return Routed(msgspec.structs.replace(flow, **whole), tuple(routes), self._phase(start, stop, reader))

    def _phase(self, start_ns: int, stop_ns: int | None, reader: Reader) -> tuple[int, int] | None:
        phase = read_phase("phase", reader)
        latest = start_ns + (phase[1] if phase else 0)
        if phase and latest >= (self._duration_ns if stop_ns is None else stop_ns):
            reader.problem("phase", "may start the flow after its stop, or after the end of the cell")
        if phase and reader.has("switch_primary"):
            reader.problem("phase", "a flow with switch_primary starts at a fixed time; leave this out")
        return phase

    def _protocol(self, reader: Reader) -> Protocol | None:
        known: tuple[Protocol, ...] = ("tcp", "sctp", "mptcp", "udp", "icmp")
        text = reader.text("protocol") if reader.need("protocol") else None
        if text in ("udp", "icmp") and not reader.has("program"):
            reader.problem(
                "protocol",
                f"netwarp's own sender and receiver speak tcp, sctp, mptcp; {text} needs a program; for example "
                f'program = "{"ping" if text == "icmp" else "iperf3"}"',
            )
        return next((protocol for protocol in known if protocol == text), None)

    def _routes(self, sender: str, receiver: str, protocol: Protocol, reader: Reader) -> tuple[Route, ...]:
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
        """`"p1"`, or `"up>down"`: the link at the sender and the one at the receiver; `"up>down<back"`: and the
        receiver's link by which its own packets leave.
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
        """The hosts that would have to forward for there to be a way; "" if that would not do either."""
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

    def _one_way_back(self, routed: Sequence[Routed], reader: Reader) -> None:
        """A host has one route to an address: where a path says by which link its answers leave, all others agree."""
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

    def _times(self, reader: Reader) -> tuple[int, int | None, int | None]:
        start, stop, total = (reader.whole(key) for key in ("start", "stop", "bytes"))
        if stop is None and total is None:
            stop = self._duration_ns
        for key, time in (("start", start), ("stop", stop)):
            if reader.has(key) and time is not None and time > self._duration_ns:
                reader.wrong(key, "is after the end of the cell (duration)")
        late = start is not None and start > self._duration_ns  # said above
        if stop is not None and stop <= (start or 0) and not (late and not reader.has("stop")):
            reader.problem("stop", 'is not after the start; for example start = "0.5 s", stop = "100 s"')
        return start or 0, stop, total

    def _message(self, protocol: Protocol, mtu: int, sender: Mapping[str, OptionValue], reader: Reader) -> int:
        """As given, else what fills one packet."""
        given = reader.whole("message_size")
        if protocol != "sctp":
            return given or mtu - IP_BYTES - TCP_BYTES
        room = int(sender.get("sndbuf_bytes", SCTP_SNDBUF_BYTES))
        if given is not None and given > room:
            reader.problem(
                "message_size",
                f'an SCTP message must fit the send buffer of {room} B; for example sender = {{ sndbuf = "1 MiB" }}',
            )
        mtu = min(mtu, int(sender.get("path_mtu_bytes", mtu)))
        return given or (mtu - IP_BYTES - SCTP_BYTES - CHUNK_BYTES) // 4 * 4

    def _check_burst(
        self, protocol: Protocol, schedule: Mapping[str, OptionValue], sender: Mapping[str, OptionValue], reader: Reader
    ) -> None:
        sizes = [int(size) for size in str(schedule.get("burst_bytes", "")).split(",") if size]
        room = int(sender.get("sndbuf_bytes", SCTP_SNDBUF_BYTES))
        item = reader.item.get("sender", "burst")
        if protocol == "sctp" and sizes and max(sizes) > room and item is not None:
            self._say(item, f"an SCTP message must fit the send buffer of {room} B; one of {max(sizes)} B does not")

    def _check_mss(
        self, options: Mapping[str, Mapping[str, OptionValue]], protocol: Protocol, mtu: int, reader: Reader
    ) -> None:
        largest = mtu - IP_BYTES - (SCTP_BYTES + CHUNK_BYTES if protocol == "sctp" else TCP_BYTES)
        for role, given in options.items():
            path_mtu, at = given.get("path_mtu_bytes"), reader.item.get(role, "path_mtu")
            if isinstance(path_mtu, int) and path_mtu > mtu and at is not None:  # the kernel takes it, IP fragments
                self._say(at, f'is above the MTU of the flow\'s links; at most "{mtu // 4 * 4} B"')
            mss = given.get("mss_bytes")
            item = reader.item.get(role, "mss")
            if isinstance(mss, int) and mss > largest and item is not None:
                self._say(item, f'{mss} B and its headers exceed the MTU of {mtu} B; at most "{largest} B"')

    def _switches(
        self, protocol: Protocol, routes: Sequence[Route], start_ns: int, reader: Reader
    ) -> tuple[PrimarySwitch, ...]:
        item = reader.item.get("switch_primary")
        paths = {route.path.name: route.path for route in routes}
        switches: list[PrimarySwitch] = []
        for child in item.items() if item is not None else ():
            inner = reader.below(child, SWITCH)
            if protocol != "sctp":
                reader.problem("switch_primary", 'only sctp has a primary path; for example protocol = "sctp"')
                break
            at, path = (
                (inner.whole("at") if inner.need("at") else None),
                (inner.text("path") if inner.need("path") else None),
            )
            if at is not None and at >= self._duration_ns:
                inner.wrong("at", "is not before the end of the cell (duration)")
            elif at is not None and at < start_ns:
                inner.wrong("at", "is before the start of the flow")
            if path is not None and path not in paths:
                inner.wrong("path", f'"{path}" is no path of this flow{nearest(path, paths)}')
            if at is not None and path in paths:
                switches.append(PrimarySwitch(at_ns=at, path=path))
        return tuple(sorted(switches, key=lambda switch: switch.at_ns))

    def _touches(self, link: str, node: str) -> bool:
        return node in (self._links[link].a, self._links[link].b)

    def _at(self, node: str) -> str:
        return ", ".join(name for name in self._links if self._touches(name, node)) or "none"

    def _say(self, item: Item, text: str) -> None:
        self._problems.add(item, text, context=self._context)


def rtt_of_links(routed: Sequence[Routed], links: Mapping[str, UnresolvedLink]) -> dict[tuple[str, DirectionName], int]:
    """(link, direction) -> the longest base RTT (ns) of the paths that cross it so; the link's own if none does."""
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
