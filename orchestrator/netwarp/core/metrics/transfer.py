"""The metrics of what a transfer costs on the wire (docs/metrics.md, The metrics of a flow)."""

from __future__ import annotations

TRANSFER_METRICS: dict[str, str] = {
    "packets_both_ways": "packets",
    "wire_bytes_both_ways": "bytes",
    "payload_share_ratio": "ratio",
    "theory_data_packets_low": "packets",
    "theory_data_packets_high": "packets",
    "data_packets_as_theory": "ratio",
    "theory_ack_packets_low": "packets",
    "theory_ack_packets_high": "packets",
    "ack_packets_as_theory": "ratio",
}
"""Metric -> unit."""
