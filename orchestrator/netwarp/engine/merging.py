"""Merges the shards of a run, or its base and its robustness, into one run directory with every cell, as if one machine
had run them all; or takes the cells of a spec from whichever runs have them.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from ..core.errors import CaptureError, SpecError, StoreError, os_words
from ..core.frozen import to_json
from ..core.types import Cell, GuestKernel, Measurement, Outcome
from ..experiment import Spec
from ..guestkernel.cache import list_kernels
from ..measure.cell import with_expressions
from ..plan.make import BASE, ROBUSTNESS
from ..plan.schedules import scheduled_cells
from ..plan.shards import merged_plan
from ..plan.types import Plan
from ..present.pages.build import make_report
from ..sandbox.own_programs import refuse_programs
from ..store.digests import changed_in_cells
from ..store.manifest import Manifest, identity_of
from ..store.packing import PACK_ABOVE, Combiner, pack_one, unpack_one
from ..store.packs import PackedPath, cell_bytes
from ..store.plan_file import keep_texts, read_plan, write_plan
from ..store.run_dir import LOCK, RunDir, locked, read_json, write_json
from ..store.run_locations import check_out
from .analysis import tabulate
from .later_outputs import load_again, plan_again, texts_of
from .run_directory import Run, open_run

MADE_BY = ("spec_sha256", "seed", "repetitions", "backend", "programs", "sets")
"""Of the manifest: what must be equal for cells to stand in one run, besides the kernel of those that name none."""
MADE_EQUALLY = ("seed", "backend", "sets")
"""The same where cells are taken by what runs in them, whatever the spec says beside it."""
PARTS = (f"only {BASE}", f"only {ROBUSTNESS}")
"""Filters of the plans of a run's two parts."""


def merge_runs(
    runs: Sequence[str | Path], *, out: str | Path, report: bool = True, allow_programs: bool = False
) -> Run:
    """Merge all shards of a plan, or a run of its base and one of its robustness. Files are hard-linked if possible,
    otherwise copied; the shards stay.

    allow_programs: also runs that bring programs, which nothing here runs, but `verify` of the whole would. The same
    call continues an interrupted merge. Raises SpecError if a shard is missing, or if they differ in plan,
    kernel, programs, or the software that made and analysed their cells; StoreError.
    """
    shards = [open_run(run) for run in runs]
    for shard in shards:
        refuse_programs(shard.plan.cells, shard.path, allowed=allow_programs)
    _refuse_schedules(shards)
    parts = sorted(shard.plan.filters for shard in shards) == sorted((name,) for name in PARTS)
    plan = _plan_of_parts(shards) if parts else merged_plan([shard.plan for shard in shards])
    _refuse_unlike(shards, MADE_BY, software=True)
    kernels = _kernels(shards, plan)
    unfinished = [shard for shard in shards if len(shard.directory.finished()) < len(shard.plan.cells)]
    if unfinished:
        raise SpecError(f"{unfinished[0].path}: is not finished; go on with it first (netwarp run ... --resume)")
    taken = [(shard.directory, cell.id, cell) for shard in shards for cell in shard.plan.cells]
    spec = shards[0].directory.spec
    texts = {str(path.relative_to(spec)): path.read_bytes() for path in spec.rglob("*") if path.is_file()}
    manifests = [shard.manifest for shard in shards]
    manifest = _with_kernels(_manifest(manifests, parts), manifests, kernels)
    return _put_together(out, plan, manifest, texts, taken, report)


def take_cells(
    spec: str | Path, runs: Sequence[str | Path], *, out: str | Path, report: bool = True, allow_programs: bool = False
) -> Run:
    """A run of the whole spec, its cells taken from the first of the runs that has them (where they FAILED, from a
    later one): after a change that leaves most cells as they were, only the others have to be run.

    The runs may be of earlier states of the spec, and of other builds of the programs and the analyser: which those
    are is kept in the manifest (`other_programs`); `netwarp archive verify` of the whole shows whether their cells are
    what these programs make. Raises SpecError if a cell is in none of them, if they have more repetitions than the spec
    asks for, or if they differ in seed, kernel or back end; StoreError.
    """
    sources = [open_run(run) for run in runs]
    for source in sources:
        refuse_programs(source.plan.cells, source.path, allowed=allow_programs)
    _refuse_schedules(sources)
    first = sources[0].manifest
    _refuse_unlike(sources, MADE_EQUALLY)
    cells = [cell for source in sources for cell in source.plan.cells]
    only = _parts_of(load_again(spec, first), sources)
    loaded, plan = plan_again(spec, first, cells, only=only)
    kernels = _kernels(sources, plan)
    lost = max(source.manifest.repetitions for source in sources)
    if lost > plan.repetitions:
        raise SpecError(
            f"{loaded.path}: the runs have {lost} repetitions, it asks for {plan.repetitions}: write "
            "repetitions into it"
        )
    place: dict[bytes, tuple[Run, str]] = {}
    for source in sources:
        finished = source.directory.finished()
        for cell in source.plan.cells:
            if (cell_id := cell.id) in finished:
                runs_in_it = _what_runs(cell)
                if runs_in_it not in place or (_failed(*place[runs_in_it]) and not _failed(source, cell_id)):
                    place[runs_in_it] = source, cell_id
    wanted = [(cell, place.get(_what_runs(cell))) for cell in plan.cells]
    missing = [cell.id for cell, there in wanted if there is None]
    if missing:
        raise SpecError(
            f"{loaded.path}: {len(missing)} of its {len(plan.cells)} cells are in none of the runs ({missing[0]})"
        )
    manifest = _manifest([source.manifest for source in sources], parts=False)
    words = ["run", str(spec), *(word for text in first.sets for word in ("--set", text))]
    found = [(*there, cell) for cell, there in wanted if there is not None]
    used = [source for source in sources if any(run is source for run, _, _ in found)]
    kept = (text for source in used for text in source.manifest.other_programs)
    others = dict.fromkeys(filter(None, (*kept, *(_other_programs(sources[0], source) for source in used))))
    manifest = msgspec.structs.replace(
        manifest,
        arguments=tuple(words + [word for part in only for word in ("--only", part)]),
        repetitions=plan.repetitions,
        spec_path=str(loaded.path),
        spec_sha256=hashlib.sha256(loaded.text).hexdigest(),
        other_programs=tuple(others),
    )
    manifest = _with_kernels(manifest, [source.manifest for source in sources], kernels)
    taken = [(source.directory, cell_id, cell) for source, cell_id, cell in found]
    return _put_together(out, plan, manifest, texts_of(loaded), taken, report)


