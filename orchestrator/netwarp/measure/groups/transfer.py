"""What a transfer costs on the wire, both directions together, beside what header arithmetic says it must cost."""

from __future__ import annotations

from ...core.types import Cell, Flow
from ..flow_packets import FlowPackets
from ..metrics import Window
from ..models.packet_count_model import Count, acknowledgements, packets_of


def transfer_metrics(
    cell: Cell, flow: Flow, receiver: FlowPackets | None, window: Window, metrics: dict[str, float | None]
) -> dict[str, float | None]:
    """Packets and bytes of both directions, and how many there must be. metrics: the flow's others, already known.

    The arithmetic is for whole transfers in which nothing was sent twice; elsewhere it has no value.
    """
    found: dict[str, float | None] = {}
    if receiver is not None:
        data, back = receiver.data.until(window.end_ns), receiver.back.until(window.end_ns)
        both = float(data.ip_bytes.sum() + back.ip_bytes.sum())
        found["packets_both_ways"] = float(len(data.t_ns) + len(back.t_ns))
        found["wire_bytes_both_ways"] = both
        found["payload_share_ratio"] = float(data.new_bytes.sum()) / both if both else None
    whole = metrics.get("completion_time_s") is not None and metrics.get("retransmitted_packets") == 0
    expected = packets_of(cell, flow) if whole else None
    if expected is not None:
        answers = acknowledgements(flow, expected)
        for name, count in (("data_packets", expected), ("ack_packets", answers)):
            found |= {f"theory_{name}_low": float(count.low), f"theory_{name}_high": float(count.high)}
            found[f"{name}_as_theory"] = _holds(count, metrics.get(name))
    return found


def _holds(count: Count, measured: float | None) -> float | None:
    return None if measured is None else float(count.low <= measured <= count.high)
