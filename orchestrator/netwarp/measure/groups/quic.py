"""Metrics of flows of QUIC that nobody needs keys for. Definitions: docs/metrics.md, QUIC."""

from __future__ import annotations

import numpy as np

from ...captures.native import Rows
from ...captures.quic import CID_UNKNOWN, Kind, connection_id, spin_round_trips_s
from ...captures.time_spans import by
from ...core.types import Flow
from ..observation import Window
from ..quic_packets import QuicPackets
from .traffic import by_codepoint

SPIN = {"spin_rtt_min_s": 0.0, "spin_rtt_median_s": 50.0, "spin_rtt_p95_s": 95.0}


def quic_metrics(
    flow: Flow, sender: QuicPackets | None, receiver: QuicPackets | None, window: Window
) -> dict[str, float | None]:
    """Handshake, kinds of packets and the spin bit of a flow; what needs an end that was not captured has no value."""
    metrics: dict[str, float | None] = {}
    opener = sender if flow.opener == "sender" else receiver
    if opener is not None:
        asks, answers = (opener.sent, opener.back) if flow.opener == "sender" else (opener.back, opener.sent)
        metrics["setup_time_s"] = setup_time_s(asks, answers)
        metrics["transfer_time_s"] = transfer_time_s(opener, asks, window)
        metrics["retry_packets"] = float((answers["kind"] == Kind.RETRY).sum())
    if sender is not None:
        until = window.until_ns(sender.datagrams)
        sent = sender.sent[by(sender.sent["time_ns"].astype(np.int64), until)]
        metrics["quic_packets"] = float(len(sent))
        metrics["zero_rtt_packets"] = float((sent["kind"] == Kind.ZERO_RTT).sum())
        metrics["connection_ids"] = connection_ids(sent, sender.back)
        trips = spin_round_trips_s(sent, flow.paths[0].base_rtt_ns / 1e9)
        for name, share in SPIN.items():
            metrics[name] = float(np.percentile(trips, share, method="inverted_cdf")) if len(trips) else None
        metrics |= by_codepoint(sender.datagrams.data.until(window.end_ns).codepoint, "sent")
    if receiver is not None:
        data, back = (each.until(window.end_ns) for each in (receiver.datagrams.data, receiver.datagrams.back))
        metrics["packets_both_ways"] = float(len(data.t_ns) + len(back.t_ns))
        metrics["wire_bytes_both_ways"] = float(data.ip_bytes.sum() + back.ip_bytes.sum())
        metrics |= by_codepoint(data.codepoint, "arrived")
    return metrics


def setup_time_s(asks: Rows, answers: Rows) -> float | None:
    """At the end that connects, from its first Initial until 1-RTT packets have gone both ways; None if they did not.

    asks: its packets; answers: the other end's.
    """
    begun = asks["time_ns"][asks["kind"] == Kind.INITIAL]
    firsts = [rows["time_ns"][rows["kind"] == Kind.SHORT] for rows in (asks, answers)]
    if not len(begun) or not all(map(len, firsts)):
        return None
    return (max(int(first[0]) for first in firsts) - int(begun[0])) / 1e9


def transfer_time_s(opener: QuicPackets, asks: Rows, window: Window) -> float | None:
    """From the first Initial of the end that connects to the end of a window that is complete; else None."""
    begun = asks["time_ns"][asks["kind"] == Kind.INITIAL]
    if not len(begun) or window.end_ns is None or not window.complete:
        return None
    return (window.end_ns - (int(begun[0]) - opener.datagrams.t0_realtime_ns)) / 1e9


def connection_ids(sent: Rows, back: Rows) -> float | None:
    """How many connection ids the 1-RTT packets in `sent` have. How long they are, the other end's long headers say;
    None if it sent none.
    """
    own = back[(back["kind"] != Kind.SHORT) & (back["scid_bytes"] != CID_UNKNOWN)]
    if not len(own):
        return None
    size = int(own["scid_bytes"][-1])
    short = sent[sent["kind"] == Kind.SHORT]
    return float(len({connection_id(row, "dcid")[:size] for row in short}))
