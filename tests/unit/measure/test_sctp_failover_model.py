"""The model of a failover against sums done by hand (its sources are named in sctp_failover_model.py)."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netwarp import plan_experiment
from netwarp.core.timer_wheel import HZ, LATENESS_RATIO, level_start_s, slot_s
from netwarp.measure.first_divergence import Divergence, Sent
from netwarp.measure.groups.failover import THEORY, theory_metrics
from netwarp.measure.models.failover_inputs import FailoverConditions, FailoverSettings, failover_conditions
from netwarp.measure.models.sctp_failover_model import (
    FailoverPrediction,
    Range,
    fires,
    predict_failover,
    rto,
    timeouts_needed,
    times_out_without_fault,
)
from support.checkout import ROOT


def expected(settings: FailoverSettings, conditions: FailoverConditions) -> FailoverPrediction:
    prediction = predict_failover(settings, conditions)
    assert prediction is not None
    return prediction


BUSY = FailoverConditions(
    rtt_s=0.05, rtt_other_s=0.05, queue_s=0.03, window_packets=12, interval_s=None, up_s=10.0, tail="none", forward=True
)
SPARSE = dataclasses.replace(BUSY, interval_s=1.0, next_send_s=0.4, queue_s=0.003, alone=True)


@pytest.mark.parametrize(
    ("settings", "timeouts", "state", "seconds"),
    [
        (FailoverSettings(), 1, "POTENTIALLY_FAILED", 1),
        (FailoverSettings(path_max_retrans=1), 2, "INACTIVE", 1 + 2),
        (FailoverSettings(path_max_retrans=2), 1, "POTENTIALLY_FAILED", 1),
        (FailoverSettings(pf_retrans=1), 2, "POTENTIALLY_FAILED", 1 + 2),
        (FailoverSettings(pf_retrans=2), 3, "POTENTIALLY_FAILED", 1 + 2 + 4),
        (FailoverSettings(pf_retrans=3), 4, "POTENTIALLY_FAILED", 1 + 2 + 4 + 8),
        (FailoverSettings(pf_retrans=4), 6, "INACTIVE", 1 + 2 + 4 + 8 + 16 + 32),
        (FailoverSettings(pf_enable=False), 6, "INACTIVE", 63),
        (FailoverSettings(pf_enable=False, rto_max_s=5), 6, "INACTIVE", 1 + 2 + 4 + 5 + 5 + 5),
        (FailoverSettings(0.12, 0.12, 0.12, path_max_retrans=3), 1, "POTENTIALLY_FAILED", 0.12),
        (FailoverSettings(0.12, 0.12, 0.12, path_max_retrans=3, pf_enable=False), 4, "INACTIVE", 0.48),
    ],
)
def test_the_path_is_left_after_the_sum_of_its_timeouts(
    settings: FailoverSettings, timeouts: int, state: str, seconds: float
) -> None:
    assert timeouts_needed(settings) == (timeouts, state)
    found = expected(settings, BUSY)
    # earlier by one SACK's spacing (an RTT with its queue); later by an eighth, and the losses sent again in between
    assert found.notification_s.low == pytest.approx(seconds - 0.08, abs=1e-9)
    assert seconds < found.notification_s.high < seconds * (1 + 8 / 63) + 2


def test_the_first_retransmission_takes_one_timeout_whatever_the_thresholds() -> None:
    alike = {
        expected(settings, BUSY).first_retransmission_s
        for settings in (
            FailoverSettings(),
            FailoverSettings(path_max_retrans=1),
            FailoverSettings(pf_enable=False),
            FailoverSettings(pf_retrans=3),
        )
    }
    assert alike == {Range(1 - 0.08, 1.064)}


@pytest.mark.parametrize(
    ("seconds", "slot"),
    [(0.01, 0.001), (0.0629, 0.001), (0.063, 0.008), (0.1, 0.008), (0.503, 0.008), (0.506, 0.064), (1, 0.064),
     (4.031, 0.064), (4.05, 0.512), (5, 0.512), (32.3, 4.096), (60, 4.096), (300, 32.768)],
)  # fmt: skip
def test_a_timer_is_late_by_its_slot_of_the_wheel_at_most(seconds: float, slot: float) -> None:
    assert slot_s(seconds) == slot
    assert fires(Range(seconds, seconds)) == Range(seconds, seconds + slot)


def test_jiffies_are_those_of_the_guest_kernel() -> None:
    fragment = ROOT / "kernel" / "fragment.config"
    assert f"CONFIG_HZ={HZ}" in fragment.read_text().splitlines()


def test_a_timer_of_506_ms_is_in_the_level_that_begins_at_504() -> None:
    """Two runs that retransmit 506 ms after the last packet back, 50 ms apart: one slot of 64 ms explains it."""
    one, other = (Sent(t_s, "p1", retransmission=True, since_back_s=0.506) for t_s in (1.0, 1.05))
    assert "50 ms apart, within the 64 ms slot" in Divergence("f", 7, one, other).words("a", "b")


@given(st.floats(0.063, 258, allow_nan=False))
def test_lateness_is_at_most_8_63_of_the_timer(seconds: float) -> None:
    assert slot_s(seconds) <= seconds * LATENESS_RATIO


@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_the_bound_of_lateness_is_reached_at_the_start_of_each_level(level: int) -> None:
    start_s = level_start_s(level)
    assert slot_s(start_s) / start_s == pytest.approx(LATENESS_RATIO) == pytest.approx(8 / 63)


def test_the_rto_is_a_point_where_its_floor_decides_and_a_range_where_samples_do() -> None:
    assert rto(FailoverSettings(), BUSY) == Range(1, 1)
    found = rto(FailoverSettings(rto_min_s=0.01), BUSY)
    # samples of 50 to 80 ms: SRTT + 4 RTTVAR, RTTVAR at most their spread
    assert found.low == pytest.approx(0.054)
    assert found.high == pytest.approx(0.08 + 4 * (0.03 + 0.001), abs=1e-3)
    # before the first sample it is rto_initial
    fresh = rto(FailoverSettings(), dataclasses.replace(BUSY, up_s=0.0))
    assert fresh.holds(3.0)


def test_a_sparse_flow_waits_for_its_next_message_and_for_delayed_sacks() -> None:
    found = expected(FailoverSettings(), SPARSE)
    assert found.first_retransmission_s == Range(1.4, 1.464)
    assert found.new_data_s == Range(1.4, 2.464)
    # a message that was on its way at the fault: its timer runs already
    on_its_way = dataclasses.replace(SPARSE, next_send_s=0.9)
    assert expected(FailoverSettings(), on_its_way).first_retransmission_s == Range(0.9, 1.964)
    assert found.rto_s == Range(1, 1)
    # bursts that follow each other before the last is acknowledged: T3 may run since the one before
    dense = dataclasses.replace(SPARSE, interval_s=0.2, next_send_s=0.187, alone=False)
    assert expected(FailoverSettings(), dense).first_retransmission_s.low == pytest.approx(1 - 0.213)
    # delayed SACKs raise the RTO above a small floor
    assert rto(FailoverSettings(rto_min_s=0.1), SPARSE).high > 0.25


# messages of 200 B at 60 ms, not on a grid with the fault; RTO 600 ms, which is late by 64 ms, and a SACK by 208 ms
HELD = dataclasses.replace(SPARSE, interval_s=0.06, next_send_s=None, queue_s=0.0, nagle=True, sizes=(200,))
FIXED = FailoverSettings(0.6, 0.6, 0.6)


def test_a_small_message_waits_for_what_is_sent_again() -> None:
    free = expected(FIXED, dataclasses.replace(HELD, nagle=False))
    held = expected(FIXED, HELD)
    assert free.first_retransmission_s == held.first_retransmission_s
    assert free.new_data_s is not None and held.new_data_s is not None and held.outage_s is not None
    assert free.new_data_s.high == pytest.approx(0.06 + 0.664 + 0.06)
    # some 17 messages fell due, which is less than a window: one packet, the rest with a message, a SACK for them
    answered = 0.05 + 0.208
    assert held.new_data_s.high == pytest.approx(0.06 + 0.664 + (0.06 + answered))
    # one message that all waits for: it is sent again in one packet
    single = expected(FIXED, dataclasses.replace(HELD, sizes=(20,)))
    assert single.new_data_s is not None and single.new_data_s.high == pytest.approx(0.06 + 0.664 + answered)
    # a window more with each SACK: 17 messages of 700 B are 11,900 B, three windows of 4380
    large = expected(FIXED, dataclasses.replace(HELD, sizes=(700,)))
    assert large.new_data_s is not None and large.new_data_s.high == pytest.approx(0.06 + 0.664 + 0.06 + 3 * answered)


@pytest.mark.parametrize(
    ("flow", "nagle"),
    [
        # 1500 - 20 - 12 - 16 - 4 B are the longest chunk that output.c:sctp_packet_can_append_data holds
        ({"message_size": "1432 B", "sender": {"interval": "1 s"}}, True),
        ({"message_size": "1433 B", "sender": {"interval": "1 s"}}, False),
        ({"message_size": "200 B", "sender": {"interval": "1 s", "nodelay": True}}, False),
        ({}, False),
        ({"messages": {"gaps": {"exponential": "1 s"}, "sizes": "200 B"}}, None),
    ],
)
def test_what_holds_messages_follows_from_the_flow(flow: dict[str, object], nagle: bool | None) -> None:
    base = {"from": "a", "to": "b", "protocol": "sctp", "paths": ["p1", "p2"]}
    (cell,) = plan_experiment(
        {
            "format": 1,
            "name": "held",
            "duration": "20 s",
            "node": {"a": {}, "b": {}},
            "link": {
                name: {"between": ["a", "b"], "rtt": "50 ms", "rate": "5 Mbit/s", "queue": "9 packets"}
                for name in ("p1", "p2")
            },
            "event": {"fault": {"action": "cut", "link": "p1", "at": "5 s"}},
            "flow": {"f": base | flow},
        }
    ).cells
    found = failover_conditions(cell, cell.flows[0], None)
    assert (None if found is None else found.nagle) is nagle
    assert found is None or found.packet_bytes == 1468


def test_a_message_that_had_arrived_makes_the_gap_of_a_held_flow_last_to_the_second_timeout() -> None:
    """Measured with Linux 6.12 (200 B each 170 ms, RTT 50 ms, RTO 600 ms, pf_retrans 1): the only packet in flight had
    arrived, its SACK was lost, and all that came later was held.
    """
    sparse = dataclasses.replace(HELD, interval_s=0.17)
    gap = expected(dataclasses.replace(FIXED, pf_retrans=1), sparse).outage_s
    assert gap is not None and gap.holds(1.344)
    free = expected(dataclasses.replace(FIXED, pf_retrans=1), dataclasses.replace(sparse, nagle=False)).outage_s
    assert free is not None and not free.holds(1.344)


def test_nothing_is_expected_of_held_data_where_its_sack_may_be_lost() -> None:
    """An association of 1 s: the peer's heartbeat may need 4.5 s, until when its SACKs leave on the dead path."""
    settings = dataclasses.replace(FIXED, peer_rto_initial_s=3.0)
    young = expected(settings, dataclasses.replace(HELD, up_s=1.0))
    assert young.first_retransmission_s.high < 0.8
    assert (young.new_data_s, young.outage_s, young.return_s) == (None, None, None)


