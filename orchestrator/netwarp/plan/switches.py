"""Checks the switches of a cell: each is one Ethernet segment, whose interfaces have addresses of one subnet."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.types import Node
from ..experiment.problems import Problems
from ..experiment.toml_positions import Item
from .network import UnresolvedLink

MOST_INTERFACES = 62
"""Addresses of a segment's subnet, a /26 (testbed/layout.py)."""


def check_switches(
    nodes: Mapping[str, Node],
    items: Mapping[str, Item],
    links: Mapping[str, UnresolvedLink],
    problems: Problems,
    context: str,
) -> None:
    """Reports links between switches, packets that would not fit a port, and more interfaces than addresses."""
    for name, node in nodes.items():
        if node.kind != "switch":
            continue
        ports = [link for link in links.values() if name in (link.a, link.b)]
        for link in ports:
            other = link.b if link.a == name else link.a
            if nodes[other].kind == "switch":
                said = f'joins the switches "{link.a}" and "{link.b}": one switch is a whole segment; make them one'
                problems.add(link.item, said, context=context)
            if link.mtu_bytes != ports[0].mtu_bytes:
                said = f'has another MTU than "{ports[0].name}": a switch drops what does not fit a port; give both one'
                problems.add(link.item, said, context=context)
        if len(ports) > MOST_INTERFACES:
            problems.add(
                items[name], f"has {len(ports)} links; at most {MOST_INTERFACES} fit its subnet", context=context
            )
