"""The flows of a cell: their times, sizes and options, also of pages and of programs (routes.py: their paths)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from ..core.names import NAME
from ..core.types import Flow, Node, OptionValue, PrimarySwitch, Protocol
from ..experiment.arrivals import Arrivals, read_arrivals
from ..experiment.fields import Reader, read_quantity
from ..experiment.grammar import FLOW, SWITCH
from ..experiment.options import RFC3390, read_options
from ..experiment.page_flows import NOT_OF_PAGES, read_page
from ..experiment.problems import Problems, nearest
from ..experiment.read_heartbeats import read_heartbeats
from ..experiment.read_messages import EXAMPLE, TIMED, scheduled_already
from ..experiment.toml_positions import Item
from .flow_messages import FlowMessages
from .impairments import bdp_bytes
from .kinds import FLOW_KINDS
from .kinds.kind import FlowKind
from .network import UnresolvedLink
from .program_flows import check_datagrams_differ, own_program
from .routes import Route, Routed, Routes, read_phase

FIRST_PORT = 5001
TIMESTAMP_BYTES = 12
"""Of TCP's timestamps with their padding in every segment (RFC 7323); Linux sends them unless a sysctl says no."""
TIMESTAMPS = "net.ipv4.tcp_timestamps"
SCALING = "net.ipv4.tcp_window_scaling"
OF_OTHER_FLOWS = ("bytes", "message_size", "messages", "reverse", "late", "switch_primary", "heartbeats", "program")
"""Keys of a flow that mean nothing to pages."""