def test_nothing_is_expected_where_delayed_sacks_time_out_without_any_fault() -> None:
    dsr = FailoverSettings(0.12, 0.12, 0.12, path_max_retrans=3)
    assert times_out_without_fault(dsr, SPARSE) and predict_failover(dsr, SPARSE) is None
    # more than one packet at a time is acknowledged at once; and so is one where the peer delays no SACK
    assert not times_out_without_fault(dsr, BUSY)
    assert not times_out_without_fault(dataclasses.replace(dsr, sack_delay_s=0), SPARSE)
    assert not times_out_without_fault(FailoverSettings(), SPARSE)
    # 3 RTT of the first sample are above RTT + 200 ms and its timer's slot of 8 ms from 104 ms on
    assert times_out_without_fault(FailoverSettings(rto_min_s=0.05), dataclasses.replace(SPARSE, rtt_s=0.103))
    assert not times_out_without_fault(FailoverSettings(rto_min_s=0.05), dataclasses.replace(SPARSE, rtt_s=0.105))


def test_unreachable_and_return_are_ranges_that_heartbeats_decide() -> None:
    found = expected(FailoverSettings(), dataclasses.replace(BUSY, length_s=5.0))
    assert found.unreachable_s is not None and found.return_s is not None
    # T3, then six heartbeats at RTO/2 + rand(RTO), the first with 1 s, doubled from the second on: 32.5 to 95.5 s
    assert found.unreachable_s.low == pytest.approx(1 - 0.08 + 31.5)
    assert found.unreachable_s.high == pytest.approx(1.064 + 94.5, rel=8 / 63)
    assert found.return_s.low == pytest.approx(0.05) and found.return_s.high == pytest.approx(12.2, abs=0.6)
    assert expected(FailoverSettings(ps_retrans=0), dataclasses.replace(BUSY, length_s=5.0)).return_s is None
    assert expected(FailoverSettings(), BUSY).return_s is None


