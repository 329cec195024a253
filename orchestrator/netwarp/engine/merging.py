"""Merges the shards of a run, or its base and its robustness, into one run directory with every cell, as if one machine
had run them all.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ..core.errors import SpecError, StoreError
from ..plan.make import BASE, ROBUSTNESS
from ..plan.shards import merged_plan
from ..plan.types import Plan
from ..present.pages.build import make_report
from ..store.manifest import Manifest
from ..store.packing import PACK_ABOVE, combine, pack_one, unpack_one
from ..store.packs import PACK_CELLS, archives, cell_bytes
from ..store.plan_file import read_plan, write_plan
from ..store.run_dir import RunDir, locked, write_json
from ..store.run_locations import check_out
from .analysis import tabulate
from .outputs import plan_again
from .run_directory import Run, open_run

MADE_BY = ("spec_sha256", "seed", "repetitions", "backend", "kernel_release", "kernel_sha256", "programs", "sets")
"""Of the manifest: what must be equal for cells to stand in one run."""
PARTS = (f"only {BASE}", f"only {ROBUSTNESS}")
"""Filters of the plans of a run's two parts."""


def merge_runs(runs: Sequence[str | Path], *, out: str | Path, report: bool = True) -> Run:
    """Merge all shards of a plan, or a run of its base and one of its robustness. Files are hard-linked if possible,
    otherwise copied; the shards stay.

    The same call continues an interrupted merge. Raises SpecError if a shard is missing, or if they differ in plan,
    kernel or programs; StoreError.
    """
    shards = [open_run(run) for run in runs]
    parts = sorted(shard.plan.filters for shard in shards) == sorted((name,) for name in PARTS)
    plan = _plan_of_parts(shards) if parts else merged_plan([shard.plan for shard in shards])
    for shard in shards[1:]:
        other = [name for name in MADE_BY if getattr(shard.manifest, name) != getattr(shards[0].manifest, name)]
        if other:
            raise SpecError(f"{shard.path}: is not of the same making as {shards[0].path}: {', '.join(other)} differ")
    unfinished = [shard for shard in shards if len(shard.directory.finished()) < len(shard.plan.cells)]
    if unfinished:
        raise SpecError(f"{unfinished[0].path}: is not finished; go on with it first (netwarp run ... --resume)")
    run = RunDir(Path(out))
    check_out(run.root, resume=False)
    with locked(run):
        if run.plan.exists() and read_plan(run) != plan:
            raise SpecError(f"{run.root}: holds another run already; --out wants a new or an empty directory")
        write_json(run.manifest, _manifest([shard.manifest for shard in shards], parts))
        if not run.spec.exists():
            shutil.copytree(shards[0].directory.spec, run.spec)
        write_plan(run, plan)
        run.clear_partial()
        there = run.finished()
        for shard in shards:
            for cell in shard.plan.cells:
                if cell.id not in there:
                    _take(shard.directory, run, cell.id)
                    if len(plan.cells) > PACK_ABOVE:
                        pack_one(run, cell.id)
                        combine(run, at_least=PACK_CELLS)
        run.clear_partial()
        if shards[0].directory.calibration.exists():
            shutil.copyfile(shards[0].directory.calibration, run.calibration)
        tabulate(plan, run)
        page = make_report(run) if report else None
    return Run(run, plan, page)


def _plan_of_parts(runs: Sequence[Run]) -> Plan:
    """The plan of base and robustness together, by the spec that is kept with the runs."""
    first = runs[0]
    spec = first.directory.spec / Path(first.manifest.spec_path).name
    cells = [cell for run in runs for cell in run.plan.cells]
    _, plan = plan_again(spec, first.manifest, cells, only=(BASE, ROBUSTNESS))
    apart = {cell.id for run in runs for cell in run.plan.cells} ^ {cell.id for cell in plan.cells}
    if apart:
        raise SpecError(
            f"merge: {len(apart)} cells are in the runs or in {spec} alone ({min(apart)}): both parts must be of one "
            "spec, without --repetitions and --where"
        )
    return plan


def _manifest(manifests: Sequence[Manifest], parts: bool) -> Manifest:
    """The manifest of the whole, without wall_s: the cells ran in several places, or one part after the other."""
    first = manifests[0]
    words, kept = list(first.arguments), []
    of_a_part = ("--shard", "--only") if parts else ("--shard",)
    while words:
        word = words.pop(0)
        if word in of_a_part and words:
            words.pop(0)
        elif not word.startswith(tuple(f"{option}=" for option in of_a_part)):
            kept.append(word)
    kept += ["--only", BASE, "--only", ROBUSTNESS] if parts else []
    return msgspec.structs.replace(
        first,
        arguments=tuple(kept),
        started_utc=min(shard.started_utc for shard in manifests),
        ended_utc=max((shard.ended_utc for shard in manifests if shard.ended_utc is not None), default=None),
        wall_s=None,
    )


def _take(source: RunDir, run: RunDir, cell_id: str) -> None:
    """Hard links are safe: files of a run are written once and replaced only by a rename."""
    packed = archives(source.cells)
    if cell_id in packed and not (source.cells / cell_id).is_dir():
        unpack_one(run, cell_id, cell_bytes(packed[cell_id], cell_id))
        return
    try:
        shutil.copytree(source.cell(cell_id).root, run.partial_cell(cell_id).root, copy_function=_link)
    except (OSError, shutil.Error) as error:
        raise StoreError(f"{run.root}: cell {cell_id} cannot be written: {error}") from error
    run.install(cell_id)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        shutil.copy2(source, target)
