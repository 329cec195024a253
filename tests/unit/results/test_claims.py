"""Claims: each kind on either side of its bound, and honest verdicts where nothing can be said."""

from __future__ import annotations

import csv
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.structs import replace
from netwarp.core.errors import SpecError
from netwarp.core.numbers import MINUS
from netwarp.core.types import CellOutcome, Measurement, Outcome
from netwarp.experiment import load_spec
from netwarp.plan import make_plan
from netwarp.plan.types import Selection
from netwarp.present.claim_blocks import statements
from netwarp.results import Judged, Results, judge, write_tables
from netwarp.results.contrasts import contrasts
from netwarp.results.rows import CLAIM_COLUMNS
from netwarp.results.run_results import RepeatedValue
from netwarp.results.single_draw_bounds import Spread, bounds, kind_of
from support.claims import OVER, claim, judged, plan_of, rows
from support.results_kit import LOSS, completed, one_factor_run


@pytest.mark.parametrize(
    ("kind", "body", "a", "b", "measured", "expected", "holds"),
    [
        ("greater", OVER, (3, 3, 3), (1, 2, 2.9), 3 / 2.9 - 1, "> 0", True),
        ("greater", OVER, (3, 3, 3), (1, 2, 3), 0.0, "> 0", False),
        ("greater", OVER + "tolerance = 0.5", (3, 3, 3), (1, 1, 2), 0.5, "> 0.5", False),
        ("less", OVER, (1, 1, 1), (2, 2, 1.1), 1 / 1.1 - 1, "< 0", True),
        ("less", OVER, (1, 1, 1), (2, 2, 0.9), 1 / 0.9 - 1, "< 0", False),
        ("equal", OVER + "tolerance = 0.1", (1, 1, 1), (1, 1.05, 0.95), 1 / 0.95 - 1, "0", True),
        ("equal", OVER + "tolerance = 0.1", (1, 1, 1), (1, 1.2, 1), 1 / 1.2 - 1, "0", False),
        ("gain", OVER + "expected = 0.5\ntolerance = 0.005", (1, 2, 3), (1, 1, 2), 0.5, "0.5", True),
        ("gain", OVER + "expected = 0.5\ntolerance = 0.005", (1, 2, 3), (1, 1, 1.9), 6 / 3.9 - 1, "0.5", False),
        ("value", OVER + "expected = 2\ntolerance = 0.5", (2, 1.5, 2.4), None, 1.5, "2.0", True),
        ("value", OVER + "expected = 2\ntolerance = 0.5", (2, 2, 2.6), None, 2.6, "2.0", False),
        ("constant", OVER + "tolerance = 0.1", (10, 10.5, 9.6), None, 0.9 / (30.1 / 3), "<= 0.1", True),
        ("constant", OVER + "tolerance = 0.1", (10, 10, 8), None, 2 / (28 / 3), "<= 0.1", False),
        ("increasing", OVER, (1, 2, 2.5), None, 0.25, "> 0", True),
        ("increasing", OVER, (1, 2, 2), None, 0.0, "> 0", False),
        ("increasing", OVER, (1, 2, 3), (1, 1, 1.4), 3 / 1.4 / 2 - 1, "> 0", True),
        ("increasing", OVER, (1, 2, 3), (1, 1, 2), -0.25, "> 0", False),
        ("decreasing", OVER, (3, 2, 1), None, -1 / 3, "< 0", True),
        ("decreasing", OVER, (3, 2, 2.1), None, 0.05, "< 0", False),
    ],
)
def test_kinds(
    tmp_path: Path, kind: str, body: str, a: tuple[float, ...], b: tuple[float, ...] | None, measured: float,
    expected: str, holds: bool,
) -> None:  # fmt: skip
    selectors = 'a = { who = "a" }\n' + ('b = { who = "b" }\n' if b else "")
    numbers = {"a": rows(*a)} | ({"b": rows(*b)} if b else {})
    (found,) = judged(plan_of(tmp_path, claim(kind, selectors + body)), numbers)
    assert found.measured == pytest.approx(measured, abs=1e-12)
    assert found.verdict == ("holds" if holds else "does not hold")
    assert found.expected == expected
    assert found.unit == ("packets" if kind == "value" else "ratio")
    assert found.reason == "deterministic, n = 1"


def test_each_of_a_against_each_of_b(tmp_path: Path) -> None:
    body = 'a = { who = "a" }\nb = [{ who = "b" }, { who = "c" }]\n' + OVER
    plan = plan_of(tmp_path, claim("greater", body))
    assert judged(plan, {"a": rows(3, 3, 3), "b": rows(1, 1, 1), "c": rows(2, 2, 2)})[0].verdict == "holds"
    assert judged(plan, {"a": rows(3, 3, 3), "b": rows(1, 1, 1), "c": rows(2, 4, 2)})[0].verdict == "does not hold"


