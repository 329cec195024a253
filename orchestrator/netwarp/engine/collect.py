"""Collects the outcomes of a run after the analyser's checks, and its measurements."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.errors import CaptureError
from ..core.invocation import command
from ..core.types import CellOutcome, Check, Measurement, Outcome
from ..measure.capture_point import missing_raw
from ..measure.cell import with_expressions
from ..plan.types import Plan
from ..results import Results
from ..store.run_dir import CellDir, Judgement, RunDir, read_json, write_json


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
    expressions = {metric.name: metric.expression for metric in plan.metrics if metric.expression}
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
            yield from with_expressions(cell, read_json(directory.measurements, list[Measurement]), expressions)
