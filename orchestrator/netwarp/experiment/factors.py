"""Reads the factors of a spec, their levels and what each changes; the experiments that combine them; and conditions on
levels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..core.link_types import SIDES
from ..core.metrics.catalogue import METRICS
from ..core.names import NAME
from ..core.outputs import ANY_LEVEL, FLOW, looks_like_a_formula
from ..core.outputs import EXPERIMENT as EXPERIMENT_KEY
from ..core.schedule_levels import UNDISTURBED, PacketSchedule, ScheduleAction
from ..core.units import same_value
from .fields import LONGEST_LEVEL, check_keys, decode, read_names, read_quantity
from .flow_groups import names_in
from .grammar import EXPERIMENT, FACTOR_KEYS, LEVEL, RESOLVED, SCHEDULE, SCHEDULES, SECTIONS, TOP
from .merge import merge
from .problems import Problems, nearest
from .sections import KERNEL, find_key, layer_of
from .toml_positions import Item

Condition = dict[str, tuple[str, ...]]
DOES_NOT_APPLY = "-"
ACTIONS: dict[str, ScheduleAction] = {"drops": "drop", "duplicates": "duplicate", "reorders": "reorder"}
EXAMPLE_SCHEDULE = SCHEDULES["drops"].example
RESERVED_COLUMNS = frozenset((
    "cell_id", "flow", "experiment", "repetition", "outcome", "reason", "virtual_s", "seed", "value", "unit", "spread",
    "repetitions", "without_value", "ci95_low", "ci95_high", "note",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class LevelSpec:
    """A level and its changes to the document."""

    name: str
    title: str
    patch: Item | None


@dataclass(frozen=True, slots=True)
class FactorSpec:
    """A factor. `only`: it applies only where the other factors have these levels; elsewhere its level is "-".

    usual: the level used by outputs that do not name the factor; "": such outputs use all its levels. schedule: its
    levels are packets; UNDISTURBED is the only one known before a run, and the usual one.
    """

    name: str
    title: str
    levels: tuple[LevelSpec, ...]
    only: Condition
    item: Item
    usual: str = ""
    unstated: str = ""
    schedule: PacketSchedule | None = None

    def level(self, name: str) -> LevelSpec | None:
        """The level with the same meaning ("10s" equals "10 s"), or None."""
        return next((level for level in self.levels if same_value(level.name, name)), None)


def read_factors(document: Item, problems: Problems) -> dict[str, FactorSpec]:
    """Every [factor.NAME] with its levels' tables."""
    item = document.get("factor")
    if item is not None and not isinstance(item.value, dict):
        problems.add(item, f"must be a table; for example {TOP['factor'].example}")
    factors: dict[str, FactorSpec] = {}
    for name, child in item.table().items() if item is not None else ():
        if isinstance(child.value, dict):
            factors[name] = _read_factor(name, child, document, problems)
        elif name in FACTOR_KEYS and item is not None:
            problems.add(item, f"[factor] has no name; for example {TOP['factor'].example}")
        else:
            example = TOP["factor"].example.replace("outage", name[:40])
            problems.add(child, f"must be a table; for example {example}")
    for factor in factors.values():
        if (name := factor.name) in document.under("parameter"):
            problems.add(factor.item, f'"{name}" is a parameter too; "{{{name}}}" could mean either: rename one')
        check_condition(factor.item.get("only"), factors, problems)
        if factor.name in factor.only:
            problems.add(factor.item, "its `only` names the factor itself")
    _check_circles(factors, problems)
    return factors


def layers(document: Item, factors: Mapping[str, FactorSpec]) -> list[Item]:
    """The document, and what every level of every factor lays over it."""
    patches = [level.patch for factor in factors.values() for level in factor.levels]
    return [document, *(patch for patch in patches if patch is not None)]


def with_flows(document: Item, factors: Mapping[str, FactorSpec]) -> dict[str, FactorSpec]:
    """The dimensions that outputs may name: the factors, and FLOW with every flow of the document and of any level."""
    names = names_in(layers(document, factors))
    return {**factors, FLOW: FactorSpec(FLOW, FLOW, tuple(LevelSpec(name, name, None) for name in names), {}, document)}