def test_also_repeats_a_claim_under_other_conditions(tmp_path: Path) -> None:
    body = 'a = { who = "a", x = "1 s" }\nb = { who = "b", x = "1 s" }\nalso = [{ x = "2 s" }]\n'
    one, other = judged(plan_of(tmp_path, claim("greater", body)), {"a": rows(2, 2, 0), "b": rows(1, 3, 0)})
    assert (one.claim.id, one.verdict) == ("C1", "holds")
    assert (other.claim.id, other.claim.condition_text, other.verdict) == ("C1", "x=2 s", "does not hold")


def test_claims_of_kind_later_are_not_tested_and_give_the_reason(tmp_path: Path) -> None:
    text = '[[claim]]\nid = "C9"\ntext = "t"\nsource = "s"\nkind = "later"\nreason = "needs Table 6"\n'
    (found,) = judged(plan_of(tmp_path, text), {})
    assert (found.verdict, found.reason, found.measured) == ("not tested", "needs Table 6", None)


def test_a_claim_about_work_of_a_cpu_is_judged_on_the_wall_clock_only(tmp_path: Path) -> None:
    body = 'a = { who = "a", x = "1 s" }\nb = { who = "b", x = "1 s" }\nclock = "wall"\nreason = "no time passes"\n'
    plan = plan_of(tmp_path, claim("greater", body))
    numbers = {"a": rows(3, 3, 3), "b": rows(1, 1, 1)}
    (found,) = judged(plan, numbers)
    assert (found.verdict, found.reason, found.measured) == ("not testable here", "no time passes", None)
    (found,) = judged(plan, numbers, cpu_per_byte_s=2e-9)
    assert (found.verdict, found.measured) == ("inconclusive", 2.0), "one run on the wall clock is not the next one"
    assert found.reason.startswith("one repetition on the wall clock")
    three = plan_of(tmp_path, claim("greater", body), repetitions=3)
    draws = {"a": [[3.0, 3.1, 2.9]] * 3, "b": [[1.0, 1.0, 1.0]] * 3}
    (found,) = judged(three, draws, cpu_per_byte_s=2e-9)
    assert (found.verdict, found.measured) == ("holds", pytest.approx(2.0))
    (found,) = judged(three, draws | {"b": [[2.9, 3.0, 3.1]] * 3}, cpu_per_byte_s=2e-9)
    assert found.verdict == "inconclusive"
    none = {cell.id: CellOutcome(Outcome.FAILED, "the guest was killed", 1.0, 1.0) for cell in plan.cells}
    (found,) = judge(Results(plan, none, []))
    assert found.verdict == "not tested" and "FAILED" in found.reason


@pytest.mark.parametrize(
    ("more", "wrong"),
    [('clock = "wall"', "reason is missing"), ('reason = "r"', 'or to one with clock = "wall"'),
     ('clock = "sun"\nreason = "r"', '"sun"')],
)  # fmt: skip
def test_a_clock_wants_its_reason(tmp_path: Path, more: str, wrong: str) -> None:
    with pytest.raises(SpecError, match=wrong):
        plan_of(tmp_path, claim("greater", 'a = { who = "a" }\nb = { who = "b" }\n' + OVER + more + "\n"))


def test_cells_left_out_or_failed_are_not_tested(tmp_path: Path) -> None:
    text = claim("greater", 'a = { who = "a" }\nb = { who = "b" }\n' + OVER)
    numbers = {"a": rows(3, 3, 3), "b": rows(1, 1, 1)}
    (found,) = judged(plan_of(tmp_path, text, where=[("x", "1 s"), ("x", "2 s")]), numbers)
    assert (found.verdict, found.measured) == ("not tested", None)
    assert "--where" in found.reason
    (found,) = judged(plan_of(tmp_path, text), numbers, failed="b 2 s")
    assert found.verdict == "not tested"
    assert "FAILED" in found.reason
    assert found.reason.startswith("b_2s_r0_")


def test_a_cell_with_nothing_to_measure_is_inconclusive(tmp_path: Path) -> None:
    (found,) = judged(
        plan_of(tmp_path, claim("greater", 'a = { who = "a" }\nb = { who = "b" }\n' + OVER)), {"a": rows(1, 1, 1)}
    )
    assert (found.verdict, found.measured) == ("inconclusive", None)
    assert "has no packets; and 2 more" in found.reason


