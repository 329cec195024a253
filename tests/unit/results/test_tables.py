"""Tables: the contents of each file; failed cells are listed."""

from __future__ import annotations

import csv
import io
import itertools
import math
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from netwarp.core.errors import StoreError
from netwarp.core.outputs import Statistic
from netwarp.core.types import CellOutcome, Measurement, Outcome
from netwarp.plan import make_plan
from netwarp.plan.types import Plan
from netwarp.results import Results, write_tables
from netwarp.results.rows import CLAIM_COLUMNS, cell_rows, draw_rows, measurement_rows, number_rows
from netwarp.results.statistics import Estimate, estimate, student_t_95
from netwarp.results.write import csv_text
from support.results_kit import LOSS, text_rows
from support.specs import BASE, spec_of

FACTORS = '[factor.x]\nlevels = ["2 s", "1 s"]\n[factor.y]\nlevels = ["a", "b"]\nonly = { x = "1 s" }\n'
TABLE = '[table.t]\nmetric = "packets"\nrows = ["y"]\ncolumns = ["x"]\n'
TABLE += '[figure.g]\nmetric = "packets"\nx = "x"\nlines = ["y"]\n'
EXPECTED = """\
[source.paper]
title = "A paper"
[source.other]
"""
PUBLISHED = """\
source,metric,x,y,value
paper,packets,1 s,a | b,7
paper,packets,2 s,a | b,8
paper,data_packets,2 s,,9
"""


def plan(tmp_path: Path, repetitions: int = 1, more: str = "") -> Plan:
    (tmp_path / "claims.toml").write_text(EXPECTED)
    (tmp_path / "published.csv").write_text(PUBLISHED)
    text = 'expected = "claims.toml"\npublished = "published.csv"\n' + BASE + more + FACTORS + TABLE
    return make_plan(spec_of(text, tmp_path), repetitions=repetitions)


def test_a_distribution_has_a_row_a_cell(tmp_path: Path) -> None:
    more = '[figure.d]\nkind = "cdf"\nmetric = "packets"\nlines = ["x"]\nover = ["y"]\n'
    text = BASE + FACTORS + more
    p = make_plan(spec_of(text, tmp_path), repetitions=2)
    values: list[float | None] = [float(number) for number in range(len(p.cells))]
    values[1] = None
    found = draw_rows(results(p, values), p.figures[0])
    assert found.header == ("x", "y", "repetition", "seed", "value", "unit", "note", "cell_id")
    by_cell = {row[-1]: row for row in found.rows}
    assert {cell.id: by_cell[cell.id][4] for cell in p.cells} == dict(
        zip((cell.id for cell in p.cells), values, strict=True)
    )
    assert [row[6] for row in found.rows if row[4] is None] == [f"{p.cells[1].id} has no packets"]
    assert {row[:2] for row in found.rows} == {("2 s", "-"), ("1 s", "a"), ("1 s", "b")}


def done(outcome: Outcome = Outcome.COMPLETED, reason: str = "") -> CellOutcome:
    return CellOutcome(outcome, reason, 10.0, 1.5)


def measured(plan: Plan, values: list[float | None]) -> list[Measurement]:
    return [
        Measurement(cell.id, "f", "packets", value, "packets") for cell, value in zip(plan.cells, values, strict=True)
    ]


def results(plan: Plan, values: list[float | None], **outcomes: CellOutcome) -> Results:
    there = {cell.id: outcomes.get(f"c{number}", done()) for number, cell in enumerate(plan.cells)}
    return Results(plan, there, measured(plan, values))


def test_cells_csv(tmp_path: Path) -> None:
    p = plan(tmp_path)
    failed = results(p, [1.0, 2.0, 3.0], c1=done(Outcome.FAILED, "disk full, sadly"))
    del failed.outcomes[p.cells[2].id]  # type: ignore[attr-defined]
    rows = text_rows(cell_rows(failed))
    assert list(rows[0]) == [
        "cell_id", "experiment", "repetition", "seed", "outcome", "reason", "virtual_s", "x", "y",
    ]  # fmt: skip
    assert [row["outcome"] for row in rows] == ["COMPLETED", "FAILED", "NOT_RUN"]
    assert [(row["x"], row["y"]) for row in rows] == [("2 s", "-"), ("1 s", "a"), ("1 s", "b")]
    assert (rows[1]["reason"], rows[0]["virtual_s"], rows[2]["virtual_s"]) == ("disk full, sadly", "10.0", "")


