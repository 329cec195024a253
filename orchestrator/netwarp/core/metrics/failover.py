"""The metrics of a failover (docs/metrics.md, Failover), and which of them a theory is known for."""

from __future__ import annotations

THEORY: dict[str, str] = {
    "first_retransmission_other_path_s": "first_retransmission",
    "first_new_data_other_path_s": "new_data",
    "notification_time_s": "notification",
    "unreachable_time_s": "unreachable",
    "outage_s": "outage",
    "return_time_s": "return",
}
"""Metric measured -> its name in theory_<name>_low_s, theory_<name>_high_s (expected) and <name>_as_theory (1 or 0)."""
FAILOVER_METRICS: dict[str, str] = {
    "notification_time_s": "s",
    "unreachable_time_s": "s",
    "state_changes": "events",
    "return_time_s": "s",
    "refill_time_s": "s",
    "spurious_retransmissions": "chunks",
    "late_messages": "messages",
    "undelivered_messages": "messages",
    "longest_message_delay_s": "s",
    "theory_timeouts": "timeouts",
    "theory_rto_low_s": "s",
    "theory_rto_high_s": "s",
    **{f"theory_{name}_{end}_s": "s" for name in THEORY.values() for end in ("low", "high")},
    **{f"{name}_as_theory": "ratio" for name in THEORY.values()},
}
"""Metric -> unit. They are there for SCTP flows through a fault only."""
