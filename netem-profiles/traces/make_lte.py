"""Makes lte-made.up and lte-made.down: delivery opportunities of an LTE-like link, by a model and not recorded.

    python3 netem-profiles/traces/make_lte.py

The rate is lognormal around its median: a slow part (correlated over 4 s: distance, load of the cell) and a fast one
(0.1 s: fading). The scheduler gives the user a subframe of 1 ms with a probability that changes every second, and in it
as many opportunities as the rate of the moment allows. Every 15 s in the mean a handover: 40 to 250 ms of nothing.
60 s; after that the trace begins anew. The numbers are chosen here; they are of the size of recorded ones (mean rates,
gaps of some tens of ms, rare ones of some hundred).
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from pathlib import Path

LENGTH_MS = 60_000
OPPORTUNITY_BITS = 1500 * 8
DIRECTIONS = {"down": (9e6, 20261126), "up": (3.5e6, 20261127)}
"""Median rate (bit/s) and seed."""


def correlated(draw: random.Random, deviation: float, over_ms: float) -> Iterator[float]:
    """A stationary Gauss-Markov process of mean 0, a value a ms."""
    keep = math.exp(-1 / over_ms)
    value = draw.gauss(0, deviation)
    while True:
        yield value
        value = keep * value + math.sqrt(1 - keep * keep) * draw.gauss(0, deviation)


def opportunities(median_bit_s: float, seed: int) -> Iterator[int]:
    """Their times in ms, from 1 to LENGTH_MS; the last ms has one."""
    draw = random.Random(seed)
    slow, fast = correlated(draw, 0.5, 4000), correlated(draw, 0.3, 100)
    share, owed, silent_until = 0.5, 0.0, 0
    for ms in range(1, LENGTH_MS):
        rate = median_bit_s * math.exp(next(slow) + next(fast))
        if ms % 1000 == 0:
            share = draw.uniform(0.25, 0.75)
        if ms >= silent_until and draw.random() < 1 / 15_000:
            silent_until = ms + draw.randrange(40, 250)
        if ms < silent_until:
            owed = 0.0  # what is not given in a handover is not given later
            continue
        owed += rate / 1000 / OPPORTUNITY_BITS
        if draw.random() < share:
            yield from [ms] * int(owed)
            owed -= int(owed)
    yield LENGTH_MS


if __name__ == "__main__":
    for name, (median_bit_s, seed) in DIRECTIONS.items():
        path = Path(__file__).with_name(f"lte-made.{name}")
        path.write_text("".join(f"{ms}\n" for ms in opportunities(median_bit_s, seed)))
