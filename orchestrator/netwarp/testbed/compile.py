"""Compiles a cell into steps: everything that cell-init does for it, and the answers that the kernel must give when the
network is read back.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

from ..core.types import Cell, Event, Flow
from . import messages
from .agent_steps import agent_rules, agent_signals, agents_of, forwarding, relay_rules, relays, start_agents
from .arguments import (
    flow_token,
    listener_steps,
    opener_steps,
    page_arguments,
    receiver_arguments,
    sender_arguments,
    sender_program,
)
from .direction_program import DirectionProgram
from .layout import BRIDGE, PREFIX_LENGTH, Devices, Interface, Layout, StaticRoute, hop_name, make_layout
from .messages import Request
from .nftables import rules_dump
from .path_manager import FAMILY, path_manager
from .qdiscs import Htb
from .shaping import ExpectedQdisc, Shaping
from .steps import Step, step

MS = 1_000_000
S = 1_000_000_000
BASE_SYSCTLS = {"net.ipv6.conf.all.disable_ipv6": "1", "net.ipv6.conf.default.disable_ipv6": "1"}
"""IPv6 autoconfiguration sends at random times; nothing here uses IPv6."""
LINGER_NS = 2 * S
"""Time after the cell's duration in which the apps may end by themselves (an ABORT in flight, a last summary)."""
LEAD_NS = 500 * MS
"""A sender is spawned this long before its start, and sleeps until its start by itself. One that starts sooner after T0
is spawned before T0: before `ready` if the clock has a fixed T0 (which the sender is given), otherwise between `ready`
and T0.
"""
RESTORED = ("address", "route", "neighbour")
"""The dumps that must be whole again right after the repair of a `link` event. Operstate is not yet: the kernel sets it
later.
"""
COUNTERS = ("net/snmp", "net/netstat", "net/sctp/snmp")
"""The kernel's counters of a host's namespace, read after everything has ended."""
LATE_NS = (1_000, 1_000_000)
"""How late a timer of the kernel may be, on the virtual and on the wall clock, before that takes from htb's rate: the
virtual one goes in steps of 256 ns.
"""
TRACE_FILE = "apps/trace.bin"
TRACE_BUFFER_BYTES = 16 << 20
"""Holds about 190,000 events of 88 bytes; memory of the guest."""
BUFFER_PAGES = 32_768
"""128 MiB: half of a guest's memory (sandbox/virtual.py). By default the kernel would permit a sixteenth for buffers;
two hosts with buffers of 8 MiB need more, and under memory pressure the kernel announces windows of a few kilobytes
from then on.
"""
DUMPS = ("link", "address", "route", "neighbour", "qdisc")


@dataclass(frozen=True, slots=True)
class Clock:
    """The choice of T0: a fixed instant of the virtual clock, or a time after the sandbox is ready.

    t0_file: of several machines T0 is what somebody writes there, at least t0_after_ready_ns after all are ready;
    over_file: is there once the flows of all of them are over.
    """

    sandbox: Literal["guest", "namespaces"] = "guest"
    t0_realtime_ns: int | None = None
    t0_after_ready_ns: int | None = None
    t0_file: str = ""
    over_file: str = ""
    setup_ns: int = 30 * S
    operstate_ns: int = 10 * S
    grace_ns: int = 5 * S
    progress_ns: int = S
    modules: tuple[str, ...] = ()
    """Files of a guest kernel that has its parts as modules, dependencies first."""
    tick_ns: int = 0
    """On the wall clock: how often it is measured how late the sandbox wakes, late after `late_ns`. 0: not at all."""
    late_ns: int = 0

    @property
    def virtual(self) -> bool:
        """True for the virtual clock: T0 is a fixed instant."""
        return self.t0_realtime_ns is not None


