"""The outcomes of a run after the analyser's checks, and its measurements."""

from __future__ import annotations

import msgspec

from ..core.errors import CaptureError
from ..core.invocation import command
from ..core.types import CellOutcome, Measurement, Outcome, to_json
from ..measure.capture_point import missing_raw
from ..plan.types import Plan
from ..results import Results
from ..store.run_dir import CellDir, RunDir, read_json, write_atomic


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


def ended_otherwise(outcome: CellOutcome) -> bool:
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
    return Results(plan, outcomes, measurements)
