"""What `netwarp compare` prints: as wide as COLUMNS says where standard output is no terminal."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.cli import compare as command
from netwarp.results.compare import compare
from test_compare import run

LEVELS = '[factor.an_outage_with_a_long_name]\nlevels = ["1 s", "2 s"]\n'


@pytest.mark.parametrize(("columns", "width"), [("64", 64), ("200", 200), (None, 120), ("wide", 120)])
def test_width(
    columns: str | None, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    metric = "data_packets_of_the_flow_that_" + "was_started_first_" * 5
    a, b = (run(values, random=False, levels=LEVELS, metric=metric) for values in ([1.0, 2.0], [1.0, 4.0]))
    command._print(
        Path("a"), Path("b"), compare(a, b), (), {"same_id": 0, "same_captures": 0, "without_captures": 0}, 2e-6
    )
    longest = max(map(len, capsys.readouterr().out.splitlines()))
    assert longest <= width
    assert longest > 0.7 * width, "the metric's name needs all of it"