@dataclass(slots=True)
class Compiled:
    """The steps of a cell and what to expect: qdiscs by the step number (line of steps.txt) of the dump."""

    layout: Layout
    steps: list[Step] = field(default_factory=list)
    qdiscs: dict[int, list[ExpectedQdisc]] = field(default_factory=dict)
    classes: dict[int, int] = field(default_factory=dict)
    """Step number of each dump of htb's class -> ifindex."""
    sysctls: dict[tuple[int, str], str] = field(default_factory=dict)
    restored: dict[int, tuple[int, str]] = field(default_factory=dict)
    """Dumps on the timeline that must show all that was set up: (namespace, label) by step number."""
    last_step: int = 0
    """The end's: dumps after it show the cell as the timeline left it."""
    dumped_ns: dict[int, int] = field(default_factory=dict)
    """Step number of each dump on the timeline -> its time."""
    events: dict[int, list[ExpectedQdisc]] = field(default_factory=dict)
    """Number of each event's last step -> every qdisc there must be from then on."""

    def expected(self, number: int, namespace: int, played: AbstractSet[int]) -> list[ExpectedQdisc]:
        """The qdiscs that a dump must show. A cell can end before its timeline does, when its flows are over; `played`:
        numbers of the steps that were carried out.
        """
        if number < self.last_step:
            return self.qdiscs.get(number, [])
        states = [state for step_number, state in self.events.items() if step_number in played]
        return [qdisc for qdisc in (states[-1] if states else self.installed) if qdisc.namespace == namespace]

    def skipped(self, played: AbstractSet[int], over_ns: int) -> set[int]:
        """The dumps of the timeline that were not carried out in a cell whose flows ended at `over_ns` from T0."""
        return {number for number, at_ns in self.dumped_ns.items() if number not in played and at_ns >= over_ns}

    installed: list[ExpectedQdisc] = field(default_factory=list)
    """Every qdisc at the start."""
    programs: dict[int, DirectionProgram] = field(default_factory=dict)
    """Packet programs by the step number of their record at the end."""
    filters: dict[int, DirectionProgram] = field(default_factory=dict)
    """The same by the step number of the dump that shows them attached."""
    rules: dict[int, str] = field(default_factory=dict)
    """Node of an agent by the step number of the dump of its rules at the end."""
    relays: dict[int, set[tuple[str, str | None, str | None]]] = field(default_factory=dict)
    """Namespace of each agent that relays connections -> its rules (agents.relays)."""
    dying: frozenset[str] = frozenset()
    """Nodes whose agent is killed."""
    settings: dict[int, dict[int, bytes]] = field(default_factory=dict)
    """Program index -> number of the step that gives it settings -> those."""

    def add(self, item: Step) -> int:
        """Append a step; returns its number, its line in steps.txt."""
        self.steps.append(item)
        return len(self.steps) + 1

    def add_program_step(self, item: Step) -> None:
        """Append a step of a packet program; settings that it gives are expected from then on."""
        number, values = self.add(item), dict(item.fields)
        given = values.get("data" if item.verb == "bpf-settings" else "settings")
        if item.verb != "netlink" and given is not None:
            self.settings.setdefault(int(values["index"]), {})[number] = bytes.fromhex(given)

    def settings_at_end(self, index: int, played: AbstractSet[int]) -> bytes:
        """The settings that a packet program must have at the end: those of the last step that was carried out (its
        load always was).
        """
        given = self.settings[index]
        load = min(given)
        return given[max(number for number in given if number == load or number in played)]


