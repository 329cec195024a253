"""The contrasts of which a claim consists: each computes one number from the means of some places."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..core.outputs import ClaimKind
from ..core.units import base_values
from .run_results import RepeatedValue
from .statistics import Estimate, estimate, estimate_of_range

Series = list[RepeatedValue]
"""One place for each level of `over`."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """The places that a contrast reads, and the function of their means over the repetitions (unit: the claim's).

    linear: the function of the means is the mean of the function of each repetition.
    by_level: where the statistic is the largest less the smallest over levels: the rows' numbers of each level.
    bases: the numbers that the statistic divides by, or takes the logarithm of. least: no value of the statistic is
    below it if no number of a place is below 0.
    """

    places: tuple[RepeatedValue, ...]
    statistic: Callable[[Sequence[float]], float]
    linear: bool = False
    by_level: Callable[[Sequence[Sequence[float]]], Sequence[Sequence[float]]] | None = None
    bases: Callable[[Sequence[float]], Sequence[float]] = lambda values: ()
    least: float = -math.inf

    @property
    def random(self) -> bool:
        """True if another seed would give another number."""
        return any(place.random for place in self.places)

    @property
    def alike(self) -> bool:
        """True if the clock tells no two repetitions of any place apart."""
        return all(place.alike for place in self.places)

    def repetitions(self) -> list[int]:
        """The repetitions that every place has. A place without randomness counts as having all of them."""
        drawn = [place for place in self.places if place.random] or list(self.places)
        return sorted(set.intersection(*(set(place.values) for place in drawn)))

    def rows(self) -> list[list[float]]:
        """For each repetition one number of each place."""
        return [[_value(place, number) for place in self.places] for number in self.repetitions()]

    def estimate(self) -> Estimate:
        """The estimate over the repetitions. Raises ZeroDivisionError."""
        if self.by_level is not None and self.random and not self.alike and len(self.repetitions()) > 1:
            return estimate_of_range(self.by_level(self.rows()))
        return estimate(self.values(), random=self.random, resolution=math.inf if self.alike else 0.0)

    def of_means(self) -> float:
        """The statistic of the plain means over the repetitions. Raises ZeroDivisionError."""
        return self.statistic([math.fsum(column) / len(column) for column in zip(*self.rows(), strict=True)])

    def unusable(self, estimated: Estimate) -> str:
        """The reason why an estimate with an interval says nothing, or "". Where what is divided by may be 0, the
        quotient has no bound (Fieller 1954), unless both sides of the pairs swing alike, which cancels.
        """
        low = estimated.mean if estimated.low is None else estimated.low
        for column in zip(*(self.bases(row) for row in self.rows()), strict=True):
            base = estimate(column, random=True)
            may_be_0 = base.low is not None and base.high is not None and base.low <= 0 <= base.high
            if may_be_0 and (low < self.floor or math.isinf(self.floor)):
                ends = f"{base.low:.4g} to {base.high:.4g}"
                return f"the number to divide by may be 0: {base.mean:.4g}, 95 % interval {ends}, n = {base.n}"
        if estimated.mean < self.floor:
            return (
                f"the draws spread too far for an estimate: {estimated.mean:.4g} is below what can be, {self.least:g}"
            )
        return ""

    @property
    def floor(self) -> float:
        """The number that the statistic cannot be below: rates do not fall by more than 100 %."""
        return self.least if min(map(min, self.rows())) >= 0 else -math.inf

    def values(self) -> list[float]:
        """One number for each repetition that every place has: the jackknife's pseudo-values, of which mean and spread
        are those of the statistic of the means. Raises ZeroDivisionError.
        """
        rows = self.rows()
        if self.linear or all(row == rows[0] for row in rows[1:]):
            return [self.statistic(row) for row in rows]
        return _pseudo_values(rows, self.statistic)


def mean_of(parts: Sequence[Contrast]) -> Contrast:
    """The mean of several contrasts' numbers."""
    ends = list(itertools.accumulate(len(part.places) for part in parts))

    def statistic(values: Sequence[float]) -> float:
        starts = [0, *ends[:-1]]
        numbers = [part.statistic(values[i:j]) for part, i, j in zip(parts, starts, ends, strict=True)]
        return math.fsum(numbers) / len(numbers)

    def bases(values: Sequence[float]) -> list[float]:
        starts = [0, *ends[:-1]]
        return [base for part, i, j in zip(parts, starts, ends, strict=True) for base in part.bases(values[i:j])]

    places = tuple(place for part in parts for place in part.places)
    least = math.fsum(part.least for part in parts) / len(parts)
    return Contrast(places, statistic, all(part.linear for part in parts), bases=bases, least=least)


def _value(place: RepeatedValue, repetition: int) -> float:
    """The value of that repetition; if nothing is random in the place, that of any repetition."""
    return place.values[repetition] if place.random else next(iter(place.values.values()))


def contrasts(kind: ClaimKind, a: Sequence[Series], b: Sequence[Series], levels: Sequence[str] = ()) -> list[Contrast]:
    """Every contrast of a claim: each of a with each of b, level by level or over the levels.

    levels: those that a series goes over, as text; their quantities are what an elasticity is taken against.
    """
    pairs = list(itertools.product(a, b))
    match kind:
        case "greater" | "less" | "equal":
            return [
                Contrast(two, lambda values: values[0] / values[1] - 1, bases=_second_half, least=-1)
                for left, right in pairs
                for two in zip(left, right, strict=True)
            ]
        case "difference":
            return [
                Contrast(two, lambda values: values[0] - values[1], linear=True)
                for left, right in pairs
                for two in zip(left, right, strict=True)
            ]
        case "gain":
            return [Contrast((*left, *right), _gain_of_sums, bases=_sum_of_second, least=-1) for left, right in pairs]
        case "mean_gain" | "mean_greater":
            return [Contrast((*left, *right), _mean_of_gains, bases=_second_half, least=-1) for left, right in pairs]
        case "pooled_gain":
            first, second = [place for series in a for place in series], [place for series in b for place in series]
            bases = lambda values: [math.fsum(values[len(first) :])]  # noqa: E731
            return [Contrast((*first, *second), _gain_of_means(len(first)), bases=bases, least=-1)]
        case "value" | "every":
            return [Contrast((place,), lambda values: values[0], linear=True) for series in a for place in series]
        case "constant" | "varies" if b:
            return [
                Contrast((*left, *right), _spread_of_ratios, by_level=_ratios_of_means, bases=_second_half, least=0)
                for left, right in pairs
            ]
        case "constant" | "varies":
            return [Contrast(tuple(series), _spread, by_level=list, bases=_sum, least=0) for series in a]
        case "elasticity":
            return [Contrast((series[0], series[-1]), _elasticity(levels[0], levels[-1]), bases=list) for series in a]
        case "increasing" | "decreasing" if b:
            return [
                Contrast(
                    (*x, *y),
                    lambda values: _step([values[0] / values[1], values[2] / values[3]]),
                    bases=lambda values: [values[0], values[1], values[3]],
                    least=-1,
                )
                for left, right in pairs
                for x, y in itertools.pairwise(zip(left, right, strict=True))
            ]
        case "increasing" | "decreasing":
            return [
                Contrast(two, _step, bases=lambda values: [values[0]], least=-1)
                for series in a
                for two in itertools.pairwise(series)
            ]
        case _:
            return []


def _pseudo_values(rows: Sequence[Sequence[float]], statistic: Callable[[Sequence[float]], float]) -> list[float]:
    """n f(all) - (n - 1) f(all but one), for each one (Tukey 1958). A mean of ratios of independent draws is larger
    than the ratio of their means, by 1/6 where b spreads by 40 %; this has next to no bias (docs/decisions/0017).
    """
    count = len(rows)
    sums = [math.fsum(column) for column in zip(*rows, strict=True)]
    whole = statistic([total / count for total in sums])
    without = [[(total - value) / (count - 1) for total, value in zip(sums, row, strict=True)] for row in rows]
    return [count * whole - (count - 1) * statistic(means) for means in without]


def _sum(values: Sequence[float]) -> list[float]:
    return [math.fsum(values)]


def _second_half(values: Sequence[float]) -> Sequence[float]:
    return values[len(values) // 2 :]


def _sum_of_second(values: Sequence[float]) -> list[float]:
    return _sum(_second_half(values))


def _gain_of_sums(values: Sequence[float]) -> float:
    half = len(values) // 2
    return math.fsum(values[:half]) / math.fsum(values[half:]) - 1


def _mean_of_gains(values: Sequence[float]) -> float:
    half = len(values) // 2
    return math.fsum(x / y - 1 for x, y in zip(values[:half], values[half:], strict=True)) / half


def _gain_of_means(first: int) -> Callable[[Sequence[float]], float]:
    def statistic(values: Sequence[float]) -> float:
        numerators, denominators = values[:first], values[first:]
        return (math.fsum(numerators) / len(numerators)) / (math.fsum(denominators) / len(denominators)) - 1

    return statistic


def _elasticity(first: str, last: str) -> Callable[[Sequence[float]], float]:
    known = base_values((first, last))
    grown = 0.0 if known is None else math.log(known.values[last] / known.values[first])

    def statistic(values: Sequence[float]) -> float:
        if values[0] <= 0 or values[1] <= 0:
            raise ZeroDivisionError  # it has no logarithm
        return math.log(values[1] / values[0]) / grown

    return statistic


def _spread(values: Sequence[float]) -> float:
    return (max(values) - min(values)) / (math.fsum(values) / len(values))


def _ratios(values: Sequence[float]) -> list[float]:
    half = len(values) // 2
    return [x / y for x, y in zip(values[:half], values[half:], strict=True)]


def _ratios_of_means(rows: Sequence[Sequence[float]]) -> list[tuple[float, ...]]:
    """The jackknife's pseudo-values of each level's ratio of the means."""
    half = len(rows[0]) // 2
    columns = [[(row[level], row[half + level]) for row in rows] for level in range(half)]
    return list(zip(*(_pseudo_values(pairs, lambda pair: pair[0] / pair[1]) for pairs in columns), strict=True))


def _spread_of_ratios(values: Sequence[float]) -> float:
    return _spread(_ratios(values))


def _step(values: Sequence[float]) -> float:
    return (values[1] - values[0]) / abs(values[0])