def test_a_division_by_zero_is_inconclusive(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, claim("greater", 'a = { who = "a" }\nb = { who = "b" }\n' + OVER))
    (found,) = judged(plan, {"a": rows(2, 2, 2), "b": rows(1, 0, 1)})
    assert (found.verdict, found.measured) == ("inconclusive", None)
    assert found.reason == "a number to divide by, or to take the logarithm of, is 0"
    (found,) = judged(plan, {"a": rows(2, 2, 2), "b": rows(1, 0, 2)})
    assert (found.verdict, found.measured) == ("does not hold", 0.0), "another level decides already"


def test_random_cells_need_repetitions(tmp_path: Path) -> None:
    text = claim("greater", 'a = { who = "a", x = "1 s" }\nb = { who = "b", x = "1 s" }\n')

    def verdict(a: list[float], b: list[float]) -> Judged:
        plan = plan_of(tmp_path, text, repetitions=len(a), more=LOSS)
        return judged(plan, {"a": [a] * 3, "b": [b] * 3})[0]

    single = verdict([3.0], [1.0])
    assert (single.verdict, single.measured) == ("inconclusive", 2.0)
    assert "--repetitions" in single.reason
    assert verdict([3.0, 3.1, 2.9], [1.0, 1.0, 1.0]).verdict == "holds"
    assert verdict([1.0, 1.1, 0.9], [3.0, 3.0, 3.0]).verdict == "does not hold"
    near = verdict([1.0, 1.4, 0.9], [1.0, 1.0, 1.0])
    assert near.verdict == "inconclusive"
    assert "95 % interval" in near.reason
    assert "n = 3" in near.reason
    assert verdict([1.0, 1.0, 1.0], [1.0, 1.0, 1.0]).verdict == "does not hold"
    # the same losses for both sides: compared repetition by repetition, so a common swing does not blur it
    assert verdict([10.1, 20.2, 5.05], [10.0, 20.0, 5.0]).verdict == "holds"


@pytest.mark.parametrize(("kind", "more"), [("equal", ""), ("value", "expected = 10\n"), ("gain", "expected = 0\n")])
def test_opposite_failures_of_two_comparisons_do_not_cancel(tmp_path: Path, kind: str, more: str) -> None:
    """One side is 20 % too high in each repetition and another 20 % too low; which is farther alternates."""
    tolerance = 1 if kind == "value" else 0.1
    both = 'a = [{ who = "a", x = "1 s" }, { who = "b", x = "1 s" }]\n'
    body = both + ("" if kind == "value" else 'b = { who = "c", x = "1 s" }\n') + more + f"tolerance = {tolerance}\n"
    plan = plan_of(tmp_path, claim(kind, body), repetitions=4, more=LOSS)
    high, low = [12.0, 12.1, 12.0, 12.1], [7.9, 8.05, 7.9, 8.05]
    (found,) = judged(plan, {"a": [high] * 3, "b": [low] * 3, "c": [[10.0] * 4] * 3})
    assert found.verdict == "does not hold"
    assert found.measured == pytest.approx(12.05 if kind == "value" else 0.205)


@pytest.mark.parametrize(
    ("draws", "verdict", "measured"),
    [
        ([1.0] * 9 + [0.0], "does not hold", 0.0),  # the mean's interval, 0.67 to 1.13, would not decide
        ([1.0, 1.0], "holds", 1.0),
        ([1.0], "inconclusive", 1.0),  # random, and drawn once
    ],
)
def test_one_draw_outside_decides_against_every(
    tmp_path: Path, draws: list[float], verdict: str, measured: float
) -> None:
    text = claim("every", 'a = { who = "a", x = "1 s" }\nexpected = 1\ntolerance = 0\n')
    plan = plan_of(tmp_path, text, repetitions=len(draws), more=LOSS)
    (found,) = judged(plan, {"a": [draws] * 3, "b": [draws] * 3})
    assert (found.verdict, found.measured) == (verdict, measured)
    if verdict == "does not hold":
        assert found.reason.startswith("1 of 10 values is outside, farthest in ") and "_r9_" in found.reason


def test_the_worst_verdict_wins_not_the_farthest_number(tmp_path: Path) -> None:
    """Level 1 holds, level 2 swings too much to say, level 3 does not hold though it swings less far."""
    body = 'a = { who = "a" }\nb = { who = "b" }\ntolerance = 0.1\n'
    swinging, failing, ones = [1.4, 0.5, 1.0], [1.15, 1.16, 1.15], [[1.0] * 3] * 3
    plan = plan_of(tmp_path, claim("equal", body + OVER), repetitions=3, more=LOSS)
    (found,) = judged(plan, {"a": [[1.0] * 3, swinging, failing], "b": ones})
    assert (found.verdict, found.measured) == ("does not hold", pytest.approx(0.46 / 3))
    (found,) = judged(plan, {"a": [[1.0] * 3, swinging, [1.0] * 3], "b": ones})
    assert (found.verdict, found.measured) == ("inconclusive", pytest.approx(2.9 / 3 - 1))
    (found,) = judged(plan, {"a": ones, "b": ones})
    assert (found.verdict, found.reason) == ("holds", "equal in 3 draws")


