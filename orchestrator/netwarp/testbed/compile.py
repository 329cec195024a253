"""Compiles a cell into steps: everything that cell-init does for it, and the answers that the kernel must give when the
network is read back.

The back ends (`sandbox`) compile a cell before they run it, `measure` once more to read what it left. Steps take
virtual time: another step, or another order, gives other captures.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from ..core.ip_families import FORWARDS_IPV4, FORWARDS_IPV6, IPV6, ipv6_on, quiet_sysctls
from ..core.types import Cell, Event
from . import messages
from .agent_steps import agent_rules, agent_signals, agents_of, forwarding, relay_rules, relays, start_agents
from .arguments import flow_token, listener_steps, program_files
from .direction_program import DirectionProgram
from .host_faults import NO_CHECKSUM, NO_LOOSE, Asked, HostFaultSteps, Wanted, accepts_again, add_route, firewalls
from .layout import Devices, Interface, Layout, hop_name, make_layout
from .many_flows import process_id, shared_processes, spawn_many
from .message_files import heartbeat_files, message_files
from .messages import Request, netlink_step
from .nftables import firewall, rules_dump
from .path_manager import FAMILY, path_manager
from .policers import DirectionPolicer, direction_policers, policer_dump
from .qdiscs import Htb
from .shaping import ExpectedQdisc, Shaping
from .spawning import LEAD_NS, sender_steps, spawn
from .steps import Step, step
from .tls_identity import tls_files

MS = 1_000_000
S = 1_000_000_000
LINGER_NS = 2 * S
"""Time after the cell's duration in which the apps may end by themselves (an ABORT in flight, a last summary)."""
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
T0_FILE = "t0"
"""Where cell-init writes T0 once it is known, for programs that were started before."""
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


@dataclass(frozen=True, slots=True)
class AskedDump:
    """A dump that a step asks for, and what its answer is compared with.

    at_ns: of one on the timeline. whole: it must show all that was set up. ifindex: of htb's classes or a program's
    filter. qdiscs: those of its namespace; None: as the timeline left them.
    """

    namespace: int
    label: str
    at_ns: int | None = None
    whole: bool = False
    ifindex: int = 0
    qdiscs: list[ExpectedQdisc] | None = None
    wanted: Wanted | None = None
    """After an event of host_faults.py."""


