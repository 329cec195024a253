"""Claims about every schedule of packets: each cell that fits is judged, whatever its levels."""

from __future__ import annotations

import msgspec
import pytest
from netwarp.core.types import Cell, CellOutcome, Measurement, Outcome
from netwarp.plan import make_plan
from netwarp.plan.schedules import with_cells
from netwarp.results import Results
from netwarp.results.claims import judge, violations
from support.results_kit import completed
from support.specs import BASE, spec_of

EXPECTED = """\
[source.own]
title = "own"
[[claim]]
id = "S1"
text = "No more than that."
source = "here"
kind = "every"
metric = "packets"
a = { schedule = "*" }
expected = 5
tolerance = 5
"""
SPEC = BASE + '[factor.wait]\nlevels = ["1 s", "2 s"]\n[factor.schedule]\ndrops = { first = 3 }\n'
LEVELS = ("SYN", "SYN ACK", "DATA 1")


def run_of(values: dict[str, float | None], tmp_path: object, ended: Outcome = Outcome.COMPLETED) -> Results:
    """A run in which every cell has the value of its schedule (others 5)."""
    spec = spec_of('expected = "expected.toml"\n' + SPEC, tmp_path)  # type: ignore[arg-type]
    plan = make_plan(spec)
    more = [
        msgspec.structs.replace(cell, factors={**cell.factors, "schedule": level})
        for cell in plan.cells
        for level in LEVELS
    ]
    plan = with_cells(plan, [*plan.cells, *more])
    outcomes = completed(plan)
    outcomes[plan.cells[-1].id] = CellOutcome(ended, "why", 1.0, 1.0)

    def value(cell: Cell) -> float | None:
        return values.get(cell.factors["schedule"], 5.0)

    return Results(plan, outcomes, [Measurement(cell.id, "f", "packets", value(cell), "") for cell in plan.cells])


@pytest.fixture
def place(tmp_path):  # type: ignore[no-untyped-def]
    (tmp_path / "expected.toml").write_text(EXPECTED)
    return tmp_path


def test_all_of_them_are_judged(place: object) -> None:
    (held,) = judge(run_of({}, place))
    assert (held.verdict, held.measured, held.reason) == ("holds", 5.0, "all 8 schedules are inside")


def test_a_single_one_outside_decides(place: object) -> None:
    results = run_of({"SYN ACK": 11.0, "DATA 1": 12.0}, place)
    (judged,) = judge(results)
    assert (judged.verdict, judged.measured) == ("does not hold", 12.0)
    assert judged.reason.startswith("4 of 8 schedules are outside, farthest 1s_DATA1_r0_")
    found = violations(results.plan.claims[0], results)
    assert [(cell.factors["schedule"], value) for cell, value in found] == [
        ("SYN ACK", 11.0),
        ("DATA 1", 12.0),
        ("SYN ACK", 11.0),
        ("DATA 1", 12.0),
    ]


def test_one_that_did_not_complete_or_has_no_value_leaves_it_open(place: object) -> None:
    assert judge(run_of({}, place, Outcome.FAILED))[0].verdict == "not tested"
    assert judge(run_of({"SYN": None}, place))[0].verdict == "inconclusive"
    assert judge(run_of({"SYN": 11.0}, place, Outcome.FAILED))[0].verdict == "does not hold"
