"""`netwarp compare`: the width of what it prints."""

from __future__ import annotations

import pytest
from netwarp import RunComparison
from netwarp.cli.compare import mapped_levels, print_comparison
from netwarp.core.errors import SpecError
from netwarp.results.compared_numbers import compare
from support.report_kit import side_of
from support.results_kit import TWO_LEVELS, one_factor_run


@pytest.mark.parametrize(("columns", "width"), [("64", 64), ("200", 200), (None, None), ("wide", None)])
def test_output_is_as_wide_as_columns_and_in_a_pipe_as_it_needs(
    columns: str | None, width: int | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    metric = "data_packets_of_the_flow_that_" + "was_started_first_" * 5
    levels = TWO_LEVELS.replace("factor.x", "factor.an_outage_with_a_long_name")
    a, b = (one_factor_run(values, random=False, levels=levels, metric=metric) for values in ([1.0, 2.0], [1.0, 4.0]))
    print_comparison(RunComparison(side_of("a"), side_of("b")), compare(a, b, 2e-6))
    lines = capsys.readouterr().out.splitlines()
    longest = max(map(len, lines))
    if width is None:
        assert any(metric in line for line in lines), "a name is whole where nothing is as narrow as a terminal"
        return
    assert longest <= width
    assert longest > 0.7 * width, "the metric's name needs all of it"


def test_a_level_is_held_against_another_one_also_of_the_same_run() -> None:
    a, b = one_factor_run([1.0, 2.0], random=False), one_factor_run([1.0, 4.0], random=False)
    (factor,) = a.plan.cells[0].factors
    low, high = (cell.factors[factor] for cell in (a.plan.cells[0], a.plan.cells[-1]))
    assert low != high
    plain = {(one.levels, one.a, one.b, one.verdict) for one in compare(a, b).numbers}
    assert {each[1:] for each in plain} == {(1.0, 1.0, "same"), (2.0, 4.0, "changed")}
    for second, value in ((b, 4.0), (a, 2.0)):
        (crossed,) = compare(a, second, mapped={factor: {low: high}}).numbers
        assert (crossed.levels, crossed.a, crossed.b) == (((factor, low),), 1.0, value)
        assert crossed.verdict == "changed"
    same = compare(a, b, mapped={factor: {low: low, high: high}})
    assert {(one.levels, one.a, one.b, one.verdict) for one in same.numbers} == plain


def test_a_mapping_is_pairs_of_levels() -> None:
    assert mapped_levels([["cc", "reno=mine1, cubic=mine2"], ["cc", "bbr=x"]]) == {
        "cc": {"reno": "mine1", "cubic": "mine2", "bbr": "x"}
    }
    for wrong in ("reno", "=mine1", "reno=", "reno=mine1,"):
        with pytest.raises(SpecError, match="wants A=B, for example --map congestion reno=mine1"):
            mapped_levels([["cc", wrong]])
