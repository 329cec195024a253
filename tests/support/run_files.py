"""A run directory as tests read it: cells with their files, tables as rows."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netwarp.core.types import Cell, CellOutcome, Outcome
from netwarp.store import compressed
from netwarp.store.run_dir import RunDir

Record = dict[str, Any]
Row = dict[str, str]
Measured = list[tuple[Row, dict[str, float]]]
"""A cell's row of cells.csv, and its metrics that have a value."""
LATE = ("timeline", "start of", "steal time")
"""The checks that fail where a busy machine makes a cell late on the wall clock."""


def records(path: Path) -> list[Record]:
    """The lines of an NDJSON file, plain or compressed."""
    return [json.loads(line) for line in compressed.read(path).splitlines()]


def rows(path: Path) -> list[Row]:
    """The rows of a CSV file."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@dataclass(frozen=True, eq=False)
class CellFiles:
    """A finished cell: what it was, how it ended, and its files, read when they are asked for."""

    root: Path
    cell: Cell
    outcome: CellOutcome

    def read(self, name: str) -> Any:
        """A JSON file, by its path in the cell's directory."""
        return json.loads(compressed.read(self.root / name))

    def app(self, name: str) -> list[Record]:
        """The records of an app, such as `bulk.sender`."""
        return records(self.root / "apps" / f"{name}.ndjson")

    def summary(self, name: str) -> Record:
        """The last record of an app, which is its summary."""
        summary = self.app(name)[-1]
        assert summary["record"] == "summary"
        return summary

    def init(self, kind: str) -> list[Record]:
        """The records of one kind in cell-init's log."""
        return [record for record in records(self.root / "init.ndjson") if record["record"] == kind]

    @property
    def environment(self) -> Record:
        """environment.json."""
        found: Record = self.read("environment.json")
        return found

    @property
    def checks(self) -> dict[str, Record]:
        """The checks of the analysis, by name."""
        return {check["check"]: check for check in self.read("derived/checks.json")}

    def late(self) -> list[str]:
        """The read-backs that failed because the machine was late: none of a cell that it played in time, which has to
        be COMPLETED. Of a late one they have to explain the outcome; a machine that stood still for seconds can make a
        flow, or the cell, miss its end.
        """
        wrong = [check["check"] for check in self.environment["checks"] if not check["ok"]]
        late = [name for name in wrong if name.startswith(LATE)]
        if late and self.outcome.outcome in (Outcome.FAILED, Outcome.TIMED_OUT):
            return late
        assert late == wrong, (wrong, self.outcome)
        assert self.outcome.outcome is (Outcome.INVALID if late else Outcome.COMPLETED), self.outcome
        return late

    def captures(self, node: str, link: str = "*") -> list[Path]:
        """A node's capture files."""
        return sorted((self.root / "capture").glob(f"{node}-{link}.pcap*"))


@dataclass(frozen=True, eq=False)
class RunFiles:
    """A run directory and its finished cells."""

    root: Path
    cells: dict[str, CellFiles]

    def completed(self) -> RunFiles:
        """Asserts that every finished cell completed."""
        assert [cell.outcome for cell in self.cells.values() if cell.outcome.outcome is not Outcome.COMPLETED] == []
        return self

    def cell(self, **factors: str) -> CellFiles:
        """The only cell that has these levels."""
        (found,) = (cell for cell in self.cells.values() if factors.items() <= cell.cell.factors.items())
        return found

    @property
    def manifest(self) -> Record:
        """manifest.json."""
        found: Record = json.loads((self.root / "manifest.json").read_bytes())
        return found

    def table(self, name: str) -> list[Row]:
        """The rows of a table."""
        return rows(self.root / "tables" / f"{name}.csv")

    def measured(self, flow: str | None = None) -> Measured:
        """Every cell with its metrics (of one flow), as the tables have them."""
        values: dict[str, dict[str, float]] = {}
        for row in self.table("measurements"):
            if row["value"] and flow in (None, row["flow"]):
                values.setdefault(row["cell_id"], {})[row["metric"]] = float(row["value"])
        return [(row, values.get(row["cell_id"], {})) for row in self.table("cells")]

    def metrics(self, flow: str | None = None) -> dict[str, float]:
        """The metrics of the only cell that has any (of one flow)."""
        (found,) = [metrics for _, metrics in self.measured(flow) if metrics]
        return found


def load_run(root: Path) -> RunFiles:
    """Read a run directory."""
    directory = RunDir(root)
    found = {}
    for cell_id in sorted(directory.finished()):
        cell = directory.cell(cell_id)
        found[cell_id] = CellFiles(cell.root, cell.read_cell(), cell.read_outcome())
    return RunFiles(root, found)