def _parts_of(spec: Spec, sources: Sequence[Run]) -> tuple[str, ...]:
    """What the whole has: base and robustness; of optional experiments only those that a run was asked for."""
    if optional := [each.name for each in spec.experiments if each.optional]:
        filters = {text for source in sources for text in source.plan.filters}
        of_both = (ROBUSTNESS,) if f"only {ROBUSTNESS}" in filters else ()
        return BASE, *of_both, *(name for name in optional if f"only {name}" in filters)
    return (BASE, ROBUSTNESS) if any(factor.unstated for factor in spec.factors.values()) else ()


def _put_together(
    out: str | Path, plan: Plan, manifest: Manifest, texts: Mapping[str, bytes],
    cells: Sequence[tuple[RunDir, str, Cell]], report: bool,
) -> Run:  # fmt: skip
    """Write a run of these cells, each from the run that has it under that id, with its plan, tables and report. texts:
    of its spec/. What an interrupted call has taken already stays.
    """
    run = RunDir(Path(out))
    check_out(run.root, resume=False)
    with locked(run):
        if run.plan.exists() and read_plan(run) != plan:
            raise SpecError(f"{run.root}: holds another run already; --out wants a new or an empty directory")
        new = run.root.listed() == [LOCK]
        try:
            write_json(run.manifest, manifest)
            keep_texts(run, texts)
            write_plan(run, plan)
            run.clear_partial()
            there, combiner = run.finished(), Combiner(run)
            for source, cell_id, cell in cells:
                if (name := cell.id) not in there:
                    _take(source, run, cell_id, cell)
                    if len(plan.cells) > PACK_ABOVE:
                        pack_one(run, name)
                        combiner.packed(1)
        except (CaptureError, StoreError):  # a cell cannot be taken, and could not by a second call
            if new:
                run.remove()
            raise
        run.clear_partial()
        changed: dict[str, str] = {}
        for source in {source.root: source for source, _, _ in cells}.values():
            ids = {cell_id: cell.id for whose, cell_id, cell in cells if whose.root == source.root}
            changed |= changed_in_cells(source, ids)
        if (calibration := cells[0][0].calibration).exists():
            calibration.copy_to(run.calibration)
        tabulate(plan, run, changed=changed)
        return Run(run, plan, make_report(run, tuple(changed)) if report else None)


def _refuse_unlike(sources: Sequence[Run], names: Sequence[str], *, software: bool = False) -> None:
    """Raise SpecError where the manifests of two runs differ. software: also in what made and analysed the cells."""
    first = sources[0].manifest
    for source in sources[1:]:
        other = [name for name in names if getattr(source.manifest, name) != getattr(first, name)]
        other += source.manifest.other_software(first.software) if software else []
        if other:
            raise SpecError(
                f"{source.path}: its cells cannot stand beside those of {sources[0].path}: {', '.join(other)} differ"
            )


def _named(cells: Collection[Cell]) -> frozenset[GuestKernel]:
    """The kernels that cells name."""
    return frozenset(cell.kernel for cell in cells if isinstance(cell.kernel, GuestKernel))


