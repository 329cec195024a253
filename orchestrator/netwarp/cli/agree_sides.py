"""The two runs of `netwarp agree`: the same cells on each back end, those the host made late once more."""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ..core.numbers import given, percent
from ..core.types import CellOutcome, Outcome
from ..core.units import counted
from ..engine.stages import collect, tabulate
from ..experiment import Spec
from ..plan.types import Plan
from ..results import Results
from ..sandbox.choose import choose, lateness_s
from ..sandbox.virtual import WALL_LATENESS_NS
from ..store.manifest import Manifest, now_utc
from ..store.run_dir import RunDir, locked, read_json, write_json
from .progress import RunProgress
from .run import open_run, run_cells

LATE = ("timeline", "start of ", "steal time")
"""How the checks begin that fail where the host was late, and say nothing of the cell."""


@dataclass(frozen=True, slots=True)
class AgreementSide:
    """One run: how it is called, where it is, what it measured. again: cells that ran once more, and why."""

    name: str
    run: RunDir
    results: Results
    manifest: Manifest
    again: tuple[str, ...] = ()

    @property
    def lateness_s(self) -> float:
        """What its cells may be late by."""
        return lateness_s(self.manifest.backend)

    @property
    def outcomes(self) -> str:
        """148 COMPLETED, 2 INVALID."""
        counts = Counter(str(one.outcome) for one in self.results.outcomes.values())
        missing = len(self.results.plan.cells) - sum(counts.values())
        said = [f"{count} {outcome}" for outcome, count in counts.most_common()]
        return ", ".join(said + ([f"{missing} not run"] if missing else []))

    @property
    def late(self) -> str:
        """How much of the time the host let the cells that count wake late; "" where nothing measured it."""
        found = []
        for cell in self.results.plan.cells:
            if self.results.completed(cell.id):
                environment = msgspec.json.decode(self.run.cell(cell.id).environment.read_bytes())
                found.append(environment.get("host", {}).get("late_wakes_ratio"))
        ratios = [ratio for ratio in found if ratio is not None]
        if not ratios:
            return ""
        return (
            f"wakes more than {given(WALL_LATENESS_NS / 1e6)} ms late: "
            f"{percent(statistics.fmean(ratios))} in the mean, {percent(max(ratios))} in the latest cell"
        )


def run_side(args: argparse.Namespace, spec: Spec, plan: Plan, name: str, directory: RunDir) -> AgreementSide:
    """Run what is left of a side. Raises BackendUnavailable; KeyboardInterrupt, and what is finished is kept."""
    progress = RunProgress(plan.cells)
    chosen = choose(name, progress.virtual)
    cores = os.cpu_count() or 1
    jobs = (args.jobs or 1) if chosen.backend.wall_clock else min(args.jobs or cores, cores)
    print(f"netwarp: {counted(len(plan.cells), 'cell')} on {name}, {jobs} at once", file=sys.stderr, flush=True)
    with locked(directory):
        started = time.monotonic()
        manifest = open_run(args.resume, spec, plan, directory, chosen, jobs)
        run_cells(plan, directory, chosen, jobs, progress)
        again = late_cells(plan, directory)
        if again:
            for cell_id, reason in again.items():
                print(f"netwarp: once more, the host was late: {cell_id}: {reason}", file=sys.stderr, flush=True)
                directory.set_aside(cell_id)
            # a back end that has run its cells is at its end: a new one
            once_more = RunProgress(tuple(cell for cell in plan.cells if cell.id in again))
            run_cells(plan, directory, choose(name, once_more.virtual), jobs, once_more)
        directory.clear_partial()
        wall_s = None if args.resume else round(time.monotonic() - started, 3)
        write_json(directory.manifest, msgspec.structs.replace(manifest, ended_utc=now_utc(), wall_s=wall_s))
        tabulate(plan, directory)
    return side_of(directory, name, tuple(f"{cell_id}: {reason}" for cell_id, reason in again.items()))


def side_of(directory: RunDir, name: str = "", again: tuple[str, ...] = ()) -> AgreementSide:
    """A run that is there. name: "": its back end's. Raises StoreError."""
    plan, manifest = read_json(directory.plan, Plan), read_json(directory.manifest, Manifest)
    collected = collect(plan, directory)
    results = Results(plan, collected.outcomes, collected.measurements)
    return AgreementSide(name or manifest.backend, directory, results, manifest, again)


def late_cells(plan: Plan, directory: RunDir) -> dict[str, str]:
    """Cells that are INVALID for the host's lateness alone -> the reason."""
    found: dict[str, str] = {}
    finished = directory.finished()
    for cell in plan.cells:
        if cell.id in finished:
            outcome = directory.cell(cell.id).read_outcome()
            if _late(directory.cell(cell.id).environment, outcome):
                found[cell.id] = outcome.reason
    return found


def _late(environment: Path, outcome: CellOutcome) -> bool:
    if outcome.outcome is not Outcome.INVALID or not environment.exists():
        return False
    checks = msgspec.json.decode(environment.read_bytes())["checks"]
    failed = [str(check["check"]) for check in checks if not check["ok"]]
    return bool(failed) and all(name.startswith(LATE) for name in failed)
