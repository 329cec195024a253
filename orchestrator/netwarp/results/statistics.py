"""Statistics of a few repetitions: means and their intervals, differences of two samples, tests of many at once."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

T_95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""Student's t, 97.5 % quantile, for 1 to 30 degrees of freedom (Abramowitz, Stegun: table 26.10)."""
Spread = Literal["deterministic", "single", "equal", "ci95"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean of `n` repetitions and its kind of spread. deterministic: nothing is random. single: one draw of something
    random. equal: several draws of something random with the same value (to the resolution of the clock), which does
    not mean an interval of width 0.

    low, high: the 95 % confidence interval of the mean; None unless spread is "ci95".
    """

    mean: float
    n: int
    spread: Spread
    low: float | None = None
    high: float | None = None

    @property
    def said(self) -> str:
        """The spread as tables have it."""
        return f"equal in {self.n} draws" if self.spread == "equal" else self.spread


def student_t_95(degrees: int) -> float:
    """Two-sided 95 % point of Student's t. Above 30: Abramowitz, Stegun 26.7.5, good to 1e-4."""
    if degrees < 1:
        raise ValueError("needs at least one degree of freedom")
    if degrees <= len(T_95):
        return T_95[degrees - 1]
    z = statistics.NormalDist().inv_cdf(0.975)
    return (
        z
        + (z**3 + z) / (4 * degrees)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * degrees**3)
    )


def estimate(values: Sequence[float], *, random: bool, resolution: float = 0.0) -> Estimate:
    """The estimate from at least one value. Repetitions that differ count as random, whatever the plan said.

    resolution: values no farther apart than this are equal; an interval of them would be that of the clock's ticks.
    """
    mean = math.fsum(values) / len(values)
    alike = max(values) - min(values) <= resolution
    if alike and not random:
        return Estimate(values[0] if min(values) == max(values) else mean, len(values), "deterministic")
    if len(values) == 1:
        return Estimate(mean, 1, "single")
    if alike:
        return Estimate(values[0] if min(values) == max(values) else mean, len(values), "equal")
    half = student_t_95(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return Estimate(mean, len(values), "ci95", mean - half, mean + half)


def estimate_of_range(rows: Sequence[Sequence[float]]) -> Estimate:
    """(largest - smallest) / mean of several levels' means over the repetitions. rows: for each of at least two
    repetitions a number of each level. Raises ZeroDivisionError.

    The range of one repetition is above 0 by noise alone, and so is the mean of many. Each end of the interval is that
    of the pair of levels with the farthest one, of the differences repetition by repetition: the upper end as it is,
    since the range is below a bound if every difference is; the lower one held against chance in any of the pairs
    (Bonferroni), since one difference is enough.
    """
    count = len(rows)
    means = [math.fsum(column) / count for column in zip(*rows, strict=True)]
    mean = math.fsum(means) / len(means)
    pairs = list(itertools.combinations(range(len(means)), 2))
    one, any_of = (student_t(0.05 / tests, count - 1) for tests in (1, max(1, len(pairs))))
    low = high = 0.0
    for first, second in pairs:
        gaps = [(row[first] - row[second]) / mean for row in rows]
        error = statistics.stdev(gaps) / math.sqrt(count)
        far = abs(math.fsum(gaps) / count)
        low, high = max(low, far - any_of * error), max(high, far + one * error)
    return Estimate((max(means) - min(means)) / mean, count, "ci95", low, high)


def student_t(alpha: float, degrees: int) -> float:
    """Two-sided point of Student's t for any alpha, by bisection."""
    low, high = 0.0, 2.0
    while student_t_p(high, degrees) > alpha:
        high *= 2
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if student_t_p(middle, degrees) > alpha else (low, middle)
    return high


def student_t_p(t: float, degrees: int) -> float:
    """Two-sided p-value of Student's t, exact for whole degrees of freedom (Abramowitz, Stegun 26.7.3, 26.7.4)."""
    if degrees < 1:
        raise ValueError("needs at least one degree of freedom")
    theta = math.atan2(abs(t), math.sqrt(degrees))
    cosine, odd = math.cos(theta), degrees % 2
    term, total = (cosine, 0.0) if odd else (1.0, 0.0)
    for number in range(2 + odd, degrees + 1, 2):
        total += term
        term *= (number - 1) / number * cosine * cosine
    inside = 2 / math.pi * (theta + math.sin(theta) * total) if odd else math.sin(theta) * total
    return min(max(1 - inside, 0.0), 1.0)


def false_discoveries(p_values: Sequence[float], rate: float) -> list[bool]:
    """The hypotheses to reject so that at most `rate` of the rejected are true (Benjamini, Hochberg 1995)."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    last = max((rank for rank, index in enumerate(order, 1) if p_values[index] <= rate * rank / len(order)), default=0)
    rejected = set(order[:last])
    return [index in rejected for index in range(len(p_values))]


def welch(x: Sequence[float], y: Sequence[float]) -> tuple[float, float, int]:
    """Welch's test for the means of two independent samples of at least two values: difference (y - x), its variance,
    degrees of freedom.
    """
    parts = [statistics.variance(values) / len(values) for values in (x, y)]
    spread = sum(parts)
    weights = sum(part * part / (len(values) - 1) for part, values in zip(parts, (x, y), strict=True))
    degrees = math.floor(spread * spread / weights) if weights else min(len(x), len(y)) - 1
    return statistics.fmean(y) - statistics.fmean(x), spread, max(degrees, 1)


@dataclass(frozen=True, slots=True)
class Draws:
    """The values of one number in two runs. paired: those of one row drew the same (losses, times of start)."""

    x: list[float]
    y: list[float]
    paired: bool

    @property
    def least_p(self) -> float:
        """The smallest p-value that a permutation test with so many random draws could give."""
        return 2 / (2 ** len(self.x) if self.paired else math.comb(len(self.x) + len(self.y), len(self.y)))

    def gap(self) -> tuple[float, float, int]:
        """Difference of the means (y - x), its variance, degrees of freedom."""
        if not self.paired:
            return welch(self.x, self.y)
        gaps = [y - x for x, y in zip(self.x, self.y, strict=True)]
        return statistics.fmean(gaps), statistics.variance(gaps) / len(gaps), len(gaps) - 1
