"""The needs of a cell of each machine's kernel: the features that the agent there tries (agent/features.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...core.types import Cell
from ...testbed.agent_steps import forwarding
from ...testbed.compile import Compiled
from .placement import Placement

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
        need(nodes[namespace], f"sysctl:{key if '/' in key else key.replace('.', '/')}")
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