def compile_cell(
    cell: Cell,
    clock: Clock,
    secret: bytes = b"",
    devices: Devices = MappingProxyType({}),
    elsewhere: AbstractSet[str] = frozenset(),
) -> Compiled:
    """Compile; raises SpecError where the cell does not fit the testbed. `secret`: of the run, for flow_token().

    devices: interfaces of machines in place of veths, as for make_layout(). elsewhere: links that something else takes
    down and up (a switch, a power plug): a `link` event on them has no step.
    """
    layout = make_layout(cell, devices)
    shaping = Shaping(cell, layout, LATE_NS[not clock.virtual])
    dying = frozenset(node for node, agent in agents_of(cell).items() if agent.dies_ns is not None)
    out = Compiled(layout, installed=shaping.expected(), dying=dying, relays=relays(cell, layout))
    out.add(step("sandbox", kind=clock.sandbox))
    if clock.t0_file:
        out.add(step("clock", t0_file=clock.t0_file))
    elif clock.t0_realtime_ns is not None:
        out.add(step("clock", t0_realtime_ns=clock.t0_realtime_ns))
    else:
        out.add(step("clock", t0_after_ready_ns=clock.t0_after_ready_ns or S))
    last_ns = cell.duration_ns + LINGER_NS
    out.add(step("deadline", setup_ns=clock.setup_ns, after_t0_ns=last_ns + 2 * clock.grace_ns))
    if clock.tick_ns:
        out.add(step("progress", every_ns=clock.progress_ns, tick_ns=clock.tick_ns, late_ns=clock.late_ns))
    else:
        out.add(step("progress", every_ns=clock.progress_ns))
    for module in clock.modules:
        out.add(step("module", module=module, command=f"insmod {module}"))
    if clock.sandbox == "guest":
        limits = f"{BUFFER_PAGES} {BUFFER_PAGES} {BUFFER_PAGES + BUFFER_PAGES // 2}"
        command = "\n".join(f"sysctl -w net.{key}='{limits}'" for key in ("ipv4.tcp_mem", "sctp.sctp_mem"))
        out.add(step("memory", pages=BUFFER_PAGES, command=command))
    _network(cell, clock, layout, shaping, out)
    for number in range(len(layout.namespaces)):
        _dumps(out, number, DUMPS if number not in out.relays else (*DUMPS, "rule"), shaping)
    for capture in cell.captures:
        interface = layout.interface(capture.node, capture.link)
        out.add(
            step(
                "capture", ns=interface.namespace, ifindex=interface.ifindex, iface=interface.name,
                mtu=interface.mtu_bytes, file=f"capture/{interface.node}-{interface.link}.pcap",
            )
        )  # fmt: skip
    _trace(cell, out)
    out.add(step("capture-start"))
    out.steps += start_agents(cell, layout, clock.setup_ns)
    tokens = {flow.name: flow_token(cell, flow, secret) for flow in cell.flows}
    for flow in cell.flows:
        if flow.program is not None:
            out.steps += listener_steps(flow, flow.program, layout, clock.setup_ns, virtual=clock.virtual)
            continue
        out.add(_spawn(flow, flow.listener, layout, tokens[flow.name]))
        out.add(step("output", id=f"{flow.name}.{flow.listener}", text='"listening"', timeout_ns=clock.setup_ns))
    ours = [flow for flow in cell.flows if flow.program is None]
    early = [flow for flow in ours if flow.start_ns < LEAD_NS and clock.virtual]
    for flow in early:  # spawned at T0 it would be late: starting a program takes some microseconds
        out.add(_spawn(flow, flow.opener, layout, tokens[flow.name]))
    out.add(step("ready"))
    # a quarter of the time from ready to T0 is for being late with what comes first
    earliest_ns = 0 if clock.t0_after_ready_ns is None else -clock.t0_after_ready_ns * 3 // 4
    late = [flow for flow in cell.flows if flow not in early]
    starts = _sender_steps(late, tokens, earliest_ns, layout, virtual=clock.virtual)
    _timeline(cell, itertools.chain(agent_signals(cell), starts), layout, shaping, out, elsewhere)
    over = {"file": clock.over_file} if clock.over_file else {}
    out.last_step = out.add(step("end", at_ns=last_ns, early=1, **over, grace_ns=clock.grace_ns))
    for number in range(len(layout.namespaces)):
        _dumps(out, number, ("link", "qdisc"), shaping)
    for program in shaping.programs.values():
        data = messages.filter_dump(program.interface.ifindex).hex()
        out.filters[out.add(step("dump", ns=program.interface.namespace, label="filter", data=data))] = program
        out.programs[out.add(step("bpf-record", index=program.index))] = program
    for node in forwarding(cell):
        number = layout.namespaces.index(node)
        data = rules_dump().hex()
        out.rules[out.add(step("dump", ns=number, label="rules", netfilter=1, data=data))] = node
    for node in dict.fromkeys(name for flow in cell.flows for name in (flow.sender, flow.receiver)):
        for path in COUNTERS:
            command = f"ip netns exec {node} cat /proc/{path}"
            out.add(step("proc", ns=layout.namespaces.index(node), path=path, command=command))
    return out