def test_an_inactive_path_waits_for_what_its_heartbeats_backed_off_to() -> None:
    """Two timeouts (1, 2 s) leave an RTO of 4 s, which each heartbeat that follows an unanswered one doubles."""
    inactive = FailoverSettings(path_max_retrans=1)
    soon = expected(inactive, dataclasses.replace(BUSY, length_s=5.0)).return_s
    assert soon is not None
    # one heartbeat at most before the repair: then 30 s and half to one and a half of 8 s, and a slot of 4.096 s
    assert soon.high == pytest.approx(30 + 12 + 4.096 + 0.16, abs=0.6)
    often = expected(dataclasses.replace(inactive, heartbeat_interval_s=1.0), dataclasses.replace(BUSY, length_s=20.0))
    # from 3 s on (less a SACK's spacing): RTO 8 s, 5 s later 16 s, 9 s later 32 s, which lasts beyond 20 s
    assert often.return_s is not None and often.return_s.high == pytest.approx(1 + 48 + 4.096, abs=1.5)
    capped = expected(dataclasses.replace(inactive, rto_max_s=5.0), dataclasses.replace(BUSY, length_s=400.0)).return_s
    assert capped is not None and capped.high == pytest.approx(30 + 7.5 + 4.096, abs=1)


def test_events_missing_after_their_range_contradict_theory() -> None:
    theory = expected(FailoverSettings(), BUSY)
    seen = {"first_retransmission_other_path_s": 1.0, "notification_time_s": 3.0, "first_new_data_other_path_s": None}
    whole = theory_metrics(theory, seen, dict.fromkeys(THEORY, 20.0))
    assert whole["first_retransmission_as_theory"] == 1 and whole["notification_as_theory"] == 0
    assert whole["new_data_as_theory"] == 0  # not there after 20 s, expected within 3
    assert whole["unreachable_as_theory"] is None  # expected between 32 and 103 s: not over yet
    assert theory.outage_s is not None and theory.new_data_s is not None
    gap, moved = theory.outage_s.high, theory.new_data_s.high
    assert gap < moved and whole["outage_as_theory"] == 0  # a gap that began with a later timeout may not be over yet
    assert theory_metrics(theory, seen, dict.fromkeys(THEORY, (gap + moved) / 2))["outage_as_theory"] is None
    short = theory_metrics(theory, seen, dict.fromkeys(THEORY, 1.1))
    assert short["new_data_as_theory"] is None and theory_metrics(theory, seen, {})["new_data_as_theory"] is None


