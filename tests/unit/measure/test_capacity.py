"""The capacity of a path whose rate changes."""

from __future__ import annotations

import msgspec
from netwarp.core.types import Cell
from netwarp.measure.checks import utilization_check
from netwarp.measure.passages import rate_bit_s, shapes_over_time
from netwarp.measure.planned_paths import capacity_bit_s, rates_change
from support.specs import BASE, cell_of, replaced

S = 10**9


def slower(text: str, at: str, body: str) -> str:
    return text + f'[event.e{at[0]}]\naction = "change"\nlink = "p1"\nat = "{at}"\n{body}\n'


def capacity(cell: Cell, from_s: float, to_s: float) -> float | None:
    (flow,) = cell.flows
    return capacity_bit_s(cell, flow, flow.paths[0], round(from_s * S), round(to_s * S))


def test_without_a_change_it_is_the_bottleneck() -> None:
    for text in (BASE, slower(BASE, "2 s", 'backward = { rate = "5 Mbit/s" }'), slower(BASE, "2 s", 'loss = "1 %"')):
        assert capacity(cell_of(text), 1, 9) == 10**6
    assert not rates_change(cell_of(slower(BASE, "2 s", 'loss = "1 %"')))


def test_it_is_the_mean_over_the_window() -> None:
    cell = cell_of(slower(slower(BASE, "2 s", 'rate = "3 Mbit/s"'), "4 s", 'rate = "1 Mbit/s"'))
    assert rates_change(cell)
    for window, mean in {(0, 10): 1.4e6, (2, 4): 3e6, (3, 5): 2e6, (5, 10): 1e6, (0, 1): 1e6}.items():
        assert capacity(cell, *window) == mean
    assert capacity(cell, 3, 3) is None


def test_a_link_has_the_mean_of_its_own_rate() -> None:
    text = slower(slower(BASE, "2 s", 'forward = { rate = "3 Mbit/s" }'), "4 s", 'forward = { rate = "1 Mbit/s" }')
    shapes = shapes_over_time(cell_of(text))
    for (from_s, to_s), mean in {(0, 10): 1.4e6, (2, 4): 3e6, (3, 5): 2e6, (5, 10): 1e6, (0, 1): 1e6}.items():
        assert rate_bit_s(shapes["p1", "forward"], from_s * S, to_s * S) == mean
    assert rate_bit_s(shapes["p1", "backward"], 0, 10 * S) == 1e6
    (at_ns, shape), *_ = shapes["p1", "backward"]
    assert rate_bit_s([(at_ns, msgspec.structs.replace(shape, rate_bit_s=None))], 0, S) is None


def test_a_route_has_the_lowest_rate_of_its_links() -> None:
    text = replaced('between = ["a", "b"]', 'between = ["a", "r"]').replace(
        'paths = ["p1"]', 'paths = [{ sender = "p1", receiver = "p2" }]'
    )
    text += '[node.r]\nkind = "router"\n[link.p2]\nlike = "p1"\nbetween = ["r", "b"]\nrate = "2 Mbit/s"\n'
    cell = cell_of(slower(text, "5 s", 'rate = "4 Mbit/s"'))
    assert capacity(cell, 0, 10) == 1.5e6


def test_a_short_last_packet_may_come_sooner_only_where_a_second_link_sends_it_faster() -> None:
    """Of 1 Mbit/s: nine full packets and one of 100 B; the first took 6 ms on the second link of 2 Mbit/s,
    the short one 0.4 ms.
    """
    behind_s = 8 * (8 * 1500 + 100) / 1e6
    seen_s = behind_s - 8 * 1400 / 2e6
    rate = behind_s / seen_s
    metrics = {"utilization_ratio": rate, "throughput_bit_s": rate * 1e6, "wire_bytes": 9 * 1500 + 100}
    alone = cell_of(BASE)
    (check,) = utilization_check(alone, alone.flows[0], metrics)
    assert (check.ok, check.detail) == (False, "1.061404, at most 1.0005")
    text = replaced('between = ["a", "b"]', 'between = ["a", "r"]').replace(
        'paths = ["p1"]', 'paths = [{ sender = "p1", receiver = "p2" }]'
    )
    text += '[node.r]\nkind = "router"\n[link.p2]\nlike = "p1"\nbetween = ["r", "b"]\nrate = "2 Mbit/s"\n'
    two = cell_of(text)
    (check,) = utilization_check(two, two.flows[0], metrics)
    assert check.ok
    (check,) = utilization_check(two, two.flows[0], metrics | {"utilization_ratio": rate + 0.01})
    assert not check.ok
