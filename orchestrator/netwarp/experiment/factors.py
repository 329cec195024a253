"""Reads the factors of a spec: their levels and what each changes; and conditions on levels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..core.metrics.catalogue import METRICS
from ..core.outputs import ANY_LEVEL, FLOW, looks_like_a_formula
from ..core.outputs import EXPERIMENT as EXPERIMENT_KEY
from ..core.schedule_levels import UNDISTURBED, PacketSchedule, ScheduleAction
from ..core.units import same_value
from .fields import LONGEST_LEVEL, NAME, check, check_keys, read_names, read_quantity
from .grammar import FACTOR_KEYS, LEVEL, RESOLVED, SCHEDULE, SCHEDULES, SECTIONS, TOP
from .merge import merge
from .overrides import KERNEL, find_key, layer_of
from .problems import Problems, nearest
from .toml_positions import Item

Condition = dict[str, tuple[str, ...]]
DOES_NOT_APPLY = "-"
ACTIONS: dict[str, ScheduleAction] = {"drops": "drop", "duplicates": "duplicate", "reorders": "reorder"}
DIRECTIONS = ("forward", "backward")
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
    parameters = document.get("parameter")
    for name, factor in factors.items():
        if parameters is not None and name in parameters.table():
            problems.add(factor.item, f'"{name}" is a parameter too; "{{{name}}}" could mean either: rename one')
    for factor in factors.values():
        check_condition(factor.item.get("only"), factors, problems)
        if factor.name in factor.only:
            problems.add(factor.item, "its `only` names the factor itself")
    _check_circles(factors, problems)
    return factors


def with_flows(document: Item, factors: Mapping[str, FactorSpec]) -> dict[str, FactorSpec]:
    """The dimensions that outputs may name: the factors, and FLOW with every flow of the document and of any level."""
    patches = [level.patch for factor in factors.values() for level in factor.levels if level.patch is not None]
    sections = [section for layer in (document, *patches) if (section := layer.get("flow")) is not None]
    names = dict.fromkeys(name for section in sections for name in section.table())
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
            check(child, FACTOR_KEYS[key], problems)
        else:
            there = (
                f"; what a level changes is [factor.{name}.level.{key}]" if key in names else nearest(key, FACTOR_KEYS)
            )
            problems.add(child, f'"{key}" is no key of a factor{there}')
    changes = item.get("level")
    for key, child in changes.table().items() if changes is not None else ():
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
        if item is not None and (direction not in DIRECTIONS or not NAME.fullmatch(link)):
            said = f'"{name[:40]}" is no direction of a link{nearest(direction, DIRECTIONS)}'
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
    """The changes of a level: the keys that its factor `sets`, then the level's own table."""
    place = (item.get("levels") or item).part(level)
    patch: Item | None = None
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
    patches = [level.patch for factor in factors.values() for level in factor.levels if level.patch is not None]
    for layer in [document, *patches]:
        for section in SECTIONS:
            named = layer.get(section)
            default = layer.get("default", section)
            for item in [*(named.table().values() if named is not None else ()), *([default] if default else [])]:
                for holder in [item, *_listed(item)]:
                    check_condition(holder.get("only"), factors, problems)
                    check_condition(holder.get("unless"), factors, problems)


def _listed(item: Item) -> Iterator[Item]:
    switches = item.get("switch_primary")
    yield from switches.items() if switches is not None else ()
