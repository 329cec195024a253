"""A flow as its hosts captured it, from packets written by hand: what every group of metrics is computed from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from netwarp.captures.capture import ROW_TABLES, Capture
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


def at_end(flow: Flow, tmp_path: Path, packets: Packets | Capture, node: str) -> FlowPackets:
    """The flow's packets at one of its hosts, with all links in one file; times count from T."""
    if not isinstance(packets, Capture):
        (tmp_path / node).mkdir(parents=True, exist_ok=True)
        packets = read(tmp_path / node, pcap(list(packets)), tables=(*ROW_TABLES, "identities"))
    point = CapturePoint(node, ("p1",), packets)
    ends = packets_at_both_ends(flow, *((point, None) if node == flow.sender else (None, point)), T)
    (found,) = [end for end in ends[:2] if end is not None]
    return found


def at_sender(protocol: str, packets: Packets, tmp_path: Path) -> tuple[Flow, FlowPackets, list[str]]:
    """A flow of two paths at its sender, a file a path (MPTCP and SCTP: one more for what is of neither), and the names
    of its paths; times count from T.
    """
    flow = flow_of(protocol, ("p1", "p2"))
    links = ("p1", "p2") if protocol == "tcp" else ("p0", "p1", "p2")
    numbers = (0, 2) if protocol == "tcp" else (0, 1, 2)
    files = [pcap([(at, raw) for at, raw in packets if raw[27] == n]) for n in numbers]
    sender, _, names = packets_at_both_ends(flow, CapturePoint("a", links, read(tmp_path, *files)), None, T)
    assert sender is not None
    return flow, sender, names


def observed(
    flow: Flow,
    tmp_path: Path,
    *,
    sender: Packets | Capture | None = None,
    receiver: Packets | Capture | None = None,
    **more: Any,
) -> FlowObservation:
    """The observation of the flow; times count from T. sender, receiver: packets captured there (ns, bytes)."""
    ends = [
        None if packets is None else at_end(flow, tmp_path, packets, node)
        for node, packets in ((flow.sender, sender), (flow.receiver, receiver))
    ]
    return FlowObservation(make_cell("tcp"), flow, *ends, path_names=("p1",), **more)
