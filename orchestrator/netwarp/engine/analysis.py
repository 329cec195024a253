"""Analyses finished cells, writes the tables of a run and makes its report. Each step reads files and writes files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ..core.types import Outcome
from ..measure.capture_point import missing_raw
from ..measure.cell import analyze_cell
from ..plan.types import Plan
from ..present import make_report
from ..results import Results, write_tables, write_timelines
from ..store.run_dir import CellDir, RunDir, locked, read_json
from .collect import collect, judge_by_checks, ran_to_its_end
from .run_directory import Run


@dataclass(frozen=True, slots=True)
class Analyzed:
    """A run that was analysed again. not_analyzed: cell id -> its missing raw files; such a cell stays as it was."""

    run: Run
    not_analyzed: Mapping[str, list[str]]

    @property
    def complete(self) -> bool:
        """Whether every finished cell was analysed, and ended COMPLETED."""
        ends = (outcome.outcome for outcome in self.run.results.outcomes.values())
        return not self.not_analyzed and all(end is Outcome.COMPLETED for end in ends)


def analyze(run_dir: str | Path, *, jobs: int | None = None) -> Analyzed:
    """Derive the measurements of a run directory again, and write its tables.

    jobs: cells at a time (default: cores). Raises StoreError, CaptureError.
    """
    run = RunDir(Path(run_dir))
    plan = read_json(run.plan, Plan)
    with locked(run):
        run.clear_partial()
        not_analyzed = analyze_all(plan, run, jobs or os.cpu_count() or 1)
        tabulate(plan, run)
    return Analyzed(Run(run, plan), not_analyzed)


def report(run_dir: str | Path) -> Path:
    """Make the report of a run directory again, from its tables and derived files; returns its first page."""
    run = RunDir(Path(run_dir))
    plan = read_json(run.plan, Plan)
    if not (run.tables / "cells.csv").exists():
        tabulate(plan, run)
    return make_report(run)


def analyze_one(directory: CellDir) -> None:
    """Derive one cell that ran to its end; a failed check of the analyser makes its outcome INVALID."""
    if ran_to_its_end(directory):
        analyze_cell(directory.read_cell(), directory.root)
        judge_by_checks(directory)


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
        if not ran_to_its_end(directory):
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


def tabulate(plan: Plan, run: RunDir) -> Results:
    """Write tables/*.csv from what the cells' derived files say."""
    results = collect(plan, run)
    write_tables(plan, results.outcomes, (one for rows in results.by_cell.values() for one in rows), run.tables)
    write_timelines(plan, results.outcomes, run)
    return results
