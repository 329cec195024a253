"""A flow as its hosts captured it, from packets written by hand: what every group of metrics is computed from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from netwarp.captures.capture import Capture
from netwarp.core.types import Flow
from netwarp.core.types import Path as FlowPath
from netwarp.measure.capture_point import CapturePoint
from netwarp.measure.flow_packets import FlowPackets, packets_at_both_ends
from netwarp.measure.observation import FlowObservation

from support.captures import T, pcap, read
from support.recorded_cell import make_cell

Packets = Sequence[tuple[int, bytes]]


def flow_of(protocol: str, links: Sequence[str] = ("p1",), **changes: Any) -> Flow:
    """A flow from host a to port 80 of host b, one path a link."""
    ways = tuple(FlowPath(link, link, link, bottleneck_bit_s=None, base_rtt_ns=0) for link in links)
    fields: dict[str, Any] = {"port": 80, "start_ns": 0, "stop_ns": None, "total_bytes": None, "message_bytes": 100}
    return Flow(name="f", protocol=protocol, sender="a", receiver="b", paths=ways, **(fields | changes))  # type: ignore[arg-type]


def at_ends(
    flow: Flow, tmp_path: Path, sender: Packets | Capture | None, receiver: Packets | Capture | None, t0_ns: int = T
) -> tuple[FlowPackets | None, FlowPackets | None]:
    """The flow's packets at its hosts, each with all links in one file; None: that host was not captured."""
    points: list[CapturePoint | None] = []
    for node, packets in ((flow.sender, sender), (flow.receiver, receiver)):
        if not isinstance(packets, Capture | None):
            (tmp_path / node).mkdir(parents=True, exist_ok=True)
            packets = read(tmp_path / node, pcap(list(packets)))
        points.append(None if packets is None else CapturePoint(node, ("p1",), packets))
    return packets_at_both_ends(flow, points[0], points[1], t0_ns)[:2]


def observed(
    flow: Flow,
    tmp_path: Path,
    *,
    sender: Packets | Capture | None = None,
    receiver: Packets | Capture | None = None,
    **more: Any,
) -> FlowObservation:
    """The observation of the flow; times count from T. sender, receiver: packets captured there (ns, bytes)."""
    ends = at_ends(flow, tmp_path, sender, receiver)
    return FlowObservation(make_cell("tcp"), flow, *ends, **more)
