"""The steps of a cell's agents (apps/agents): their rules, their processes, and what the timeline tells them."""

from __future__ import annotations

import signal
from collections.abc import Iterator

from ..core.types import Agent, Cell
from ..experiment.agents import FORWARDING
from . import nftables
from .layout import Layout
from .messages import Request
from .steps import Step, step


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
    arguments = ["--kind", agent.kind, "--interface", str(interface.ifindex)]
    if agent.kind in FORWARDING:
        arguments += ["--queue", str(nftables.QUEUE)]
    for key, value in agent.options.items():
        arguments += [f"--{key.replace('_', '-')}", str(value)]
    return arguments


def agent_signals(cell: Cell) -> Iterator[Step]:
    """What the timeline does to agents: it kills them."""
    for node, agent in agents_of(cell).items():
        if agent.dies_ns is not None and agent.dies_ns < cell.duration_ns:
            yield _signal(node, signal.SIGKILL, agent.dies_ns)


def _signal(node: str, number: signal.Signals, at_ns: int) -> Step:
    command = f"kill -{number.name.removeprefix('SIG')} {agent_id(node)}"
    return step("signal", id=agent_id(node), signal=int(number), at_ns=at_ns, command=f"# {command}")
