"""Runs the same cells on two back ends, or takes two existing runs, and judges whether their numbers agree."""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ..core.errors import CaptureError, SpecError, StoreError
from ..core.numbers import given, percent
from ..core.schedules import UNDISTURBED
from ..core.types import Cell
from ..core.units import counted
from ..experiment import AnyExperiment, Spec, load_experiment
from ..measure.first_divergence import Divergence, first_divergence
from ..plan.schedules import scheduled_cells
from ..plan.types import Plan
from ..results.agreement import Agreement, agree
from ..results.compare import Levels, levels_of
from ..sandbox.choose import choose, lateness_s, with_kernels
from ..sandbox.virtual import WALL_LATENESS_NS
from ..store.environment import Environment
from ..store.run_dir import RunDir, locked, read_json
from ..store.run_locations import check_out, new_directory
from .analysis import tabulate
from .events import Notice, Progress, no_progress
from .late_cells import late_cells
from .planning import Where, plan_experiment
from .run_directory import Run, open_run
from .running import begin, check_jobs, end, ended_early, run_cells

REPETITIONS = 5
"""The default: with fewer draws a difference of random numbers cannot be told from chance."""
MOST_DIVERGENCES = 20
"""Places that differ whose captures are looked into."""


@dataclass(frozen=True, slots=True)
class AgreementSide:
    """One of the two runs, and its name. again: cells that were rerun, and why."""

    name: str
    run: Run
    again: tuple[str, ...] = ()

    @property
    def lateness_s(self) -> float:
        """The lateness that its cells are permitted, in seconds."""
        return lateness_s(self.run.manifest.backend)

    @property
    def outcomes(self) -> str:
        """The outcomes as text: 148 COMPLETED, 2 INVALID."""
        counts = Counter(str(each.outcome) for each in self.run.results.outcomes.values())
        missing = len(self.run.results.plan.cells) - sum(counts.values())
        said = [f"{count} {outcome}" for outcome, count in counts.most_common()]
        return ", ".join(said + ([f"{missing} not run"] if missing else []))

    @property
    def late(self) -> str:
        """The share of wakes at which the host was late, in the cells that count; "" if it was not measured."""
        recorded = []
        for cell in self.run.results.plan.cells:
            if self.run.results.completed(cell.id):
                host = read_json(self.run.directory.cell(cell.id).environment, Environment).host
                recorded.append(None if host is None else host.late_wakes_ratio)
        ratios = [ratio for ratio in recorded if ratio is not None]
        if not ratios:
            return ""
        return (
            f"wakes more than {given(WALL_LATENESS_NS / 1e6)} ms late: "
            f"{percent(statistics.fmean(ratios))} in the mean, {percent(max(ratios))} in the latest cell"
        )


@dataclass(frozen=True, slots=True)
class BackendAgreement:
    """The result: whether two runs agree. divergences: for cells that differ, the first packets that differ, from the
    captures.

    out: the directory that holds both runs; None if the runs existed before.
    """

    agreement: Agreement
    sides: tuple[AgreementSide, AgreementSide]
    divergences: Mapping[Levels, tuple[Divergence, ...]]
    out: Path | None = None


def agree_runs(run_a: str | Path, run_b: str | Path) -> BackendAgreement:
    """Compare every number of the second run with the first. Raises SpecError, StoreError, CaptureError."""
    return judge_sides(_named_apart(side_of(RunDir(Path(run_a))), side_of(RunDir(Path(run_b)))), None)


def agree_backends(
    experiment: AnyExperiment,
    backends: tuple[str, str],
    *,
    sets: Mapping[str, str] | None = None,
    seed: int | None = None,
    repetitions: int | None = None,
    only: Sequence[str] = (),
    where: Where = (),
    jobs: int | None = None,
    inventory: str | Path | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    arguments: Sequence[str] = (),
    progress: Progress = no_progress,
) -> BackendAgreement:
    """Run the cells of a spec on two back ends, and compare every number of the second with the first.

    repetitions: default 5. inventory: of the back end hosts. out: the directory for both runs (default:
    results/agreement/<name>/<time>/). resume: continue the interrupted comparison in `out`. The other
    arguments: as for `run`. Raises what `run` raises.
    """
    if resume and out is None:
        raise SpecError("--resume wants --out: the directory of the interrupted one")
    check_jobs(jobs)
    spec = load_experiment(experiment, sets=sets)
    whole = plan_experiment(
        spec, seed=seed, repetitions=REPETITIONS if repetitions is None else repetitions, only=only, where=where,
        backend=backends[0], progress=progress,
    )  # fmt: skip
    growing = sorted({each.factor for each in scheduled_cells(whole)})
    if growing:
        raise SpecError(
            f"agree: the levels of {', '.join(growing)} follow from the packets of a run, which two back ends need not "
            f"share: --where {growing[0]}={UNDISTURBED} compares the undisturbed cells, and the spec.toml of a "
            "counterexample one schedule"
        )
    drawn = tuple(cell for cell in whole.cells if cell.random or cell.repetition == 0)
    machines = None if inventory is None else Path(inventory)
    for name in backends:  # before anything runs: may raise BackendUnavailable
        with_kernels(choose(name, machines if name == "hosts" else None), drawn).backend.close()
    if out is not None:
        check_out(Path(out), resume, backends)
    folder = Path(out) if out is not None else new_directory(Path("results") / "agreement" / whole.name).root
    sides = []
    with locked(RunDir(folder)):
        for name in backends:
            # what is not random is the same again in virtual time; on the wall clock its repetitions are its spread
            plan = msgspec.structs.replace(whole, cells=drawn) if name == "virtual" else whole
            directory = RunDir(folder / name)
            try:
                sides.append(_run_side(spec, plan, name, machines, directory, jobs, resume, arguments, progress))
            except (KeyboardInterrupt, OSError, StoreError) as error:
                # `folder` is what goes on
                ended_early(error, Run(RunDir(folder), plan))
    return judge_sides((sides[0], sides[1]), folder)