def _kernels(sources: Sequence[Run], plan: Plan) -> frozenset[GuestKernel]:
    """Every kernel on which the cells of a plan ran in these runs. Raises SpecError where the cells that name none ran
    on several: of those a cell's id does not tell which.
    """
    named = _named(plan.cells)
    if named and all(isinstance(cell.kernel, GuestKernel) for cell in plan.cells):
        return named
    usual = [run for run in sources if any(isinstance(cell.kernel, msgspec.UnsetType) for cell in run.plan.cells)]
    usual = usual or list(sources)
    alone = (GuestKernel(*_identity(run)) for run in usual if not _named(run.plan.cells))
    every = _named([cell for run in sources for cell in run.plan.cells])
    here = (GuestKernel(build.release, build.sha256) for build in list_kernels())
    for kernel in itertools.chain(alone, every, here):
        if all(_ran_on(run, kernel) for run in usual):
            return named | {kernel}
    if len({_identity(run) for run in sources}) == 1:
        return frozenset()  # whichever it is, their manifests name all
    ran = "; ".join(f"{run.path} on Linux {_identity(run)[0]} ({_identity(run)[1][:12]})" for run in usual)
    raise SpecError(
        f"cells that name no kernel must have run on one, and on one that is known here: {ran}. Run the cells of all "
        "but one again on its kernel (NETWARP_KERNEL=6.12 netwarp run ...), or name kernels in the spec"
    )


def _ran_on(run: Run, usual: GuestKernel) -> bool:
    """True if its cells that name no kernel ran on this one. The manifest of a run that has both kinds has a digest of
    all kernels, by which one of them is known again.
    """
    named = _named(run.plan.cells)
    kernels = {(each.release, each.sha256) for each in (*named, usual)}
    return _identity(run) == (identity_of(kernels) if named else (usual.release, usual.sha256))


def _identity(run: Run) -> tuple[str, str]:
    return run.manifest.kernel_release, run.manifest.kernel_sha256


def _with_kernels(manifest: Manifest, manifests: Sequence[Manifest], builds: Collection[GuestKernel]) -> Manifest:
    """The manifest with these kernels, as a run of them all would name them."""
    if len({(each.kernel_release, each.kernel_sha256) for each in manifests}) == 1:
        return manifest
    release, sha256 = identity_of((build.release, build.sha256) for build in builds)
    modes = {name: mode for each in reversed(manifests) for name, mode in each.uml_mode.items()}
    there = {build.release for build in builds}
    return msgspec.structs.replace(
        manifest,
        kernel_release=release,
        kernel_sha256=sha256,
        kernel_source=", ".join(dict.fromkeys(each.kernel_source for each in manifests if each.kernel_source)),
        uml_mode={name: mode for name, mode in modes.items() if name in there},
    )


def _failed(run: Run, cell_id: str) -> bool:
    return run.directory.cell(cell_id).read_outcome().outcome is Outcome.FAILED


def _refuse_schedules(runs: Sequence[Run]) -> None:
    """Raises SpecError where a plan grew as it ran: nothing but the run itself says which cells the whole has."""
    grown = next((run for run in runs if scheduled_cells(run.plan)), None)
    if grown is not None:
        raise SpecError(
            f"{grown.path}: a schedule of packets makes its plan grow as it runs, so such runs cannot be put together; "
            "run the whole at once (--only base --only robustness)"
        )


def _other_programs(first: Run, other: Run) -> str:
    names = [name for name, digest in other.manifest.programs.items() if first.manifest.programs.get(name) != digest]
    names += other.manifest.other_software(first.manifest.software)
    return f"{other.path.name} of {other.manifest.started_utc}: {', '.join(names)}" if names else ""


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
        other_programs=tuple(dict.fromkeys(text for shard in manifests for text in shard.other_programs)),
    )


def _what_runs(cell: Cell) -> bytes:
    """A cell without the formulas of what is computed from it afterwards, which are a part of its id."""
    return to_json(msgspec.structs.replace(cell, experiment="", parameters={}, metrics={}, metric_units={}))


def _take(source: RunDir, run: RunDir, cell_id: str, cell: Cell) -> None:
    """Hard links are safe: files of a run are written once and replaced only by a rename. Where the cell of the spec
    has other formulas, and so another id, the files that name it are written anew.
    """
    there, name = source.cell(cell_id).root, cell.id
    if isinstance(there, PackedPath) and name == cell_id:
        unpack_one(run, cell_id, cell_bytes(there.archive, cell_id))
        return
    try:
        if isinstance(there, PackedPath):
            raise StoreError(f"{source.root}: cell {cell_id} is packed, and has other formulas: netwarp archive unpack")
        there.copy_tree(run.partial_cell(name).root, link=True)
    except OSError as error:
        raise StoreError(f"{run.root}: cell {name} cannot be written: {os_words(error)}") from error
    if name != cell_id:
        place = run.partial_cell(name)
        had = read_json(place.cell, Cell).metrics
        write_json(place.cell, cell)
        if place.measurements.exists():
            pairs = zip(cell.metrics.items(), had.items(), strict=False)
            same = dict(new for new, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
            without = msgspec.structs.replace(cell, metrics=same)  # a formula reads those before it only
            old = read_json(place.measurements, list[Measurement])
            kept = [each for each in old if each.metric in same or each.metric not in cell.metric_units]
            measured = with_expressions(without, kept, cell.metrics)
            write_json(place.measurements, [msgspec.structs.replace(each, cell_id=name) for each in measured])
    run.install(name)
