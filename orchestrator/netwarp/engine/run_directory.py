"""A run directory, opened: its plan, how its cells ended, its tables as rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import SpecError
from ..core.types import Outcome
from ..core.units import counted
from ..plan.types import Plan
from ..results import Results
from ..store.manifest import Manifest
from ..store.plan_file import read_plan
from ..store.run_dir import RunDir, read_json
from ..store.tables import TableRow, Tables, read_rows
from .collect import collect
from .data_frames import load_run

if TYPE_CHECKING:
    from ..store.frames import RunFrames


@dataclass(frozen=True)
class Run:
    """A run that is finished or was stopped. Files are read when they are first accessed.

    plan: plan.json, every cell of the run. page: report/index.html, None if no report was made. wall_s: duration of the
    call that ran the cells. made: its results, if that call made its tables.
    """

    directory: RunDir
    plan: Plan
    page: Path | None = None
    wall_s: float | None = None
    made: Results | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        """In short: the plan has a line for every cell."""
        return f"<Run {self.plan.name!r} of {counted(len(self.plan.cells), 'cell')} in {str(self.path)!r}>"

    @property
    def path(self) -> Path:
        """The run directory."""
        return self.directory.root

    @cached_property
    def manifest(self) -> Manifest:
        """manifest.json: how the run was made. Raises StoreError."""
        return read_json(self.directory.manifest, Manifest)

    @cached_property
    def results(self) -> Results:
        """Outcomes and measurements. Raises CaptureError if a finished cell was never analysed."""
        return collect(self.plan, self.directory) if self.made is None else self.made

    @property
    def outcomes(self) -> dict[str, int]:
        """Outcome -> number of cells, after the analyser's checks."""
        return dict(Counter(str(outcome.outcome) for outcome in self.results.outcomes.values()))

    @property
    def verdicts(self) -> dict[str, int]:
        """Verdict -> number of claims."""
        return dict(Counter(row["verdict"] for row in read_rows(self.directory.tables / "claims.csv")))

    def write_junit(self, path: str | Path) -> None:
        """Write outcomes and verdicts as JUnit XML. Raises StoreError."""
        from ..present.junit import write_junit  # here: the room of the report takes a second to import

        claims = self.directory.tables / "claims.csv"
        write_junit(Path(path), self.plan, self.results.outcomes, read_rows(claims) if claims.exists() else [])

    @property
    def complete(self) -> bool:
        """True if every cell of the plan ended COMPLETED."""
        return self.outcomes == {str(Outcome.COMPLETED): len(self.plan.cells)}

    @property
    def kept(self) -> int:
        """Number of cells whose outcome stays when the run is resumed: all but FAILED."""
        ends = [self.directory.cell(cell_id).read_outcome().outcome for cell_id in self.directory.finished()]
        return len(ends) - ends.count(Outcome.FAILED)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of its tables."""
        return Tables(self.directory).names

    def metric(self, name: str) -> list[TableRow]:
        """A row per cell and flow that has the metric: `value`, `unit`, and the columns of cells.csv, factors among
        them. As a data frame: `frames.metric(name)`. Raises SpecError if no cell has the metric.
        """
        cells = {row["cell_id"]: row for row in self.table("cells")}
        measured = self.table("measurements")
        rows = [row | cells[row["cell_id"]] for row in measured if row["metric"] == name]
        if not rows:
            known = sorted({str(row["metric"]) for row in measured})
            raise SpecError(f"{self.path}: no cell has the metric {name!r}; there is: {', '.join(known) or 'none'}")
        return rows

    @cached_property
    def frames(self) -> RunFrames:
        """The tables as polars data frames. Raises SpecError if polars is not installed (the extra `data`)."""
        return load_run(self.path)

    def table(self, name: str) -> list[TableRow]:
        """The rows of tables/<name>.csv: column -> text, or a number (None: empty) in a numeric column.

        Factors are always text, as the spec writes their levels. Raises StoreError if there is no such table.
        """
        return Tables(self.directory).typed(name)


def open_run(path: str | Path) -> Run:
    """An existing run directory. Raises StoreError if it is not one."""
    directory = RunDir(Path(path))
    page = directory.report / "index.html"
    return Run(directory, read_plan(directory), page if page.exists() else None)
