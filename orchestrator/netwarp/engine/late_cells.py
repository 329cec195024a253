"""Cells of a run on the wall clock that do not count because the host was late, which says nothing about the cell."""

from __future__ import annotations

from pathlib import Path

from ..core.types import CellOutcome, Outcome
from ..plan.types import Plan
from ..store.environment import Environment
from ..store.run_dir import RunDir, read_json

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
