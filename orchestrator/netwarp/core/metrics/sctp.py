"""The metrics that only SCTP flows have (docs/metrics.md, Metrics of SCTP)."""

from __future__ import annotations

SCTP_METRICS: dict[str, str] = {
    "fast_retransmissions": "chunks",
    "timeout_retransmissions": "chunks",
    "t3_expiries": "timeouts",
    "sacks_other_path_ratio": "ratio",
    "data_chunks": "chunks",
    "chunks_per_packet_ratio": "ratio",
}
"""Metric -> unit."""