def _trace(cell: Cell, out: Compiled) -> None:
    """The step that records the kernel's tracepoints, if a flow asks for them; TCP's only for the sockets of those
    flows' senders.
    """
    traced = [flow for flow in cell.flows if flow.sender_options.get("tracepoints")]
    if not traced:
        return
    ports = " || ".join(f"dport == {flow.port}" for flow in traced if flow.protocol != "sctp")
    item = step("trace", file=TRACE_FILE, buffer_bytes=TRACE_BUFFER_BYTES)
    out.add(replace(item, fields=(*item.fields, ("tcp_filter", ports))) if ports else item)


def _network(cell: Cell, clock: Clock, layout: Layout, shaping: Shaping, out: Compiled) -> None:
    sysctls = {node.name: node.sysctls for node in cell.nodes}
    for number, name in enumerate(layout.namespaces):
        out.add(step("ns", index=number, name=name, command=f"ip netns add {name}\nip -n {name} link set dev lo up"))
    for number, name in enumerate(layout.namespaces):
        values = dict(BASE_SYSCTLS)
        if name in layout.routers:
            values["net.ipv4.ip_forward"] = "1"
        values.update(sysctls.get(name, {}))
        for key, value in values.items():
            out.sysctls[number, key] = value
            command = f"ip netns exec {name} sysctl -w {shlex.quote(f'{key}={value}')}"
            path = key if "/" in key else key.replace(".", "/")  # a name with slashes is a path already
            out.add(step("sysctl", ns=number, path=path, value=value, command=command))
    for near, far in layout.veths:
        if near.is_device:
            for end in (near, far):
                command = f"ip link set dev {end.name} netns {end.node} index {end.ifindex}"
                out.add(step("adopt", ns=end.namespace, iface=end.name, ifindex=end.ifindex, command=command))
                _request(out, layout, end.namespace, messages.set_mtu(end.name, end.ifindex, end.mtu_bytes))
            continue
        _request(out, layout, near.namespace, messages.veth(near.end, far.end, far.node, near.mtu_bytes))
    for namespace, ifindex in layout.bridges.items():
        _request(out, layout, namespace, messages.bridge(BRIDGE, ifindex))
        _request(out, layout, namespace, messages.set_link(BRIDGE, ifindex, up=True))
    for interface in layout.interfaces():
        ns, name, ifindex = interface.namespace, interface.name, interface.ifindex
        if not interface.is_device:
            out.add(_offload(interface))
        if interface.bridge is not None:
            _request(out, layout, ns, messages.make_port(name, ifindex, BRIDGE, interface.bridge))
            for mac in layout.behind(interface):
                _request(out, layout, ns, messages.behind_port(name, ifindex, mac))
        else:
            _request(out, layout, ns, messages.address(name, ifindex, interface.ip, PREFIX_LENGTH))
        _request(out, layout, ns, messages.set_link(name, ifindex, up=True))
        if interface.is_device:  # some drivers switch them on when the interface goes up
            out.add(_offload(interface))
        for ip, mac in layout.neighbours(interface):
            _request(out, layout, ns, messages.neighbour(name, ifindex, ip, mac))
    for route in layout.routes:
        _request(out, layout, route.interface.namespace, _add_route(route))
    for namespace, request in shaping.install():
        _request(out, layout, namespace, request)
    for item in shaping.load_programs():
        out.add_program_step(item)
    for namespace, request in relay_rules(cell, layout):
        _request(out, layout, namespace, request)
    for namespace, request in agent_rules(cell, layout):
        text = request.command.replace("\n", f"\nip netns exec {layout.namespaces[namespace]} ")
        command = f"ip netns exec {layout.namespaces[namespace]} {text}"
        out.add(step("netlink", ns=namespace, netfilter=1, data=request.data.hex(), command=command))
    for namespace, request in path_manager(cell.flows, layout):
        command = f"ip netns exec {layout.namespaces[namespace]} {request.command}"
        out.add(step("netlink", ns=namespace, family=FAMILY, data=request.data.hex(), command=command))
    for interface in (*layout.interfaces(), *(line.queue for line in shaping.lines.values())):
        item = step("operstate", ns=interface.namespace, ifindex=interface.ifindex, timeout_ns=clock.operstate_ns)
        # some drivers never say
        out.add(replace(item, fields=(*item.fields, ("unknown", "1"))) if interface.is_device else item)
    for namespace, ifindex in layout.bridges.items():
        out.add(step("operstate", ns=namespace, ifindex=ifindex, timeout_ns=clock.operstate_ns))


