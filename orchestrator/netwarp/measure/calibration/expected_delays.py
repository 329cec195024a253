"""The delays and losses to expect from a link's configuration, with statistical bounds: calibration compares
measurements with these.

Delays are those of sch_netem.c (tabledist): the delay plus jitter x table / 8192, or uniform; never below 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...core.types import LinkImpairment
from ...testbed.delays import distribution_of, quantiles, spread_ns

ALPHA = 1e-5
"""The probability that one row of the calibration fails by chance. Every statistical bound has this level."""
Z = 4.417
"""Two-sided quantile of the normal distribution at ALPHA: change both together."""
Floats = npt.NDArray[np.float64]
UNIFORM_STEPS = 4096


@dataclass(frozen=True, slots=True)
class Delays:
    """A distribution of delays: equally likely values in s, ascending, and its moments."""

    values_s: Floats

    @property
    def mean_s(self) -> float:
        """Mean."""
        return float(self.values_s.mean())

    @property
    def deviation_s(self) -> float:
        """Standard deviation."""
        return float(self.values_s.std())

    @property
    def width_s(self) -> float:
        """Largest minus smallest delay."""
        return float(self.values_s[-1] - self.values_s[0])

    def mean_bound_s(self, count: int) -> float:
        """The most by which the mean of `count` draws may differ from the distribution's mean."""
        return Z * self.deviation_s / math.sqrt(count)

    def deviation_bound_s(self, count: int) -> float:
        """The most by which the standard deviation of `count` draws may be off: sqrt((m4 - sd^4) / n) / (2 sd), by the
        delta method, times the quantile.
        """
        sd = self.deviation_s
        fourth = float(((self.values_s - self.mean_s) ** 4).mean())
        return Z * math.sqrt(max(fourth - sd**4, 0.0) / count) / (2 * sd) if sd else 0.0

    def distance(self, measured_s: Floats, slack_s: float) -> float:
        """Kolmogorov-Smirnov distance of the measured delays from this distribution.

        Lateness of up to slack_s is not counted, nor earliness of up to slack_s / 10.
        """
        measured = np.sort(measured_s)
        steps = np.arange(len(measured) + 1) / len(measured)
        early = np.searchsorted(self.values_s, measured + slack_s / 10, side="right") / len(self.values_s)
        late = np.searchsorted(self.values_s, measured - slack_s, side="left") / len(self.values_s)
        return float(max((steps[1:] - early).max(), (late - steps[:-1]).max(), 0.0))


def distance_bound(count: int) -> float:
    """The bound of Dvoretzky, Kiefer and Wolfowitz (with Massart's constant): P(D > bound) <= ALPHA for every
    distribution.
    """
    return math.sqrt(math.log(2 / ALPHA) / (2 * count))


def delays_of(shape: LinkImpairment) -> Delays:
    """The distribution of delays of an impairment's delay line."""
    spread, delay = spread_ns(shape), shape.one_way_delay_ns
    name = distribution_of(shape)
    if not spread:
        values = np.array([float(delay)])
    elif name == "uniform":
        values = delay - spread + 2 * spread * (np.arange(UNIFORM_STEPS) + 0.5) / UNIFORM_STEPS
    else:
        values = delay + spread * np.array(quantiles(name)) / 8192
    return Delays(np.maximum(values, 0.0) / 1e9)


def binomial_bound(count: int, ratio: float) -> float:
    """The most by which the share of successes in `count` tries may differ from `ratio`: the exact binomial quantiles
    at ALPHA / 2, the farther of the two.
    """
    if not count or ratio in (0.0, 1.0):
        return 0.0
    k = np.arange(count + 1)
    logs = np.cumsum(np.log(np.arange(1, count + 1, dtype=np.float64)))
    factorial = np.concatenate([[0.0], logs])
    mass = np.exp(factorial[-1] - factorial - factorial[::-1] + k * math.log(ratio) + (count - k) * math.log1p(-ratio))
    below = np.cumsum(mass)
    low = int(np.searchsorted(below, ALPHA / 2))
    high = int(np.searchsorted(below, 1 - ALPHA / 2))
    return max(ratio - low / count, high / count - ratio)


def chain_bound(count: int, p: float, r: float) -> float:
    """The most by which the mean loss of a two-state Markov chain (Gilbert's model) may differ from p / (p + r) in
    `count` packets: its variance is that of independent losses times (1 + c) / (1 - c), c = 1 - p - r.
    """
    mean, c = p / (p + r), 1 - p - r
    return Z * math.sqrt(mean * (1 - mean) * (1 + c) / (1 - c) / count)


def chi_square_bound(freedom: int) -> float:
    """The quantile of chi-square at 1 - ALPHA, one-sided, by bisection."""
    low, high = 0.0, 1000.0
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _above(middle, freedom) > ALPHA else (low, middle)
    return high


def _above(x: float, freedom: int) -> float:
    """P(chi-square > x), by the finite sums for even and odd degrees of freedom."""
    term = math.sqrt(2 * x / math.pi) * math.exp(-x / 2) if freedom % 2 else math.exp(-x / 2)
    probability = math.erfc(math.sqrt(x / 2)) if freedom % 2 else 0.0
    for degree in range(1 if freedom % 2 else 0, freedom - 1, 2):
        probability += term
        term *= x / (degree + 2)
    return probability
