"""A run directory, opened: its plan, how its cells ended, its measurements, its tables as rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import CaptureError
from ..core.invocation import command
from ..core.outputs import expression_of
from ..core.types import CellOutcome, Check, Measurement, Outcome
from ..core.units import counted
from ..measure.capture_point import missing_raw
from ..measure.cell import with_expressions
from ..plan.types import Plan
from ..results import Results
from ..store.environment import Environment
from ..store.manifest import Manifest
from ..store.plan_file import read_plan
from ..store.run_dir import CellDir, Judgement, RunDir, read_json, write_json
from ..store.tables import TableRow, Tables, no_metric, read_rows
from .data_frames import load_run

if TYPE_CHECKING:
    from ..store.frames import RunFrames


def judge_by_checks(directory: CellDir) -> CellOutcome:
    """The outcome of an analysed cell: INVALID if a check of the analyser failed. Written to judgement.json."""
    failed = [check for check in read_json(directory.checks, list[Check]) if not check.ok]
    reason = "; ".join(f"{check.check}: {check.detail}" for check in failed[:3])
    judgement = Judgement(Outcome.INVALID if failed else Outcome.COMPLETED, reason)
    if not directory.judgement.exists() or read_json(directory.judgement, Judgement) != judgement:
        write_json(directory.judgement, judgement)
    return judgement.of(directory.read_run_outcome())


def ran_to_its_end(directory: CellDir) -> bool:
    """True if the cell ran to its end according to the back end; otherwise there is nothing to analyse."""
    return directory.read_run_outcome().outcome is Outcome.COMPLETED


def collect(plan: Plan, run: RunDir) -> Results:
    """Outcomes and measurements of the cells that have an outcome; measurements only of COMPLETED ones."""
    outcomes: dict[str, CellOutcome] = {}
    return Results(plan, outcomes, _read(plan, run, outcomes))


def _read(plan: Plan, run: RunDir, outcomes: dict[str, CellOutcome]) -> Iterator[Measurement]:
    """The measurements, cell by cell; each cell's outcome is put into `outcomes` first."""
    finished = run.finished()
    for cell in plan.cells:
        name = cell.id  # a hash of the whole cell: made once
        if name not in finished:
            continue
        directory = run.cell(name)
        outcomes[name] = directory.read_run_outcome()
        if outcomes[name].outcome is Outcome.COMPLETED:
            if not directory.checks.exists() and (missing := missing_raw(cell, directory)):
                raise CaptureError(
                    f"{directory.root}: has no derived files, and what they are made from is missing: "
                    f"{', '.join(missing)}; bring those files back, or run the cell again in a new run"
                )
            if not directory.checks.exists():
                raise CaptureError(f"{directory.root}: was never analysed; run `{command('analyze', run.root)}`")
            # netwarp may have been killed between the checks and the judgement
            outcomes[name] = judge_by_checks(directory)
        if outcomes[name].outcome is Outcome.COMPLETED:
            expressions = {
                metric.name: text
                for metric in plan.metrics
                if (text := expression_of(metric, cell.factors, cell.experiment, plan.expected))
            }
            yield from with_expressions(cell, read_json(directory.measurements, list[Measurement]), expressions)


LATE = ("timeline", "start of ", "steal time", "clocks of the machines")
"""The beginnings of the names of checks that fail because the host was late."""


def late_cells(plan: Plan, directory: RunDir) -> dict[str, str]:
    """Cells that are INVALID only because the host was late -> the reason."""
    reasons: dict[str, str] = {}
    finished = directory.finished()
    for cell in plan.cells:
        if cell.id in finished:
            outcome = directory.cell(cell.id).read_outcome()
            if _host_was_late(directory.cell(cell.id).environment, outcome):
                reasons[cell.id] = outcome.reason
    return reasons


def _host_was_late(environment: Path, outcome: CellOutcome) -> bool:
    if outcome.outcome is not Outcome.INVALID or not environment.exists():
        return False
    failed = [check.check for check in read_json(environment, Environment).checks if not check.ok]
    return bool(failed) and all(name.startswith(LATE) for name in failed)


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
            raise no_metric(self.path, name, {str(row["metric"]) for row in measured})
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
