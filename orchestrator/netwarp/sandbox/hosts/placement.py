"""A cell against an inventory: its nodes and hops on machines, the links that cross machines on cables, and the
features that it needs of each machine's kernel (the agent tries them: agent/fitness.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...core.types import Cell
from ...plan.sysctls import EVERY_INTERFACE
from ...testbed.agent_steps import forwarding
from ...testbed.compile import Compiled
from ...testbed.layout import Layout, make_layout
from .inventory import Inventory, Machine

MachinePort = tuple[str, str]
"""A machine and an interface of it."""


@dataclass(frozen=True, slots=True)
class Placement:
    """machine_of: by namespace. ends: (link, node, peer node) -> the device that is this end; none where both nodes are
    on one machine. lacks: what the inventory has not, in sentences: then nothing can run.
    """

    machine_of: Mapping[str, str]
    ends: Mapping[tuple[str, str, str], MachinePort]
    lacks: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def devices(self, machine: str) -> tuple[str, ...]:
        """The machine's interfaces that the cell takes."""
        return tuple(sorted({device for owner, device in self.ends.values() if owner == machine}))

    def namespaces(self, machine: str, layout: Layout) -> frozenset[int]:
        """The numbers of the namespaces on that machine."""
        return frozenset(i for i, name in enumerate(layout.namespaces) if self.machine_of[name] == machine)


def place(cell: Cell, inventory: Inventory) -> Placement:
    """Put each node on the machine that names it (netwarp_nodes, or its own name), else on a free one; each hop on a
    bottleneck between them, else on the machine at the link's second end.
    """
    layout = make_layout(cell)
    machines = inventory.machines
    lacks: list[str] = []
    machine_of = _nodes(cell, machines, lacks)
    free: dict[frozenset[str], list[tuple[MachinePort, MachinePort]]] = {}
    for near, far in inventory.cables():
        free.setdefault(frozenset((near[0], far[0])), []).append((near, far))
    ends: dict[tuple[str, str, str], MachinePort] = {}
    notes: list[str] = []
    by_link: dict[str, list[tuple[str, str]]] = {}
    for first, second in layout.veths:
        by_link.setdefault(first.link, []).append((first.node, second.node))

    def cable(link: str, pairs: list[tuple[str, str]], where: Mapping[str, str]) -> str:
        """Take a cable for every pair of a link that crosses machines; the first that there is none for."""
        taken: list[tuple[frozenset[str], tuple[MachinePort, MachinePort]]] = []
        for node, peer in pairs:
            between = frozenset((where[node], where[peer]))
            if len(between) == 1:
                continue
            if not free.get(between):
                for back, again in taken:
                    free[back].insert(0, again)
                return f"link {link}: no free cable between {where[node]} ({node}) and {where[peer]} ({peer})"
            near, far = free[between].pop(0)
            taken.append((between, (near, far)))
            own, other = (near, far) if near[0] == where[node] else (far, near)
            ends[link, node, peer], ends[link, peer, node] = own, other
        return ""

    for link in cell.links:
        if link.a not in machine_of or link.b not in machine_of:
            continue  # said already
        pairs = by_link[link.name]
        hop = next((name for pair in pairs for name in pair if name not in (link.a, link.b)), None)
        if hop is None:
            lacking = cable(link.name, pairs, machine_of)
            lacks += [lacking] if lacking else []
            continue
        bottlenecks = [name for name, machine in machines.items() if machine.role == "bottleneck"]
        tried = []
        for candidate in dict.fromkeys([*bottlenecks, machine_of[link.b], machine_of[link.a]]):
            lacking = cable(link.name, pairs, {**machine_of, hop: candidate})
            if not lacking:
                machine_of[hop] = candidate
                if candidate not in bottlenecks:
                    notes.append(f"the bottleneck of {link.name} is a namespace on {candidate}, which is an end of it")
                break
            tried.append(lacking)
        else:
            lacks.append(tried[0])
    return Placement(machine_of, ends, tuple(lacks), tuple(notes))


def _nodes(cell: Cell, machines: Mapping[str, Machine], lacks: list[str]) -> dict[str, str]:
    named = {node: machine.name for machine in machines.values() for node in machine.nodes}
    chosen: dict[str, str] = {}
    for node in cell.nodes:
        if node.name in named:
            chosen[node.name] = named[node.name]
        elif node.name in machines and not machines[node.name].nodes:
            chosen[node.name] = node.name
    for node in cell.nodes:
        if node.name in chosen or node.kind == "switch":  # no cell with a switch runs here (backend.cannot_run)
            continue
        role = "endpoint" if node.kind == "host" else "bottleneck"
        there = [machine for machine in machines.values() if machine.role == role and not machine.nodes]
        # several routers may share a machine; hosts may not, unless the inventory says so
        unused = [machine for machine in there if role == "bottleneck" or machine.name not in chosen.values()]
        if unused:
            chosen[node.name] = unused[0].name
        else:
            lacks.append(
                f"no machine for the {node.kind} {node.name}: the inventory has {len(there)} of the role {role}; add "
                f"one, or name nodes in netwarp_nodes of a machine that shall be several"
            )
    return chosen


