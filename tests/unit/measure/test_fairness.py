"""Shares over windows of time: Jain's index, who runs, and when the shares are fair after a join."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from netwarp.core.types import Measure
from netwarp.measure.fairness import Course, convergence_times, courses, windows_of
from netwarp.measure.passages import joined
from netwarp.measure.window_series import cell_windows, window_numbers
from support.specs import BASE, cell_of

MS, S = 10**6, 10**9
ASKED = Measure(window_ns=S, links=(), fair_ratio=0.2, fair_hold_ns=2 * S)


def course(name: str, from_s: float, to_s: float, *rates: tuple[float, float]) -> Course:
    """A packet of so many bytes each ms. rates: (since, bytes a ms)."""
    t_ns = np.arange(round(from_s * 1000), round(to_s * 1000), dtype=np.int64) * MS
    amounts = np.zeros(len(t_ns))
    for since_s, rate in rates:
        amounts[t_ns >= since_s * S] = rate
    return Course(name, round(from_s * S), round(to_s * S), t_ns, np.cumsum(amounts))


def test_windows_hold_the_payload_that_came_in_them() -> None:
    flows = [course("a", 0, 5, (0, 100)), course("b", 1.5, 4, (1.5, 300))]
    windows = windows_of(flows, S, 5 * S)
    assert windows.from_s.tolist() == [0, 1, 2, 3, 4]
    assert windows.rate_bit_s["a"].tolist() == [800_000] * 5
    assert windows.running["b"].tolist() == [False, False, True, True, False], "it joins within the second window"
    assert windows.count() == [1, 1, 2, 2, 1]
    jain = windows.jain()
    assert jain[:2] == [None, None]
    assert jain[2] == pytest.approx((1 + 3) ** 2 / (2 * (1 + 9)), rel=1e-3)


def test_a_share_that_becomes_fair_at_an_instant_does_so_within_a_step() -> None:
    """b joins at 2 s with a tenth, and has half from 5 s on: the first window with fair shares begins at 5 s, or when
    the rest of it makes up for what is missing: 20 % of the mean, so 0.22 s earlier.
    """
    flows = [course("a", 0, 20, (0, 100), (2, 90), (5, 50)), course("b", 2, 20, (2, 10), (5, 50))]
    times = convergence_times(flows, ASKED)
    assert times["a"] is None, "it was alone"
    assert times["b"] == pytest.approx(2.8, abs=0.05)


def test_shares_that_do_not_stay_fair_are_not() -> None:
    rates = [(2 + 0.5 * number, 50 if number % 2 else 150) for number in range(30)]
    flows = [course("a", 0, 17, (0, 100), *rates), course("b", 2, 17, (2, 50))]
    assert convergence_times(flows, ASKED)["b"] is None


def test_another_join_ends_the_time_that_there_is() -> None:
    flows = [course("a", 0, 20, (0, 50)), course("b", 2, 20, (2, 50)), course("c", 3.5, 20, (3.5, 50))]
    times = convergence_times(flows, ASKED)
    assert times["b"] is None, "1.5 s are less than the 2 s that shares must stay fair"
    assert times["c"] == 0, "all three have a third at once"


def test_three_flows_are_fair_only_together() -> None:
    flows = [course("a", 0, 20, (0, 50)), course("b", 0.001, 20, (0, 50)), course("c", 5, 20, (5, 30), (9, 50))]
    assert convergence_times(flows, ASKED)["c"] == pytest.approx(3.6, abs=0.3)


def test_what_comes_as_a_window_begins_is_in_it() -> None:
    """Packets of virtual time come at such instants; 0.3 / 0.1 is less than 3."""
    edges_ns = np.arange(0, 100 * S, 100 * MS)
    for window_ns in (100 * MS, 700 * MS, 3 * MS):
        assert (window_numbers(edges_ns / 1e9, window_ns) == edges_ns // window_ns).all()


def beside(total_bytes: int | None, *, datagrams: bool) -> Any:
    """What is observed of a flow; of datagrams there is no connection."""
    data = SimpleNamespace(t_ns=np.array([5]), new_bytes=np.array([100]), ip_bytes=np.array([140]))
    arrived = SimpleNamespace(
        t_ns=np.array([5, 6, 25]), first=np.array([True, False, True]), payload_bytes=np.array([100, 100, 50]),
        ip_bytes=np.array([128, 128, 78]),
    )  # fmt: skip
    return SimpleNamespace(
        receiver=None if datagrams else SimpleNamespace(data=data),
        sender=None,
        datagrams=SimpleNamespace(arrived=arrived) if datagrams else None,
        window=SimpleNamespace(first_ns=5, end_ns=None),
        cell=SimpleNamespace(duration_ns=30),
        flow=SimpleNamespace(total_bytes=total_bytes, protocol="udp" if datagrams else "tcp"),
    )


def test_datagrams_leave_the_shares_to_the_others_and_have_windows_of_their_own() -> None:
    """A UDP flow has no size; for it every flow with one was left out, and itself had no windows."""
    flows = {"bulk": beside(100, datagrams=False), "voice": beside(None, datagrams=True)}
    runs = courses(flows)
    assert [run.name for run in runs] == ["bulk"]
    cell, asked = cell_of(BASE), msgspec.structs.replace(ASKED, window_ns=10)
    nothing = {name: joined([]) for name in flows}
    found = cell_windows(cell, asked, windows_of(runs, 10, 30), flows, nothing, {})
    values = {(each.subject, each.series): each.values for each in found.series}
    assert values["voice", "goodput_bit_s"] == [100 * 8e8, 0.0, 50 * 8e8]
    assert values["voice", "throughput_bit_s"] == [256 * 8e8, 0.0, 78 * 8e8]
    assert values["bulk", "goodput_bit_s"] == [100 * 8e8, 0.0, 0.0]
