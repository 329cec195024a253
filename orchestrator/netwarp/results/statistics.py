"""Mean and 95 % confidence interval of a few repetitions."""

from __future__ import annotations

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
