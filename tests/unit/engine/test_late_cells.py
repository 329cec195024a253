"""A resumed run tries again what failed and what a late host spoilt, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.core.types import CellOutcome, Outcome
from netwarp.engine.run_directory import late_cells
from netwarp.engine.running import rerun_failed
from support.report_kit import environment, plan_of, put, spec_text, to_json, write_run

WAKES = {"check": "timeline between steps", "ok": False, "detail": "35 % of the wakes late"}
QDISC = {"check": "qdisc p1 forward", "ok": False, "detail": "another rate"}


@pytest.mark.parametrize(
    ("outcome", "failed", "again"),
    [(Outcome.INVALID, [WAKES], True), (Outcome.INVALID, [WAKES, QDISC], False), (Outcome.INVALID, [QDISC], False),
     (Outcome.FAILED, [], True), (Outcome.COMPLETED, [WAKES], False), (Outcome.TIMED_OUT, [], False)],
)  # fmt: skip
def test_what_runs_again(tmp_path: Path, outcome: Outcome, failed: list[dict[str, object]], again: bool) -> None:
    plan = plan_of(spec_text(), tmp_path / "spec")
    run = write_run(tmp_path / "run", plan)
    first, *others = plan.cells
    cell = run.cell(first.id)
    put(cell.outcome, to_json(CellOutcome(outcome, "so it ended", 1.0, 1.0)))
    there = environment(good=True)
    put(cell.environment, there | {"checks": [check for check in there["checks"] if check["ok"]] + failed})
    assert (first.id in late_cells(plan, run)) == (again and outcome is Outcome.INVALID)
    rerun_failed(plan, run)
    assert run.finished() == {each.id for each in others} | (set() if again else {first.id})
    assert (run.cells / ".failed" / f"{first.id}.1").exists() == again
