"""Functions of time of a flow, from packets written by hand and from samples."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.core.metrics.expressions import evaluate, expression_problem
from netwarp.measure.flow_over_time import asked_of
from netwarp.measure.kernel_samples import read_samples
from netwarp.store.app_records import BbrInfo, PathState, Sample
from support.observed import flow_of, observed
from support.tcp_story import MSS, Story

IP = MSS + 52
"""A data packet with IP and TCP headers and time stamps."""
BIT = 8 * IP


def story() -> Story:
    """Pairs of packets every 2 ms from 50 ms on, ten pairs; acknowledged 40 ms later, two at a time; then every 10 ms
    a pair, four of them, of which nothing is acknowledged.
    """
    told, number = Story().handshake(), 1
    events: list[tuple[float, str, int]] = []
    for pair in range(14):
        at = 50.0 + 2 * pair if pair < 10 else 68 + 10 * (pair - 9)
        events += [(at, "data", number), (at, "data", number + MSS)]
        number += 2 * MSS
        if pair < 10:
            events.append((at + 40, "ack", number))
    for at, kind, value in sorted(events, key=lambda event: event[0]):
        told = told.data(at, value) if kind == "data" else told.ack(at, value)
    return told


def value(expression: str, tmp_path: Path, **more: object) -> float | None:
    packets = story().packets
    seen = observed(flow_of("tcp"), tmp_path, sender=packets, receiver=packets, **more)
    return evaluate("m", expression, {}, asked_of(seen, {}))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("sent_bit_s(0.049, 0.069)", 20 * BIT / 0.02),
        ("sent_bit_s(0.05, 0.06)", 10 * BIT / 0.01),  # not what was sent at its begin, but at its end
        ("arrived_bit_s(0.2, 0.3)", 0),
        ("pace_bit_s(0.05, 0.068)", 2 * BIT / 0.002),
        ("pace_bit_s(0.069, 0.12)", 2 * BIT / 0.01),
        ("pace_bit_s(0.05, 0.051)", None),  # one burst has no pace
        ("sent_bit_s(0.06, 0.06)", None),
        ("outstanding_most(0.04, 0.08)", 22 * MSS),
        ("outstanding_least(0.07, 0.12)", 8 * MSS),
        ("outstanding_most(0.097, 0.099)", 16 * MSS),  # a pair and an acknowledgement of two at 98 ms
        ("outstanding_least(2, 3)", None),
        ("when_outstanding_above(9.5 * 1000, 0)", 0.058),
        ("when_outstanding_below(9.5 * 1000, 0.07)", 0.106),
        ("when_sending_above(7.5 * 8 * 1052 / 0.01, 0.01, 0)", 0.056),
        ("when_sending_below(2.5 * 8 * 1052 / 0.01, 0.01, 0.06)", 0.076),
        ("when_arriving_above(1e9, 0.01, 0)", None),
        ("rounds(0, 0.091)", 1),
    ],
)
def test_a_function_by_hand(expression: str, expected: float | None, tmp_path: Path) -> None:
    assert value(expression, tmp_path) == (None if expected is None else pytest.approx(expected, rel=1e-6))


def test_doubling_ends_with_the_last_packets_that_twice_what_was_acknowledged_explains(tmp_path: Path) -> None:
    """Two packets, and two for each acknowledgement, the last of which comes late; from 132 ms on one for each. Nothing
    counts from the first retransmission on.
    """
    told, begin = Story().handshake(), 1
    sent = [(50, 2), (90, 2), (92, 1), (130, 3), (132, 1), (170, 1), (172, 1)]
    for number, (at, packets) in enumerate(sent):
        if number:
            told = told.ack(at, 1 + number * MSS)
        for _ in range(packets):
            told, begin = told.data(at + 0.001, begin), begin + MSS
    again = told.data(200, begin - MSS).ack(240, begin)
    for part in range(8):
        again = again.data(240, begin + part * MSS)
    for story_told in (told, again):
        packets = story_told.packets
        seen = observed(flow_of("tcp"), tmp_path, sender=packets, receiver=packets)
        for expression, expected in [
            ("doubling_until()", 0.130001),
            ("outstanding_most(doubling_until(), doubling_until())", 5 * MSS),
        ]:
            assert evaluate("m", expression, {}, asked_of(seen, {})) == pytest.approx(expected), expression


def test_a_counter_is_that_of_the_senders_host_and_one_it_does_not_have_has_no_value(tmp_path: Path) -> None:
    packets = story().packets
    asked = asked_of(observed(flow_of("tcp"), tmp_path, sender=packets), {"TcpExt.TCPHystartTrainCwnd": 1062})
    assert evaluate("m", 'counter("TcpExt.TCPHystartTrainCwnd") - 1000', {}, asked) == 62
    assert evaluate("m", 'counter("TcpExt.TCPOfTomorrow")', {}, asked) is None


def test_a_round_trip_ends_when_its_first_packet_is_acknowledged(tmp_path: Path) -> None:
    """The first packet is acknowledged at 90 ms; the round from then on has no acknowledgement."""
    assert [value(f"rounds(0, {end})", tmp_path) for end in (0.089, 0.09, 0.3)] == [0, 1, 1]


def test_what_the_kernel_told_up_to_a_time(tmp_path: Path) -> None:
    told = [
        Sample(t_ns=at, sent_bytes=0, paths=(PathState("10.0.0.2", cwnd_bytes=cwnd, bbr_info=bbr),))
        for at, cwnd, bbr in [
            (0, 14_480, BbrInfo(bw_byte_s=0, min_rtt_us=0xFFFFFFFF, pacing_gain=739, cwnd_gain=739)),
            (1_000_000_000, 28_960, BbrInfo(bw_byte_s=1_250_000, min_rtt_us=40_000, pacing_gain=320, cwnd_gain=512)),
            (2_000_000_000, 5_792, None),
        ]
    ]
    samples = read_samples(list(told), {"10.0.0.2": "p1"}, 0)
    for expression, expected in [
        ('kernel("bbr_bw_bit_s", 1.5)', 1e7),
        ('kernel("bbr_bw_bit_s", 0.5)', 0),
        ('kernel("bbr_min_rtt_s", 0.5)', None),
        ('kernel("bbr_min_rtt_s", 3)', 0.04),
        ('kernel("bbr_pacing_gain", 1)', 1.25),
        ('kernel("bbr_cwnd_gain", 1)', 2),
        ('kernel("cwnd_bytes", 2)', 5_792),
        ('kernel("cwnd_bytes", -1)', None),
        ('kernel("ssthresh_bytes", 2)', None),
    ]:
        found = value(expression, tmp_path, samples=samples)
        assert found == (None if expected is None else pytest.approx(expected)), expression


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("sent_bit_s(1)", "sent_bit_s has 2 arguments: sent_bit_s(from, to)"),
        ('kernel("bw", 1)', 'kernel("cwnd_bytes", time): the first is a series'),
        ("kernel(1, 2)", "the first is a series"),
        ('counter("TCPHystartTrainCwnd")', 'counter("TcpExt.TCPTimeouts"): a counter of the kernel'),
        ("counter(1)", "a counter of the kernel, as `nstat` has it"),
        ("doubling_until(1)", "doubling_until has 0 arguments: doubling_until()"),
        ('sent_bit_s("a", 2)', "only numbers, names"),
        ("sent_bit_s(unknown, 2)", 'unknown name "unknown"'),
    ],
)
def test_a_wrong_call_is_refused(expression: str, said: str) -> None:
    assert said in (expression_problem(expression, set(), {}, lambda name, known: "") or "")


def test_without_packets_there_is_no_value(tmp_path: Path) -> None:
    seen = observed(flow_of("tcp"), tmp_path)
    assert evaluate("m", "sent_bit_s(0, 1)", {}, asked_of(seen, {})) is None