def test_repetitions_that_differ_are_random_whatever_was_planned(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path, claim("greater", 'a = { who = "a", x = "1 s" }\nb = { who = "b", x = "1 s" }\n'), repetitions=2
    )
    assert not any(cell.random for cell in plan.cells)
    (found,) = judged(plan, {"a": [[1.0, 9.0]] * 3, "b": [[1.0, 1.0]] * 3})
    assert found.verdict == "inconclusive"
    (found,) = judged(plan, {"a": [[9.0, 9.0]] * 3, "b": [[1.0, 1.0]] * 3})
    assert (found.verdict, found.reason) == ("holds", "deterministic, n = 2")


def test_claims_csv(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, claim("greater", 'a = { who = "a", x = "1 s" }\nb = { who = "b", x = "1 s" }\n'))
    outcomes = completed(plan)
    values = [Measurement(c.id, "f", "packets", 3.0 if c.factors["who"] == "a" else 2.0, "packets") for c in plan.cells]
    write_tables(Results(plan, outcomes, values), tmp_path / "tables")
    with open(tmp_path / "tables" / "claims.csv", newline="") as file:
        found = list(csv.reader(file))
    assert found == [
        [*CLAIM_COLUMNS, "source", "first_verdict"],
        ["C1", "", "own", "holds", "0.5", "", "", "holds", "> 0", "ratio", "Table 1", ""],
    ]
    details = (tmp_path / "tables" / "claim_details.csv").read_text()
    assert details.splitlines()[1] == 'C1,,t,greater,packets,0.0,,"deterministic, n = 1",,,'


def fed_with(source: str) -> dict[str, Judged]:
    """choi2009's claims over the numbers of one source; throughput is utilization times rate where none is printed."""
    plan = make_plan(load_spec("choi2009"), repetitions=1)
    plan = replace(plan, cells=tuple(replace(cell, random=False) for cell in plan.cells))  # printed numbers are
    printed = [one for one in plan.expected if one.source == source]
    values: dict[tuple[str, str], float] = {}
    selection = Selection(plan)
    for cell in plan.cells:
        name = cell.id
        values |= {(name, one.metric): one.value for one in printed if selection.has(cell, one.at)}
        rate = cell.links[0].forward.rate_bit_s
        assert rate is not None
        if (name, "paper_utilisation") in values:
            values.setdefault((name, "paper_throughput_byte_s"), values[name, "paper_utilisation"] * rate)
    measured = [Measurement(name, "ftp", metric, value, "") for (name, metric), value in values.items()]
    outcomes = completed(plan)
    return {one.claim.name: one for one in judge(Results(plan, outcomes, measured))}


@pytest.mark.slow
def test_the_paper_and_its_simulator_give_what_the_reading_notes_say() -> None:
    """The claims' formulas, and the numbers copied into claims.toml: the notes' own checks come out of them."""
    paper = fed_with("paper")
    for name, gain in {
        "C1": 0.418, "C17b": 0.265, "C17c": 0.292, "C23": 0.275, "C23b": 0.315, "C34": 0.092, "C34p": 0.076,
        "C34b": 0.215, "C34c": 0.181, "C37b": 0.020, "C37c": 0.022,
        "C38": 0.116, "C38b": 0.178, "C38c": 0.104, "C38d": 0.065,
    }.items():  # fmt: skip
        assert paper[name].measured == pytest.approx(gain, abs=6e-4), name
    for name in [
        "C3", "C3b", "C4b", "C6", "C7", "C9", "C11", "C14", "C14b", "C15c", "C19f", "C19e", "C20", "C21", "C26",
    ]:  # fmt: skip
        assert paper[name].verdict == "holds", name
    for name in ("C22", "C25e", "C27", "C31", "C32", "C33"):  # contradicted by the paper's own tables
        assert paper[name].verdict == "does not hold", name
    simulator = fed_with("ns2_29")
    for name, gain in {"C17": 0.1855, "C17b": 0.271, "C23": 0.270, "C34p": 0.083}.items():
        assert simulator[name].measured == pytest.approx(gain, abs=5e-4), name
    for name in ["C3", "C4", "C6", "C7", "C7b", "C9", "C10", "C11", "C15", "C16", "C16b", "C16c"]:
        assert simulator[name].verdict == "holds", name
    for name in ("C9b", "C9c", "C9d", "C6 failover=rfc4960", "C8"):
        assert simulator[name].verdict == "does not hold", name


