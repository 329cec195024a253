"""The points that a search asks for: new ones, reproducible, and better than drawn ones; the box they are in."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from netwarp.core.errors import SpecError
from netwarp.engine.optimiser import BY_CHANCE, Optimiser, Point
from netwarp.engine.search import Box, box_of, search
from support.specs import BASE, plan_of

RATES = tuple(f"{number} Mbit/s" for number in range(1, 13))
KINDS = ("tcp", "sctp", "udp")
LEVELS = {"rate": RATES, "delay": tuple(f"{number} ms" for number in range(1, 13)), "kind": KINDS}
POINTS = list(itertools.product(*LEVELS.values()))


def height(point: Point) -> float:
    """One hill, away from the edges, on one level of the third factor."""
    return -abs(RATES.index(point[0]) - 8) - abs(LEVELS["delay"].index(point[1]) - 3) - 10 * KINDS.index(point[2])


def asked(seed: int, *, largest: bool = True, points: list[Point] = POINTS) -> Iterator[Point]:
    """All points in the order in which they are asked for."""
    optimiser = Optimiser(LEVELS, ["rate", "delay"], points, seed, largest=largest)
    while chosen := optimiser.ask(8):
        for point in chosen:
            optimiser.tell(point, height(point) if largest else -height(point))
        yield from chosen


def test_every_point_is_asked_for_once() -> None:
    order = list(asked(1, points=POINTS[:40]))
    assert sorted(order) == sorted(POINTS[:40]), "those that are no points of the box are never asked for"


def test_equal_seeds_ask_for_equal_points_and_others_for_others() -> None:
    first, again, other = (list(itertools.islice(asked(seed), 40)) for seed in (3, 3, 4))
    assert first == again != other


@pytest.mark.parametrize("largest", [True, False])
def test_it_finds_the_hill_sooner_than_chance(largest: bool) -> None:
    best = max(POINTS, key=height)
    needed = sorted(place(best, asked(seed, largest=largest)) for seed in range(5))
    by_chance = sorted(place(best, iter(random.Random(seed).sample(POINTS, len(POINTS)))) for seed in range(5))
    assert BY_CHANCE < needed[2] < by_chance[2] / 2


def place(point: Point, order: Iterator[Point]) -> int:
    """Where a point stands in an order, from 1."""
    return next(number for number, each in enumerate(order, 1) if each == point)


def test_a_point_without_a_value_is_no_end() -> None:
    optimiser = Optimiser(LEVELS, [], POINTS, 1, largest=True)
    for _ in range(4):
        for point in optimiser.ask(8):
            optimiser.tell(point, None)
    batch = optimiser.ask(8)
    assert len(batch) == 8
    assert optimiser.drawn >= set(batch), "there is nothing to choose from"


def test_points_are_drawn_until_ten_have_a_value() -> None:
    optimiser = Optimiser(LEVELS, ["rate", "delay"], POINTS, 1, largest=True)
    drawn = []
    for _ in range(4):
        for point in optimiser.ask(8):
            drawn.append(point in optimiser.drawn)
            optimiser.tell(point, height(point))
    assert drawn == [True] * 16 + [False] * 16, "in whole batches"


BOX = """\
[factor.rate]
levels = ["1 Mbit/s", "2 Mbit/s", "5 Mbit/s"]
[factor.word]
levels = ["b", "a"]
[factor.number]
levels = ["3", "20"]
[factor.turn]
levels = ["1 ms", "3 ms", "2 ms"]
[factor.once]
levels = ["x"]
"""


def box(*over: str) -> Box:
    return box_of(plan_of(BASE + BOX), over)


def test_a_box_is_the_factors_of_several_levels() -> None:
    found = box()
    assert list(found.levels) == ["rate", "word", "number", "turn"]
    assert found.ordered == {"rate", "number"}
    assert len(found.points) == 36
    assert {len(cells) for cells in found.points.values()} == {1}


def test_other_factors_are_cells_of_a_point() -> None:
    found = box("word", "rate")
    assert list(found.levels) == ["word", "rate"], "in the order in which they are named"
    assert {len(cells) for cells in found.points.values()} == {6}


def test_neighbours_are_a_step_of_an_ordered_factor_or_any_level_of_another() -> None:
    assert box("rate", "turn").neighbours(("1 Mbit/s", "3 ms")) == [
        ("2 Mbit/s", "3 ms"), ("1 Mbit/s", "1 ms"), ("1 Mbit/s", "2 ms"),
    ]  # fmt: skip


def test_what_cannot_be_searched_is_said(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"--over rat: no factor .*did you mean .rate"):
        box("rat")
    with pytest.raises(SpecError, match="--over once: no factor"):
        box("once")
    with pytest.raises(SpecError, match="nothing to search"):
        box_of(plan_of(BASE), ())
    spec = tmp_path / "box.toml"
    spec.write_text(BASE + BOX)
    with pytest.raises(SpecError, match="how long"):
        search(spec, "goodput_bit_s")
    with pytest.raises(SpecError, match="--flow g: no flow"):
        search(spec, "goodput_bit_s", flow="g", points=1)
    with pytest.raises(SpecError, match=r"unknown metric goodput_bit, did you mean .goodput_bit_s"):
        search(spec, "goodput_bit", points=1)
    with pytest.raises(SpecError, match="no flow or link of these cells has link_utilization_ratio"):
        search(spec, "link_utilization_ratio", points=1)
    with pytest.raises(SpecError, match="--points 0: at least 1"):
        search(spec, "goodput_bit_s", points=0)
    with pytest.raises(SpecError, match="--budget: a time above zero"):
        search(spec, "goodput_bit_s", budget_s=0.0)
