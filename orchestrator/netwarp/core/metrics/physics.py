"""The metrics that known physics is tested by (docs/metrics.md, Physics)."""

from __future__ import annotations

PHYSICS_METRICS: dict[str, str] = {
    "rtt_mean_s": "s",
    "loss_events": "events",
    "loss_event_ratio": "ratio",
    "steady_s": "s",
    "steady_sent_bit_s": "bit/s",
    "first_timeout_s": "s",
    "mathis_bit_s": "bit/s",
    "mathis_random_bit_s": "bit/s",
    "sawtooth_bit_s": "bit/s",
    "pftk_bit_s": "bit/s",
    "pftk_delayed_bit_s": "bit/s",
    "queue_wait_mean_s": "s",
    "queue_wait_max_s": "s",
    "queue_error_s": "s",
    "queue_drops": "packets",
    "queue_drop_errors": "packets",
    "queue_ties": "packets",
    "backoff_timeouts": "timeouts",
    "backoff_ratio_min": "ratio",
    "backoff_ratio_max": "ratio",
    "backoff_outside": "timeouts",
}
"""Metric -> unit."""