@pytest.mark.parametrize(
    ("kind", "sign", "named"), [("greater", 1, "smallest lead"), ("less", -1, "largest difference")]
)
def test_the_report_names_the_number_as_it_was_chosen(kind: str, sign: int, named: str, tmp_path: Path) -> None:
    """Of three comparisons with 50, 20 and 10 % between the two the one that decides is nearest to the contrary."""
    plan = plan_of(tmp_path, claim(kind, 'a = { who = "a" }\nb = { who = "b" }\n' + OVER))
    (found,) = judged(plan, {"a": rows(*(1 + sign * lead for lead in (0.5, 0.2, 0.1))), "b": rows(1, 1, 1)})
    assert found.measured == pytest.approx(sign * 0.1)
    row = {"claim": "C1", "condition": "", "verdict": found.verdict, "measured": repr(found.measured),
           "expected": found.expected, "unit": found.unit, "source": "Table 1"}  # fmt: skip
    data = SimpleNamespace(plan=plan, claims=[row], claim_details=[], metrics={}, system="Linux 6.12")
    (said,) = statements(data)  # type: ignore[arg-type]
    assert (said.statistic, said.own.measured) == (named, f"{'+' if sign > 0 else MINUS}10.0")


def test_an_interval_below_the_resolution_of_the_clock_is_none(tmp_path: Path) -> None:
    """Five draws, one of them a tick of the virtual clock (256 ns) earlier; then one that is 3 us earlier."""
    text = claim("value", 'a = { who = "a", x = "1 s" }\nexpected = 1\ntolerance = 0.2\n').replace(
        "packets", "outage_s"
    )
    plan = plan_of(tmp_path, text, more=LOSS, repetitions=5)
    for apart, reason in ((256e-9, "equal in 5 draws"), (3e-6, "95 % interval")):
        values = [1.096798208] * 4 + [1.096798208 - apart]
        measured = [
            Measurement(cell.id, "f", "outage_s", values[cell.repetition], "s")
            for cell in plan.cells
            if cell.factors["who"] == "a" and cell.factors["x"] == "1 s"
        ]
        (found,) = judge(Results(plan, completed(plan), measured))
        assert found.verdict == "holds" and found.reason.startswith(reason)
        assert (found.low is None) == (apart < 1e-6)
        assert found.measured == pytest.approx(1.0967981, abs=1e-6)


@pytest.mark.parametrize(
    ("metric", "scale"),
    [("acknowledgement_wait_s", 1e-6), ("per_byte_s", 1e-7)],
    ids=["a time of the size of the clock's ticks", "a time that a formula divided"],
)
def test_scattered_draws_of_small_times_are_not_equal(metric: str, scale: float, tmp_path: Path) -> None:
    own = '[metric.per_byte_s]\nvalue = "completion_time_s / 60000"\nunit = "s"\n'
    text = claim("greater", 'a = { who = "a", x = "1 s" }\nb = { who = "b", x = "1 s" }\n').replace("packets", metric)
    plan = plan_of(tmp_path, text, more=LOSS + own, repetitions=5)
    drawn = {"a": [1.0, 2.9, 1.2, 2.8, 1.1], "b": [1.5, 1.0, 2.9, 1.2, 1.4]}
    measured = [
        Measurement(cell.id, "f", metric, scale * drawn[cell.factors["who"]][cell.repetition], "s")
        for cell in plan.cells
        if cell.factors["x"] == "1 s" and cell.factors["who"] in drawn
    ]
    (found,) = judge(Results(plan, completed(plan), measured))
    assert found.verdict == "inconclusive" and found.low is not None


def test_other_draws_that_may_make_a_divisor_0_together_leave_no_bounds() -> None:
    """Each of two terms alone, moved by up to 150 %, leaves a divisor; both together cross 0."""
    cell = one_factor_run([1.0, 1.0]).plan.cells[0]
    a, b = ([RepeatedValue((cell,), {0: value}, "", failed=False) for _ in range(2)] for value in (10.0, 1.0))
    (gain,) = contrasts("gain", [a], [b])
    kind = kind_of(cell)
    assert bounds(gain, {kind: Spread(0.5, 1.0, 1, "")}) is not None
    with pytest.raises(ZeroDivisionError):
        bounds(gain, {kind: Spread(1.5, 1.0, 1, "")})
