"""The arithmetic behind the calibration of queue management, on packets whose times are made up."""

import math

import numpy as np
import pytest
from netwarp.measure.calibration.aqm import _control_law_s, _given_out_ns, _sojourn_s, _waiting_bytes
from netwarp.measure.calibration.datagrams import Way

MS = 10**6
LOST = -1


def way(sent_ms: list[float], left_ms: list[float | None]) -> Way:
    """Packets of 1000 bytes. left_ms: when each arrived behind the queue; None: never."""
    arrived = sorted(time for time in left_ms if time is not None)
    place = [LOST if time is None else arrived.index(time) for time in left_ms]
    return Way(
        sent_ns=np.array([int(time * MS) for time in sent_ms]),
        ip_bytes=np.full(len(sent_ms), 1000),
        arrived_ns=np.array([int(time * MS) for time in arrived]),
        arrival=np.array(place),
        again=0,
        strangers=0,
    )


FOUR = way([0, 1, 2, 3], [1.5, 3.1, None, 4.7])


def test_waiting_counts_the_packet_that_is_being_sent_and_none_that_was_dropped() -> None:
    assert _waiting_bytes(FOUR).tolist() == [0, 1000, 1000, 1000]
    assert _waiting_bytes(way([0, 0, 0], [1, 2, 3])).tolist() == [0, 1000, 2000]


def test_a_packet_is_given_out_as_the_one_before_it_has_left() -> None:
    assert _given_out_ns(FOUR).tolist() == [0, 1.5 * MS, 3.1 * MS]


def test_what_is_dropped_at_the_head_came_out_with_the_next() -> None:
    out_s, sojourn_s = _sojourn_s(FOUR)
    assert out_s == pytest.approx([0, 0.0015, 0.0031, 0.0031])
    assert sojourn_s == pytest.approx([0, 0.0005, 0.0011, 0.0001])


def test_the_control_law_is_the_root_after_newtons_first_steps() -> None:
    """The kernel's root begins at 1 and is 0.5 at n = 2 (one step of Newton's), within 1 % from n = 5 on."""
    steps = np.diff(np.concatenate([[0], _control_law_s(0.1, 200)]))
    assert steps[0] == pytest.approx(0.1, rel=1e-3)
    assert steps[1] == pytest.approx(0.05, rel=1e-3)
    for n in range(5, 201):
        assert steps[n - 1] == pytest.approx(0.1 / math.sqrt(n), rel=0.015), n
