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


def run_of(
    values: dict[str, float | None],
    tmp_path: object,
    ended: Outcome = Outcome.COMPLETED,
    *,
    where: tuple[tuple[str, str], ...] = (),
    levels: tuple[str, ...] = LEVELS,
) -> Results:
    """A run in which every cell has the value of its schedule (others 5). levels: the schedules beside `none`."""
    spec = spec_of('expected = "claims.toml"\n' + SPEC, tmp_path)  # type: ignore[arg-type]
    plan = make_plan(spec, where=where)
    more = [
        msgspec.structs.replace(cell, factors={**cell.factors, "schedule": level})
        for cell in plan.cells
        for level in levels
    ]
    plan = with_cells(plan, [*plan.cells, *more])
    outcomes = completed(plan)
    outcomes[plan.cells[-1].id] = CellOutcome(ended, "why", 1.0, 1.0)

    def value(cell: Cell) -> float | None:
        return values.get(cell.factors["schedule"], 5.0)

    return Results(plan, outcomes, [Measurement(cell.id, "f", "packets", value(cell), "") for cell in plan.cells])


@pytest.fixture
def place(tmp_path):  # type: ignore[no-untyped-def]
    (tmp_path / "claims.toml").write_text(EXPECTED)
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


def test_a_run_of_a_part_does_not_test_it(place: object) -> None:
    (judged,) = judge(run_of({}, place, where=(("wait", "1 s"),)))
    assert judged.verdict == "not tested"
    assert judged.reason == "1 of 2 combinations of levels is not in this run (--where, --only)"
    assert judge(run_of({"SYN": 11.0}, place, where=(("wait", "1 s"),)))[0].verdict == "does not hold"


def test_where_no_packet_is_touched_nothing_is_tested(place: object) -> None:
    (judged,) = judge(run_of({}, place, levels=()))
    assert judged.verdict == "not tested"
    assert judged.reason == "no cell of it touches a packet: of schedule only none is in this run"


def test_a_selector_without_cells_is_not_left_out(place: object) -> None:
    (place / "claims.toml").write_text(  # type: ignore[operator]
        EXPECTED.replace('{ schedule = "*" }', '[{ schedule = "*", wait = "1 s" }, { schedule = "*", wait = "2 s" }]')
    )
    assert judge(run_of({}, place))[0].reason == "all 8 schedules are inside"
    (judged,) = judge(run_of({}, place, where=(("wait", "1 s"),)))
    assert (judged.verdict, judged.reason) == ("not tested", "a cell of it is not in this run (--where, --only)")