def test_measurements_csv_holds_only_what_completed_in_plan_order(tmp_path: Path) -> None:
    p = plan(tmp_path)
    given_values = measured(p, [1.5, 2.0, None])
    outcomes = {cell.id: done() for cell in p.cells} | {p.cells[1].id: done(Outcome.INVALID)}
    stray = Measurement("elsewhere", "f", "packets", 1.0, "packets")
    rows = list(csv.reader(io.StringIO(csv_text(measurement_rows(Results(p, outcomes, [*given_values[::-1], stray]))))))
    assert rows == [
        ["cell_id", "flow", "metric", "value", "unit"],
        [p.cells[0].id, "f", "packets", "1.5", "packets"],
        [p.cells[2].id, "f", "packets", "", "packets"],
    ]


def test_table_rows_and_published_numbers(tmp_path: Path) -> None:
    p = plan(tmp_path)
    rows = text_rows(number_rows(results(p, [1.0, 2.0, 3.0]), p.tables[0]))
    # y "-" first, then in the order of the levels; x in the order of its levels
    assert [(row["y"], row["x"], row["value"]) for row in rows] == [
        ("-", "2 s", "1.0"), ("a", "1 s", "2.0"), ("b", "1 s", "3.0"),
    ]  # fmt: skip
    assert [row["paper"] for row in rows] == ["", "7.0", "7.0"], "8 is for y = a or b, which x = 2 s has not"
    assert [row["other"] for row in rows] == ["", "", ""]
    assert {(row["unit"], row["spread"], row["repetitions"]) for row in rows} == {("packets", "deterministic", "1")}
    figure = number_rows(results(p, [1.0, 2.0, 3.0]), p.figures[0])
    assert figure.header[:3] == ("y", "x", "value")


def test_failed_and_empty_places_are_not_silent(tmp_path: Path) -> None:
    p = plan(tmp_path)
    rows = text_rows(number_rows(results(p, [1.0, 2.0, None], c1=done(Outcome.TIMED_OUT)), p.tables[0]))
    assert [row["value"] for row in rows] == ["1.0", "", ""]
    assert rows[1]["note"] == f"{p.cells[1].id} TIMED_OUT"
    assert rows[2]["note"] == f"{p.cells[2].id} has no packets"
    assert [row["repetitions"] for row in rows] == ["1", "0", "0"]


def test_repetitions(tmp_path: Path) -> None:
    alike = plan(tmp_path, repetitions=3)
    rows = number_rows(
        results(alike, [5.0] * 3 + [1.0, 2.0, 3.0] + [1.0, 2.0, 9.0], c8=done(Outcome.FAILED)), alike.tables[0]
    )
    by = [dict(zip(rows.header, row, strict=True)) for row in rows.rows]
    assert (by[0]["spread"], by[0]["repetitions"], by[0]["ci95_low"]) == ("deterministic", 3, None)
    # nothing was planned to be random, yet repetitions differ: said so, never "deterministic"
    assert (by[1]["spread"], by[1]["value"]) == ("ci95", 2.0)
    assert by[1]["ci95_high"] == pytest.approx(2.0 + 4.303 / math.sqrt(3))
    assert (by[2]["spread"], by[2]["repetitions"]) == ("ci95", 2)
    assert "FAILED" in str(by[2]["note"])


def test_draws_without_a_value_are_counted_and_exceed_all_others(tmp_path: Path) -> None:
    """What never happened in its window: a mean of the others says less than it seems, and no maximum is known."""
    p = plan(tmp_path, repetitions=4, more=LOSS)
    measured = results(p, [5.0, 7.0, None, None] + [1.0, 2.0, 3.0, 9.0] + [None] * 4)

    def found(statistic: Statistic) -> list[tuple[object, ...]]:
        rows = number_rows(measured, msgspec.structs.replace(p.tables[0], statistic=statistic))
        names = ("value", "spread", "repetitions", "without_value")
        return [tuple(row[rows.header.index(name)] for name in names) for row in rows.rows]

    assert found("mean") == [(6.0, "ci95", 2, 2), (3.75, "ci95", 4, 0), (None, "", 0, 4)]
    assert found("max") == [(None, "max of 4 draws", 2, 2), (9.0, "max of 4 draws", 4, 0), (None, "", 0, 4)]
    assert [row[0] for row in found("median")] == [7.0, 2.0, None]
    assert [row[0] for row in found("min")] == [5.0, 1.0, None]


