"""Metrics that compare the clocks of two machines: they have no value where those clocks say too little.

On one machine there is one clock, and nothing here changes anything. Times of two machines may be wrong against each
other by what was measured before and after the cell (record `ready`: clock_error_ns); the moment of a fault that a
command of the user's made, by how long that took (event_error_ns).
"""

from __future__ import annotations

from collections.abc import Mapping

from ..core.types import Check, Flow
from ..store.init_records import Ready

SHARE = 10
"""A time is worth something if it is this many times what it may be wrong by."""

FROM_AN_EVENT = frozenset({
    "first_retransmission_s", "first_retransmission_other_path_s", "first_new_data_other_path_s",
    "first_arrival_other_path_s", "first_useful_arrival_other_path_s", "recovery_time_s", "data_on_repaired_path_s",
    "arrival_on_repaired_path_s", "heartbeat_answered_s", "notification_time_s", "unreachable_time_s", "return_time_s",
    "refill_time_s", "first_message_after_fault_s", "gave_up_after_fault_s",
})  # fmt: skip
"""From a fault or its repair, on the machine that makes it, to something at an end of the flow."""

BETWEEN_ENDS = frozenset({
    "completion_time_s", "longest_message_delay_s", "queue_wait_mean_s", "queue_wait_max_s", "queue_error_s",
    "all_run_s", "silence_s",
})  # fmt: skip
"""Times between the two ends of a flow, or from T0 to the end that has not begun it."""

COUNTED = frozenset({
    "undelivered_packets", "spurious_retransmissions", "late_messages", "queue_drops", "queue_drop_errors",
    "queue_ties",
})  # fmt: skip
"""Counts of what happened before or after something at the other end: wrong clocks put some on the wrong side."""

JUDGED = {
    "first_retransmission_as_theory": "first_retransmission_other_path_s",
    "new_data_as_theory": "first_new_data_other_path_s",
    "notification_as_theory": "notification_time_s",
    "unreachable_as_theory": "unreachable_time_s",
    "return_as_theory": "return_time_s",
}
"""Verdicts over one of these times: without it they have no value either."""


def within_clocks(
    flow: Flow, metrics: Mapping[str, float | None], ready: Ready
) -> tuple[dict[str, float | None], list[str], list[Check]]:
    """The metrics without the values that need more than the clocks give; the names of these; and a check that says so
    (it never fails).
    """
    clock_s, event_s = ready.clock_error_ns / 1e9, max(ready.clock_error_ns, ready.event_error_ns) / 1e9
    if not event_s:
        return dict(metrics), [], []
    need_s = min((path.base_rtt_ns for path in flow.paths), default=0) / 1e9 / SHARE
    kept, gone = dict(metrics), []
    for name, value in metrics.items():
        error_s = event_s if name in FROM_AN_EVENT else clock_s
        if value is None or not (
            (name in FROM_AN_EVENT | BETWEEN_ENDS and error_s * SHARE > abs(value))
            or (name in COUNTED and error_s > need_s)
        ):
            continue
        kept[name] = None
        gone.append(name)
    for name, time_name in JUDGED.items():
        if time_name in gone and kept.get(name) is not None:
            kept[name] = None
            gone.append(name)
    words = ", ".join(gone) or "none"
    detail = (
        f"times of two machines may be wrong against each other by {clock_s * 1e3:.3g} ms, a fault's moment by "
        f"{event_s * 1e3:.3g} ms; metrics without a value for that: {words}"
    )
    return kept, gone, [Check(f"clocks of two machines {flow.name}", True, detail)]
