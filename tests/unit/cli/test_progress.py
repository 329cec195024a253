"""A run's progress: virtual seconds simulated, and a time left that is never negative."""

from __future__ import annotations

import re

import pytest
from netwarp.cli import progress as module
from netwarp.cli.progress import CellsProgress
from netwarp.core.types import CellOutcome, Outcome
from support.recorded_cell import make_cell


def test_speed_is_of_what_was_simulated_and_what_is_left_of_what_was_planned(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wall = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: wall[0])
    monkeypatch.setattr(module, "PLAIN_EVERY_S", 0.0)
    cells = (make_cell("tcp"), make_cell("sctp"))
    planned_s = [cell.duration_ns / 1e9 for cell in cells]
    assert planned_s[0] == planned_s[1] > 3
    running = CellsProgress(cells)
    wall[0] = 10.0
    running.virtual("a calibration, none of the plan's", 1e6)
    running.finished(cells[0], CellOutcome(Outcome.COMPLETED, "", virtual_s=3.0, wall_s=10.0))
    wall[0] = 30.0
    running.finished(cells[1], CellOutcome(Outcome.COMPLETED, "", virtual_s=600.0, wall_s=20.0))
    running.virtual(cells[1].id, 1.0)  # heard after its end
    said = re.findall(r"(\d) of 2 cells, (\S+) virtual s/s(.*)", capsys.readouterr().err)
    assert said == [("1", "0.3", ", 10 s left"), ("2", "20", ""), ("2", "20", "")][: len(said)] and len(said) > 1


def test_a_cell_whose_virtual_time_is_over_is_ending(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wall = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: wall[0])
    monkeypatch.setattr(module, "PLAIN_EVERY_S", 0.0)
    cell = make_cell("tcp")
    running = CellsProgress((cell,))
    wall[0] = 10.0
    running.virtual(cell.id, cell.duration_ns / 1e9)
    assert "0 of 1 cell, 1.2 virtual s/s, ending" in capsys.readouterr().err
