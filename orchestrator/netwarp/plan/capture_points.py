"""Chooses the capture points of a cell. A flow is measured at both its ends: all interfaces that it uses there must be
captured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ..core.link_types import Link
from ..core.types import CapturePoint, Node
from ..experiment.grammar import RESOLVED
from ..experiment.problems import Problems, nearest
from ..experiment.toml_positions import Item
from .routes import Routed

EXAMPLE = RESOLVED["captures"].example


def read_captures(
    top: Item, nodes: Mapping[str, Node], links: Sequence[Link], flows: Sequence[Routed], problems: Problems
) -> tuple[CapturePoint, ...]:
    """The interfaces that the key `captures` names: `"hosts"` (default), every interface of every host; `"all"`, of
    every node; or a list of "node.link". Mistakes are collected.
    """
    points = [CapturePoint(node=node, link=link.name) for link in links for node in (link.a, link.b)]
    files = Counter(f"{point.node}-{point.link}" for point in points)
    for name in [name for name, count in files.items() if count > 1]:
        problems.add(top, f'two interfaces would be captured into "{name}.pcap": rename a link')
    there = {f"{point.node}.{point.link}": point for point in points}
    hosts = {name: point for name, point in there.items() if nodes[point.node].kind == "host"}
    item = top.get("captures")
    if item is None or item.value == "hosts":
        return tuple(hosts.values())
    if item.value == "all":
        return tuple(there.values())
    if not isinstance(item.value, list):
        problems.add(item, f"must be {EXAMPLE}")
        return ()
    if not item.value:
        shown = ", ".join(f'"{name}"' for name in hosts)
        problems.add(item, f'is empty; for example [{shown}], or leave the key out ("hosts")')
        return ()
    names = [str(child.value) for child in item.value]
    for child, name in zip(item.value, names, strict=True):
        if name not in there:
            problems.add(child, f'there is no interface "{name[:60]}"{nearest(name, there)}')
    if all(name in there for name in names):
        _check_both_ends(item, names, flows, problems)
    return tuple(there[name] for name in dict.fromkeys(names) if name in there)


def _check_both_ends(item: Item, listed: Sequence[str], flows: Sequence[Routed], problems: Problems) -> None:
    """Checks that both ends of every flow are captured; captures beside them, on routers say, are allowed."""
    for routed in flows:
        missing = ", ".join(f'"{name}"' for name in interfaces_of(routed) if name not in listed)
        if missing:
            flow = routed.flow.name
            said = f'flow "{flow}" is measured at both its ends: add {missing}, or leave the key out ("hosts")'
            problems.add(item, said)


def interfaces_of(routed: Routed) -> tuple[str, ...]:
    """The interfaces, as "node.link", by which a flow's packets leave and reach its two hosts."""
    sender, receiver = routed.flow.sender, routed.flow.receiver
    used: list[str] = []
    for node, ends in ((sender, (0, -1)), (receiver, (-1, 0))):
        for route in routed.routes:
            used += [f"{node}.{route.there[ends[0]].link}", f"{node}.{route.back[ends[1]].link}"]
    return tuple(dict.fromkeys(used))