def _read_factor(name: str, item: Item, document: Item, problems: Problems) -> FactorSpec:
    if name in RESERVED_COLUMNS:
        problems.add(item, f'"{name}" is a column of the tables; call the factor otherwise')
    if name in METRICS:
        problems.add(item, f'"{name}" is a metric of netwarp, and one table may have both; call the factor otherwise')
    if not NAME.fullmatch(name) or (name in TOP and name != KERNEL):
        problems.add(item, f'"{name[:40]}" is no name for a factor: 1 to 32 of a-z 0-9 _ -, and no key of a spec')
    levels_item = item.get("levels")
    names: tuple[str, ...] = ()
    schedule = read_schedule(item, problems)
    if any(key in item.table() for key in SCHEDULES):
        names = (UNDISTURBED,)
    elif levels_item is None:
        problems.add(item, f"its levels are missing; for example levels = {FACTOR_KEYS['levels'].example}")
    else:
        names = read_names(levels_item, FACTOR_KEYS["levels"], problems)
        _check_level_names(levels_item, names, problems)
    for key, child in item.table().items():
        if key in FACTOR_KEYS:
            decode(child, FACTOR_KEYS[key], problems)
        else:
            there = (
                f"; what a level changes is [factor.{name}.level.{key}]" if key in names else nearest(key, FACTOR_KEYS)
            )
            problems.add(child, f'"{key}" is no key of a factor{there}')
    if (every := item.get("every")) is not None:
        check_keys(every, RESOLVED, problems, fill=True)
    for key, child in item.under("level").items():
        if key in names:
            check_keys(child, LEVEL, problems, fill=True)
        else:
            problems.add(child, f'"{key}" is none of its levels{nearest(key, names)}')
    keys = _read_sets(item.get("sets"), document, problems)
    if name == KERNEL and item.get("sets") is None:
        keys = [[KERNEL]]
    levels = tuple(
        LevelSpec(level, _title(item.get("level", level), level), _patch(item, level, keys, document, problems))
        for level in names
    )
    usual, unstated = (item.get(key) for key in ("usual", "unstated"))
    if usual is not None and usual.value not in names:
        problems.add(usual, f'"{str(usual.value)[:40]}" is none of its levels{nearest(str(usual.value), names)}')
    if unstated is not None and usual is None:
        problems.add(
            unstated,
            f'needs the level that is run where nothing else is asked; for example usual = "{names[0]}"'
            if names
            else "needs usual",
        )
    return FactorSpec(
        name,
        _title(item, name),
        levels,
        item.levels("only"),
        item,
        str(usual.value) if usual is not None else UNDISTURBED if schedule is not None else "",
        str(unstated.value) if unstated is not None else "",
        schedule,
    )


def read_schedule(factor: Item, problems: Problems) -> PacketSchedule | None:
    """The schedule of a factor's item; None if it has none, or a wrong one."""
    given = [(key, item) for key in ACTIONS if (item := factor.get(key)) is not None]
    for key, item in given[1:]:
        problems.add(item, f'a factor has one of {", ".join(ACTIONS)}: "{key}" needs a factor of its own')
    if not given:
        return None
    key, item = given[0]
    for other in ("levels", "sets", "usual", "unstated"):
        if (child := factor.get(other)) is not None:
            problems.add(child, f"the levels of a factor with {key} are packets, found while it runs: leave this out")
    first = item.get("first")
    if not isinstance(item.value, dict) or first is None:
        if isinstance(item.value, dict):
            problems.add(item, f"its first is missing: of how many packets? For example {key} = {EXAMPLE_SCHEDULE}")
        return None
    together, since, number = item.get("together"), item.get("from"), item.integer("first")
    size = 1 if together is None else item.integer("together")
    start = None if since is None else read_quantity(since, SCHEDULE["from"], problems)
    if number is None or size is None:
        return None
    if ACTIONS[key] == "reorder" and size > 1 and together is not None:
        problems.add(together, "only one packet at a time is late by one place: leave this out")
    from_ns = int(start.value) if start is not None else 0
    return PacketSchedule(ACTIONS[key], _directions(item.get("of"), problems), number, size, from_ns)


def _directions(item: Item | None, problems: Problems) -> tuple[str, ...]:
    names = item.texts() if item is not None else ()
    for name in names:
        link, _, direction = name.partition(".")
        if item is not None and (direction not in SIDES or not NAME.fullmatch(link)):
            said = f'"{name[:40]}" is no direction of a link{nearest(direction, SIDES)}'
            problems.add(item.part(name), f"{said} For example of = {SCHEDULE['of'].example}")
    return tuple(dict.fromkeys(names))