def test_one_draw_of_something_random_is_no_estimate(tmp_path: Path) -> None:
    p = plan(tmp_path, more=LOSS)
    assert all(cell.random for cell in p.cells)
    rows = number_rows(results(p, [1.0, 2.0, 3.0]), p.tables[0])
    assert {row[rows.header.index("spread")] for row in rows.rows} == {"single"}
    assert {row[rows.header.index("ci95_low")] for row in rows.rows} == {None}


def test_equal_draws_of_something_random_have_no_interval(tmp_path: Path) -> None:
    p = plan(tmp_path, repetitions=3, more=LOSS)
    rows = number_rows(results(p, [5.0] * 3 + [1.0, 2.0, 3.0] + [4.0] * 3), p.tables[0])
    by = [dict(zip(rows.header, row, strict=True)) for row in rows.rows]
    assert [row["spread"] for row in by] == ["equal in 3 draws", "ci95", "equal in 3 draws"]
    assert [row["ci95_low"] is None and row["ci95_high"] is None for row in by] == [True, False, True]


def test_equal_runs_have_equal_tables_and_files_are_whole(tmp_path: Path) -> None:
    p = plan(tmp_path)
    outcomes = {cell.id: done() for cell in p.cells}
    values = measured(p, [0.1 + 0.2, 1e-9, 123456789.125])
    for folder in ("one", "two"):
        write_tables(Results(p, outcomes, values), tmp_path / folder)
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == ["cells.csv", "claim_details.csv", "claims.csv", "g.csv", "measurements.csv", "t.csv"]
    for name in names:
        text = (tmp_path / "one" / name).read_bytes()
        assert text == (tmp_path / "two" / name).read_bytes()
        assert b"\r" not in text
        assert text.endswith(b"\n")
    assert b"0.30000000000000004" in (tmp_path / "one" / "measurements.csv").read_bytes()
    sources = ("paper", "paper_verdict", "other", "other_verdict", "source", "first_verdict")
    assert (tmp_path / "one" / "claims.csv").read_text() == ",".join([*CLAIM_COLUMNS, *sources]) + "\n"


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    p = plan(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        write_tables(Results(p, {}, []), tmp_path / "file" / "tables")


# -- statistics


@pytest.mark.parametrize(
    ("degrees", "wanted"),
    [(1, 12.706), (2, 4.303), (4, 2.776), (30, 2.042), (40, 2.0211), (60, 2.0003), (120, 1.9799), (10**6, 1.95996)],
)
def test_student_t(degrees: int, wanted: float) -> None:
    assert student_t_95(degrees) == pytest.approx(wanted, abs=6e-4 if degrees <= 30 else 1e-4)


def test_student_t_falls_and_needs_a_degree() -> None:
    values = [student_t_95(degrees) for degrees in range(1, 200)]
    assert all(one > other for one, other in itertools.pairwise(values))
    with pytest.raises(ValueError, match="at least one"):
        student_t_95(0)


def test_interval_by_hand() -> None:
    found = estimate([1.0, 2.0, 3.0, 4.0], random=True)  # s = 1.2910, t(3) = 3.182
    assert (found.mean, found.n, found.spread) == (2.5, 4, "ci95")
    assert found.low == pytest.approx(2.5 - 3.182 * 1.2909944 / 2, abs=1e-5)
    assert estimate([3.0], random=True) == Estimate(3.0, 1, "single")
    assert estimate([3.0, 3.0], random=False) == Estimate(3.0, 2, "deterministic")
    assert estimate([3.0, 3.0], random=True) == Estimate(3.0, 2, "equal"), "alike by chance is no interval of width 0"


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40), st.booleans())
def test_an_interval_holds_its_mean(values: list[float], random: bool) -> None:
    found = estimate(values, random=random)
    if found.spread == "ci95":
        assert found.low is not None
        assert found.high is not None
        assert found.low <= found.mean <= found.high
    else:
        assert len(set(values)) == 1