def _offload(interface: Interface, at_ns: int | None = None) -> Step:
    command = f"ip netns exec {interface.node} ethtool -K {interface.name} tx off rx off sg off tso off gso off gro off"
    return step("offload", ns=interface.namespace, iface=interface.name, command=command, at_ns=at_ns)


def _request(out: Compiled, layout: Layout, namespace: int, request: Request, at_ns: int | None = None) -> None:
    command = f"ip netns exec {layout.namespaces[namespace]} {request.command}"
    out.add(step("netlink", ns=namespace, data=request.data.hex(), command=command, at_ns=at_ns))


def _dumps(
    out: Compiled,
    namespace: int,
    kinds: tuple[str, ...],
    shaping: Shaping,
    at_ns: int | None = None,
    *,
    restored: bool = False,
) -> None:
    requests = [(kind, messages.dump(kind), 0) for kind in kinds]
    expected = shaping.expected(namespace)
    for qdisc in expected if "qdisc" in kinds else ():
        if isinstance(qdisc.stage, Htb):
            requests.append(("class", messages.class_dump(qdisc.ifindex, qdisc.handle), qdisc.ifindex))
    for kind, data, ifindex in requests:
        number = out.add(step("dump", ns=namespace, label=kind, data=data.hex(), at_ns=at_ns))
        if at_ns is not None:
            out.dumped_ns[number] = at_ns
        if kind in ("qdisc", "class"):
            out.qdiscs[number] = expected
        if kind == "class":
            out.classes[number] = ifindex
        if restored:
            out.restored[number] = (namespace, kind)


def _spawn(
    flow: Flow, role: Literal["sender", "receiver"], layout: Layout, token: int, at_ns: int | None = None
) -> Step:
    node = flow.sender if role == "sender" else flow.receiver
    if flow.is_page:
        program = ["bin/web-server" if role == "sender" else "bin/web-client"]
        arguments = page_arguments(flow, role, layout, token)
    elif role == "sender":
        program, arguments = sender_program(flow), sender_arguments(flow, layout, token)
    else:
        program, arguments = ["bin/receiver"], receiver_arguments(flow, layout, token)
    return step(
        "spawn",
        id=f"{flow.name}.{role}",
        ns=layout.namespaces.index(node),
        stdout=f"apps/{flow.name}.{role}.ndjson",
        stderr=f"apps/{flow.name}.{role}.stderr",
        flow=1,
        arg=[*program, *arguments],
        command=f"ip netns exec {node} {' '.join([*(part.rpartition('/')[2] for part in program), *arguments])} &",
        at_ns=at_ns,
    )