def _read_sets(item: Item | None, document: Item, problems: Problems) -> list[list[str]]:
    """The keys of the document that each level of a factor sets."""
    paths: list[list[str]] = []
    for key in item.texts() if item is not None else ():
        path, problem = find_key(key, document)
        if not problem and path[0] not in RESOLVED:
            problem = f"is no part of a cell; for example sets = {FACTOR_KEYS['sets'].example}"
        if problem and item is not None:
            problems.add(item.part(key), f'"{key}": {problem}')
        else:
            paths.append(path)
    return paths


def _patch(item: Item, level: str, keys: list[list[str]], document: Item, problems: Problems) -> Item | None:
    """The changes of a level: its factor's `every`, the keys that its factor `sets`, then the level's own table."""
    place = (item.get("levels") or item).part(level)
    patch = item.get("every")
    for key in keys:
        layer = layer_of(key, level, document, place)
        check_keys(layer, LEVEL, problems, fill=True)
        patch = merge(patch, layer)
    own = item.get("level", level)
    return patch if own is None else merge(patch, own)


def _title(item: Item | None, default: str) -> str:
    return (item.text("title") if item is not None else "") or default


def _check_level_names(item: Item, names: tuple[str, ...], problems: Problems) -> None:
    if isinstance(item.value, list) and not item.value:
        problems.add(item, f"is empty; for example {FACTOR_KEYS['levels'].example}")
    for number, name in enumerate(names):
        place = item.items()[number]
        if looks_like_a_formula(name):
            problems.add(place, f'"{name[:40]}" would be a formula in a spreadsheet, where the tables are read too')
        if name in ("", DOES_NOT_APPLY, ANY_LEVEL) or len(name) > LONGEST_LEVEL or not name.isprintable():
            problems.add(place, f'"{name[:40]}" cannot name a level (1 to {LONGEST_LEVEL} printable characters)')
        for other in names[:number]:
            if name != other and same_value(name, other):
                problems.add(place, f'"{other}" and "{name}" mean the same')


def _check_circles(factors: Mapping[str, FactorSpec], problems: Problems) -> None:
    for factor in factors.values():
        seen = {factor.name}
        front = set(factor.only)
        while front:
            if factor.name in front and factor.name not in factor.only:
                problems.add(factor.item, "its `only` leads back to itself in a circle")
                break
            seen |= front
            front = {other for name in front if name in factors for other in factors[name].only} - (
                seen - {factor.name}
            )


def check_condition(
    item: Item | None, factors: Mapping[str, FactorSpec], problems: Problems, experiments: Sequence[str] = ()
) -> None:
    """Checks that every factor and level of an `only`, `unless`, `where` or `fixed` exists.

    experiments: names that the key `experiment` may have; if there are none, the key is not allowed.
    """
    for name, child in item.table().items() if item is not None else ():
        if name == EXPERIMENT_KEY and experiments:
            check_experiment(child, experiments, problems)
            continue
        if name not in factors:
            problems.add(child, f'unknown factor "{name}"{nearest(name, factors)}')
            continue
        for level in child.items() if isinstance(child.value, list) else [child]:
            if level.value == DOES_NOT_APPLY or not isinstance(level.value, str):
                continue
            if level.value == ANY_LEVEL and factors[name].schedule is not None:
                continue
            known = [known.name for known in factors[name].levels]
            if level.value not in known:
                what = "there is no flow" if name == FLOW else f'factor "{name}" has no level'
                problems.add(level, f'{what} "{level.value}"{nearest(level.value, known)}')


def check_experiment(item: Item, experiments: Sequence[str], problems: Problems) -> None:
    """Checks that the experiment, or each of a list, exists."""
    for part in item.items() or [item]:
        if isinstance(part.value, str) and part.value not in experiments:
            problems.add(part, f'there is no experiment "{part.value}"{nearest(part.value, experiments)}')


def check_conditions(document: Item, factors: Mapping[str, FactorSpec], problems: Problems) -> None:
    """The `only` and `unless` of every item of a document and of every level's patch."""
    for layer in layers(document, factors):
        for section in SECTIONS:
            default = layer.get("default", section)
            for item in [*layer.under(section).values(), *([default] if default else [])]:
                for holder in [item, *item.listed("switch_primary")]:
                    check_condition(holder.get("only"), factors, problems)
                    check_condition(holder.get("unless"), factors, problems)


