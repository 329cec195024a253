"""Models and oracles of known physics, each against a slow and plain way of saying the same."""

from __future__ import annotations

import math
import random
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from netwarp.measure.groups.physics import (
    Passage,
    allowed_waits,
    backoff_of,
    departures,
    passage_of,
    steady_of,
    waiting,
)
from netwarp.measure.models.throughput_models import (
    RANDOM_OVER_PERIODIC,
    mathis_packets_s,
    pftk_packets_s,
    sawtooth_packets_s,
    timeout_share,
)
from netwarp.measure.sent_data import Sending
from support.captures import ISN, T, association, chunk, data_chunk, sctp
from support.observed import observed
from support.specs import BASE, plan_of

NO_WINDOW = 1e9


def test_the_constant_of_independent_losses_is_that_of_a_simulated_window() -> None:
    draw = random.Random(1)
    window = packets = rounds = 0.0
    for _ in range(200_000):
        gap = draw.expovariate(0.01)
        before, window = window / 2, (window**2 / 4 + 2 * gap) ** 0.5
        packets, rounds = packets + gap, rounds + window - before
    assert packets / rounds / 10 == pytest.approx(RANDOM_OVER_PERIODIC * 1.5**0.5, rel=0.005)
    assert pytest.approx(1.31, abs=0.001) == RANDOM_OVER_PERIODIC * 1.5**0.5  # as printed by Mathis et al.


def test_the_sawtooth_counts_its_packets_and_rounds() -> None:
    window, sent, rounds = 40, 0, 0
    for size in range(window // 2, window):
        sent, rounds = sent + size, rounds + 1
    rate = (sent + window // 2) / (rounds + 1)
    assert sawtooth_packets_s(1 / (sent + window // 2), 1.0) == pytest.approx(rate, rel=0.01)
    assert sawtooth_packets_s(0.01, 0.1) < mathis_packets_s(0.01, 0.1) == pytest.approx(122.47, rel=1e-3)
    assert mathis_packets_s(0.01, 0.1, 2) == pytest.approx(mathis_packets_s(0.01, 0.1) / 2**0.5)


def test_pftk_has_the_limits_it_must_have() -> None:
    for b in (1, 2):  # few losses: the square root law
        assert pftk_packets_s(1e-6, 0.1, 0.3, NO_WINDOW, b) == pytest.approx(mathis_packets_s(1e-6, 0.1, b), rel=0.01)
    assert pftk_packets_s(1e-6, 0.1, 0.3, 10) == pytest.approx(100, rel=0.01)  # a window a round trip
    assert pftk_packets_s(0.3, 0.1, 1.0, NO_WINDOW) < 0.5 * pftk_packets_s(0.3, 0.1, 0.2, NO_WINDOW)  # timeouts reign
    assert timeout_share(0.01, 3) == 1 and timeout_share(1e-6, 100) == pytest.approx(3 / 100, rel=0.01)
    # b = 2: E[W] is 2/3 (1 + sqrt(3 (1 - p) / p + 1)), as users of eq. 31 write it
    assert pftk_packets_s(0.02, 0.1, 0.0, NO_WINDOW, 2) == pytest.approx(
        (49 + (w := 2 / 3 * (1 + (3 * 49 + 1) ** 0.5)) + timeout_share(0.02, w) / 0.98) / (0.1 * (w + 1))
    )


@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 3000)), min_size=1, max_size=60), st.integers(1, 6))
def test_lindley_is_a_queue_served_one_after_the_other(packets: list[tuple[int, int]], room: int) -> None:
    came = np.cumsum([gap for gap, _ in packets]) * 10_000
    size = np.array([size for _, size in packets]) * 10_000
    let_in, left, free = [], [], 0
    for at, long in zip(came.tolist(), size.tolist(), strict=True):
        inside = sum(end > at for end in left)
        let_in.append(inside <= room)  # one is being sent, `room` wait
        if let_in[-1]:
            free = max(free, at) + long
            left.append(free)
    passage = Passage(came, np.array(let_in), np.array(left), size)
    must = departures(came[passage.let_in], size[passage.let_in])
    assert must.tolist() == left
    least, most = waiting(passage, must)
    assert (least <= most).all()
    assert not np.where(passage.let_in, least >= room, most < room).any()
    if not passage.let_in.all():  # told of one place less or more, it finds what is wrong
        assert np.where(passage.let_in, least >= room - 1, most < room - 1).any()
        if (~passage.let_in & (least == most)).any():
            assert np.where(passage.let_in, least >= room + 1, most < room + 1).any()


def sending(sent: list[tuple[int, int, bool]], acked: list[tuple[int, int]]) -> Sending:
    """(time, unit, again) of packets of one unit; (time, next unit wanted). What is acknowledged comes first."""
    places = sorted([(at, 0, i) for i, (at, _) in enumerate(acked)] + [(at, 1, i) for i, (at, _, _) in enumerate(sent)])
    order = {(kind, i): place for place, (_, kind, i) in enumerate(places)}
    units = np.array([unit for _, unit, _ in sent])
    return Sending(
        packet=np.array([order[1, i] for i in range(len(sent))]),
        sent_ns=np.array([at for at, _, _ in sent]),
        begin=units,
        end=units + 1,
        payload_bytes=np.full(len(sent), 1000),
        again=np.array([again for _, _, again in sent]),
        ack_packet=np.array([order[0, i] for i in range(len(acked))]),
        ack_ns=np.array([at for at, _ in acked]),
        acked=np.array([unit for _, unit in acked]),
    )


