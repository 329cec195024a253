"""The steps of events that happen to hosts, addresses and middle boxes, and what the kernel must show after them.

stop_reading  the process of the receiver is stopped (SIGSTOP); its kernel goes on, until the buffer is full.
restart       host: rules drop whatever the host sends and gets, its apps close their sockets by aborts that nobody
              hears (SIGUSR1), and open new ones when it is up again (SIGUSR2). process: the same without the rules,
              and the sockets are closed as the kernel closes those of a killed process (SIGHUP). Programs of the
              user's own are killed, of a host by aborts, and started again.
address       an address is removed and added again, with the routes and neighbours that the kernel removes with
              the last one.
mtu           the routes by which the link's hop forwards get an MTU: what is longer is answered by ICMP.
forget        the connection tracking of the hop of a link with a firewall is flushed.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from ..core.types import HOST_FAULTS, Cell, Check, Event, Flow
from . import messages, nftables
from .arguments import restart_steps
from .layout import Interface, Layout, StaticRoute, hop_name
from .messages import Request, netlink_step
from .spawning import LEAD_NS
from .steps import Step, step

NO_LOOSE = {"net.netfilter.nf_conntrack_tcp_loose": "0"}
"""A firewall takes no TCP connection up in its midst."""
NO_CHECKSUM = {"net.netfilter.nf_conntrack_checksum": "0"}
"""Where links alter bits, a firewall leaves checksums to the receiver: a packet of SCTP that it has checked counts as
right from there on (nf_conntrack_proto_sctp.c), also when the link behind it alters the packet.
"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a dump must show after an event. addresses: none of them is there. mtus: (destination, MTU or None) of each
    route by which a hop forwards. forgotten: no connection is tracked.
    """

    addresses: frozenset[str] = frozenset()
    mtus: frozenset[tuple[str, int | None]] = frozenset()
    forgotten: bool = False

    def check(self, node: str, entries: Iterable[Any]) -> Check:
        """Compare a decoded dump."""
        if self.forgotten:
            known = len(list(entries))
            return Check(f"connections that {node} knows", not known, f"{known} after they were forgotten")
        attributes = [dict(entry["attrs"]) for entry in entries]
        if self.addresses:
            left = sorted(self.addresses & {str(each.get("IFA_ADDRESS")) for each in attributes})
            return Check(f"addresses removed from {node}", not left, f"still there: {left}" if left else "all")
        mtus = {
            (str(each.get("RTA_DST")), dict(metrics["attrs"]).get("RTAX_MTU") if metrics else None)
            for each in attributes
            for metrics in (each.get("RTA_METRICS"),)
        }
        missing = sorted(map(str, self.mtus - mtus))
        return Check(
            f"MTU of routes of {node}", not missing, f"not there: {missing}" if missing else str(set(self.mtus))
        )


@dataclass(frozen=True, slots=True)
class Asked:
    """A step of an event; namespace, label and wanted: of a dump."""

    step: Step
    namespace: int = 0
    label: str = ""
    wanted: Wanted | None = None


class HostFaultSteps:
    """Makes the steps of such events of one cell."""

    def __init__(self, cell: Cell, layout: Layout, *, virtual: bool) -> None:
        self._flows, self._layout, self._virtual = cell.flows, layout, virtual
        self._starts = dict[str, int]()
        self._duration_ns = cell.duration_ns
        self._begun: dict[str, Event] = {}

    def takes(self, event: Event) -> bool:
        """True for these events and their ends."""
        return event.action in HOST_FAULTS or event.name in self._begun

    def lacks_an_address(self, namespace: int) -> bool:
        """True while a namespace rightly lacks an address, and routes."""
        removed = (str(event.node) for event in self._begun.values() if event.action == "address")
        return self._layout.namespaces[namespace] in removed

    def of(self, event: Event) -> Iterator[Asked]:
        """The steps of an event, or of the end of one."""
        begun = self._begun.pop(event.name, None)
        what = event if begun is None else begun
        if begun is None and event.action != "forget":
            self._begun[event.name] = event
        match what.action:
            case "stop_reading":
                yield self._stop(str(what.flow), event.at_ns, go_on=begun is not None)
            case "restart":
                yield from self._restart(what, event.at_ns, up=begun is not None)
            case "address":
                yield from self._address(what, event.at_ns, back=begun is not None)
            case "mtu":
                yield from self._mtu(what, event.at_ns, None if begun is not None else int(what.mtu_bytes or 0))
            case "forget":
                yield from self._forget(what)

    def awake(self) -> Iterator[Asked]:
        """A receiver that is stopped to the end of the cell reads on then: a stopped process cannot end."""
        for event in self._begun.values():
            if event.action == "stop_reading":
                yield self._stop(str(event.flow), self._duration_ns, go_on=True)

    def _stop(self, flow: str, at_ns: int, *, go_on: bool) -> Asked:
        return Asked(_signal(f"{flow}.receiver", signal.SIGCONT if go_on else signal.SIGSTOP, at_ns))

    def _apps(self, node: str, down_ns: int) -> Iterator[str]:
        """netwarp's own apps on a host that goes down then: those that have been started."""
        for flow in self._flows:
            for role, where in (("sender", flow.sender), ("receiver", flow.receiver)):
                started = role != flow.opener or max(0, flow.start_ns - LEAD_NS) < down_ns
                if where == node and flow.program is None and started:
                    yield f"{flow.name}.{role}"

    def _restart(self, event: Event, at_ns: int, *, up: bool) -> Iterator[Asked]:
        node, host = str(event.node), event.killed == "host"
        namespace = self._layout.namespaces.index(node)
        if host:
            request = nftables.no_silence() if up else nftables.silence()
            yield Asked(netlink_step(namespace, node, request, at_ns, netfilter=1))
        yield from self._programs(node, namespace, at_ns, up=up, abort=host)
        how = signal.SIGUSR2 if up else signal.SIGUSR1 if host else signal.SIGHUP
        for app in self._apps(node, event.at_ns):
            yield Asked(_signal(app, how, at_ns))

    def _programs(self, node: str, namespace: int, at_ns: int, *, up: bool, abort: bool) -> Iterator[Asked]:
        """All processes of the host die; when it is up the programs of its flows are started again."""
        here = [flow for flow in self._flows if flow.program is not None and node in (flow.sender, flow.receiver)]
        if here and not up:
            command = f"ip netns pids {node} | xargs kill -9" + ("  # their sockets end by aborts" if abort else "")
            yield Asked(step("kill", ns=namespace, abort=1 if abort else None, at_ns=at_ns, command=command))
            self._starts[node] = self._starts.get(node, 1) + 1
            return
        for flow in here:
            role: Literal["sender", "receiver"] = "sender" if flow.sender == node else "receiver"
            for start in restart_steps(flow, role, self._layout, at_ns, self._starts[node], virtual=self._virtual):
                yield Asked(start)

    def _address(self, event: Event, at_ns: int, *, back: bool) -> Iterator[Asked]:
        interface = self._layout.interface(str(event.node), event.link)
        length = interface.ip_family.subnet_length
        if not back:
            yield self._request(interface, messages.remove_address(interface, interface.ip, length), at_ns)
            wanted = Wanted(addresses=frozenset({interface.ip}))
            yield self._dump(
                interface.namespace, "address", messages.dump("address", {interface.ip_family}), at_ns, wanted
            )
            return
        yield self._request(interface, messages.address(interface, interface.ip, length), at_ns)
        for ip, mac in self._layout.neighbours(interface):
            yield self._request(interface, messages.neighbour(interface, ip, mac), at_ns)
        for route in self._layout.routes:
            if route.interface == interface:
                yield self._request(interface, add_route(route), at_ns)

    def _mtu(self, event: Event, at_ns: int, mtu_bytes: int | None) -> Iterator[Asked]:
        for name in event.directions:
            out = self._layout.shaped[event.link, name]
            request = messages.route(
                out.subnet, out.ip_family.subnet_length, "", out, mtu_bytes=mtu_bytes, connected=True
            )  # fmt: skip
            yield self._request(out, request, at_ns)
            wanted = {(out.subnet, mtu_bytes)}
            for route in self._layout.routes:
                if route.interface == out:
                    yield self._request(out, add_route(route, mtu_bytes), at_ns)
                    wanted.add((route.subnet, mtu_bytes))
            yield self._dump(
                out.namespace, "route", messages.dump("route", {out.ip_family}), at_ns, Wanted(mtus=frozenset(wanted))
            )

    def _forget(self, event: Event) -> Iterator[Asked]:
        namespace = self._layout.namespaces.index(hop_name(event.link))
        request = nftables.forget()
        yield Asked(netlink_step(namespace, hop_name(event.link), request, event.at_ns, netfilter=1))
        wanted = Wanted(forgotten=True)
        yield self._dump(namespace, "conntrack", nftables.connections_dump(), event.at_ns, wanted, netfilter=True)

    def _request(self, where: Interface, request: Request, at_ns: int) -> Asked:
        return Asked(netlink_step(where.namespace, where.node, request, at_ns))

    @staticmethod
    def _dump(namespace: int, label: str, data: bytes, at_ns: int, wanted: Wanted, *, netfilter: bool = False) -> Asked:
        via = 1 if netfilter else None
        asked = step("dump", ns=namespace, label=label, data=data.hex(), at_ns=at_ns, netfilter=via)
        return Asked(asked, namespace, label, wanted)


