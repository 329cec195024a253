"""Plans of any factors: sizes, order, stable ids, JSON."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st
from netwarp.core.frozen import from_json, to_json
from netwarp.core.types import Cell
from netwarp.plan import make_plan
from netwarp.plan.types import Plan
from support.specs import BASE, spec_of

counts = st.lists(st.integers(1, 4), min_size=0, max_size=4)


def text_of(levels: list[int], order: list[int] | None = None) -> str:
    """A spec with one factor for each count."""
    factors: list[str] = []
    for number, count in enumerate(levels):
        names = ", ".join(f'"{n} s"' for n in range(1, count + 1))
        factors.append(f"[factor.f{number}]\nlevels = [{names}]\n")
    return BASE + "".join(factors[number] for number in (order or range(len(factors))))


@settings(max_examples=40)
@given(counts, st.integers(1, 3), st.integers(0, 2**40))
def test_a_full_product(levels: list[int], repetitions: int, seed: int) -> None:
    plan = make_plan(spec_of(text_of(levels)), repetitions=repetitions, seed=seed)
    assert len(plan.cells) == math.prod(levels) * repetitions
    assert len({cell.id for cell in plan.cells}) == len(plan.cells)
    assert {cell.seed for cell in plan.cells} == set(range(seed, seed + repetitions))
    assert len({tuple(cell.factors.items()) for cell in plan.cells}) == math.prod(levels)
    assert [cell.repetition for cell in plan.cells[:repetitions]] == list(range(repetitions))
    assert from_json(to_json(plan), Plan) == plan
    assert all(from_json(to_json(cell), Cell).id == cell.id for cell in plan.cells)


@settings(max_examples=30)
@given(counts.filter(bool), st.randoms(use_true_random=False))
def test_any_order_of_factors_gives_the_same_cells(levels: list[int], random: object) -> None:
    order = list(range(len(levels)))
    random.shuffle(order)  # type: ignore[attr-defined]
    one, other = (
        {frozenset(cell.factors.items()): cell for cell in make_plan(spec_of(text)).cells}
        for text in (text_of(levels), text_of(levels, order))
    )
    assert one == other


@settings(max_examples=30)
@given(counts.filter(bool), st.data())
def test_a_filter_takes_nothing_from_the_cells_it_leaves(levels: list[int], data: st.DataObject) -> None:
    spec = spec_of(text_of(levels))
    factor = data.draw(st.integers(0, len(levels) - 1))
    level = data.draw(st.integers(1, levels[factor]))
    everything = make_plan(spec)
    some = make_plan(spec, where=[(f"f{factor}", f"{1000 * level} ms")])
    assert some.cells == tuple(cell for cell in everything.cells if cell.factors[f"f{factor}"] == f"{level} s")


@settings(max_examples=30)
@given(st.integers(2, 4), st.integers(1, 4))
def test_zip_goes_level_by_level(length: int, others: int) -> None:
    text = text_of([length, length, others]) + '[experiment.e]\nfactors = ["f0", "f1", "f2"]\nzip = [["f0", "f1"]]\n'
    cells = make_plan(spec_of(text)).cells
    assert len(cells) == length * others
    assert all(cell.factors["f0"] == cell.factors["f1"] for cell in cells)


@settings(max_examples=30)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 4))
def test_a_factor_applies_only_where_it_says(first: int, second: int, applies: int) -> None:
    text = text_of([first, second])
    where = ", ".join(f'"{n} s"' for n in range(1, min(applies, first) + 1))
    if not where:
        return
    text += f"only = {{ f0 = [{where}] }}\n"
    cells = make_plan(spec_of(text)).cells
    applied = min(applies, first)
    assert len(cells) == applied * second + (first - applied)
    assert sum(cell.factors["f1"] == "-" for cell in cells) == first - applied


@settings(max_examples=25)
@given(st.integers(1, 10**9), st.integers(1000, 10**12), st.integers(576, 9000), st.integers(1, 400))
def test_a_queue_of_one_bdp_holds_it(delay_ns: int, rate: int, mtu: int, percent: int) -> None:
    text = BASE.replace('"20 ms"', f'"{delay_ns} ns"').replace('"1 Mbit/s"', f'"{rate} bit/s"')
    text = text.replace('"50 packets"', f'"{percent / 100} bdp"\nmtu = "{mtu} B"')
    queue = make_plan(spec_of(text)).cells[0].links[0].forward.queue_packets
    wanted = percent / 100 * rate * 2 * delay_ns / 8e9
    assert queue is not None
    assert queue == 1 or wanted - 2 <= queue * mtu <= wanted + mtu + 2 + wanted * 1e-9
