"""The metrics that only MPTCP flows have (docs/metrics.md, Metrics of MPTCP)."""

from __future__ import annotations

MPTCP_METRICS: dict[str, str] = {
    "subflows_opened": "subflows",
    "subflows_joined": "subflows",
    "subflows_lost": "subflows",
    "paths_used": "paths",
    "subflow_first_join_time_s": "s",
    "subflow_last_join_time_s": "s",
    "subflow_first_loss_time_s": "s",
}
"""Metric -> unit."""