def test_losses_of_one_window_are_one_event_and_the_next_begins_with_its_acknowledgement() -> None:
    first = [(0, unit, False) for unit in range(6)]
    again = [(10, 1, True), (11, 3, True)]  # both lost in one window
    later = [(20, unit, False) for unit in range(6, 9)]
    found = sending([*first, *again, *later, (30, 6, True)], [(9, 1), (19, 3), (20, 6), (30, 6)])
    assert found.sent_ns[found.loss_events()].tolist() == [10, 30]
    assert sending(first, [(9, 6)]).loss_events().tolist() == []


def test_data_acknowledged_before_its_retransmission_is_a_separate_event() -> None:
    """A needless retransmission, its acknowledgement already there: the count goes on behind it (it once did not)."""
    first = [(0, unit, False) for unit in range(3)]
    again = [(20, 0, True), (21, 1, True), (40, 2, True)]
    found = sending([*first, *again], [(10, 3), (30, 3)])
    assert found.sent_ns[found.loss_events()].tolist() == [20, 21, 40]


def test_the_steady_part_is_whole_cycles() -> None:
    sent = [(100 * k, k, False) for k in range(100)]
    events = np.arange(5, 100, 10)
    found = steady_of(sending(sent, [(9, 1)]), events)
    assert found is not None and found.event_ratio == pytest.approx(0.1)
    assert found.sent_bit_s == pytest.approx(8000 / 100e-9)
    assert steady_of(sending(sent, [(9, 1)]), events[:8]) is None


def test_timeouts_double_and_what_does_not_is_found() -> None:
    times = np.cumsum([1.0, 0.3, 0.62, 1.2, 2.4, 4.864])
    good = [(int(at * 1e9), 0, place > 0) for place, at in enumerate(times)]
    found = backoff_of(sending(good, [(0, 0)]), 1, None, 120.0)
    assert found is not None and (len(found[0]), found[1]) == (4, 0)
    wrong = [*good[:4], (int((times[3] + 1.3) * 1e9), 0, True), (int((times[3] + 3.9) * 1e9), 0, True)]
    found = backoff_of(sending(wrong, [(0, 0)]), 1, None, 120.0)
    assert found is not None and found[1] == 2
    assert allowed_waits(40.0, 3, 60.0)[2].low == 60.0


def grown(p: float, events: int, *, whole: bool) -> tuple[float, float]:
    """Packets a round trip, and loss events over packets, of a window that is halved and grows by one packet a round.

    Each packet is lost with p. What is lost in the window after the first loss is the same event; then one round trip
    of recovery at half. whole: a window is whole packets, as Linux's TCP counts it, and half of 15 is 7.
    """
    draw = random.Random(1)
    window, acked, sent, rounds = 20.0, 0, 0, 0.0
    for _ in range(events):
        left = math.ceil(math.log(1 - draw.random()) / math.log(1 - p))
        after = -1
        while left > 0 or after > 0:  # up to the loss, and a window more until it is found
            sent, rounds, acked, left, after = sent + 1, rounds + 1 / window, acked + 1, left - 1, after - 1
            if not whole:
                window += 1 / window
            elif acked >= window:
                window, acked = window + 1, 0
            if left == 0:
                after = int(window)
        window = max(2.0, window // 2 if whole else window / 2)
        sent, rounds, acked = sent + int(window), rounds + 1, 0
    return sent / rounds, events / sent


def test_halving_whole_packets_is_why_tcp_is_below_the_models_at_small_windows() -> None:
    ratios = {}
    for p in (0.003, 0.03):
        for whole in (False, True):
            rate, event_ratio = grown(p, 6000, whole=whole)
            ratios[p, whole] = rate / sawtooth_packets_s(event_ratio, 1.0)
    assert 1 < ratios[0.003, True] < ratios[0.003, False] < RANDOM_OVER_PERIODIC
    assert ratios[0.03, True] < 0.98 < 1.01 < ratios[0.03, False]


ABORT = sctp(22, chunk(6, b"\0\x0c\0\4"))
ANSWER = sctp(22, chunk(6, flags=1))
"""To a packet of an association that is gone (RFC 9260 8.4): each one the same."""


def test_aborts_that_answer_late_packets_are_no_drops(tmp_path: Path) -> None:
    """Six of them leave the sender one by one, and come together behind the data: nobody can tell which is which."""
    data = [sctp(22, data_chunk(ISN + number, ssn=number)) for number in range(8)]
    start = association()
    there = [(T + number * 10**6, packet) for number, packet in enumerate([*start, *data, ABORT, *[ANSWER] * 6])]
    kept = [*start, *data[:3], *data[4:], ABORT, *[ANSWER] * 5]  # one packet of data was dropped
    come = [(T + 500 * 10**6 + min(number, len(kept) - 5) * 10**6, packet) for number, packet in enumerate(kept)]
    (cell,) = plan_of(BASE).cells
    flow = msgspec.structs.replace(cell.flows[0], protocol="sctp", port=80)
    ends = observed(flow, tmp_path, sender=there, receiver=come)
    assert ends.sender is not None and ends.receiver is not None
    through = passage_of(cell, flow, ends.sender, ends.receiver)
    assert through is not None
    passage, _ = through
    assert int((~passage.let_in).sum()) == 1
    assert len(passage.let_in) == 2 + 8 + 1  # INIT, COOKIE ECHO, data, ABORT