class Flows:
    """Reads the flows of one cell."""

    def __init__(
        self,
        nodes: Mapping[str, Node],
        links: Mapping[str, UnresolvedLink],
        duration_ns: int,
        problems: Problems,
    ) -> None:
        self._nodes, self._problems, self._duration_ns = nodes, problems, duration_ns
        self._hosts = frozenset(node.name for node in nodes.values() if node.kind == "host")
        self._routes = Routes(self._hosts, links, problems)

    def read(self, items: Mapping[str, Item], groups: Mapping[str, str]) -> tuple[Routed, ...]:
        """Every flow in order; mistakes are collected. groups: flow -> the group it belongs to."""
        read_so_far: list[Routed] = []
        ports: dict[tuple[str, int], str] = {}
        for number, (name, item) in enumerate(items.items()):
            reader = Reader(item, FLOW, self._problems)
            routed = self._flow(name, FIRST_PORT + number, reader)
            if routed is None:
                continue
            classes = self._classes(reader, name in groups)
            if name in groups:
                flow = msgspec.structs.replace(routed.flow, group=groups[name])
                routed = replace(routed, flow=with_class(flow, classes), classes=classes)
            place = (routed.flow.receiver, routed.flow.port)
            if place in ports:
                reader.problem("port", f'flow "{ports[place]}" has this port at "{place[0]}" already; give another')
            ports[place] = name
            check_datagrams_differ((each.flow for each in read_so_far), routed.flow, reader)
            self._routes.check_one_way_back([*read_so_far, routed], reader)
            read_so_far.append(routed)
        return tuple(read_so_far)

    def _flow(self, name: str, port: int, reader: Reader) -> Routed | None:
        before = len(self._problems)
        sender, receiver = (reader.text(key) if reader.need(key) else None for key in ("from", "to"))
        for key, node in (("from", sender), ("to", receiver)):
            if node is not None and node not in self._nodes:
                reader.wrong(key, f'there is no node "{node}"{nearest(node, self._nodes)}')
            elif node is not None and node not in self._hosts:
                reader.wrong(
                    key, f'"{node}" is a {self._nodes[node].kind}; flows run between hosts{nearest(node, self._hosts)}'
                )
        if sender is not None and sender == receiver:
            reader.wrong("to", f'"{receiver}" would send to itself; a flow has two hosts')
        protocol = self._protocol(reader)
        reader.need("paths")
        if len(self._problems) > before or sender is None or receiver is None or protocol is None:
            return None
        routes = self._routes.read(sender, receiver, protocol, reader)
        if not routes:
            return None
        kind = FLOW_KINDS[protocol]
        if kind.read_program is not None or reader.has("program"):
            return self._program(Flow(name, protocol, sender, receiver, (), port, 0, None, None, 0), routes, reader)
        first = routes[0]
        if not self._fits(protocol, routes, reader):
            return None
        rate = first.path.bottleneck_bit_s
        bdp = None if rate is None else bdp_bytes(rate, first.path.base_rtt_ns)
        options = {
            role: read_options(reader.item.get(role), role, protocol, bdp, self._problems)
            for role in ("sender", "receiver")
        }
        self._check_mss(options, kind, routes, reader)
        self._check_streams(options, reader)
        self._check_clamp(options["receiver"], (sender, receiver), reader)
        if options["sender"].get("initial_window_packets") == RFC3390:
            segment = self._segment_bytes(sender, receiver, options, routes)
            options["sender"]["initial_window_packets"] = rfc3390_window_packets(segment)
        start, stop, total = self._times(reader)
        page = reader.has("page")
        scheduled = page or scheduled_already(reader.item.get("sender")) or _scheduled(reader)
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
        message = self._message(kind, routes, options["sender"], reader)
        if page:
            options = page_options(name, protocol, message, options, reader)
        self._check_reconnect(options, total, reader)
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
            switches=self._switches(kind, routes, start, reader),
            sender_options=options["sender"],
            receiver_options=options["receiver"],
        )
        room = room_of(routes)
        largest = {role: kind.largest_message(room, given) for role, given in options.items()}
        default = {"sender": message, "receiver": _full_packet(kind, routes, options["receiver"])}
        if not page:
            flow = FlowMessages(reader, default, largest).add(flow)
            flow = self._with_heartbeats(flow, kind, reader)
            self._check_burst(kind, flow.sender_options, options["sender"], reader)
        return Routed(flow, routes, self._phase(start, stop, reader), self._arrivals(start, reader))

    @staticmethod
    def _fits(protocol: Protocol, routes: Sequence[Route], reader: Reader) -> bool:
        """True if its packets pass over every link."""
        least = FLOW_KINDS[protocol].least_mtu_bytes
        fits = min(route.mtu_bytes for route in routes) >= least
        if not fits:
            reader.problem("paths", f'{protocol} needs links with an MTU of {least} B; for example mtu = "{least} B"')
        return fits

    def _classes(self, reader: Reader, grouped: bool) -> dict[str, int]:
        """Class of sizes -> the largest size in it, the smaller ones first."""
        item = reader.item.get("classes")
        if item is None:
            return {}
        example = FLOW["classes"].example
        if not grouped:
            reader.problem("classes", "is of many flows, which count or arrivals make")
        if not isinstance(item.value, dict) or not item.value:
            reader.wrong("classes", f"must be a table of names and largest sizes; for example {example}")
        bounds: dict[str, int] = {}
        for name, child in item.table().items():
            largest = read_quantity(child, FLOW["bytes"], self._problems)
            if not NAME.fullmatch(name):
                self._problems.add(child, f'"{name[:40]}" is no name of a class; for example classes = {example}')
            if largest is not None and bounds and largest.value <= max(bounds.values()):
                self._problems.add(child, f"must be above the class before it; for example classes = {example}")
            if largest is not None:
                bounds[name] = int(largest.value)
        return bounds

    def _arrivals(self, start_ns: int, reader: Reader) -> Arrivals | None:
        item = reader.item.get("arrivals")
        return None if item is None else read_arrivals(item, start_ns, self._duration_ns, self._problems)

    def _program(self, flow: Flow, routes: Sequence[Route], reader: Reader) -> Routed | None:
        start, stop, total = self._times(reader)
        read = FLOW_KINDS[flow.protocol].read_program
        if read is not None and not self._fits(flow.protocol, routes, reader):
            return None
        if read is None:
            program = own_program(flow.protocol, len(routes), start, stop, reader)
        else:
            program = read(len(routes), start, stop, reader)
        if program is None:
            return None
        whole = msgspec.structs.replace(
            flow,
            paths=tuple(route.path for route in routes),
            port=reader.integer("port") or flow.port,
            start_ns=start,
            stop_ns=stop,
            total_bytes=None if read is None else total,
            program=program,
        )
        return Routed(whole, tuple(routes), self._phase(start, stop, reader), self._arrivals(start, reader))

    def _phase(self, start_ns: int, stop_ns: int | None, reader: Reader) -> tuple[int, int] | None:
        phase = read_phase("phase", reader)
        latest = start_ns + (phase[1] if phase else 0)
        if phase and latest >= (self._duration_ns if stop_ns is None else stop_ns):
            reader.problem("phase", "may start the flow after its stop, or after the end of the cell")
        if phase and reader.has("switch_primary"):
            reader.problem("phase", "a flow with switch_primary starts at a fixed time; leave this out")
        return phase

    def _protocol(self, reader: Reader) -> Protocol | None:
        text = reader.text("protocol") if reader.need("protocol") else None
        protocol = next((known for known in FLOW_KINDS if known == text), None)
        kind = None if protocol is None else FLOW_KINDS[protocol]
        if kind is not None and kind.only_programs and kind.read_program is None and not reader.has("program"):
            reader.problem("protocol", f'{text} needs a program that speaks it; for example program = "ping"')
        return protocol

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

    def _message(
        self, kind: FlowKind, routes: Sequence[Route], sender: Mapping[str, OptionValue], reader: Reader
    ) -> int:
        """The message size in bytes: as given, otherwise the payload of a full packet."""
        given = reader.whole("message_size")
        room = kind.largest_message(room_of(routes), sender)
        if kind.whole_messages and given is not None and given > room:
            reader.problem(
                "message_size",
                f'an SCTP message must fit the send buffer of {room} B; for example sender = {{ sndbuf = "1 MiB" }}',
            )
        return given or _full_packet(kind, routes, sender)

    def _check_reconnect(
        self, options: Mapping[str, Mapping[str, OptionValue]], total: int | None, reader: Reader
    ) -> None:
        at = reader.item.get("sender", "reconnect")
        if at is None or "reconnect_ns" not in options["sender"]:
            return
        if total is not None:
            said = (
                "is of flows that end by time: what was under way is lost with a connection; use stop in place of bytes"
            )
            self._problems.add(at, said)
        for key in ("reverse", "messages"):
            if reader.has(key):
                self._problems.add(at, f"is of flows without {key}: where those would go on is not known; leave it out")
        if "window_clamp_bytes" in options["receiver"]:
            self._problems.add(at, "a window_clamp is of one connection; use rcvbuf on the receiver")

    def _check_burst(
        self, kind: FlowKind, schedule: Mapping[str, OptionValue], sender: Mapping[str, OptionValue], reader: Reader
    ) -> None:
        sizes = [int(size) for size in str(schedule.get("burst_bytes", "")).split(",") if size]
        item = reader.item.get("sender", "burst")
        if not kind.whole_messages or not sizes or item is None:
            return
        if max(sizes) > (room := kind.largest_message(0, sender)):
            self._problems.add(
                item, f"an SCTP message must fit the send buffer of {room} B; one of {max(sizes)} B does not"
            )

    def _check_mss(
        self,
        options: Mapping[str, Mapping[str, OptionValue]],
        kind: FlowKind,
        routes: Sequence[Route],
        reader: Reader,
    ) -> None:
        for role, given in options.items():
            mtu = min(route.mtu_bytes for route in routes)
            path_mtu, at = given.get("path_mtu_bytes"), reader.item.get(role, "path_mtu")
            if isinstance(path_mtu, int) and path_mtu > mtu and at is not None:  # the kernel takes it, IP fragments
                self._problems.add(at, f'is above the MTU of the flow\'s links; at most "{mtu // 4 * 4} B"')
            elif isinstance(path_mtu, int):
                mtu = path_mtu
            unit = kind.unit_bytes
            largest = (room_of(routes, mtu) - kind.header_bytes) // unit * unit
            mss = given.get("mss_bytes")
            item = reader.item.get(role, "mss")
            if isinstance(mss, int) and mss > largest and item is not None:
                self._problems.add(item, f'{mss} B and its headers exceed the MTU of {mtu} B; at most "{largest} B"')
            elif isinstance(mss, int) and mss % unit and item is not None:
                self._problems.add(item, f'SCTP takes multiples of {unit} B; for example "{mss // unit * unit} B"')

    def _check_streams(self, options: Mapping[str, Mapping[str, OptionValue]], reader: Reader) -> None:
        item = reader.item.get("receiver", "streams")
        sends, takes = (int(options[role].get("streams", 1)) for role in ("sender", "receiver"))
        if item is not None and takes < sends:
            self._problems.add(item, f"the sender has {sends} streams; give the receiver as many, or leave it out")

    def _check_clamp(self, receiver: Mapping[str, OptionValue], ends: Sequence[str], reader: Reader) -> None:
        """Reports a clamp that no window can express (apps/traffic/window_clamp.c)."""
        item = reader.item.get("receiver", "window_clamp")
        unscaled = [node for node in ends if self._nodes[node].sysctls.get(SCALING) == "0"]
        if item is not None and "window_clamp_bytes" in receiver and unscaled:
            said = f'needs window scaling, which "{unscaled[0]}" has off ({SCALING}); use rcvbuf on the receiver'
            self._problems.add(item, said)

    def _segment_bytes(
        self,
        sender: str,
        receiver: str,
        options: Mapping[str, Mapping[str, OptionValue]],
        routes: Sequence[Route],
    ) -> int:
        """The payload of TCP's largest segments: what each end's `mss` and the links allow, less the timestamps."""
        sizes = [
            room_of(routes) - FLOW_KINDS["tcp"].header_bytes,
            *(int(given["mss_bytes"]) for given in options.values() if "mss_bytes" in given),
        ]
        stamped = all(self._nodes[node].sysctls.get(TIMESTAMPS) != "0" for node in (sender, receiver))
        return min(sizes) - (TIMESTAMP_BYTES if stamped else 0)

    @staticmethod
    def _with_heartbeats(flow: Flow, kind: FlowKind, reader: Reader) -> Flow:
        item = reader.item.get("heartbeats")
        if item is None:
            return flow
        if not kind.heartbeats:
            reader.problem("heartbeats", 'only sctp sends them; for example protocol = "sctp"')
        elif flow.reverse is msgspec.UNSET:
            said = f"are of both ends, and a receiver sends at given times with reverse only: reverse = {EXAMPLE}"
            reader.problem("heartbeats", said)
        if flow.sender_options.get("bare") or "arch" in flow.sender_options:
            reader.problem("heartbeats", "need a sender of this machine's own, with all its options")
        beats = read_heartbeats(item, [path.name for path in flow.paths], flow.start_ns, reader.problems)
        return msgspec.structs.replace(flow, heartbeats=beats)

    def _switches(
        self, kind: FlowKind, routes: Sequence[Route], start_ns: int, reader: Reader
    ) -> tuple[PrimarySwitch, ...]:
        paths = {route.path.name: route.path for route in routes}
        switches: list[PrimarySwitch] = []
        for child in reader.item.listed("switch_primary"):
            inner = reader.below(child, SWITCH)
            if not kind.primary_path:
                reader.problem("switch_primary", 'only sctp has a primary path; for example protocol = "sctp"')
                break
            at = inner.whole("at") if inner.need("at") else None
            path = inner.text("path") if inner.need("path") else None
            if at is not None and at >= self._duration_ns:
                inner.wrong("at", "is not before the end of the cell (duration)")
            elif at is not None and at < start_ns:
                inner.wrong("at", "is before the start of the flow")
            if path is not None and path not in paths:
                inner.wrong("path", f'"{path}" is no path of this flow{nearest(path, paths)}')
            if at is not None and path in paths:
                switches.append(PrimarySwitch(at_ns=at, path=path))
        return tuple(sorted(switches, key=lambda switch: switch.at_ns))


