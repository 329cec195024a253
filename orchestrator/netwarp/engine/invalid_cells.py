"""The numbers of INVALID cells: they ran, and a self-check failed, so no table of the run holds them. To be looked at,
each beside the reason.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..core.types import Measurement, Outcome
from ..measure.cell import analyze_cell
from ..results.rows import Rows
from ..results.write import csv_blocks
from ..store.run_dir import CellDir, read_json, write_atomic
from .run_directory import Run

TABLE = "invalid"
HEADER = ("cell_id", "reason", "flow", "metric", "value", "unit")


@dataclass(frozen=True, slots=True)
class InvalidCell:
    """An INVALID cell: what failed, and what was measured all the same."""

    cell_id: str
    reason: str
    measurements: tuple[Measurement, ...]


def invalid_cells(run: Run) -> tuple[InvalidCell, ...]:
    """The INVALID cells of a run. One that the back end judged is analysed now; its outcome stays. Raises CaptureError
    where its files cannot be used, and StoreError.
    """
    found = []
    for name, outcome in run.results.outcomes.items():
        if outcome.outcome is not Outcome.INVALID:
            continue
        directory = run.directory.cell(name)
        if not directory.checks.exists():
            analyze_cell(directory.read_cell(), directory.root)
        found.append(InvalidCell(name, outcome.reason, tuple(measured_in(directory))))
    return tuple(found)


def measured_in(directory: CellDir) -> list[Measurement]:
    """What the analysis of a cell measured, whatever it says of it."""
    there = directory.measurements.exists()
    return read_json(directory.measurements, list[Measurement]) if there else []


def write_invalid(run: Run) -> tuple[InvalidCell, ...]:
    """Write tables/invalid.csv, apart from every other table; a run without INVALID cells has none. Raises as above."""
    cells = invalid_cells(run)
    path = run.directory.tables / f"{TABLE}.csv"
    if not cells:
        path.unlink(missing_ok=True)
        return cells
    rows = [
        (cell.cell_id, cell.reason, each.flow, each.metric, each.value, each.unit)
        for cell in cells for each in cell.measurements
    ]  # fmt: skip
    table = Rows(TABLE, HEADER, rows)
    write_atomic(path, csv_blocks(table.header, table.rows))
    return cells
