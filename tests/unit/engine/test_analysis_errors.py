"""An error while one cell is analysed: that cell is INVALID, says why and has no number; the others are analysed."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.core.errors import DiskFull
from netwarp.core.frozen import to_json
from netwarp.core.types import Cell, CellOutcome, Check, Measurement, Outcome
from netwarp.engine.cell_tasks import analyze_one
from netwarp.store.run_dir import CellDir, read_json
from support.recorded_cell import START, make_cell, make_directory, write
from support.report_kit import put


@pytest.fixture
def cell(tmp_path: Path) -> CellDir:
    """A recorded cell that ran to its end."""
    content = make_cell("sctp")
    directory = CellDir(make_directory(content, "sctp", tmp_path / "cell"))
    directory.cell.write_bytes(to_json(content))
    directory.outcome.write_bytes(to_json(CellOutcome(Outcome.COMPLETED, "", 1.0, 1.0)))
    return directory


def test_records_that_cannot_be_used(cell: CellDir) -> None:
    write(cell.init_log, [START])
    analyze_one(cell)
    outcome = cell.read_outcome()
    assert outcome.outcome is Outcome.INVALID
    assert "analysis: " in outcome.reason and "no `ready` record" in outcome.reason
    assert str(cell.root) not in outcome.reason, "tables of equal runs are equal wherever they are"
    assert read_json(cell.measurements, list[Measurement]) == []
    assert read_json(cell.packets, dict[str, str]).keys() == {"a-p1", "a-p2", "b-p1", "b-p2"}
    assert "CaptureError" in cell.analysis_error.read_text()


def test_a_mistake_of_the_analyser_takes_the_old_numbers_away(cell: CellDir, monkeypatch: pytest.MonkeyPatch) -> None:
    analyze_one(cell)
    assert cell.read_outcome().outcome is Outcome.COMPLETED
    assert read_json(cell.measurements, list[Measurement])

    def broken(cell: Cell, place: Path) -> None:
        raise ZeroDivisionError("no packets")

    with monkeypatch.context() as patched:
        patched.setattr("netwarp.engine.cell_tasks.analyze_cell", broken)
        analyze_one(cell)
    assert cell.read_outcome().outcome is Outcome.INVALID
    assert read_json(cell.checks, list[Check]) == [Check("analysis", False, "ZeroDivisionError: no packets")]
    assert read_json(cell.measurements, list[Measurement]) == []
    assert not list(cell.derived.glob("series.json*"))
    assert "in broken" in cell.analysis_error.read_text()
    analyze_one(cell)
    assert cell.read_outcome().outcome is Outcome.COMPLETED and not cell.analysis_error.exists()


def test_a_full_disk_is_no_cells_fault(cell: CellDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run ends, and the cell counts as not analysed: no half of its old derived files is trusted."""
    analyze_one(cell)

    def full(cell: Cell, place: Path) -> None:
        raise DiskFull("derived/measurements.json: cannot be written: No space left on device")

    monkeypatch.setattr("netwarp.engine.cell_tasks.analyze_cell", full)
    with pytest.raises(DiskFull):
        analyze_one(cell)
    assert not cell.checks.exists() and not cell.judgement.exists()


def test_limits_of_clocks_of_an_older_analysis_go(cell: CellDir) -> None:
    put(cell.clock_limits, {"f": ["one_way_delay_s"]})
    analyze_one(cell)
    assert cell.read_outcome().outcome is Outcome.COMPLETED and not cell.clock_limits.exists()
