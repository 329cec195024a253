"""Plans the cells of an experiment, and compares their needs with an inventory of machines."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..core.built_programs import BUILD
from ..core.errors import BackendUnavailable, CellError, SpecError
from ..core.types import GuestKernel, Problem
from ..experiment import AnyExperiment, load_experiment
from ..guestkernel.build import find_build
from ..guestkernel.cache import find_binary
from ..plan import make_plan
from ..plan.make import parts_of
from ..plan.shards import shard_of
from ..plan.sysctls import KernelSysctls
from ..plan.types import Plan
from ..sandbox.choose import choose
from ..sandbox.hosts import (
    HostsBackend,
    InventoryFit,
    ask_machines,
    cannot_run,
    lacking,
    needs_of,
    place,
    read_inventory,
)
from ..sandbox.kernel_sysctls import guest_sysctls, host_sysctls
from ..sandbox.virtual import GuestBackend, newer_needed
from ..testbed.compile import compile_cell
from .events import Notice, Progress, no_progress

Where = Mapping[str, str | Sequence[str]] | Sequence[tuple[str, str]]
"""Factor -> level or levels; or (factor, level) pairs, the same factor several times for any of these levels."""


def plan_experiment(
    experiment: AnyExperiment,
    *,
    sets: Mapping[str, str] | None = None,
    seed: int | None = None,
    repetitions: int | None = None,
    only: Sequence[str] = (),
    where: Where = (),
    shard: tuple[int, int] | None = None,
    backend: str | None = None,
    progress: Progress = no_progress,
) -> Plan:
    """The cells that a run would have; nothing is run.

    seed, repetitions: instead of the spec's; repetition k has seed + k. only: names of experiments of the spec, "base",
    "robustness"; of a spec with factors that are not stated "base" where nothing is named. where:
    only cells of these levels. shard: (3, 20): of these the 3rd, the 23rd, ... backend: check the names of sysctls by
    the kernel of this back end; None: do not check.
    Raises SpecError with every problem of every cell.
    """
    loaded = load_experiment(experiment, sets=sets)
    known: dict[str, GuestKernel] = {}

    def build_of(name: str) -> GuestKernel:
        """Looked for once a plan: the cache could change meanwhile."""
        if name not in known:
            build = find_build(name, loaded.folder)
            known[name] = GuestKernel(name, "") if build is None else GuestKernel(build.release, build.sha256)
        return known[name]

    plan = make_plan(
        loaded,
        seed=seed,
        repetitions=repetitions,
        only=only or parts_of(loaded)[:1],
        where=level_pairs(where),
        kernel=None if backend is None else lambda kernel: kernel_sysctls(backend, progress, kernel),
        builds=build_of,
    )
    if shard is not None and any(each.schedule is not None for each in plan.factors):
        raise SpecError("--shard: a run with schedules of packets grows while it runs, and is not divided; use --where")
    return plan if shard is None else shard_of(plan, *shard)


def refusals(plan: Plan, backend: str) -> dict[str, int]:
    """The reasons why a back end would call cells UNSUPPORTED without running them (programs, and what only newer
    kernels have), each with its number of cells. Empty where the back end cannot run here at all.
    """
    asked = [
        cell
        for cell in plan.cells
        if any(flow.program is not None for flow in cell.flows) or newer_needed(cell, (0, 0))
    ]
    if not asked or backend == "hosts":
        return {}
    try:
        chosen = choose(backend)
    except BackendUnavailable:
        return {}
    try:
        return dict(Counter(why for cell in asked if (why := chosen.backend.refuses(cell))))
    finally:
        chosen.backend.close()


def level_pairs(where: Where) -> list[tuple[str, str]]:
    """`where` as (factor, level) pairs. Raises SpecError where a level is no text."""
    if not isinstance(where, Mapping):
        return list(where)
    for factor, chosen in where.items():
        if not isinstance(chosen, Sequence) or not all(isinstance(level, str) for level in chosen):
            raise SpecError(
                f"where: {factor}={chosen!r}: a level is text, or a list of texts, as the spec writes it; for example"
                f' where={{"{factor}": "5 s"}}'
            )
    levels = {factor: (chosen,) if isinstance(chosen, str) else chosen for factor, chosen in where.items()}
    return [(factor, level) for factor, chosen in levels.items() for level in chosen]


def kernel_sysctls(
    backend: str, progress: Progress = no_progress, kernel: GuestKernel | None = None
) -> KernelSysctls | None:
    """The sysctls of the kernel of the named back end, or of a cell's own; None, after a Notice, if they cannot be
    had.
    """
    if backend == "hosts":
        return None  # each machine has its own, and says so itself
    try:
        chosen = choose(backend)
        if chosen.kernel is None:
            return host_sysctls()
        assert isinstance(chosen.backend, GuestBackend)
        if kernel is None:
            return guest_sysctls(chosen.kernel, chosen.backend)
        build = find_binary(kernel.sha256) if kernel.sha256 else None
        return None if build is None else guest_sysctls(build, GuestBackend(build.binary, BUILD))
    except BackendUnavailable:
        why = f"no kernel to ask, the back end {backend} cannot run here; netwarp doctor says why"
    except (CellError, OSError, subprocess.TimeoutExpired) as error:
        why = str(error)
    progress(Notice(f"names of sysctls are not checked: {why}"))
    return None


def fit(plan: Plan, inventory: str | Path, *, ask: bool = True, allow_programs: bool = False) -> InventoryFit:
    """An inventory's lacks for a plan. ask: connect to its machines (where one cannot be reached, that is a problem
    of it). allow_programs: as of `run`. Raises SpecError, BackendUnavailable (no Ansible to read the inventory).
    """
    there = read_inventory(Path(inventory), allow_programs=allow_programs)
    lacks: Counter[str] = Counter()
    notes: Counter[str] = Counter()
    needs: dict[str, dict[str, None]] = {}
    of_cell: list[dict[str, list[str]]] = []
    fitting = 0
    for cell in plan.cells:
        placed = place(cell, there)
        reasons = [cannot_run(cell)] if cannot_run(cell) else list(placed.lacks)
        lacks.update(reasons)
        if reasons:
            continue
        notes.update(placed.notes)
        wanted = needs_of(cell, compile_cell(cell, HostsBackend.clock), placed)
        of_cell.append(wanted)
        for machine, features in wanted.items():
            needs.setdefault(machine, {}).update(dict.fromkeys(features))
    absent: Mapping[str, list[str]] = {}
    problems: list[Problem] = []
    if ask:
        absent, problems = ask_machines(there, {name: list(needs.get(name, ())) for name in there.machines})
    for wanted in of_cell:
        reasons = lacking(wanted, absent)
        lacks.update(reasons)
        fitting += not reasons
    return InventoryFit(
        cells=len(plan.cells),
        fitting=fitting,
        lacks=dict(lacks.most_common()),
        notes=dict(notes.most_common()),
        problems=tuple((problem.what, problem.remedy) for problem in problems),
        needs={machine: tuple(features) for machine, features in needs.items()},
        asked=tuple(absent),
    )