def judge_sides(sides: tuple[AgreementSide, AgreementSide], out: Path | None) -> BackendAgreement:
    """If the numbers of two runs agree, and otherwise the first packets that differ."""
    a, b = sides
    agreement = agree(a.run.results, b.run.results, max(a.lateness_s, b.lateness_s), _unclocked(a) | _unclocked(b))
    if not agreement.numbers:
        raise SpecError(f"{a.run.path} and {b.run.path} have no number in common: nothing was compared")
    return BackendAgreement(agreement, sides, _divergences(agreement, a, b), out)


def _unclocked(side: AgreementSide) -> frozenset[tuple[str, str, str]]:
    """(cell id, flow, metric) of the values that the clocks of two machines took away."""
    without = {
        cell.id: read_json(path, dict[str, list[str]])
        for cell in side.run.plan.cells
        if (path := side.run.directory.cell(cell.id).clock_limits).exists()
    }
    return frozenset(
        (name, flow, metric) for name, flows in without.items() for flow in flows for metric in flows[flow]
    )


def _run_side(
    spec: Spec,
    plan: Plan,
    name: str,
    machines: Path | None,
    directory: RunDir,
    jobs: int | None,
    resume: bool,
    arguments: Sequence[str],
    progress: Progress,
) -> AgreementSide:
    """Run the unfinished cells of one side. Raises BackendUnavailable, or KeyboardInterrupt with the finished cells
    kept.
    """
    chosen = with_kernels(choose(name, machines if name == "hosts" else None), plan.cells)
    cores = os.cpu_count() or 1
    jobs = (jobs or 1) if chosen.backend.wall_clock else min(jobs or cores, cores)
    jobs = jobs if chosen.backend.on_this_machine else 1
    progress(Notice(f"{counted(len(plan.cells), 'cell')} on {name}, {jobs} at once"))
    with locked(directory), contextlib.closing(chosen.backend):
        started = time.monotonic()
        manifest = begin(resume, spec, plan, directory, chosen, jobs, arguments)
        run_cells(plan, directory, chosen, jobs, progress)
        late = late_cells(plan, directory)
        if late:
            for cell_id, reason in late.items():
                progress(Notice(f"rerunning cell {cell_id}, the host was late: {reason}"))
                directory.set_aside(cell_id)
            run_cells(plan, directory, chosen, jobs, progress)
        end(directory, manifest, None if resume else round(time.monotonic() - started, 3))
        tabulate(plan, directory)
    return side_of(directory, name, tuple(f"{cell_id}: {reason}" for cell_id, reason in late.items()))


def side_of(directory: RunDir, name: str = "", again: tuple[str, ...] = ()) -> AgreementSide:
    """An existing run. name: "": the name of its back end. Raises StoreError."""
    run = open_run(directory.root)
    return AgreementSide(name or run.manifest.backend, run, again)


def _named_apart(a: AgreementSide, b: AgreementSide) -> tuple[AgreementSide, AgreementSide]:
    """The sides with the names A and B, if both are of the same back end."""
    if a.name != b.name:
        return a, b
    return AgreementSide("A", a.run), AgreementSide("B", b.run)


def _completed(side: AgreementSide, levels: Levels) -> list[Cell]:
    """A side's completed cells of one combination, by repetition."""
    results = side.run.results
    return [cell for cell in results.plan.cells if set(levels_of(cell)) == set(levels) and results.completed(cell.id)]


def same_repetition(a: Sequence[Cell], b: Sequence[Cell]) -> tuple[Cell, Cell] | None:
    """Of two sides' completed cells of one combination, those of the first repetition that both have: another has
    other draws. Where nothing is random, the first of each.
    """
    there = {cell.repetition: cell for cell in b}
    pairs = ((cell, there[cell.repetition]) for cell in a if cell.repetition in there)
    if (pair := next(pairs, None)) is not None:
        return pair
    return (a[0], b[0]) if a and b and not (a[0].random or b[0].random) else None


def _divergences(agreement: Agreement, a: AgreementSide, b: AgreementSide) -> dict[Levels, tuple[Divergence, ...]]:
    """For cells that differ, the first packets that differ in the senders' captures of the first repetition that both
    sides completed.
    """
    places = list(dict.fromkeys(number.levels for number in agreement.numbers if number.verdict == "differ"))
    divergences: dict[Levels, tuple[Divergence, ...]] = {}
    for levels in places[:MOST_DIVERGENCES]:
        pair = same_repetition(*(_completed(side, levels) for side in (a, b)))
        if pair is None:
            continue
        cell_a, cell_b = pair
        slack_s = 2 * agreement.lateness_s
        directories = a.run.directory.cell(cell_a.id), b.run.directory.cell(cell_b.id)
        try:
            seen = [
                first_divergence(cell_a, *directories, flow.name, slack_s)
                for flow in cell_a.flows
                if not flow.is_datagrams
            ]
        except (CaptureError, KeyError, StopIteration):
            continue  # captures that cannot be read explain nothing; the numbers stand
        divergences[levels] = tuple(each for each in seen if each is not None)
    return divergences