@dataclass(slots=True)
class Compiled:
    """The steps of a cell and what to expect. A step's number is its line in steps.txt."""

    layout: Layout
    steps: list[Step] = field(default_factory=list)
    dumps: dict[int, AskedDump] = field(default_factory=dict)
    """By the step that asks."""
    sysctls: dict[tuple[int, str], str] = field(default_factory=dict)
    """(namespace, name) -> value."""
    events: dict[int, list[ExpectedQdisc]] = field(default_factory=dict)
    """Number of each event's last step -> every qdisc there must be from then on."""
    installed: list[ExpectedQdisc] = field(default_factory=list)
    """Every qdisc at the start."""
    programs: tuple[DirectionProgram, ...] = ()
    """Packet programs by their number."""
    policers: tuple[DirectionPolicer, ...] = ()
    relays: dict[int, set[tuple[str, str | None, str | None]]] = field(default_factory=dict)
    """Namespace of each agent that relays connections -> its rules (agent_steps.relays)."""
    dying: frozenset[str] = frozenset()
    """Nodes whose agent is killed."""
    files: dict[str, bytes] = field(default_factory=dict)
    """What netwarp's own programs read, in the cell's directory."""
    firewalls: frozenset[int] = frozenset()
    """Namespaces whose rules are a firewall's."""

    def add(self, item: Step) -> int:
        """Append a step; returns its number."""
        self.steps.append(item)
        return len(self.steps) + 1

    def request(self, namespace: int, request: Request, at_ns: int | None = None, **more: str | int) -> None:
        """Append the step that sends a request to the kernel."""
        self.add(netlink_step(namespace, self.layout.namespaces[namespace], request, at_ns, **more))

    def asked(self, asked: Asked) -> None:
        """Append a step of an event of host_faults.py."""
        number = self.add(asked.step)
        if asked.wanted is not None:
            self.dumps[number] = AskedDump(asked.namespace, asked.label, asked.step.at_ns, wanted=asked.wanted)

    def dump(
        self, namespace: int, labels: Iterable[str], qdiscs: list[ExpectedQdisc], at_ns: int | None = None, *,
        whole: bool = False, at_end: bool = False,
    ) -> None:  # fmt: skip
        """Append the dumps of a namespace, which has these qdiscs now; with them those of htb's classes."""
        families = self.layout.families(namespace)
        requests = [(label, messages.dump(label, families), 0) for label in labels]
        for qdisc in qdiscs if "qdisc" in labels else ():
            if isinstance(qdisc.stage, Htb):
                ifindex = qdisc.device.ifindex
                # a cell that ends before its timeline does has an earlier handle at its end
                parent = messages.class_dump(ifindex, 0 if at_end else qdisc.handle)
                requests.append(("class", parent, ifindex))
        for label, data, ifindex in requests:
            number = self.add(step("dump", ns=namespace, label=label, data=data.hex(), at_ns=at_ns))
            self.dumps[number] = AskedDump(namespace, label, at_ns, whole, ifindex, None if at_end else qdiscs)

    def expected(self, dump: AskedDump, played: AbstractSet[int]) -> list[ExpectedQdisc]:
        """The qdiscs that a dump must show. A cell can end before its timeline does, when its flows are over; `played`:
        numbers of the steps that were carried out.
        """
        if dump.qdiscs is not None:
            return dump.qdiscs
        states = [state for number, state in self.events.items() if number in played]
        return [qdisc for qdisc in (states or [self.installed])[-1] if qdisc.device.namespace == dump.namespace]

    def settings_at_end(self, program: DirectionProgram, played: AbstractSet[int]) -> bytes:
        """The settings that a packet program must have at the end: of its load, or of the last change carried out."""
        last = ""
        for number, item in enumerate(self.steps, 2):
            values = dict(item.fields)
            its = item.verb in ("bpf", "bpf-settings") and values["index"] == str(program.index)
            if its and (item.at_ns is None or number in played):
                last = values.get("settings") or values["data"]
        return bytes.fromhex(last)


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
    out = Compiled(layout, installed=shaping.expected(), programs=shaping.every_program(),
                   relays=relays(cell, layout), dying=dying, policers=direction_policers(cell, layout),
                   files=dict((*message_files(cell), *heartbeat_files(cell, layout),
                               *program_files(cell, layout), *tls_files(cell))),
                   firewalls=frozenset(firewalls(cell, layout)))  # fmt: skip
    out.add(step("sandbox", kind=clock.sandbox))
    if clock.t0_file:
        out.add(step("clock", t0_file=clock.t0_file))
    elif clock.t0_realtime_ns is not None:
        out.add(step("clock", t0_realtime_ns=clock.t0_realtime_ns))
    else:
        out.add(step("clock", t0_after_ready_ns=clock.t0_after_ready_ns or S))
    last_ns = cell.duration_ns + LINGER_NS
    out.add(step("deadline", setup_ns=clock.setup_ns, after_t0_ns=last_ns + 2 * clock.grace_ns))
    tick_ns, late_ns = (clock.tick_ns, clock.late_ns) if clock.tick_ns else (None, None)
    out.add(step("progress", every_ns=clock.progress_ns, tick_ns=tick_ns, late_ns=late_ns))
    for module in clock.modules:
        out.add(step("module", module=module, command=f"insmod {module}"))
    if clock.sandbox == "guest":
        limits = f"{BUFFER_PAGES} {BUFFER_PAGES} {BUFFER_PAGES + BUFFER_PAGES // 2}"
        command = "\n".join(f"sysctl -w net.{key}='{limits}'" for key in ("ipv4.tcp_mem", "sctp.sctp_mem"))
        out.add(step("memory", pages=BUFFER_PAGES, command=command))
    _network(cell, clock, layout, shaping, out)
    for number in range(len(layout.namespaces)):
        labels = DUMPS if number not in out.relays else (*DUMPS, "rule")
        out.dump(number, labels, shaping.expected(number), whole=True)
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
    shared = shared_processes(cell)
    t0_file = "" if clock.virtual else T0_FILE
    inside = {(flow.name, role) for (_, role), flows in shared.items() for flow in flows}
    for end, flows in shared.items():
        if end[1] == "receiver":
            out.add(spawn_many(end, flows, layout, tokens, out.files, t0_file=t0_file))
            out.add(step("output", id=process_id(end), text='"listening"', timeout_ns=clock.setup_ns))
    for flow in cell.flows:
        if flow.program is not None:
            out.steps += listener_steps(flow, flow.program, layout, clock.setup_ns, virtual=clock.virtual)
            continue
        if (flow.name, flow.listener) in inside:
            continue
        again = accepts_again(cell, flow)
        out.add(spawn(flow, flow.listener, layout, tokens[flow.name], t0_file=t0_file, again=again))
        out.add(step("output", id=f"{flow.name}.{flow.listener}", text='"listening"', timeout_ns=clock.setup_ns))
    ours = [flow for flow in cell.flows if flow.program is None and (flow.name, flow.opener) not in inside]
    early = [flow for flow in ours if flow.start_ns < LEAD_NS and clock.virtual]
    for flow in early:  # spawned at T0 it would be late: starting a program takes some microseconds
        out.add(spawn(flow, flow.opener, layout, tokens[flow.name]))
    senders = {end: flows for end, flows in shared.items() if end[1] == "sender"}
    for end, flows in senders.items() if clock.virtual else ():
        out.add(spawn_many(end, flows, layout, tokens, out.files))
    out.add(step("ready"))
    # a quarter of the time from ready to T0 is for being late with what comes first
    earliest_ns = 0 if clock.t0_after_ready_ns is None else -clock.t0_after_ready_ns * 3 // 4
    started = {flow.name for flow in early} | {name for name, role in inside if role == "sender"}
    late = [flow for flow in cell.flows if flow.name not in started]
    starts = list(sender_steps(cell, late, tokens, earliest_ns, layout, virtual=clock.virtual))
    for end, flows in senders.items() if not clock.virtual else ():
        at_ns = max(earliest_ns, min(flow.start_ns for flow in flows) - LEAD_NS)
        starts.append(spawn_many(end, flows, layout, tokens, out.files, at_ns=at_ns))
    _timeline(cell, clock, itertools.chain(agent_signals(cell), starts), layout, shaping, out, elsewhere)
    out.add(step("end", at_ns=last_ns, early=1, file=clock.over_file or None, grace_ns=clock.grace_ns))
    for number in range(len(layout.namespaces)):
        out.dump(number, ("link", "qdisc"), shaping.expected(number), at_end=True)
    for program in out.programs:
        where = program.interface
        asked = step("dump", ns=where.namespace, label="filter", data=messages.filter_dump(where.ifindex).hex())
        out.dumps[out.add(asked)] = AskedDump(where.namespace, "filter", ifindex=where.ifindex)
        out.add(step("bpf-record", index=program.index))
    for each in out.policers:
        where = each.interface
        asked = step("dump", ns=where.namespace, label="policer", data=policer_dump(where).hex())
        out.dumps[out.add(asked)] = AskedDump(where.namespace, "policer", ifindex=where.ifindex)
    for number in (*map(layout.namespaces.index, forwarding(cell)), *sorted(out.firewalls)):
        asked = step("dump", ns=number, label="rules", netfilter=1, data=rules_dump().hex())
        out.dumps[out.add(asked)] = AskedDump(number, "rules")
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
    out.add(step("trace", file=TRACE_FILE, buffer_bytes=TRACE_BUFFER_BYTES, tcp_filter=ports or None))


