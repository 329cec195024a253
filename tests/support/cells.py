"""Small cells for tests without a kernel."""

from __future__ import annotations

from typing import Any

import msgspec
from netwarp.core.link_types import Link, LinkImpairment
from netwarp.core.types import CapturePoint, Cell, Event, Flow, Node, Path

MS, S = 1_000_000, 1_000_000_000
SLOW = LinkImpairment(one_way_delay_ns=200 * MS, rate_bit_s=500_000, queue_packets=50)


def two_path_cell(**changes: Any) -> Cell:
    """Hosts a and b, shaped links p1 and p2 between them, one SCTP flow over both."""
    path = {"bottleneck_bit_s": 500_000, "base_rtt_ns": 400 * MS}
    cell = Cell(
        spec="test",
        experiment="x",
        factors={"fault": "cut"},
        repetition=0,
        seed=7,
        duration_ns=10 * S,
        nodes=(Node("a", "host"), Node("b", "host", {"net.sctp.pf_expose": "2"})),
        links=(Link("p1", "a", "b", SLOW, SLOW), Link("p2", "a", "b", SLOW, SLOW)),
        flows=(
            Flow(
                "ftp",
                "sctp",
                "a",
                "b",
                (Path("p1", "p1", "p1", **path), Path("p2", "p2", "p2", **path)),
                5001,
                500 * MS,
                10 * S,
                None,
                1452,
            ),
        ),
        timeline=(),
        captures=(CapturePoint("a", "p1"), CapturePoint("b", "p1")),
        random=False,
    )
    return msgspec.structs.replace(cell, **changes)


def outage(action: str = "cut", **changes: Any) -> tuple[Event, Event]:
    """A fault on p1 from 5 s to 8 s."""
    return (
        Event(5 * S, "outage", action, "p1", **changes),  # type: ignore[arg-type]
        Event(8 * S, "outage", "repair", "p1"),
    )
