"""Metrics of a flow's amounts, rates and overhead on the wire. Definitions: docs/metrics.md, Volume and speed.

From the receiver's capture, in the data direction. The calculated packet counts exist for whole transfers without
retransmissions.
"""

from __future__ import annotations

import numpy as np

from ...captures.native import Ints
from ...captures.time_spans import bytes_in, rate_bit_s
from ...core.types import Flow
from ...core.wire import ACK, COOKIE_ACK, INIT, SYN
from ..capacity import capacity_bit_s
from ..flow_packets import FlowPackets, PacketColumns
from ..models.packet_count_model import acknowledgements, packets_of
from ..observation import FlowObservation, Window, first_ns
from .retransmission import retransmission_metrics


def traffic_metrics(observation: FlowObservation) -> dict[str, float | None]:
    """Rates, amounts and times of a whole flow."""
    metrics: dict[str, float | None] = {}
    if observation.sender is not None:
        metrics["setup_time_s"] = setup_time_s(observation.flow, observation.sender)
    if observation.receiver is None or observation.arrived is None:
        return metrics
    flow, window, data = observation.flow, observation.window, observation.arrived
    back = observation.receiver.back.until(window.end_ns)
    throughput = _rate(data, data.ip_bytes, window)
    begin, end = window.first_ns or 0, window.end_ns or 0
    bottlenecks = [capacity_bit_s(observation.cell, flow, path, begin, end) for path in flow.paths]
    capacity = None if None in bottlenecks else sum(rate for rate in bottlenecks if rate is not None)
    completed_ns = window.end_ns if window.complete else None
    both = float(data.ip_bytes.sum() + back.ip_bytes.sum())
    data_packets = float((data.payload_bytes > 0).sum())
    ack_packets = float((back.acks & (back.payload_bytes == 0)).sum())
    metrics |= {
        "goodput_bit_s": _rate(data, data.new_bytes, window),
        "throughput_bit_s": throughput,
        "utilization_ratio": throughput / capacity if throughput is not None and capacity else None,
        "completion_time_s": None if completed_ns is None else (completed_ns - flow.start_ns) / 1e9,
        "payload_bytes": float(data.new_bytes.sum()),
        "wire_bytes": float(data.ip_bytes.sum()),
        "packets": float(len(data.t_ns)),
        "data_packets": data_packets,
        "ack_packets": ack_packets,
        "unique_data_packets": float((data.new_bytes > 0).sum()),
        "packets_both_ways": float(len(data.t_ns) + len(back.t_ns)),
        "wire_bytes_both_ways": both,
        "ecn_marked_packets": float(data.marked.sum()),
        "payload_share_ratio": float(data.new_bytes.sum()) / both if both else None,
    }
    retransmitted_packets = observation.once(retransmission_metrics).get("retransmitted_packets")
    if completed_ns is not None and retransmitted_packets == 0:
        metrics |= _by_arithmetic(observation, data_packets, ack_packets)
    return metrics


def _rate(packets: PacketColumns, amount: Ints, window: Window) -> float | None:
    if window.first_ns is None or window.end_ns is None:
        return None
    amount_bytes = bytes_in(packets.t_ns, amount, window.first_ns, window.end_ns)
    return rate_bit_s(amount_bytes, window.end_ns - window.first_ns)


def _by_arithmetic(observation: FlowObservation, data_packets: float, ack_packets: float) -> dict[str, float | None]:
    """The packet counts that arithmetic predicts, beside the measured ones."""
    predicted = packets_of(observation.cell, observation.flow)
    metrics: dict[str, float | None] = {}
    if predicted is not None:
        answers = acknowledgements(observation.flow, predicted)
        for name, count, measured in (("data", predicted, data_packets), ("ack", answers, ack_packets)):
            metrics[f"theory_{name}_packets_low"] = float(count.low)
            metrics[f"theory_{name}_packets_high"] = float(count.high)
            metrics[f"{name}_packets_as_theory"] = float(count.low <= measured <= count.high)
    return metrics


def setup_time_s(flow: Flow, sender: FlowPackets) -> float | None:
    """Time from the first SYN or INIT to the arrival of the first SYN+ACK or COOKIE ACK, both at the sender."""
    capture = sender.point.capture
    if flow.protocol == "sctp":
        table, kind = capture.chunks, capture.chunks["type"]
        asked, answered = kind == INIT, kind == COOKIE_ACK
    else:
        table, kind = capture.segments, capture.segments["flags"] & (SYN | ACK)
        asked, answered = kind == SYN, kind == SYN | ACK
    times: list[int | None] = []
    for condition, back in ((asked, 0), (answered, 1)):
        mine = np.zeros(len(table), dtype=np.bool_)
        for row, sends in sender.data_direction.items():
            mine |= (table["flow"] == row) & (table["direction"] == sends ^ back)
        times.append(first_ns(table["time_ns"], condition & mine))
    begun, done = times
    return None if begun is None or done is None else (done - begun) / 1e9
