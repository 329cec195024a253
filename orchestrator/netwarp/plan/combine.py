"""Factors x levels -> the combinations of each experiment: full product, `zip` groups, and per-factor `only`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..experiment.factors import DOES_NOT_APPLY, ExperimentSpec, FactorSpec
from ..experiment.merge import holds

Combination = dict[str, str]
"""Every factor of the spec, in its order -> level; "-" where it does not apply or the experiment leaves it out."""


def combinations(factors: Mapping[str, FactorSpec], experiment: ExperimentSpec) -> Iterator[Combination]:
    """Every combination once; the experiment's first factor varies slowest. A generator, since a product can be
    enormous.
    """
    for chosen in _walk(_axes(factors, experiment), {}, factors, experiment):
        yield {name: chosen.get(name, DOES_NOT_APPLY) for name in factors}


def _axes(factors: Mapping[str, FactorSpec], experiment: ExperimentSpec) -> list[tuple[str, ...]]:
    """Zip groups and single factors: each after the factors that its `only` depends on, otherwise in the order
    listed.
    """
    waiting: list[tuple[str, ...]] = []
    grouped = {name: group for group in experiment.zips for name in group}
    for name in [*experiment.fixed, *experiment.factors]:
        axis = grouped.get(name, (name,))
        if axis not in waiting:
            waiting.append(axis)
    axes: list[tuple[str, ...]] = []
    while waiting:
        pending = {name for axis in waiting for name in axis}
        ready = next(
            (axis for axis in waiting if not any((factors[name].only.keys() - set(axis)) & pending for name in axis)),
            waiting[0],
        )
        waiting.remove(ready)
        axes.append(ready)
    return axes


def _walk(
    axes: list[tuple[str, ...]], chosen: Combination, factors: Mapping[str, FactorSpec], experiment: ExperimentSpec
) -> Iterator[Combination]:
    if not axes:
        yield chosen
        return
    for levels in _levels(axes[0], chosen, factors, experiment):
        yield from _walk(axes[1:], {**chosen, **levels}, factors, experiment)


def _levels(
    axis: tuple[str, ...], chosen: Combination, factors: Mapping[str, FactorSpec], experiment: ExperimentSpec
) -> Iterator[Combination]:
    first = factors[axis[0]]
    if not holds(first.only, chosen):
        yield {first.name: DOES_NOT_APPLY}
    elif first.name in experiment.fixed:
        yield {first.name: experiment.fixed[first.name]}
    else:
        wanted = experiment.levels.get(first.name)
        for number, level in enumerate(first.levels):
            if wanted is None or level.name in wanted:
                yield {name: factors[name].levels[number].name for name in axis}
