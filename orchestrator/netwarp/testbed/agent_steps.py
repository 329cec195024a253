"""The steps of a cell's agents (apps/agents): their rules, their processes, and what the timeline tells them."""

from __future__ import annotations

import signal
from collections.abc import Iterator

from ..core.types import Agent, Cell, Event
from ..experiment.options import FORWARDING
from . import messages, nftables
from .layout import Layout
from .messages import Request
from .steps import Step, step

FIRST_PRIORITY = 100
"""Of the rules of a relay: behind the table of the node's own addresses, before the main table."""


def agent_id(node: str) -> str:
    """The process of a node's agent, and the name of its files."""
    return f"{node}.agent"


def agents_of(cell: Cell) -> dict[str, Agent]:
    """Node -> its agent."""
    return {node.name: node.agent for node in cell.nodes if node.agent is not None}


def forwarding(cell: Cell) -> list[str]:
    """The nodes whose agents packets go through."""
    return [node for node, agent in agents_of(cell).items() if agent.kind in FORWARDING]


def agent_rules(cell: Cell, layout: Layout) -> Iterator[tuple[int, Request]]:
    """(namespace, batch of nf_tables) of each agent on the forwarding path."""
    for node in forwarding(cell):
        yield layout.namespaces.index(node), nftables.agent_rules()


def relays(cell: Cell, layout: Layout) -> dict[int, set[tuple[str, str | None, str | None]]]:
    """Namespace of each agent that relays connections -> its rules: interface, source ports, destination ports."""
    rules: dict[int, set[tuple[str, str | None, str | None]]] = {}
    for node, agent in agents_of(cell).items():
        if agent.kind in FORWARDING:
            continue
        of_node = rules.setdefault(layout.namespaces.index(node), set())
        for interface in layout.interfaces():
            for port in str(agent.options["port"]).split(",") if interface.node == node else ():
                of_node |= {(interface.name, f"{port}:{port}", None), (interface.name, None, f"{port}:{port}")}
    return rules


def relay_rules(cell: Cell, layout: Layout) -> Iterator[tuple[int, Request]]:
    """(namespace, request) that bring the packets of relayed connections to the agents that relay them."""
    for namespace, rules in relays(cell, layout).items():
        yield namespace, messages.all_local()
        for number, (name, source, destination) in enumerate(sorted(rules, key=str)):
            yield namespace, messages.relay_rule(name, source, destination, FIRST_PRIORITY + number)


def start_agents(cell: Cell, layout: Layout, timeout_ns: int) -> Iterator[Step]:
    """The process of each agent, and the wait until it is at work."""
    for node, agent in agents_of(cell).items():
        name, program = agent_id(node), ["bin/agent", *_arguments(node, agent, layout)]
        yield step(
            "spawn",
            id=name,
            ns=layout.namespaces.index(node),
            stdout=f"apps/{name}.ndjson",
            stderr=f"apps/{name}.stderr",
            arg=program,
            command=f"ip netns exec {node} {' '.join(program).removeprefix('bin/')} &",
        )
        yield step("output", id=name, text='"ready"', timeout_ns=timeout_ns)


def _arguments(node: str, agent: Agent, layout: Layout) -> list[str]:
    interface = layout.interface(node, agent.link)
    arguments = ["--kind", agent.kind]
    if agent.kind in FORWARDING:
        arguments += ["--interface", str(interface.ifindex), "--queue", str(nftables.QUEUE)]
    for key, value in agent.options.items():
        arguments += [f"--{key.replace('_', '-')}", str(value)]
    return arguments


def agent_signals(cell: Cell) -> list[Step]:
    """The timeline's effects on agents, in time order: the link layer's word of a fault's ends, and death."""
    signals: list[Step] = []
    for node, agent in agents_of(cell).items():
        alive = cell.duration_ns if agent.dies_ns is None else min(agent.dies_ns, cell.duration_ns)
        for event in cell.timeline if agent.kind == "mtcp" else ():
            number = _told(agent, event)
            if number is not None and event.link == agent.link and event.at_ns < alive:
                signals.append(_signal(node, number, event.at_ns))
        if alive < cell.duration_ns:
            signals.append(_signal(node, signal.SIGKILL, alive))
    return sorted(signals, key=lambda item: item.at_ns or 0)


def _told(agent: Agent, event: Event) -> signal.Signals | None:
    """The signal by which an mtcp agent hears of an event; None if it does not."""
    if event.action == "repair":
        return None if agent.told == "nothing" else signal.SIGUSR1
    return signal.SIGUSR2 if agent.told == "both" and event.action in ("cut", "blackhole", "link") else None


def _signal(node: str, number: signal.Signals, at_ns: int) -> Step:
    command = f"kill -{number.name.removeprefix('SIG')} {agent_id(node)}"
    return step("signal", id=agent_id(node), signal=int(number), at_ns=at_ns, command=f"# {command}")