def _sender_steps(
    flows: list[Flow], tokens: dict[str, int], earliest_ns: int, layout: Layout, *, virtual: bool
) -> Iterator[Step]:
    for flow in flows:
        if flow.program is not None:  # begins when it is started; netwarp's own sender sleeps until its start
            yield from opener_steps(flow, flow.program, layout, virtual=virtual)
        else:
            at_ns = max(earliest_ns, flow.start_ns - LEAD_NS)
            yield _spawn(flow, flow.opener, layout, tokens[flow.name], at_ns)


def _timeline(
    cell: Cell,
    others: Iterator[Step],
    layout: Layout,
    shaping: Shaping,
    out: Compiled,
    elsewhere: AbstractSet[str],
) -> None:
    """The timeline's events and the starts of senders, sorted by time; at equal times events come first, in the order
    listed.
    """
    moments: list[tuple[int, int, Event | Step]] = [(event.at_ns, 0, event) for event in cell.timeline]
    moments += [(item.at_ns or 0, 1, item) for item in others]
    downed: dict[str, Interface] = {}
    theirs: set[str] = set()
    for at_ns, _, moment in sorted(moments, key=lambda item: (item[0], item[1])):
        if isinstance(moment, Step):
            out.add(moment)
            continue
        touched: set[int] = set()
        whole_again: list[int] = []
        if moment.action == "link" and moment.link in elsewhere:
            theirs.add(moment.name)
            continue
        if moment.action == "repair" and moment.name in theirs:
            theirs.discard(moment.name)
            continue
        if moment.action == "link":
            end = layout.link_end(moment.link, moment.end or hop_name(moment.link))
            downed[moment.name] = end
            for each in (end, *shaping.waiting_for(end)):
                _request(out, layout, end.namespace, messages.set_link(each.name, each.ifindex, up=False), at_ns)
            touched.add(end.namespace)
        elif moment.action == "repair" and moment.name in downed:
            end = downed.pop(moment.name)
            touched.add(end.namespace)
            # while another end of this namespace is down, its routes are rightly missing
            if not any(other.namespace == end.namespace for other in downed.values()):
                whole_again.append(end.namespace)
            for each in shaping.waiting_for(end):
                _request(out, layout, end.namespace, messages.set_link(each.name, each.ifindex, up=True), at_ns)
            first, *more = _restore(end, layout)
            _request(out, layout, end.namespace, first, at_ns)
            if end.is_device:  # before any packet: some drivers switch offloads on when the interface goes up
                out.add(_offload(end, at_ns))
            for request in more:
                _request(out, layout, end.namespace, request, at_ns)
        else:
            for namespace, request in shaping.apply(moment):
                touched.add(namespace)
                _request(out, layout, namespace, request, at_ns)
            for item in shaping.change_programs(moment):
                out.add_program_step(item)
        for namespace in sorted(touched):
            _dumps(out, namespace, ("qdisc", "link"), shaping, at_ns)
        for namespace in whole_again:
            _dumps(out, namespace, RESTORED, shaping, at_ns, restored=True)
        out.events[len(out.steps) + 1] = shaping.expected()


def _restore(end: Interface, layout: Layout) -> list[Request]:
    """The interface goes up first; then what the kernel removed when it went down: neighbours and static routes."""
    return [
        messages.set_link(end.name, end.ifindex, up=True),
        *(messages.neighbour(end.name, end.ifindex, ip, mac) for ip, mac in layout.neighbours(end)),
        *(_add_route(route) for route in layout.routes if route.interface == end),
    ]


def _add_route(route: StaticRoute) -> Request:
    via, window = route.interface, route.initial_window_packets
    length = route.prefix_length
    return messages.route(route.subnet, length, route.gateway, via.name, via.ifindex, window, route.quick_ack)