@dataclass(frozen=True, slots=True)
class ExperimentSpec:
    """A full product of `factors`; those in a `zip` group advance together, level by level; `fixed` ones have one
    level.

    levels: factors that have only some of their levels here.
    repetitions: the experiment's own; None: the spec's. only_random: cells without randomness are run once.
    optional: its cells are no part of the base, unless another experiment has them.
    """

    name: str
    title: str
    factors: tuple[str, ...]
    fixed: Mapping[str, str]
    zips: tuple[tuple[str, ...], ...]
    item: Item
    repetitions: int | None = None
    only_random: bool = False
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    optional: bool = False


def read_experiments(
    document: Item, factors: Mapping[str, FactorSpec], problems: Problems
) -> tuple[ExperimentSpec, ...]:
    """Every [experiment.NAME]; if there is none, one named "main" with all factors."""
    tables = document.under("experiment")
    if not tables:
        _check_schedules(document, tuple(factors), factors, problems)
        return (ExperimentSpec("main", "", tuple(factors), {}, (), document),)
    return tuple(_read_experiment(name, child, factors, problems) for name, child in tables.items())


def _read_experiment(name: str, item: Item, factors: Mapping[str, FactorSpec], problems: Problems) -> ExperimentSpec:
    listed = item.get("factors")
    names = item.texts("factors")
    for factor in names:
        if factor not in factors and listed is not None:
            problems.add(listed.part(factor), f'unknown factor "{factor}"{nearest(factor, factors)}')
    for key in ("fixed", "levels"):
        check_condition(item.get(key), factors, problems)
    fixed = item.levels("fixed")
    for factor, levels in fixed.items():
        if factor in names:
            problems.add(item.get("fixed") or item, f'factor "{factor}" is both varied and fixed')
        if len(levels) != 1:
            said = f'"{factor}" is fixed at one level; to vary it, list it in factors'
            problems.add(item.get("fixed") or item, said)
    zips = _read_zips(item.get("zip"), names, factors, problems)
    _check_schedules(item, names, factors, problems)
    some = item.levels("levels")
    for factor in some:
        if factor not in names or any(factor in group for group in zips):
            said = f'"{factor}" is no factor that this experiment varies by itself (in factors, not in zip)'
            problems.add(item.get("levels") or item, said)
    return ExperimentSpec(
        name,
        item.text("title", name),
        tuple(factor for factor in names if factor in factors),
        {factor: levels[0] if levels else DOES_NOT_APPLY for factor, levels in fixed.items()},
        zips,
        item,
        item.integer("repetitions"),
        item.text("repeat") == "random",
        some,
        item.switch("optional"),
    )


def _check_schedules(item: Item, names: tuple[str, ...], factors: Mapping[str, FactorSpec], problems: Problems) -> None:
    varied = [name for name in names if name in factors and factors[name].schedule is not None]
    if len(varied) > 1:
        said = f"it varies the schedules {', '.join(varied)}; one at a time: each needs an experiment of its own"
        problems.add(item.get("factors") or item, said)


def _read_zips(
    item: Item | None, names: tuple[str, ...], factors: Mapping[str, FactorSpec], problems: Problems
) -> tuple[tuple[str, ...], ...]:
    groups: list[tuple[str, ...]] = []
    if item is None:
        return ()
    if not isinstance(item.value, list):
        problems.add(item, f"must be a list of lists of factors; for example {EXPERIMENT['zip'].example}")
    for child in item.items():
        group = read_names(child, EXPERIMENT["zip"], problems)
        unknown = [name for name in group if name not in names or name not in factors]
        for name in unknown:
            problems.add(child.part(name), f'"{name}" is not one of this experiment\'s factors{nearest(name, names)}')
        if isinstance(child.value, list) and len(child.value) < 2:
            problems.add(child, f"at least two factors go together; for example {EXPERIMENT['zip'].example}")
        taken = {name for other in groups for name in other}
        if taken & set(group):
            problems.add(child, f'"{min(taken & set(group))}" is in two groups')
        if not unknown:
            lengths = {name: len(factors[name].levels) for name in group}
            if len(set(lengths.values())) > 1:
                shown = ", ".join(f"{name} {count}" for name, count in lengths.items())
                problems.add(child, f"factors that go together need equally many levels; here: {shown}")
            for name in group:
                if factors[name].schedule is not None:
                    problems.add(child, f'"{name}" is a schedule: its levels are found while it runs, not in step')
                if factors[name].only:
                    problems.add(child, f'"{name}" has an `only`; a factor that may not apply cannot be zipped')
            groups.append(group)
    return tuple(groups)