def room_of(routes: Sequence[Route], path_mtu_bytes: int | None = None) -> int:
    """What a packet holds behind its IP header on every route, at most with that MTU.

    Over both families IPv4's packets hold no more than IPv6's: SCTP counts by its socket (net/sctp/sctp.h:
    sctp_mtu_payload), which is then one of IPv6.
    """
    mtu = min(route.mtu_bytes for route in routes)
    return min(mtu, path_mtu_bytes or mtu) - max(route.ip_family.header_bytes for route in routes)


def _full_packet(kind: FlowKind, routes: Sequence[Route], options: Mapping[str, OptionValue]) -> int:
    """The payload of a full packet."""
    asked = options.get("path_mtu_bytes")
    room = room_of(routes, None if asked is None else int(asked)) - kind.header_bytes
    return room // kind.unit_bytes * kind.unit_bytes


def with_class(flow: Flow, classes: Mapping[str, int]) -> Flow:
    """The flow with its class of sizes: the first that it is not too large for."""
    size = flow.total_bytes
    fits = [name for name, largest in classes.items() if size is not None and size <= largest]
    return msgspec.structs.replace(flow, size_class=fits[0]) if fits else flow


def _scheduled(reader: Reader) -> bool:
    """True if `messages` says when they are due."""
    return any(reader.item.get("messages", key) is not None for key in TIMED)


