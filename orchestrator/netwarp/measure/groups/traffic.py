"""Metrics of a flow's amounts, rates and overhead on the wire. Definitions: docs/metrics.md, Volume and speed.

From the receiver's capture, in the data direction. The calculated packet counts exist for whole transfers without
retransmissions. Of UDP and ICMP only packets and bytes are known, by protocol and address pair.
"""

from __future__ import annotations

import numpy as np

from ...captures.native import Ints
from ...captures.time_spans import bytes_in, rate_bit_s
from ...core.ip_families import IPV6, family_of
from ...core.types import Cell, Flow
from ...core.wire import ACK, CE, COOKIE_ACK, ICMPV6, INIT, IP_PROTOCOLS, SYN
from ...testbed.layout import make_layout
from ..capture_point import CapturePoint
from ..flow_packets import FlowPackets, PacketColumns
from ..models.packet_count_model import acknowledgements, packets_of
from ..observation import FlowObservation, Window, first_ns
from ..planned_paths import capacity_bit_s
from .retransmission import retransmission_metrics


def traffic_metrics(observation: FlowObservation) -> dict[str, float | None]:
    """Rates, amounts and times of a whole flow."""
    metrics: dict[str, float | None] = {}
    if observation.sender is not None:
        metrics["setup_time_s"] = setup_time_s(observation.flow, observation.sender)
        if observation.sent is not None:
            metrics |= by_codepoint(observation.sent.codepoint, "sent")
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
        "payload_share_ratio": float(data.new_bytes.sum()) / both if both else None,
    }
    metrics |= by_codepoint(data.codepoint, "arrived")
    retransmitted_packets = observation.once(retransmission_metrics).get("retransmitted_packets")
    if completed_ns is not None and retransmitted_packets == 0:
        metrics |= _by_arithmetic(observation, data_packets, ack_packets)
    return metrics


def by_codepoint(codepoint: Ints, end: str) -> dict[str, float | None]:
    """How many packets have each codepoint of ECN at one end, `sent` or `arrived`."""
    counted = np.bincount(codepoint, minlength=CE + 1).tolist()
    names = ("not_ect", "ect1", "ect0", "ce")
    names = names if end == "sent" else (*names[:-1], "")
    return {
        f"{end}_{name}_packets" if name else "ecn_marked_packets": float(number)
        for name, number in zip(names, counted, strict=True)
    }


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
    begun = first_ns(table["time_ns"], asked & sender.mask(table))
    done = first_ns(table["time_ns"], answered & sender.mask(table, back=True))
    return None if begun is None or done is None else (done - begun) / 1e9


def datagrams_at(cell: Cell, flow: Flow, receiver: CapturePoint | None, t0_realtime_ns: int) -> tuple[Ints, Ints]:
    """(ns from T0, IP bytes) of every packet from the sender's address to the receiver's, at the receiver.

    Fragments count as packets. Empty where the receiver was not captured.
    """
    if receiver is None:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    path, layout = flow.paths[0], make_layout(cell)
    pair = (layout.interface(flow.sender, path.sender_link).ip, layout.interface(flow.receiver, path.receiver_link).ip)
    packets = receiver.capture.packets
    over_ipv6 = family_of(pair[0]) == IPV6
    protocol = ICMPV6 if flow.protocol == "icmp" and over_ipv6 else IP_PROTOCOLS[flow.protocol]
    rows = packets[(packets["protocol"] == protocol) & receiver.between(packets, *pair)]
    return rows["time_ns"].astype(np.int64) - t0_realtime_ns, rows["ip_bytes"].astype(np.int64)


def datagram_metrics(cell: Cell, flow: Flow, t_ns: Ints, ip_bytes: Ints, window: Window) -> dict[str, float | None]:
    """packets, wire_bytes, throughput_bit_s, utilization_ratio of what arrived in the window, completion_time_s."""
    ip_bytes, t_ns = ip_bytes[window.holds(t_ns)], t_ns[window.holds(t_ns)]
    metrics: dict[str, float | None] = {"packets": float(len(t_ns)), "wire_bytes": float(ip_bytes.sum())}
    if window.complete and window.end_ns is not None:
        metrics["completion_time_s"] = (window.end_ns - flow.start_ns) / 1e9
    several = len(t_ns) > 1  # a rate is of what comes after the first packet
    if several and window.first_ns is not None and window.end_ns is not None and window.end_ns > window.first_ns:
        rate = rate_bit_s(bytes_in(t_ns, ip_bytes, int(t_ns[0]), window.end_ns), window.end_ns - window.first_ns)
        bottleneck = capacity_bit_s(cell, flow, flow.paths[0], int(t_ns[0]), window.end_ns)
        metrics |= {
            "throughput_bit_s": rate,
            "utilization_ratio": rate / bottleneck if rate is not None and bottleneck else None,
        }
    return metrics
