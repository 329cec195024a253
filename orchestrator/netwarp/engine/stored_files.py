"""Says what of a stored run is as it has to be: its files by digests.json, its tables by those made again from its
numbers, its numbers and judgements by its cells run again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ..core.errors import CaptureError, SpecError, StoreError
from ..core.frozen import to_json
from ..core.scratch import scratch
from ..core.types import Cell, CellOutcome, Measurement
from ..experiment import Spec
from ..measure.cell import capture_digests
from ..plan.make import make_plan
from ..plan.types import OUTPUTS, Plan
from ..results.run_comparison import Compared, RunComparison, StoredRun
from ..results.write import write_tables
from ..store.digests import LEFT_OUT, StoredFiles, check_digests
from ..store.run_dir import CellDir, RunDir, read_json
from .cluster_files import analyser_here
from .later_outputs import load_again
from .run_directory import Run, judge_by_checks, ran_to_its_end


@dataclass(frozen=True, slots=True)
class Stored:
    """A run as it was found: its files against its list, and the outcome of each cell."""

    files: StoredFiles
    outcomes: Mapping[str, CellOutcome]


def as_found(run: Run) -> Stored:
    """To be called before anything of the run is read otherwise: reading its results judges its cells again."""
    cells = run.directory.finished()
    return Stored(check_digests(run.directory), {name: run.directory.cell(name).read_outcome() for name in cells})


def check_stored(run: Run, found: Stored, again: Run | None = None, compared: RunComparison | None = None) -> StoredRun:
    """Check a run; again: its cells run again and analysed, of which those are compared whose captures are equal."""
    manifest = run.manifest
    notes: list[str] = []
    same = bool(manifest.software) and not manifest.other_software(analyser_here())
    seed = ""
    if run.plan.seed != manifest.seed:
        seed = f"plan.json has the seed {run.plan.seed}, manifest.json {manifest.seed}"
    tables = None
    try:
        tables = _tables_again(run)
    except (CaptureError, StoreError) as error:
        notes.append(f"tables cannot be made again: {error}")
    planned, outputs, why = _planned_again(run)
    notes += [f"spec/: {why}"] if why else []
    numbers, judgements = None, _judged_again(run, found)
    if again is not None and compared is not None:
        equal = [(pair.a, pair.b) for pair in compared.cells if pair.status == "equal"]
        numbers = _numbers_again(run, again, [(a, b) for a, b in equal if a is not None and b is not None])
    return StoredRun(found.files, same, tables, numbers, judgements, planned, outputs, seed, tuple(notes))


def _planned_again(run: Run) -> tuple[Compared | None, Compared | None, str]:
    """The cells of plan.json and the parts of outputs.json that follow from the spec, with the seed, the repetitions
    and the --set of the manifest, and a reason why that is not known. The cells may be fewer than all of the spec. A
    spec that is missing or cannot be planned has none of them.
    """
    manifest, plan = run.manifest, run.plan
    path = run.directory.spec / Path(manifest.spec_path).name
    try:
        if not path.is_file():
            raise StoreError(f"{path.name} is not there")
        spec = load_again(path, manifest)
        if any(factor.schedule is not None for factor in spec.factors.values()):
            return None, None, "nothing is planned again, because cells follow from packets of the run"
        given = any(word.startswith("--repetitions") for word in manifest.arguments)
        repetitions = manifest.repetitions if given else None
        whole = make_plan(spec, seed=manifest.seed, repetitions=repetitions)
        chosen = _chosen_again(spec, run, repetitions)
    except (StoreError, SpecError) as error:
        return (0, tuple(cell.id for cell in plan.cells)), (0, OUTPUTS), str(error)
    known = {_without_kernel(cell) for cell in whole.cells}
    other = tuple(cell.id for cell in plan.cells if _without_kernel(cell) not in known)
    # `analyze --spec` takes the outputs of the whole spec
    changed = min((_other_outputs(plan, made) for made in (whole, chosen) if made is not None), key=len)
    return (len(plan.cells) - len(other), other), (len(OUTPUTS) - len(changed), changed), ""


def _chosen_again(spec: Spec, run: Run, repetitions: int | None) -> Plan | None:
    """The plan with the --only and --where of the run; None where it had neither."""
    filters = run.plan.filters
    only = [word.removeprefix("only ") for word in filters if word.startswith("only ")]
    where = [(factor, level) for factor, equals, level in (word.partition("=") for word in filters) if equals]
    if not filters:
        return None
    return make_plan(spec, seed=run.manifest.seed, repetitions=repetitions, only=only, where=where)


def _other_outputs(plan: Plan, made: Plan) -> tuple[str, ...]:
    return tuple(name for name in OUTPUTS if to_json(getattr(plan, name)) != to_json(getattr(made, name)))


def _without_kernel(cell: Cell) -> bytes:
    """All of a cell but the hash of its kernel, which this machine need not have."""
    return to_json(msgspec.structs.replace(cell, kernel=msgspec.UNSET))


def _tables_again(run: Run) -> Compared:
    """The tables that are made of numbers. One that is missing differs, and one that no run of this plan has."""
    plan = run.plan
    with scratch("netwarp-tables-") as folder:
        write_tables(run.results, folder)
        made = {path.name: path.read_bytes() for path in sorted(folder.glob("*.csv"))}
    kept = {path.name: path for path in run.directory.tables.glob("*.csv")}
    # made of series, which a bundle does not have
    others = {f"{plan.rows_of(figure)}.csv" for figure in plan.time_series} | {"windows.csv", "invalid.csv"}
    others |= {f"{table.name}.csv" for table in plan.event_tables}
    equal = [name for name, content in made.items() if name in kept and kept[name].read_bytes() == content]
    left_out = {Path(name).name for name in LEFT_OUT} if len(equal) else set()
    differing = (made.keys() | (kept.keys() - others)) - set(equal) - (left_out - kept.keys())
    return len(equal), tuple(sorted(differing))


def _judged_again(run: Run, found: Stored) -> Compared:
    """The outcomes that follow from the cells' checks, against those that were stored. A cell that ran to its end and
    has no checks differs.
    """
    equal, other = 0, []
    for name, stored in sorted(found.outcomes.items()):
        cell = run.directory.cell(name)
        if ran_to_its_end(cell):
            judged = judge_by_checks(cell) if cell.checks.exists() else None
            same = judged is not None and (judged.outcome, judged.reason) == (stored.outcome, stored.reason)
            equal += same
            other += [] if same else [name]
    return equal, tuple(other)


def _numbers_again(run: Run, again: Run, pairs: Iterable[tuple[str, str]]) -> Compared:
    """The numbers of cells with equal captures. One that either run lacks differs."""
    equal, other = 0, []
    for then, now in pairs:
        before, after = _values(run.directory.cell(then)), _values(again.directory.cell(now))
        for key in sorted(before.keys() | after.keys()):
            same = key in before and key in after and before[key] == after[key]
            equal += same
            other += [] if same else [" ".join(filter(None, (f"{then}:", *key)))]
    return equal, tuple(other)


def _values(cell: CellDir) -> dict[tuple[str, str], float | None]:
    path = cell.measurements
    return (
        {(each.flow, each.metric): each.value for each in read_json(path, list[Measurement])} if path.exists() else {}
    )


def changed_lines(run_dir: str | Path, *, captures: bool = False) -> list[str]:
    """A line for each file of a run that is not what the run wrote; none where it has no list. captures: hash them too,
    of which the analysis kept the hashes. Raises StoreError.
    """
    run = RunDir(Path(run_dir))
    changed = [*check_digests(run).changed]
    if captures:
        changed += [name for cell_id in sorted(run.finished()) for name in _changed_captures(run.cell(cell_id))]
    return not_what_it_wrote(run_dir, changed)


def not_what_it_wrote(run_dir: str | Path, changed: Iterable[str]) -> list[str]:
    """The lines of those files."""
    return [f"{run_dir}: not what the run wrote: {name}" for name in changed]


def _changed_captures(cell: CellDir) -> Iterator[str]:
    if not cell.packets.exists():
        return
    kept = read_json(cell.packets, dict[str, str])
    for name, digest in capture_digests(cell.capture).items():
        if kept.get(name) != digest:
            yield f"cells/{cell.root.name}/capture/{name}"
