"""Reads [experiment.NAME]: the factors to combine, those that are fixed, and the number of repetitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .factors import DOES_NOT_APPLY, FactorSpec, check_condition
from .fields import read_names
from .grammar import EXPERIMENT
from .problems import Problems, nearest
from .toml_positions import Item


@dataclass(frozen=True, slots=True)
class ExperimentSpec:
    """A full product of `factors`; those in a `zip` group advance together, level by level; `fixed` ones have one
    level.

    levels: factors that have only some of their levels here.
    repetitions: the experiment's own; None: the spec's. only_random: cells without randomness are run once.
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


def read_experiments(
    document: Item, factors: Mapping[str, FactorSpec], problems: Problems
) -> tuple[ExperimentSpec, ...]:
    """Every [experiment.NAME]; if there is none, one named "main" with all factors."""
    item = document.get("experiment")
    if item is None or not item.table():
        _check_schedules(document, tuple(factors), factors, problems)
        return (ExperimentSpec("main", "", tuple(factors), {}, (), document),)
    return tuple(_read_experiment(name, child, factors, problems) for name, child in item.table().items())


def _read_experiment(name: str, item: Item, factors: Mapping[str, FactorSpec], problems: Problems) -> ExperimentSpec:
    listed = item.get("factors")
    names = item.texts("factors")
    for factor in names:
        if factor not in factors and listed is not None:
            problems.add(listed.part(factor), f'unknown factor "{factor}"{nearest(factor, factors)}')
    fixed_item = item.get("fixed")
    check_condition(fixed_item, factors, problems)
    fixed: dict[str, str] = {}
    if fixed_item is not None:
        for factor, levels in fixed_item.levels().items():
            if factor in names:
                problems.add(fixed_item, f'factor "{factor}" is both varied and fixed')
            if len(levels) != 1:
                problems.add(fixed_item, f'"{factor}" is fixed at one level; to vary it, list it in factors')
            fixed[factor] = levels[0] if levels else DOES_NOT_APPLY
    levels_item = item.get("levels")
    check_condition(levels_item, factors, problems)
    some = item.levels("levels")
    zips = _read_zips(item.get("zip"), names, factors, problems)
    _check_schedules(item, names, factors, problems)
    for factor in some:
        if levels_item is not None and (factor not in names or any(factor in group for group in zips)):
            said = f'"{factor}" is no factor that this experiment varies by itself (in factors, not in zip)'
            problems.add(levels_item, said)
    return ExperimentSpec(
        name,
        item.text("title", name),
        tuple(factor for factor in names if factor in factors),
        fixed,
        zips,
        item,
        item.integer("repetitions"),
        item.text("repeat") == "random",
        some,
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
    if item is not None and not isinstance(item.value, list):
        problems.add(item, f"must be a list of lists of factors; for example {EXPERIMENT['zip'].example}")
    for child in item.items() if item is not None else ():
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
            unknown_yet = next((name for name in group if factors[name].schedule is not None), None)
            if unknown_yet is not None:
                problems.add(child, f'"{unknown_yet}" is a schedule: its levels are found while it runs, not in step')
            conditional = next((name for name in group if factors[name].only), None)
            if conditional is not None:
                problems.add(child, f'"{conditional}" has an `only`; a factor that may not apply cannot be zipped')
            groups.append(group)
    return tuple(groups)
