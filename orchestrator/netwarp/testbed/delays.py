"""Distributions of a delay as netem takes them: tables of equally likely values, in jitters, scaled by 8192.

netem adds jitter x value / 8192 to the delay, the value drawn from the table for each packet. The names are those of
tc(8) and the tables those of iproute2, made by its formulas (netem/pareto.c, netem/paretonormal.c; normal from the
inverse of the distribution function). `overtake(k)` is our own: k of 4096 packets are not delayed at all.
"""

from __future__ import annotations

import functools
import re
import statistics

from ..core.types import LinkImpairment

SCALE = 8192
SIZE = 4096
LIMITS = (-32768, 32767)
PARETO_SHAPE = 3.0
_OVERTAKE = re.compile(r"overtake\(([0-9]+)\)")


def overtakers(reorder_ratio: float) -> int:
    """The number of 4096 packets that overtake others. netem draws from a table, so the ratio becomes a multiple of
    1/4096, at least one.
    """
    return max(1, round(reorder_ratio * SIZE)) if reorder_ratio else 0


def distribution_of(shape: LinkImpairment) -> str:
    """The distribution of the delays: a name of tc(8)'s, or overtake(k)."""
    return f"overtake({overtakers(shape.reorder_ratio)})" if shape.reorder_ratio else shape.distribution


def spread_ns(shape: LinkImpairment) -> int:
    """The jitter to configure in netem. With overtake(k), whose table holds 0 and -1, it is the delay itself."""
    return shape.one_way_delay_ns if shape.reorder_ratio else shape.jitter_ns


@functools.cache
def quantiles(name: str) -> tuple[int, ...]:
    """The values of a distribution's table, ascending. Raises ValueError for a name without a table (uniform)."""
    inverse = statistics.NormalDist().inv_cdf
    if name == "normal":
        return tuple(_clipped(inverse((i + 0.5) / SIZE) * SCALE) for i in range(SIZE))
    if name == "pareto":
        return tuple(_pareto(SIZE - i) for i in range(SIZE))
    if name == "paretonormal":
        return tuple(_third(round(inverse((i + 0.5) / SIZE) * SCALE), _pareto(SIZE - i)) for i in range(SIZE))
    if match := _OVERTAKE.fullmatch(name):
        return (-SCALE,) * int(match[1]) + (0,) * (SIZE - int(match[1]))
    raise ValueError(f"no delay distribution '{name}'; there are: uniform, normal, pareto, paretonormal")


@functools.cache
def table(name: str) -> bytes:
    """TCA_NETEM_DELAY_DIST: the quantiles as s16."""
    return b"".join(value.to_bytes(2, "little", signed=True) for value in quantiles(name))


def _clipped(value: float) -> int:
    return max(LIMITS[0], min(LIMITS[1], round(value)))


def _pareto(number: int) -> int:
    """The quantile at 1 - number / 4096 of a Pareto distribution of shape 3, minus its mean 1.5, times 4/3."""
    return _clipped((1.0 / (number / SIZE) ** (1.0 / PARETO_SHAPE) - 1.5) * (4.0 / 3.0) * SCALE)


def _third(normal: int, pareto: int) -> int:
    """A quarter of the first and three quarters of the second, quantile by quantile."""
    return _clipped((normal + 3 * pareto) / 4)