def add_route(route: StaticRoute, mtu_bytes: int | None = None) -> Request:
    """The request of a static route; mtu_bytes: of what is forwarded by it."""
    window, quick_ack, length = route.initial_window_packets, route.quick_ack, route.prefix_length
    return messages.route(
        route.subnet, length, route.gateway, route.interface, window, quick_ack, mtu_bytes=mtu_bytes
    )  # fmt: skip


def _signal(app: str, number: signal.Signals, at_ns: int) -> Step:
    command = f"# kill -{number.name.removeprefix('SIG')} {app}"
    return step("signal", id=app, signal=int(number), at_ns=at_ns, command=command)


def restarted(cell: Cell) -> frozenset[str]:
    """The hosts that restart."""
    return frozenset(str(event.node) for event in cell.timeline if event.action == "restart")


def accepts_again(cell: Cell, flow: Flow) -> bool:
    """True if the flow's receiver may meet more than one connection."""
    if flow.protocol == "udp":  # it has no connection
        return False
    return "reconnect_ns" in flow.sender_options or bool(restarted(cell) & {flow.sender, flow.receiver})


def firewalls(cell: Cell, layout: Layout) -> dict[int, tuple[str, str]]:
    """Namespace of the hop of each link with a firewall -> the hop and what it does to unknown packets."""
    return {
        layout.namespaces.index(hop_name(link.name)): (hop_name(link.name), str(link.firewall))
        for link in cell.links
        if link.firewall
    }
