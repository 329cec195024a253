"""`netwarp compare`: the width of what it prints."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp import Run, RunComparison
from netwarp.cli.compare import print_comparison
from netwarp.engine.comparison import CaptureComparison
from netwarp.results.compare import compare
from netwarp.store.run_dir import RunDir
from support.results_kit import TWO_LEVELS, one_factor_run


@pytest.mark.parametrize(("columns", "width"), [("64", 64), ("200", 200), (None, 120), ("wide", 120)])
def test_output_is_as_wide_as_columns(
    columns: str | None, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    metric = "data_packets_of_the_flow_that_" + "was_started_first_" * 5
    levels = TWO_LEVELS.replace("factor.x", "factor.an_outage_with_a_long_name")
    a, b = (one_factor_run(values, random=False, levels=levels, metric=metric) for values in ([1.0, 2.0], [1.0, 4.0]))
    runs = [Run(RunDir(Path(name)), results.plan) for name, results in (("a", a), ("b", b))]
    print_comparison(RunComparison(*runs, (), compare(a, b), CaptureComparison(0, 0, 0), 2e-6))
    longest = max(map(len, capsys.readouterr().out.splitlines()))
    assert longest <= width
    assert longest > 0.7 * width, "the metric's name needs all of it"
