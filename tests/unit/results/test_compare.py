"""Two runs side by side: changed, noise, unclear, or not comparable."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netwarp.core.types import CellOutcome, Outcome
from netwarp.results import Results
from netwarp.results.compared_numbers import Verdict, compare
from netwarp.results.statistics import false_discoveries, student_t_95, student_t_p
from support.results_kit import ONE_LEVEL
from support.results_kit import one_factor_run as run


def statuses(a: Results, b: Results) -> list[Verdict]:
    return [one.verdict for one in compare(a, b).numbers]


def test_deterministic_numbers_change_or_not() -> None:
    found = compare(run([5.0, 7.0], random=False), run([5.0, 7.5], random=False, seed=2))
    assert [(one.levels, one.verdict) for one in found.numbers] == [
        ((("x", "1 s"),), "same"), ((("x", "2 s"),), "changed"),
    ]  # fmt: skip
    assert found.numbers[1].relative == pytest.approx(0.5 / 7)
    assert found.differs
    assert not compare(run([5.0, 7.0]), run([5.0, 7.0])).differs


def test_chance_is_not_change() -> None:
    a = run([10.0, 11.0, 9.0, 10.5, 20.0, 20.1, 19.9, 20.0])
    b = run([10.2, 10.8, 9.4, 10.1, 30.0, 30.1, 29.9, 30.0], seed=100)
    assert statuses(a, b) == ["within noise", "changed"]
    assert statuses(run([10.0, 20.0]), run([11.0, 20.0], seed=9)) == ["unclear", "same"]


def test_equal_seeds_are_compared_pair_by_pair() -> None:
    """A small step in every repetition, in values that differ much between them: seen only in pairs."""
    a = [100.0, 200.0, 300.0, 400.0]
    b = [101.0, 201.1, 300.9, 401.0]
    assert statuses(run(a, levels=ONE_LEVEL), run(b, levels=ONE_LEVEL)) == ["changed"]
    assert statuses(run(a, levels=ONE_LEVEL), run(b, levels=ONE_LEVEL, seed=50)) == ["within noise"]


def test_differences_below_the_clocks_resolution_are_no_change() -> None:
    """One read of the guest's clock (256 ns) on a short time; a count is exact, and so is a difference beyond it."""
    clock_s = 2e-6

    def status(
        a: list[float | None], b: list[float | None], metric: str, unit: str, *, random: bool = False
    ) -> Verdict:
        sides = [run(values, random=random, levels=ONE_LEVEL, metric=metric, unit=unit) for values in (a, b)]
        (number,) = compare(*sides, clock_s).numbers
        assert compare(*sides, clock_s).differs == (number.verdict == "changed")
        assert [each.verdict for each in compare(*sides).numbers] != ["unresolved"]
        return number.verdict

    assert status([0.4e-6], [0.656e-6], "hol_blocking_s", "s") == "unresolved"
    assert status([0.4e-6], [4.5e-6], "hol_blocking_s", "s") == "changed"
    assert status([1e6], [1e6 + 0.02], "goodput_bit_s", "bit/s") == "unresolved", "10 s that may be 256 ns longer"
    assert status([1e6], [1e6 + 2], "goodput_bit_s", "bit/s") == "changed"
    assert status([1e8], [1e8 + 1], "wire_bytes", "bytes") == "changed"
    assert status([1e8], [1e8 + 1], "packets", "packets") == "changed"
    drawn: list[float | None] = [1e-6, 2e-6, 3e-6]
    assert (
        status(drawn, [value + 256e-9 for value in drawn if value], "hol_blocking_s", "s", random=True) == "unresolved"
    )


def test_combinations_of_one_run_only() -> None:
    less = '[factor.x]\nlevels = ["2 s"]\n'
    found = compare(run([1.0, 2.0], random=False), run([2.0], random=False, levels=less))
    assert [one.verdict for one in found.numbers] == ["only in A", "same"]
    assert not found.differs
    assert statuses(run([2.0], random=False, levels=less), run([1.0, 2.0], random=False)) == ["same", "only in B"]
    other = run([1.0, 2.0], random=False, metric="data_packets")
    assert statuses(run([1.0, 2.0], random=False), other) == ["only in A"] * 2 + ["only in B"] * 2


def test_a_missing_number_is_a_change() -> None:
    """Asked for in both runs, and nothing to measure in one: there was a failover, and now there is none."""
    found = compare(run([1.0, 2.0], random=False), run([1.0, None], random=False))
    assert [one.verdict for one in found.numbers] == ["same", "changed"]
    assert (found.numbers[1].b, found.numbers[1].relative) == (None, None)


def test_outcomes_that_changed() -> None:
    a, b = run([1.0, 2.0], random=False), run([1.0, 2.0], random=False)
    b.outcomes[b.plan.cells[1].id] = CellOutcome(Outcome.INVALID, "frame length", 1.0, 1.0)  # type: ignore[index]
    found = compare(a, b)
    assert [(one.name, one.a, one.b) for one in found.outcomes] == [("x=2 s repetition 0", "COMPLETED", "INVALID")]
    assert found.differs


def test_the_table_has_a_column_for_each_factor() -> None:
    rows = compare(run([1.0, 2.0], random=False), run([1.0, 4.0], random=False)).rows()
    assert rows.header == ("x", "flow", "metric", "unit", "status", "a", "b", "relative", "p", "draws_a", "draws_b")
    assert rows.rows[1] == ("2 s", "f", "packets", "packets", "changed", 2.0, 4.0, 1.0, None, 1, 1)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=6))
def test_a_run_compared_with_itself_is_the_same(values: list[float]) -> None:
    assert not compare(run(values, levels=ONE_LEVEL), run(values, levels=ONE_LEVEL)).differs


@pytest.mark.parametrize("degrees", range(1, 31))
def test_p_is_the_inverse_of_the_quantile(degrees: int) -> None:
    assert student_t_p(student_t_95(degrees), degrees) == pytest.approx(0.05, abs=5e-5)
    assert student_t_p(0.0, degrees) == 1.0
    assert student_t_p(-3.0, degrees) == student_t_p(3.0, degrees)


def test_p_of_two_degrees_in_closed_form() -> None:
    assert student_t_p(2.0, 2) == pytest.approx(1 - 2 / math.sqrt(2 + 4))


def test_false_discoveries() -> None:
    """The example of Benjamini and Hochberg 1995: four of fifteen at 5 %, where Bonferroni rejects three."""
    p = [
        .0001, .0004, .0019, .0095, .0201, .0278, .0298, .0344, .0459, .3240, .4262, .5719, .6528, .7590, 1.0,
    ]  # fmt: skip
    assert false_discoveries(p, 0.05) == [True] * 4 + [False] * 11
    assert false_discoveries(p[::-1], 0.05) == [False] * 11 + [True] * 4
    assert false_discoveries([], 0.05) == []