def _network(cell: Cell, clock: Clock, layout: Layout, shaping: Shaping, out: Compiled) -> None:
    sysctls = {node.name: node.sysctls for node in cell.nodes}
    for number, name in enumerate(layout.namespaces):
        out.add(step("ns", index=number, name=name, command=f"ip netns add {name}\nip -n {name} link set dev lo up"))
    for number, name in enumerate(layout.namespaces):
        families = layout.families(number)
        values = quiet_sysctls(families)
        if name in layout.routers:
            values |= FORWARDS_IPV4 if families != {IPV6} else {}
        values.update(sysctls.get(name, {}))
        if number in out.firewalls:
            values |= NO_LOOSE | (NO_CHECKSUM if cell.corrupts else {})
        for key, value in values.items():
            _set(out, number, key, value)
    for near, far in layout.veths:
        if near.is_device:
            for end in (near, far):
                command = f"ip link set dev {end.name} netns {end.node} index {end.ifindex}"
                out.add(step("adopt", ns=end.namespace, iface=end.name, ifindex=end.ifindex, command=command))
                out.request(end.namespace, messages.set_mtu(end, end.mtu_bytes))
        else:
            out.request(near.namespace, messages.veth(near, far, near.mtu_bytes, far.node))
    for namespace, bridge in layout.bridges.items():
        out.request(namespace, messages.bridge(bridge))
        out.request(namespace, messages.set_link(bridge, up=True))
    for interface in layout.interfaces():
        ns = interface.namespace
        if not interface.is_device:
            out.add(_offload(interface))
        if interface.bridge is not None:
            out.request(ns, messages.make_port(interface, interface.bridge))
            for mac in layout.behind(interface):
                out.request(ns, messages.behind_port(interface, mac))
        else:
            _address(interface, out)
        out.request(ns, messages.set_link(interface, up=True))
        if interface.is_device:  # some drivers switch them on when the interface goes up
            out.add(_offload(interface))
        for ip, mac in layout.neighbours(interface):
            out.request(ns, messages.neighbour(interface, ip, mac))
    for name in sorted(layout.routers, key=layout.namespaces.index):
        number = layout.namespaces.index(name)
        for key, value in (FORWARDS_IPV6 if IPV6 in layout.families(number) else {}).items():
            _set(out, number, key, value)
    for route in layout.routes:
        out.request(route.interface.namespace, add_route(route))
    for namespace, request in shaping.install():
        out.request(namespace, request)
    out.steps += shaping.load_programs()
    for policer in out.policers:
        for request in policer.requests():
            out.request(policer.interface.namespace, request)
    for namespace, request in relay_rules(cell, layout):
        out.request(namespace, request)
    for namespace, request in agent_rules(cell, layout):
        out.request(namespace, request, netfilter=1)
    for namespace, (_, unknown) in firewalls(cell, layout).items():
        out.request(namespace, firewall(unknown), netfilter=1)
    for namespace, request in path_manager(cell.flows, layout):
        out.request(namespace, request, family=FAMILY)
    for interface in (*layout.interfaces(), *(line.queue for line in shaping.lines.values())):
        item = step(
            "operstate", ns=interface.namespace, ifindex=interface.ifindex, timeout_ns=clock.operstate_ns,
            unknown=1 if interface.is_device else None,  # some drivers never say
        )  # fmt: skip
        out.add(item)
    for namespace, bridge in layout.bridges.items():
        out.add(step("operstate", ns=namespace, ifindex=bridge.ifindex, timeout_ns=clock.operstate_ns))


