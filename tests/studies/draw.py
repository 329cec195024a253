"""Draws of a study: the same seed gives the same study. Values come with their units, as a spec writes them."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import TypeVar

Choice = TypeVar("Choice")
MS, S = 10**6, 10**9
RARE = 0.05
"""Probability of what few studies have, yet fifty of a thousand."""


class Draw:
    """A generator of one study."""

    def __init__(self, seed: int, number: int, again: int = 0) -> None:
        self._random = random.Random(f"study {seed} {number}" + (f" {again}" if again else ""))

    def maybe(self, probability: float = RARE) -> bool:
        """True that often."""
        return self._random.random() < probability

    def of(self, choices: Sequence[Choice]) -> Choice:
        """One of these."""
        return self._random.choice(choices)

    def some(self, choices: Sequence[Choice], most: int) -> list[Choice]:
        """Between one and `most` different ones, in their order."""
        taken = set(self._random.sample(range(len(choices)), min(len(choices), self.whole(1, most))))
        return [choice for number, choice in enumerate(choices) if number in taken]

    def whole(self, least: int, most: int) -> int:
        """A whole number, both ends included."""
        return self._random.randint(least, most)

    def log(self, least: float, most: float) -> float:
        """A number whose logarithm is uniform: as likely between 1 and 10 as between 10 and 100."""
        return math.exp(self._random.uniform(math.log(least), math.log(most)))


def two_digits(value: float) -> int:
    """The nearest whole number with two digits that are not 0, at least 1."""
    digits = max(0, math.floor(math.log10(max(value, 1.0))) - 1)
    return max(1, round(value / 10**digits) * 10**digits)


def rate_text(bit_s: int) -> str:
    """A rate."""
    return _with_unit(bit_s, (("Gbit/s", 10**9), ("Mbit/s", 10**6), ("kbit/s", 10**3), ("bit/s", 1)))


def time_text(ns: int) -> str:
    """A time."""
    return _with_unit(ns, (("s", S), ("ms", MS), ("us", 10**3), ("ns", 1)))


def size_text(count: int) -> str:
    """An amount of data."""
    return _with_unit(count, (("MB", 10**6), ("kB", 10**3), ("B", 1)))


def _with_unit(value: int, units: Sequence[tuple[str, int]]) -> str:
    for name, factor in units:
        if value >= factor:
            text = f"{value / factor:.6f}".rstrip("0").rstrip(".")
            if float(text) * factor == value:
                return f"{text} {name}"
    return f"{value} {units[-1][0]}"
