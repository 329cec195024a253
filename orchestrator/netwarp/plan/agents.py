"""The agents of a cell's routers (programs that help TCP over a wireless link: docs/agents.md), from the spec: their
kind, the link towards the mobile host, and their options.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast, get_args

import msgspec

from ..core.ip_families import IPV6
from ..core.topology import DirectedLink
from ..core.types import Agent, AgentKind, AgentTold, Flow, Node, OptionValue
from ..experiment.fields import Reader, check_keys
from ..experiment.grammar import NODE
from ..experiment.options import (
    AGENT_EXAMPLE,
    AGENT_KINDS,
    AGENT_OPTIONS,
    FORWARDING,
    NO_AGENT,
    agent_fields,
    read_option,
)
from ..experiment.problems import Problems, nearest
from ..experiment.toml_positions import Item
from .kinds import FLOW_KINDS
from .network import UnresolvedLink
from .routes import Routed


def with_agents(
    nodes: Mapping[str, Node],
    items: Mapping[str, Item],
    links: Mapping[str, UnresolvedLink],
    routed: Sequence[Routed],
    problems: Problems,
) -> dict[str, Node]:
    """The nodes with their agents; what is wrong is collected."""
    assert set(AGENT_KINDS) == set(get_args(AgentKind))
    complete = dict(nodes)
    for name, item in items.items():
        if item.get("agent") is None:
            continue
        node = Reader(item, NODE, problems)
        if nodes[name].kind != "router":
            said = f'"{name}" is a {nodes[name].kind}, and agents are on routers; write kind = "router"'
            node.problem("agent", said)
            continue
        agent = _agent(name, node, links, routed)
        complete[name] = msgspec.structs.replace(nodes[name], agent=agent)
    return complete


def _agent(name: str, node: Reader, links: Mapping[str, UnresolvedLink], routed: Sequence[Routed]) -> Agent | None:
    """The agent; None if there is none, or after saying what is wrong."""
    item = node.item.get("agent")
    assert item is not None
    kind_item = item.get("kind") if isinstance(item.value, dict) else item
    kind = str(kind_item.value) if kind_item is not None else ""
    if kind == NO_AGENT:
        return None
    if kind not in AGENT_KINDS:
        said = f'there is no agent "{kind[:40]}"{nearest(kind, (*AGENT_KINDS, NO_AGENT))}' if kind else "has no kind"
        node.problem("agent", f"{said}; for example agent = {AGENT_EXAMPLE}")
        return None
    fields = agent_fields(kind)
    before = len(node.problems)
    reader = node.below(item if isinstance(item.value, dict) else item.with_value({}), fields)
    check_keys(reader.item, fields, node.problems)
    if len(node.problems) > before:
        return None
    link = reader.text("link") or _towards_receivers(name, node, links, routed)
    if link is None:
        return None
    if link not in links or name not in (links[link].a, links[link].b):
        reader.wrong("link", f'"{name}" is not on a link "{link}"')
        return None
    for other in links.values():
        if name in (other.a, other.b) and other.ip_family == IPV6:
            said = f'agents read IPv4 alone (docs/agents.md), and link "{other.name}" carries IPv6'
            node.problem("agent", f'{said}; for example family = "ipv4" under [link.{other.name}]')
            return None
    options: dict[str, OptionValue] = {}
    for key, option in AGENT_OPTIONS.items():
        child = reader.item.get(key)
        value = read_option(child, option, reader.problems) if child is not None else None
        if value is not None:
            options[option.cell_key] = value
    if kind not in FORWARDING:  # it listens on the ports of the flows that it relays
        ports = sorted({flow.port for flow, hop in _tcp_hops(routed) if hop.link == link})
        options["port"] = ",".join(str(port) for port in ports)
        if not options["port"]:
            reader.problem("link", f'no TCP flow crosses link "{link}", so there is nothing to relay')
    # the ends of a link fault that the agent hears of at once
    notices = reader.text("told") if "told" in fields else None
    return Agent(cast(AgentKind, kind), link, options, reader.whole("dies_at"), cast(AgentTold, notices or "return"))


def _tcp_hops(routed: Sequence[Routed]) -> list[tuple[Flow, DirectedLink]]:
    """The TCP flows, with each direction of a link that their data cross."""
    return [
        (each.flow, hop)
        for each in routed
        if FLOW_KINDS[each.flow.protocol].relayed
        for route in each.routes
        for hop in route.there
    ]


def _towards_receivers(
    name: str, node: Reader, links: Mapping[str, UnresolvedLink], routed: Sequence[Routed]
) -> str | None:
    """The link by which the TCP flows leave the router towards their receivers."""
    leaving = {
        hop.link: None
        for _, hop in _tcp_hops(routed)
        if name == (links[hop.link].a if hop.direction == "forward" else links[hop.link].b)
    }
    if len(leaving) == 1:
        return next(iter(leaving))
    said = f"leave by {' and '.join(leaving)}" if leaving else "do not cross it"
    example = next((link for link, ends in links.items() if name in (ends.a, ends.b)), "air")
    which = f'for example agent = {{ kind = "snoop", link = "{example}" }}'
    node.problem("agent", f"which link leads to the mobile host? TCP flows {said}; {which}")
    return None
