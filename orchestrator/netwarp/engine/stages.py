"""The stages after a run: analyze every cell, write the tables, make the report. Each reads files and writes files."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ..core.errors import CaptureError
from ..core.invocation import command
from ..core.types import CellOutcome, Measurement, Outcome, to_json
from ..measure.capture_point import missing_raw
from ..measure.cell import analyze_cell
from ..plan.types import Plan
from ..present import make_report
from ..results import write_tables, write_timelines
from ..store.run_dir import CellDir, RunDir, read_json, write_atomic

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Results:
    """Everything the tables are made of: per cell its outcome, after the analyser's own checks."""

    outcomes: dict[str, CellOutcome]
    measurements: list[Measurement]


def analyze_one(directory: CellDir) -> None:
    """Derive one cell that ran to its end; a failed check of the analyser makes its outcome INVALID."""
    if _ended_otherwise(directory.read_outcome()):
        return
    analyze_cell(directory.read_cell(), directory.root)
    judge_by_checks(directory)


def judge_by_checks(directory: CellDir) -> CellOutcome:
    """The outcome of an analysed cell, by its checks; an outcome.json that says otherwise is brought in line."""
    outcome = directory.read_outcome()
    failed = [check for check in msgspec.json.decode(directory.checks.read_bytes()) if not check["ok"]]
    reason = "; ".join(f"{check['check']}: {check['detail']}" for check in failed[:3])
    judged = msgspec.structs.replace(
        outcome,
        outcome=Outcome.INVALID if failed else Outcome.COMPLETED,
        reason=reason,
        judged_by="analysis" if failed else "backend",
    )
    if judged != outcome:
        write_atomic(directory.outcome, to_json(judged) + b"\n")
    return judged


def analyze_all(plan: Plan, run: RunDir, jobs: int, *, anew: bool = True) -> dict[str, list[str]]:
    """Derive every finished cell, or (not anew) those that have no derived files.

    A cell whose raw files are not all there any more is left as it is. Returns those: cell id -> what is missing.
    """
    finished = run.finished()
    todo, left = [], {}
    for cell in plan.cells:
        directory = run.cell(cell.id)
        if cell.id not in finished or (directory.checks.exists() and not anew):
            continue
        if _ended_otherwise(directory.read_outcome()):
            continue
        if missing := missing_raw(cell, directory):
            left[cell.id] = missing
        else:
            todo.append(directory)
    # threads: NumPy and the C core do the work, and an interrupted pool of processes leaves processes behind
    with ThreadPoolExecutor(jobs) as pool:
        try:
            for _ in pool.map(analyze_one, todo):
                pass
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return left


def _ended_otherwise(outcome: CellOutcome) -> bool:
    """Whether the back end says that the cell did not run to its end: there is nothing to derive then."""
    return outcome.outcome is not Outcome.COMPLETED and outcome.judged_by == "backend"


def collect(plan: Plan, run: RunDir) -> Results:
    """Outcomes and measurements of the cells that have an outcome; measurements only of COMPLETED ones."""
    outcomes: dict[str, CellOutcome] = {}
    measurements: list[Measurement] = []
    finished = run.finished()
    for cell in plan.cells:
        if cell.id not in finished:
            continue
        directory = run.cell(cell.id)
        outcomes[cell.id] = directory.read_outcome()
        if outcomes[cell.id].outcome is Outcome.COMPLETED:
            if not directory.checks.exists() and (missing := missing_raw(cell, directory)):
                raise CaptureError(
                    f"{directory.root}: has no derived files, and what they are made from is missing: "
                    f"{', '.join(missing)}; bring those files back, or run the cell again in a new run"
                )
            if not directory.checks.exists():
                raise CaptureError(f"{directory.root}: was never analysed; run `{command('analyze', run.root)}`")
            # netwarp may have been killed between the checks and the outcome they change
            outcomes[cell.id] = judge_by_checks(directory)
        if outcomes[cell.id].outcome is Outcome.COMPLETED:
            measurements += read_json(directory.measurements, list[Measurement])
    return Results(outcomes, measurements)


def tabulate(plan: Plan, run: RunDir) -> Results:
    """Write tables/*.csv from what the cells' derived files say."""
    results = collect(plan, run)
    write_tables(plan, results.outcomes, results.measurements, run.tables)
    write_timelines(plan, results.outcomes, run)
    return results


def report(run: RunDir) -> Path:
    """Make the report from tables and derived files."""
    return make_report(run)