def _set(out: Compiled, namespace: int, key: str, value: str) -> None:
    """The step that sets a sysctl. A name with slashes is a path already."""
    out.sysctls[namespace, key] = value
    node = out.layout.namespaces[namespace]
    command = f"ip netns exec {node} sysctl -w {shlex.quote(f'{key}={value}')}"
    path = key if "/" in key else key.replace(".", "/")
    out.add(step("sysctl", ns=namespace, path=path, value=value, command=command))


def _address(interface: Interface, out: Compiled) -> None:
    """The steps that give an interface its address; of IPv6 after what keeps the kernel from sending packets."""
    if interface.speaks_ipv6:
        out.request(interface.namespace, messages.keep_quiet(interface))
        for key, value in ipv6_on(interface.name).items():
            _set(out, interface.namespace, key, value)
    out.request(interface.namespace, _own_address(interface))


def _own_address(interface: Interface) -> Request:
    return messages.address(interface, interface.ip, interface.ip_family.subnet_length)


def _offload(interface: Interface, at_ns: int | None = None) -> Step:
    command = f"ip netns exec {interface.node} ethtool -K {interface.name} tx off rx off sg off tso off gso off gro off"
    return step("offload", ns=interface.namespace, iface=interface.name, command=command, at_ns=at_ns)


def _timeline(
    cell: Cell,
    clock: Clock,
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
    faults = HostFaultSteps(cell, layout, virtual=clock.virtual)
    theirs: set[str] = set()

    def whole(namespace: int, at_ns: int) -> None:
        """What must be there again, unless another end is down, or an address removed: then routes are missing."""
        if not faults.lacks_an_address(namespace) and namespace not in (end.namespace for end in downed.values()):
            out.dump(namespace, RESTORED, [], at_ns, whole=True)

    for at_ns, _, moment in sorted(moments, key=lambda item: (item[0], item[1])):
        if isinstance(moment, Step):
            out.add(moment)
            continue
        if faults.takes(moment):
            for asked in faults.of(moment):
                out.asked(asked)
            if moment.action == "repair" and moment.link and moment.node:  # an address
                whole(layout.namespaces.index(moment.node), at_ns)
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
            end = downed[moment.name] = layout.link_end(moment.link, moment.end or hop_name(moment.link))
            for each in (end, *shaping.waiting_for(end)):
                out.request(end.namespace, messages.set_link(each, up=False), at_ns)
            touched.add(end.namespace)
            for program in shaping.emptied(end):
                out.add(program.change(shaping.settings(program), at_ns))
        elif moment.action == "repair" and moment.name in downed:
            end = downed.pop(moment.name)
            touched.add(end.namespace)
            whole_again.append(end.namespace)
            for each in (*shaping.waiting_for(end), end):
                out.request(end.namespace, messages.set_link(each, up=True), at_ns)
            if end.is_device:  # before any packet: some drivers switch offloads on when the interface goes up
                out.add(_offload(end, at_ns))
            # what the kernel removed when it went down: of IPv6 also the address
            if end.speaks_ipv6:
                out.request(end.namespace, _own_address(end), at_ns)
            for ip, mac in layout.neighbours(end):
                out.request(end.namespace, messages.neighbour(end, ip, mac), at_ns)
            for route in layout.routes:
                if route.interface == end:
                    out.request(end.namespace, add_route(route), at_ns)
        else:
            for namespace, request in shaping.apply(moment):
                touched.add(namespace)
                out.request(namespace, request, at_ns)
            out.steps += shaping.change_programs(moment)
        for namespace in sorted(touched):
            out.dump(namespace, ("qdisc", "link"), shaping.expected(namespace), at_ns)
        for namespace in whole_again:
            whole(namespace, at_ns)
        out.events[len(out.steps) + 1] = shaping.expected()
    for asked in faults.awake():
        out.asked(asked)
