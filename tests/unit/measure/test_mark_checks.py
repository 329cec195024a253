"""ECN marks that qdiscs counted, against those that came."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from netwarp.core.link_types import Aqm, DirectionName, Link
from netwarp.core.types import Cell, Node
from netwarp.core.types import Path as FlowPath
from netwarp.measure.capture_point import CapturePoint
from netwarp.measure.groups.counters import mark_checks
from netwarp.testbed.layout import make_layout
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from support.captures import T, pcap, read
from support.recorded_cell import SHAPE, make_cell

MANAGED = msgspec.structs.replace(SHAPE, aqm=Aqm("codel", True, {}))


def judged(cell: Cell, direction: DirectionName, point: CapturePoint, marked: int, held: int = 0) -> list[bool]:
    """The checks of p1 in one direction, of which the qdisc marked and holds so many packets."""
    qdisc: Any = SimpleNamespace(kind="codel", marked_packets=marked, queued_packets=held, step_marks=0)
    found = mark_checks(cell, make_layout(cell), {("p1", direction): qdisc}, {point.node: point})
    return [check.ok for check in found]


def captured(node: str, links: tuple[str, ...], tmp_path: Path, *packets: tuple[str, str, int]) -> CapturePoint:
    """Packets on the first of these links: source, destination and ECN's codepoint."""
    raw = [(T + at, bytes(Ether() / IP(src=source, dst=target, tos=ecn) / TCP(sport=1000, dport=80)))
           for at, (source, target, ecn) in enumerate(packets)]  # fmt: skip
    return CapturePoint(node, links, read(tmp_path, pcap(raw), *(pcap([]) for _ in links[1:])))


def checks(sender: dict[str, str], marked: int, came: int, tmp_path: Path, held: int = 0) -> list[bool]:
    """Those of a cell with codel on p1 forward; came: packets with CE at b."""
    links = (Link("p1", "a", "b", MANAGED, SHAPE), Link("p2", "a", "b", SHAPE, SHAPE))
    cell = make_cell("tcp", links=links, flow={"sender_options": sender})
    a, b = (make_layout(cell).interface(node, "p1").ip for node in "ab")
    point = captured("b", ("p1", "p2"), tmp_path, *[(a, b, 3)] * came, (a, b, 2))
    return judged(cell, "forward", point, marked, held)


@pytest.mark.parametrize(("marked", "came", "held", "ok"), [
    (3, 3, 0, True), (3, 2, 0, False), (2, 3, 0, False), (3, 2, 1, True),
])  # fmt: skip
def test_every_mark_comes_or_waits(marked: int, came: int, held: int, ok: bool, tmp_path: Path) -> None:
    assert checks({}, marked, came, tmp_path, held) == [ok]


def test_what_a_sender_marks_is_no_mark_of_a_link(tmp_path: Path) -> None:
    """With `ecn = "ce"` of its datagrams nothing tells its marks from those of the queue."""
    assert checks({"ecn": "ce"}, 0, 15, tmp_path) == []
    assert checks({"ecn": "ect1"}, 0, 15, tmp_path) == [False]


@pytest.mark.parametrize(("direction", "node"), [("forward", "s"), ("backward", "r")])
def test_what_leaves_a_router_by_a_link_did_not_come_by_it(direction: DirectionName, node: str, tmp_path: Path) -> None:
    """Both directions of a bottleneck between routers mark: each router's interface shows the marks of both."""
    ways = (("p0", "a", "r", SHAPE), ("p1", "r", "s", MANAGED), ("p2", "s", "b", SHAPE))
    nodes = (*(Node(name, "host") for name in "ab"), *(Node(name, "router") for name in "rs"))
    flow = {"paths": (FlowPath("p0", "p0", "p2", 1_000_000, 40_000_000),)}
    links = tuple(Link(name, one, other, shape, shape) for name, one, other, shape in ways)
    cell = make_cell("tcp", links=links, nodes=nodes, flow=flow, timeline=())
    layout = make_layout(cell)
    a, b = layout.interface("a", "p0").ip, layout.interface("b", "p2").ip
    there, back = [(a, b, 3)] * 3, [(b, a, 3)] * 5
    point = captured(node, ("p1",), tmp_path, *there, *back, (a, b, 2))
    came, left = (3, 5) if direction == "forward" else (5, 3)
    assert judged(cell, direction, point, came) == [True]
    assert judged(cell, direction, point, left) == [False]
    assert judged(cell, direction, point, came + left) == [False]
