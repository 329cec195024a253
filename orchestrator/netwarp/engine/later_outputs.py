"""Outputs asked for later: tables, figures, claims and answers of another spec, over the cells of a finished run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from ..core.errors import SpecError
from ..core.types import Cell, GuestKernel
from ..experiment import AnyExperiment, Spec, load_experiment
from ..experiment.profiles import PROFILES, STACKS, profiles_named
from ..plan import make_plan
from ..plan.changes import cell_changes
from ..plan.schedules import undisturbed, with_cells
from ..plan.types import Plan
from ..store.manifest import Manifest

MOST_NAMED = 3
Combination = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class LaterOutputs:
    """A plan with the run's cells and the spec's outputs. missing: combinations of levels of the spec for which the run
    has no cell.
    """

    spec: Spec
    plan: Plan
    missing: tuple[Combination, ...]


def later_outputs(plan: Plan, manifest: Manifest, spec: AnyExperiment) -> LaterOutputs:
    """Plan a spec with the seed and the --set of the run, and take its outputs.

    The cells must be those of the run: the same content at the same levels of the same factors; the run may lack some.
    Raises SpecError.
    """
    loaded, asked = plan_again(spec, manifest, plan.cells)
    name = loaded.path or loaded.name
    there, new = _first_cells(undisturbed(plan)), _first_cells(asked)
    strangers = [cell for levels, cell in there.items() if levels not in new]
    if strangers:
        names = ", ".join(cell.id for cell in strangers[:MOST_NAMED])
        more = ", ..." if len(strangers) > MOST_NAMED else ""
        raise SpecError(
            f"{name}: does not have {len(strangers)} of the {len(there)} combinations of levels of the run "
            f"({names}{more}): keep its factors and levels, and change tables, figures, claims and answers only"
        )
    if changes := cell_changes(list(there.values()), [new[levels] for levels in there]):
        lines = "".join(f"\n  {line}" for line in changes)
        raise SpecError(f"{name}: its cells are not those of the run:{lines}")
    missing = tuple(dict(levels) for levels in new if levels not in there)
    return LaterOutputs(loaded, with_cells(plan.with_outputs(asked), plan.cells), missing)


def load_again(spec: AnyExperiment, manifest: Manifest) -> Spec:
    """Load a spec with the --set of a run. Raises SpecError."""
    sets = dict(text.split("=", 1) for text in manifest.sets)
    return load_experiment(spec, sets={key.strip(): value.strip() for key, value in sets.items()})


def plan_again(
    spec: AnyExperiment, manifest: Manifest, cells: Sequence[Cell], only: Sequence[str] = ()
) -> tuple[Spec, Plan]:
    """Load a spec and plan it with the seed, the --set and the guest kernels of a run: a name means the build that the
    run's cells of these levels had, not the newest of today. Raises SpecError.
    """
    loaded = load_again(spec, manifest)
    plan = make_plan(loaded, seed=manifest.seed, only=only)
    had = {frozenset(cell.factors.items()): cell.kernel for cell in cells}
    builds: dict[str, GuestKernel] = {}
    for cell in plan.cells:
        build = had.get(frozenset(cell.factors.items()), msgspec.UNSET)
        if not isinstance(cell.kernel, msgspec.UnsetType) and not isinstance(build, msgspec.UnsetType):
            name = cell.kernel.release  # as in the spec: no build was looked for
            if _can_mean(name, build.release):
                builds.setdefault(name, build)
    if builds:
        plan = make_plan(
            loaded, seed=manifest.seed, only=only, builds=lambda name: builds.get(name, GuestKernel(name, ""))
        )
    return loaded, plan


def _can_mean(name: str, release: str) -> bool:
    """True if a kernel of this release can be the one that a spec names so. Of a path or a key nothing is known."""
    return "/" in name or "." not in name or re.match(rf"{re.escape(name)}(?![0-9])", release) is not None


def texts_of(spec: Spec) -> dict[str, bytes]:
    """The files of a spec by their names in a run's spec/: the spec, the files it names, its profiles."""
    profiles = [path for folder in (PROFILES, STACKS) for path in profiles_named(spec.document, folder)]
    return {**spec.files} | {f"{path.parent.name}/{path.name}": path.read_bytes() for path in profiles}


def _first_cells(plan: Plan) -> dict[frozenset[tuple[str, str]], Cell]:
    """The first repetition of each combination of levels."""
    cells: dict[frozenset[tuple[str, str]], Cell] = {}
    for cell in plan.cells:
        cells.setdefault(frozenset(cell.factors.items()), cell)
    return cells