def test_an_unconfirmed_second_path_is_waited_for() -> None:
    early = dataclasses.replace(BUSY, up_s=1.0)
    found = expected(FailoverSettings(connectx=False), early)
    # confirmed 1.5 to 4.5 s after the association is up
    assert found.first_retransmission_s.low == pytest.approx(max(1 - 0.08, 1.55 - 1.0))
    assert found.first_retransmission_s.high > 4.55 - 1.0
    assert expected(FailoverSettings(), early).first_retransmission_s.high < 1.2
    # connectx spares the sender that, not the peer: its SACKs need its own heartbeat answered first
    deaf = expected(FailoverSettings(), early)
    quick = expected(FailoverSettings(peer_rto_initial_s=0.1), early)
    assert deaf.outage_s is not None and quick.outage_s is not None
    assert deaf.outage_s.high > 4.5 - 1.0 > quick.outage_s.high
    late = dataclasses.replace(BUSY, up_s=10.0)
    assert expected(FailoverSettings(connectx=False), late) == expected(FailoverSettings(), late)


@given(
    st.floats(0.01, 3),
    st.floats(1, 60),
    st.integers(1, 10),
    st.integers(0, 10),
    st.booleans(),
    st.sampled_from([None, 0.2, 1.0]),
    st.sampled_from(["none", "backward", "round trip"]),
)
def test_ranges_are_in_order(
    low: float, high: float, most: int, pf: int, enable: bool, interval: float | None, tail: str
) -> None:
    settings = FailoverSettings(max(low, 0.5), low, high, most, enable, pf)
    found = expected(settings, dataclasses.replace(BUSY, interval_s=interval, tail=tail, length_s=400.0))  # type: ignore[arg-type]
    for field in dataclasses.fields(found):
        value = getattr(found, field.name)
        if isinstance(value, Range):
            assert 0 <= value.low <= value.high, field.name
    assert found.new_data_s is not None
    assert found.first_retransmission_s.low <= found.notification_s.low <= found.new_data_s.low


def test_a_window_that_had_arrived_makes_the_gap_last_to_the_second_timeout() -> None:
    # measured in experiments/physics (RTT 100 ms, 1 Gbit/s, pf_retrans 1): the whole window was there before the cut
    short = dataclasses.replace(BUSY, rtt_s=0.1, rtt_other_s=0.1, queue_s=0.0002)
    gap = expected(FailoverSettings(pf_retrans=1), short).outage_s
    assert gap is not None and gap.holds(3.171)
    assert not gap.holds(1 + 2 + 0.064 + 0.128 + 4 * 0.1 + 0.01)  # two timers, each late by a slot, and round trips
    spread = expected(FailoverSettings(pf_retrans=1), dataclasses.replace(short, queue_s=0.06)).outage_s
    assert spread is not None and not spread.holds(3.171)  # a window longer than the way is never there whole
    assert (
        expected(FailoverSettings(), short).outage_s == expected(FailoverSettings(path_max_retrans=3), short).outage_s
    )
