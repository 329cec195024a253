"""ECN marks that qdiscs counted, against those that came."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from netwarp.core.link_types import Aqm, Link
from netwarp.measure.groups.counters import mark_checks
from support.recorded_cell import SHAPE, make_cell


def checks(sender: dict[str, str], marked: int, came: int, held: int = 0) -> list[bool]:
    """Those of a cell with codel on p1 forward; came: packets with CE at b."""
    managed = msgspec.structs.replace(SHAPE, aqm=Aqm("codel", True, {}))
    links = (Link("p1", "a", "b", managed, SHAPE), Link("p2", "a", "b", SHAPE, SHAPE))
    cell = make_cell("tcp", links=links, flow={"sender_options": sender})
    qdisc: Any = SimpleNamespace(kind="codel", marked_packets=marked, queued_packets=held, step_marks=0)
    packets = np.array([(3, 0)] * came + [(2, 0), (3, 1)], dtype=[("tos", "u1"), ("source", "u1")])
    point: Any = SimpleNamespace(links=["p1", "p2"], capture=SimpleNamespace(packets=packets))
    return [check.ok for check in mark_checks(cell, {("p1", "forward"): qdisc}, {"b": point})]


@pytest.mark.parametrize(("marked", "came", "held", "ok"), [
    (3, 3, 0, True), (3, 2, 0, False), (2, 3, 0, False), (3, 2, 1, True),
])  # fmt: skip
def test_every_mark_comes_or_waits(marked: int, came: int, held: int, ok: bool) -> None:
    assert checks({}, marked, came, held) == [ok]


def test_what_a_sender_marks_is_no_mark_of_a_link() -> None:
    """With `ecn = "ce"` of its datagrams nothing tells its marks from those of the queue."""
    assert checks({"ecn": "ce"}, 0, 15) == []
    assert checks({"ecn": "ect1"}, 0, 15) == [False]
