"""Makes the plan of a spec: the cells of every experiment, each once; reports the problems of all cells together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..core.errors import SpecError
from ..core.names import MOST_CELLS
from ..core.outputs import Levels, matches
from ..core.types import Cell, GuestKernel
from ..experiment import Problems, Spec
from ..experiment.factors import DOES_NOT_APPLY, ExperimentSpec
from ..experiment.problems import nearest
from ..experiment.programs import PROGRAM_FILES
from ..experiment.toml_positions import Item
from ..experiment.toml_writer import plain, toml_value
from .cell import CellPlanner
from .check_outputs import check_sides, check_wanted, claims_of, with_flows
from .combine import Combination, combinations
from .schedules import with_counters, without_growth
from .sysctls import KernelSysctls, SysctlCheck
from .types import Level, Plan, PlannedExperiment, PlannedFactor

BASE, ROBUSTNESS = "base", "robustness"
"""Parts of every spec that has factors which are not stated, or optional experiments, beside its experiments."""
MOST_SEED = 2**53
"""The largest whole number that every JSON reader holds exactly."""
ENOUGH_PROBLEMS = 50
Asked = tuple[list[ExperimentSpec], Combination]
"""A combination of levels, and every experiment that has it."""


def make_plan(
    spec: Spec,
    *,
    seed: int | None = None,
    repetitions: int | None = None,
    only: str | Sequence[str] | None = None,
    where: Sequence[tuple[str, str]] = (),
    kernel: Callable[[GuestKernel | None], KernelSysctls | None] | None = None,
    builds: Callable[[str], GuestKernel] = lambda name: GuestKernel(name, ""),
) -> Plan:
    """Plan a spec's cells.

    seed, repetitions: instead of the spec's and of every experiment's; repetition k has seed + k. only: names of
    experiments; BASE: cells of experiments that are not optional, in which every factor that is not stated has its
    usual level, but those that `where` names; ROBUSTNESS: the others.
    where: (factor, level) pairs, compared as quantities; the same factor several times means any of these levels.
    kernel: the sysctls of a kernel of the run (None: that of the back end), None where they cannot be had; asked only
    if the spec sets any. Without it their names are not checked. builds: the guest kernel that a name in the spec
    means; without it, none is built.
    Raises SpecError with every problem.
    """
    seed = spec.seed if seed is None else seed
    most = repetitions or max(experiment.repetitions or spec.repetitions for experiment in spec.experiments)
    if (repetitions is not None and repetitions < 1) or not 0 <= seed <= MOST_SEED:
        raise SpecError(
            f"repetitions must be at least 1, the seed from 0 to {MOST_SEED}; for example --repetitions 5 --seed 1"
        )
    names, parts = _experiments(spec, only)
    wanted = _where(spec, where)
    problems = Problems()
    everything = _combinations(spec, [experiment.name for experiment in spec.experiments], most)
    compared = check_wanted(spec, everything, problems)
    problems.check()
    chosen = everything if len(names) == len(spec.experiments) else _combinations(spec, names, most)
    if parts:
        usual = _usual(spec, [factor for factor, _ in where])
        asked = [
            ([one for one in asking if one.name in names or _of_part(one, asking, levels, usual, parts)], levels)
            for asking, levels in everything
        ]
        chosen = [(wanting, levels) for wanting, levels in asked if wanting]
    planner = CellPlanner(spec, problems, SysctlCheck(kernel, problems) if kernel is not None else None, builds)
    cells: list[Cell] = []
    for asking, levels in chosen:
        if matches(levels, wanted, ()) and problems.distinct < ENOUGH_PROBLEMS:
            wishes = [(each.repetitions or spec.repetitions, each.only_random) for each in asking]
            cells += planner.cells(
                asking[0].name,
                levels,
                seed,
                repetitions or max(often for often, _ in wishes),
                only_random=repetitions is None and all(drawn for often, drawn in wishes if often > 1),
            )
    problems.check()
    problems.context = ""  # which the planner left: that of the last cell
    check_sides(spec, compared, cells, problems)
    problems.check()
    if not cells:
        levels_asked = " and ".join(f"{factor}={level}" for factor, level in where)
        raise SpecError(f"no cell is left: none has {levels_asked} in the experiments {', '.join(names)}")
    filters = [
        *(f"only {name}" for name in (*parts, *names) if only),
        *(f"{factor}={level}" for factor, level in where),
    ]
    plan = _plan(spec, cells, everything, seed, max(cell.repetition for cell in cells) + 1, filters)
    return without_growth(with_counters(plan), wanted)


def _plan(
    spec: Spec, cells: list[Cell], everything: list[Asked], seed: int, repetitions: int, filters: list[str]
) -> Plan:
    outputs = with_flows(spec, claims_of(spec, everything), cells)
    used = {each.metric.name for each in spec.own_metrics} | {claim.metric for claim in outputs["claims"]}
    used |= {metric for answer in outputs["answers"] for metric in answer.metrics}
    for output in (*outputs["tables"], *outputs["figures"]):
        used |= {output.metric, *output.beside}
    said = {name: getattr(spec, name) for name in ("sources", "expected", "columns", "headline", "summary", "words")}
    return Plan(
        name=spec.name,
        title=spec.title,
        description=spec.description,
        seed=seed,
        repetitions=repetitions,
        filters=tuple(filters),
        parameters={name: str(item.value) for name, item in spec.document.under("parameter").items()},
        factors=tuple(
            PlannedFactor(
                name=factor.name,
                title=factor.title,
                levels=tuple(Level(level.name, level.title, tuple(_settings(level.patch))) for level in factor.levels),
                usual=factor.usual,
                unstated=factor.unstated,
                schedule=factor.schedule,
            )
            for factor in spec.factors.values()
        ),
        experiments=_experiments_of(spec, cells, everything),
        metrics=tuple(metric for name, metric in spec.metrics.items() if name in used),
        **outputs,
        **said,
        key_figure=spec.key_figure,
        cells=tuple(cells),
    )


def _settings(patch: Item | None, path: str = "") -> Iterator[str]:
    """The keys that a level sets, each with its value as written; of files of programs the names."""
    for key, child in patch.table().items() if patch is not None else ():
        name = f"{path}.{key}" if path else key
        if isinstance(child.value, dict):
            yield from _settings(child, name)
        elif name != "title":
            values = [plain(each) for each in child.items()] or [child.value]
            if name.endswith(f".program.{PROGRAM_FILES.key}"):
                values = [value[0] if isinstance(value, list) else value for value in values]
            yield f"{name} = {', '.join(value if isinstance(value, str) else toml_value(value) for value in values)}"


def _experiments_of(spec: Spec, cells: list[Cell], everything: list[Asked]) -> tuple[PlannedExperiment, ...]:
    """Every experiment, with the cells of this plan that it shares with others."""
    planned = {tuple(cell.factors.values()) for cell in cells}
    shared: dict[str, list[tuple[str, ...]]] = {}
    for asking, levels in everything:
        if len(asking) > 1 and (place := tuple(levels.values())) in planned:
            for experiment in asking:
                shared.setdefault(experiment.name, []).append(place)
    return tuple(
        PlannedExperiment(
            name=each.name, title=each.title, factors=each.factors, shared=tuple(shared.get(each.name, ()))
        )
        for each in spec.experiments
    )


def _combinations(spec: Spec, names: Sequence[str], repetitions: int) -> list[Asked]:
    """(experiments that have it, levels) for each combination of levels, once, in the position of its first
    experiment.
    """
    by_levels: dict[tuple[str, ...], tuple[list[ExperimentSpec], Combination]] = {}
    most = MOST_CELLS // repetitions
    for experiment in spec.experiments:
        if experiment.name not in names:
            continue
        for levels in combinations(spec.factors, experiment):
            by_levels.setdefault(tuple(levels.values()), ([], levels))[0].append(experiment)
            if len(by_levels) > most:
                raise SpecError(
                    f'{experiment.item.file}:{experiment.item.line}: experiment "{experiment.name}": more than'
                    f" {MOST_CELLS} cells ({repetitions} repetitions); use fewer levels, or zip factors"
                    ' that go together, for example zip = [["rate", "queue"]]'
                )
    return list(by_levels.values())


def _of_part(
    experiment: ExperimentSpec, asking: Sequence[ExperimentSpec], levels: Combination, usual: Levels, parts: list[str]
) -> bool:
    """True if one of the experiments that have a cell asks for it as one of these parts."""
    if all(each.optional for each in asking) or not matches(levels, usual, ()):
        return ROBUSTNESS in parts
    return BASE in parts and not experiment.optional


def parts_of(spec: Spec) -> list[str]:
    """BASE and ROBUSTNESS where a factor is not stated, or an experiment is optional; nothing else."""
    taken = {experiment.name for experiment in spec.experiments}
    there = any(factor.unstated for factor in spec.factors.values())
    there |= any(experiment.optional for experiment in spec.experiments)
    return [part for part in (BASE, ROBUSTNESS) if there and part not in taken]


def _experiments(spec: Spec, only: str | Sequence[str] | None) -> tuple[list[str], list[str]]:
    """The experiments that are asked for, and the parts."""
    known = [experiment.name for experiment in spec.experiments]
    parts = parts_of(spec)
    names = known if only is None else [only] if isinstance(only, str) else list(only) or known
    for name in names:
        if name not in (*known, *parts):
            raise SpecError(f'--only: there is no experiment "{name}"{nearest(name, [*known, *parts])}')
    return [name for name in known if name in names], [part for part in parts if part in names]


def _usual(spec: Spec, named: Sequence[str]) -> Levels:
    """The conditions that the cells of BASE satisfy. named: the factors that --where chooses."""
    return {
        factor.name: (factor.usual, DOES_NOT_APPLY)
        for factor in spec.factors.values()
        if factor.unstated and factor.name not in named
    }


def _where(spec: Spec, where: Sequence[tuple[str, str]]) -> Levels:
    chosen: dict[str, list[str]] = {}
    problems = Problems()
    for name, level in where:
        text, factor = f"{name}={level}", spec.factors.get(name)
        if factor is None:
            problems.add_at("--where", 0, text, f'there is no factor "{name}"{nearest(name, spec.factors)}')
            continue
        level_spec = factor.level(level)
        if level_spec is None and level != DOES_NOT_APPLY:
            known = [level.name for level in factor.levels]
            more = "; the others are found while it runs" if factor.schedule is not None else ""
            if "," in level:
                more += f"; for several of them, --where {name}=... once for each"
            problems.add_at("--where", 0, text, f'factor "{name}" has the levels: {", ".join(known)}{more}')
        chosen.setdefault(name, []).append(level_spec.name if level_spec is not None else DOES_NOT_APPLY)
    problems.check()
    return {name: tuple(levels) for name, levels in chosen.items()}
