"""Metrics of two machines' clocks: no value where the clocks say too little."""

from __future__ import annotations

import pytest
from netwarp.core.metrics.catalogue import METRICS
from netwarp.core.types import Flow, Path
from netwarp.measure.checks import BETWEEN_ENDS, COUNTED, FROM_AN_EVENT, JUDGED, within_clocks
from netwarp.store.init_records import Ready

FLOW = Flow("f", "sctp", "a", "b", (Path("p1", "p1", "p1", None, 50_000_000),), 5001, 0, None, None, 1000)
METRIC_VALUES = {
    "first_useful_arrival_other_path_s": 0.02, "recovery_time_s": 0.4, "queue_wait_mean_s": 0.004, "rtt_min_s": 0.0001,
    "late_messages": 3.0, "goodput_bit_s": 5e5, "new_data_as_theory": 1.0, "first_new_data_other_path_s": 0.01,
    "outage_s": 0.001, "completion_time_s": None, "silence_s": 0.03, "data_repeat_wait_s": 0.001,
}  # fmt: skip


def ready(clock_error_ns: int, event_error_ns: int = 0) -> Ready:
    return Ready(1, 1, 0, clock_error_ns=clock_error_ns, event_error_ns=event_error_ns)


def gone(clock_error_ns: int, event_error_ns: int = 0) -> set[str]:
    kept, without, _ = within_clocks(FLOW.name, FLOW.paths, METRIC_VALUES, ready(clock_error_ns, event_error_ns))
    assert kept.keys() == METRIC_VALUES.keys()
    assert all(kept[name] == METRIC_VALUES[name] for name in kept if kept[name] is not None)
    lost = {name for name, value in kept.items() if value is None and METRIC_VALUES[name] is not None}
    assert lost == set(without)
    return lost


def test_one_clock_changes_nothing() -> None:
    assert within_clocks(FLOW.name, FLOW.paths, METRIC_VALUES, ready(0)) == (METRIC_VALUES, [], [])


@pytest.mark.parametrize(
    ("clock_error_ns", "without"),
    [
        (300_000, set()),
        (400_001, {"queue_wait_mean_s"}),
        (1_500_000, {"queue_wait_mean_s", "first_new_data_other_path_s", "new_data_as_theory"}),
        (6_000_000, {"queue_wait_mean_s", "first_new_data_other_path_s", "new_data_as_theory",
                     "first_useful_arrival_other_path_s", "late_messages", "silence_s"}),
    ],
)  # fmt: skip
def test_what_needs_more_than_the_clocks_give_has_no_value(clock_error_ns: int, without: set[str]) -> None:
    assert gone(clock_error_ns) == without


def test_a_slow_command_takes_the_value_of_times_from_its_event_and_of_nothing_else() -> None:
    assert gone(1000, 50_000_000) == {
        "first_useful_arrival_other_path_s", "recovery_time_s", "first_new_data_other_path_s", "new_data_as_theory",
    }  # fmt: skip


def test_queue_delays_of_a_link_are_held_against_the_clocks_of_its_two_ends() -> None:
    metrics = {"queue_delay_mean_s": 0.0, "queue_delay_max_s": 0.2, "lost_packets": 3.0, "link_utilization_ratio": 0.5}
    kept, without, _ = within_clocks("p1.forward", (), metrics, ready(400_001))
    assert kept == metrics | {"queue_delay_mean_s": None}
    assert without == ["queue_delay_mean_s"]


def test_the_check_names_them() -> None:
    _, _, (check,) = within_clocks(FLOW.name, FLOW.paths, METRIC_VALUES, ready(400_001))
    assert check.ok
    assert check.detail.endswith("metrics without a value for that: queue_wait_mean_s")


def test_every_metric_of_both_ends_or_from_a_repair_is_held_against_the_clocks() -> None:
    known = FROM_AN_EVENT | BETWEEN_ENDS | COUNTED
    assert known | JUDGED.keys() | set(JUDGED.values()) <= METRICS.keys()
    assert {
        name for name, metric in METRICS.items() if metric.clock == "repair" and metric.captured_at != "model"
    } <= known
    assert {name for name, metric in METRICS.items() if metric.captured_at == "both"} - known == {
        # how much and how many, not when: no clock decides that
        "undelivered_messages", "undelivered_bytes", "ends_disagree", "aborts", "unclosed_ends",
        # of both ends, but each wait between two packets that one of them sent: one clock
        "setup_repeat_wait_s", "data_repeat_wait_s", "close_repeat_wait_s", "messages",
        "lost_packets", "loss_ratio", "waiting_packets", "span_loss_ratio", "lost_datagrams", "datagram_loss_ratio",
        "repeated_datagrams", "reordered_datagrams",
        # differences of delays, in which the clocks' difference cancels
        "jitter_s", "delay_variation_p99_s",
    }  # fmt: skip
