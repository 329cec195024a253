"""Chooses the capture points of a cell. A flow is measured at both its ends: all interfaces that it uses there must be
captured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ..core.types import CapturePoint, Link, Node
from ..experiment.grammar import RESOLVED
from ..experiment.problems import Problems, nearest
from ..experiment.toml_positions import Item
from .routes import Routed

EXAMPLE = RESOLVED["captures"].example


class Captures:
    """Reads the key `captures`: `"hosts"` (default), every interface of every host; `"all"`, of every node; or a list
    of "node.link".
    """

    def __init__(
        self,
        nodes: Mapping[str, Node],
        links: Sequence[Link],
        flows: Sequence[Routed],
        problems: Problems,
    ) -> None:
        self._nodes, self._flows, self._problems = nodes, flows, problems
        self._there = {
            f"{node}.{link.name}": CapturePoint(node=node, link=link.name)
            for link in links
            for node in (link.a, link.b)
        }

    def read(self, top: Item) -> tuple[CapturePoint, ...]:
        """The interfaces to capture; mistakes are collected."""
        files = Counter(f"{capture.node}-{capture.link}" for capture in self._there.values())
        for name in [name for name, count in files.items() if count > 1]:
            self._problems.add(top, f'two interfaces would be captured into "{name}.pcap": rename a link')
        item = top.get("captures")
        if item is None or item.value == "hosts":
            return tuple(each for each in self._there.values() if self._nodes[each.node].kind == "host")
        if item.value == "all":
            return tuple(self._there.values())
        return self._listed(item)

    def _listed(self, item: Item) -> tuple[CapturePoint, ...]:
        if not isinstance(item.value, list):
            self._problems.add(item, f"must be {EXAMPLE}")
            return ()
        if not item.value:
            hosts = [name for name, capture in self._there.items() if self._nodes[capture.node].kind == "host"]
            shown = ", ".join(f'"{name}"' for name in hosts)
            self._problems.add(item, f'is empty; for example [{shown}], or leave the key out ("hosts")')
            return ()
        before = len(self._problems)
        listed: dict[str, CapturePoint] = {}
        for child in item.value:
            text = str(child.value)
            if text not in self._there:
                self._problems.add(child, f'there is no interface "{text[:60]}"{nearest(text, self._there)}')
            else:
                listed[text] = self._there[text]
        if len(self._problems) == before:
            self._check_both_ends(item, listed)
        return tuple(listed.values())

    def _check_both_ends(self, item: Item, listed: Mapping[str, CapturePoint]) -> None:
        """Checks that both ends of every flow are captured; captures beside them, on routers say, are allowed."""
        for routed in self._flows:
            missing = [name for name in interfaces_of(routed) if name not in listed]
            if missing:
                shown = ", ".join(f'"{name}"' for name in missing)
                flow = routed.flow.name
                said = f'flow "{flow}" is measured at both its ends: add {shown}, or leave the key out ("hosts")'
                self._problems.add(item, said)


def interfaces_of(routed: Routed) -> tuple[str, ...]:
    """The interfaces, as "node.link", by which a flow's packets leave and reach its two hosts."""
    sender, receiver = routed.flow.sender, routed.flow.receiver
    used: list[str] = []
    for node, ends in ((sender, (0, -1)), (receiver, (-1, 0))):
        for route in routed.routes:
            used += [f"{node}.{route.there[ends[0]].link}", f"{node}.{route.back[ends[1]].link}"]
    return tuple(dict.fromkeys(used))