CLOUD = "a cloud kernel lacks it often: apt-get install linux-modules-extra-$(uname -r), or boot the usual kernel"
_WORDS = {
    "sctp": ("SCTP", f"modprobe sctp; {CLOUD}"),
    "mptcp": ("MPTCP", "boot a kernel with CONFIG_MPTCP (Debian 12 has it)"),
    "congestion": ("the congestion control {}", "modprobe tcp_{}"),
    "qdisc": ("the qdisc {}", "modprobe sch_{}; " + CLOUD),
    "packet programs": ("packet programs (eBPF)", "boot a kernel with CONFIG_BPF_SYSCALL and CONFIG_NET_CLS_BPF"),
    "packet filter": ("nf_tables, which leads packets to agents", "modprobe nf_tables nft_queue"),
    "sysctl": ("the sysctl {}", "boot a kernel that has it, or leave it out of the spec"),
}


@dataclass(frozen=True, slots=True)
class InventoryFit:
    """cells: of the plan. fitting: those that nothing is lacking for. lacks: sentence -> cells that it keeps from
    running. notes: sentence -> cells that it is true of. problems: of machines, each with its remedy: what keeps every
    cell from running now. needs: machine -> what the cells use of its kernel. asked: machines whose kernel was asked.
    """

    cells: int
    fitting: int
    lacks: Mapping[str, int]
    notes: Mapping[str, int]
    problems: tuple[tuple[str, str], ...]
    needs: Mapping[str, tuple[str, ...]]
    asked: tuple[str, ...]

    @property
    def ready(self) -> bool:
        """True if every cell can run."""
        return self.fitting == self.cells and not self.problems


def needs_of(cell: Cell, compiled: Compiled, placed: Placement) -> dict[str, list[str]]:
    """Machine -> the features that the cell's part there uses."""
    machines: dict[str, dict[str, None]] = {}

    def need(node: str, feature: str) -> None:
        machines.setdefault(placed.machine_of[node], {})[feature] = None

    nodes = compiled.layout.namespaces
    interfaces = {(each.namespace, each.name) for each in compiled.layout.interfaces()}
    for flow in cell.flows:
        for node in (flow.sender, flow.receiver):
            if flow.protocol in ("sctp", "mptcp"):
                need(node, flow.protocol)
        if (congestion := flow.sender_options.get("congestion")) is not None:
            need(flow.sender, f"congestion:{congestion}")
    for state in (compiled.installed, *compiled.events.values()):
        for qdisc in state:
            need(nodes[qdisc.device.namespace], f"qdisc:{qdisc.stage.kind}")
    for program in compiled.programs:
        need(nodes[program.interface.namespace], "packet programs")
    for node in forwarding(cell):
        need(node, "packet filter")
    for (namespace, key), value in compiled.sysctls.items():
        if key == "net.ipv4.tcp_congestion_control":
            need(nodes[namespace], f"congestion:{value}")
        path = key if "/" in key else key.replace(".", "/")
        folder, _, rest = path.partition("/conf/")
        name, _, last = rest.partition("/")
        if (namespace, name) in interfaces:  # not there yet: the one that every machine has stands for it
            path = f"{folder}/conf/{EVERY_INTERFACE}/{last}"
        need(nodes[namespace], f"sysctl:{path}")
    return {machine: list(features) for machine, features in machines.items()}


def in_words(feature: str) -> tuple[str, str]:
    """A feature's name for a reader, and what to do where it is missing."""
    kind, _, value = feature.partition(":")
    name, remedy = _WORDS[kind]
    value = value.replace("/", ".") if kind == "sysctl" else value
    return name.format(value), remedy.replace("{}", value)


def lacking(needs: Mapping[str, list[str]], absent: Mapping[str, list[str]]) -> list[str]:
    """Sentences: what a machine's kernel lacks of what a cell needs."""
    return [
        f"machine {machine}: its kernel has not {name} ({remedy})"
        for machine, features in needs.items()
        for feature in features
        if feature in absent.get(machine, ())
        for name, remedy in [in_words(feature)]
    ]
