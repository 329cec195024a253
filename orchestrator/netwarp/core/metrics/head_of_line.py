"""The metrics of head-of-line delay beside `hol_blocking_s` (docs/metrics.md, Head-of-line delay)."""

from __future__ import annotations

WAITING_METRICS: dict[str, str] = {
    "hol_blocking_p95_s": "s",
    "hol_blocking_max_s": "s",
    "hol_blocked_ratio": "ratio",
}
"""Metric -> unit, of TCP, MPTCP and SCTP."""
STREAM_WAITING_METRICS: dict[str, str] = {
    "hol_blocking_least_stream_s": "s",
    "hol_blocking_most_stream_s": "s",
    "hol_blocking_one_stream_s": "s",
    "hol_blocking_one_stream_p95_s": "s",
    "hol_blocking_one_stream_max_s": "s",
    "hol_blocked_one_stream_ratio": "ratio",
}
"""Metric -> unit, of SCTP only."""
