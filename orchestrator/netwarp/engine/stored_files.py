"""Says what of a stored run is as it has to be: its files by digests.json, its tables by those made again from its
numbers, its numbers and judgements by its cells run again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import CaptureError, StoreError
from ..core.types import CellOutcome, Measurement
from ..results.run_comparison import RunComparison, StoredRun
from ..results.write import write_tables
from ..store.digests import StoredFiles, check_digests
from ..store.run_dir import RunDir, read_json
from .cluster_files import analyser_here
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
    numbers, judgements = None, _judged_again(run, found)
    if again is not None and compared is not None:
        equal = [(pair.a, pair.b) for pair in compared.cells if pair.status == "equal"]
        numbers = _numbers_again(run, again, [(a, b) for a, b in equal if a is not None and b is not None])
    return StoredRun(found.files, same, tables, numbers, judgements, seed, tuple(notes))


def _tables_again(run: Run) -> tuple[int, tuple[str, ...]]:
    with tempfile.TemporaryDirectory(prefix="netwarp-tables-") as folder:
        write_tables(run.results, Path(folder))
        equal, differing = 0, []
        for made in sorted(Path(folder).glob("*.csv")):
            kept = run.directory.tables / made.name
            if kept.exists():
                same = kept.read_bytes() == made.read_bytes()
                equal += same
                differing += [] if same else [made.name]
        return equal, tuple(differing)


def _judged_again(run: Run, found: Stored) -> tuple[int, tuple[str, ...]]:
    """The outcomes that follow from the cells' checks, against those that were stored."""
    equal, other = 0, []
    for name, stored in sorted(found.outcomes.items()):
        cell = run.directory.cell(name)
        if ran_to_its_end(cell) and cell.checks.exists():
            judged = judge_by_checks(cell)
            same = (judged.outcome, judged.reason) == (stored.outcome, stored.reason)
            equal += same
            other += [] if same else [name]
    return equal, tuple(other)


def _numbers_again(run: Run, again: Run, pairs: Iterable[tuple[str, str]]) -> tuple[int, tuple[str, ...]]:
    """The numbers that cells have in both runs, of cells with equal captures."""
    equal, other = 0, []
    for then, now in pairs:
        kept, made = run.directory.cell(then).measurements, again.directory.cell(now).measurements
        if kept.exists() and made.exists():
            before, after = _values(kept), _values(made)
            for key in sorted(before.keys() & after.keys()):
                equal += before[key] == after[key]
                other += [] if before[key] == after[key] else [" ".join(filter(None, (f"{then}:", *key)))]
    return equal, tuple(other)


def _values(path: Path) -> dict[tuple[str, str], float | None]:
    return {(each.flow, each.metric): each.value for each in read_json(path, list[Measurement])}


def changed_lines(run_dir: str | Path) -> list[str]:
    """A line for each file of a run that is not what the run wrote; none where it has no list. Raises StoreError."""
    files = check_digests(RunDir(Path(run_dir)))
    return [f"{run_dir}: not what the run wrote: {name}" for name in files.changed]
