"""Analyses finished cells, writes the tables of a run and makes its report. Each step reads files and writes files.

`analyze` and `report` are the library's (netwarp.analyze, netwarp.report) and the command line's; running.py and
merging.py use the steps.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import msgspec

from ..core.types import Outcome
from ..core.units import counted
from ..experiment import AnyExperiment, Spec
from ..experiment.load import SPEC_NAME
from ..measure.capture_point import missing_raw
from ..plan.schedules import scheduled_cells
from ..plan.types import Plan
from ..present.pages.build import make_report
from ..results import Results, write_measurements, write_tables, write_timelines
from ..store.digests import changed_sources, check_digests, kind_of, write_digests
from ..store.manifest import Manifest
from ..store.packing import opened
from ..store.plan_file import keep_texts, read_plan, write_outputs
from ..store.run_dir import RunDir, locked, read_json, write_json
from .cluster_files import analyser_here
from .data_frames import need_polars, replace_parquet
from .execute import analyze_cells
from .later_outputs import Combination, later_outputs, load_again, texts_of
from .packet_schedules import write_counterexamples
from .run_directory import Run, collect, ran_to_its_end


@dataclass(frozen=True, slots=True)
class Analyzed:
    """The result of analysing a run again. not_analyzed: cell id -> its missing raw files; these cells keep their old
    results.
    """

    run: Run
    not_analyzed: Mapping[str, list[str]]
    missing: tuple[Combination, ...] = ()
    """Combinations of levels that the given spec has and the run has no cell for."""
    changed: tuple[str, ...] = ()
    """Files that the analysis read and that are not what the run wrote: digests.json keeps what it said of them."""

    @property
    def complete(self) -> bool:
        """True if every finished cell was analysed, and ended COMPLETED."""
        ends = (outcome.outcome for outcome in self.run.results.outcomes.values())
        return not self.not_analyzed and all(end is Outcome.COMPLETED for end in ends)


def analyze(
    run_dir: str | Path, *, spec: AnyExperiment | None = None, jobs: int | None = None, parquet: bool = False
) -> Analyzed:
    """Compute the measurements of a run directory again, and write its tables.

    spec: use the tables, figures, claims and answers of this spec instead of the run's; cells that already have
    measurements are then not analysed again. jobs: cells at a time (default: cores). parquet: also write the tables as
    Parquet (needs polars). Raises SpecError, StoreError, CaptureError.
    """
    if parquet:
        need_polars()
    run = RunDir(Path(run_dir))
    with locked(run):
        run.clear_partial()
        plan = read_plan(run)
        manifest = read_json(run.manifest, Manifest)
        later = None if spec is None else later_outputs(plan, manifest, spec)
        plan = plan if later is None else later.plan
        if later is None:
            write_json(run.manifest, msgspec.structs.replace(manifest, software=analyser_here()))
        changed = changed_sources(run)
        with opened(run) if later is None else contextlib.nullcontext():
            not_analyzed = analyze_all(plan, run, jobs or os.cpu_count() or 1, anew=later is None)
        if later is None and not_analyzed:
            _name_old_analyser(run, manifest, len(not_analyzed))
        results = collect(plan, run)

        def outputs_too() -> None:
            if later is not None:  # the spec is checked: nothing below refuses it
                keep_texts(run, texts_of(later.spec))
                path = str(later.spec.path or run.spec / SPEC_NAME)
                write_json(run.manifest, msgspec.structs.replace(manifest, spec_path=path))
                write_outputs(run, plan)

        changed |= changed_sources(run)  # the hashes of captures too, which were made again
        if later is not None:
            changed = {name: digest for name, digest in changed.items() if kind_of(name) != "spec"}
            changed.pop("outputs.json", None)
        _write_tables(results, run, parquet, outputs_too, changed)
        _counterexamples_again(None if later is None else later.spec, results, run)
    return Analyzed(Run(run, plan), not_analyzed, () if later is None else later.missing, tuple(changed))


def _name_old_analyser(run: RunDir, before: Manifest, left: int) -> None:
    """Say in the manifest that some cells keep the results of another analyser, where it was another."""
    if names := before.other_software(analyser_here()):
        said = f"{counted(left, 'cell')} of {before.started_utc}, not analysed again: {', '.join(names)}"
        after = read_json(run.manifest, Manifest)
        others = tuple(dict.fromkeys((*after.other_programs, said)))
        write_json(run.manifest, msgspec.structs.replace(after, other_programs=others))


def _counterexamples_again(spec: Spec | None, results: Results, run: RunDir) -> None:
    """Put the counterexamples of these results in place of the old ones. spec: None: that which is kept with the run;
    where it is not, the old ones go, since they may contradict the tables.
    """
    run.counterexamples.remove_tree(ignore_errors=True)
    if not scheduled_cells(results.plan):
        return
    if spec is None:
        manifest = read_json(run.manifest, Manifest)
        kept = run.spec / Path(manifest.spec_path).name
        spec = load_again(kept, manifest) if kept.exists() else None
    if spec is not None:
        write_counterexamples(spec, results, run)


def report(run_dir: str | Path, *, spec: AnyExperiment | None = None) -> Path:
    """Make the report of a run directory again, from its tables and derived files. Returns the path of its first page.

    spec: use the tables, figures, claims and answers of this spec, as for `analyze`.
    """
    run = RunDir(Path(run_dir))
    if spec is not None:
        analyze(run_dir, spec=spec)
    elif not (run.tables / "cells.csv").exists():
        tabulate(read_plan(run), run)
    elif not (run.tables / "measurements.csv").exists():  # a bundle: it has each cell's own
        write_measurements(collect(read_plan(run), run), run.tables)
    changed = () if spec is not None else check_digests(run).changed
    return make_report(run, changed)


def analyze_all(plan: Plan, run: RunDir, jobs: int, *, anew: bool = True) -> dict[str, list[str]]:
    """Analyse every finished cell, or (not anew) those without derived files.

    A cell whose raw files are incomplete stays as it is. Returns these cells: cell id -> the missing files.
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
            todo.append(cell)
    analyze_cells(todo, run, jobs=jobs)
    return left


def tabulate(
    plan: Plan, run: RunDir, *, parquet: bool = False, changed: Mapping[str, str] = MappingProxyType({})
) -> Results:
    """Write tables/*.csv from the cells' derived files; also as Parquet if asked for. changed: digests that stay."""
    results = collect(plan, run)
    _write_tables(results, run, parquet, changed=changed)
    return results


def _write_tables(
    results: Results,
    run: RunDir,
    parquet: bool,
    between: Callable[[], None] = lambda: None,
    changed: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write all tables beside the old ones, then put them in their place. changed: digests that stay in the list."""
    with run.tables_beside() as folder:
        write_tables(results, folder)
        write_timelines(results.plan, results.outcomes, run, folder)
        run.install_tables(between)
    write_digests(run, changed)
    replace_parquet(run, parquet)