def rfc3390_window_packets(segment_bytes: int) -> int:
    """The most whole segments in min(4 segments, max(2 segments, 4380 B)) (RFC 3390, 1)."""
    return min(4, max(2, 4380 // segment_bytes))


def page_options(
    name: str,
    protocol: Protocol,
    message_bytes: int,
    options: dict[str, dict[str, OptionValue]],
    reader: Reader,
) -> dict[str, dict[str, OptionValue]]:
    """The options of the flow's server (`sender`) and client (`receiver`), the page's own first."""
    item = reader.item.get("page")
    for key in OF_OTHER_FLOWS:
        if reader.has(key):
            reader.problem(key, "is not of a flow with a page; leave it out")
    if not FLOW_KINDS[protocol].pages:
        reader.problem("page", f'pages are fetched over tcp or sctp, not {protocol}; for example protocol = "tcp"')
    for role, given in options.items():
        for key in sorted(NOT_OF_PAGES & given.keys()):
            reader.problem(role, f"{key} is no option of a page's programs; leave it out")
    if item is None or not FLOW_KINDS[protocol].pages:
        return options
    server, client = read_page(item, name, protocol, message_bytes, reader.problems)
    return {"sender": {**server, **options["sender"]}, "receiver": {**client, **options["receiver"]}}
