"""The capacity of a path whose rate changes."""

from __future__ import annotations

from netwarp.core.types import Cell
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


def test_a_route_has_the_lowest_rate_of_its_links() -> None:
    text = replaced('between = ["a", "b"]', 'between = ["a", "r"]').replace(
        'paths = ["p1"]', 'paths = [{ sender = "p1", receiver = "p2" }]'
    )
    text += '[node.r]\nkind = "router"\n[link.p2]\nlike = "p1"\nbetween = ["r", "b"]\nrate = "2 Mbit/s"\n'
    cell = cell_of(slower(text, "5 s", 'rate = "4 Mbit/s"'))
    assert capacity(cell, 0, 10) == 1.5e6
