"""The page's scripts format numbers as netwarp.core.numbers does."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pytest
from netwarp.core import numbers
from support.chromium import Page

TIES = [0.5, 1.5, 2.5, 0.125, 0.375, 1234.5, 12345.5, -2.5, 1234500000000000000.0, 0.0009765625, 2.0**-14]
EDGES = [
    0.0, 1.0, -1.0, 10.0, 1000.0, 0.001, 0.01, 0.1, 1e-4, 9.9999e-5, 999.95, 9999.5, 0.99995, 1e9, 1e12, 1e15,
    1e300,
]  # fmt: skip


def values() -> list[float]:
    """Ties, edges, and numbers of every size."""
    drawn = random.Random(1)
    sizes = [drawn.uniform(-1, 1) * 10 ** drawn.randint(-9, 16) for _ in range(400)]
    levels = [round(drawn.uniform(0, 2000), drawn.randint(0, 3)) for _ in range(100)]
    return [*TIES, *EDGES, *sizes, *levels]


@pytest.mark.parametrize(
    ("script", "python"),
    [
        ("netwarp.number(value)", numbers.readable),
        ("netwarp.number(value, 3)", lambda value: numbers.readable(value, 3)),
        ("netwarp.given(value)", numbers.given),
        ("netwarp.given(value, 4)", lambda value: numbers.given(value, 4)),
        ("netwarp.percent(value, 3, true)", lambda value: numbers.percent(value, signed=True)),
        ("netwarp.fixed(Math.abs(value) < 1e15 ? value : 0, 2)", lambda v: numbers.fixed(v if abs(v) < 1e15 else 0, 2)),
    ],
)
def test_scripts_write_what_python_writes(page: Page, small: str, script: str, python: Callable[[float], str]) -> None:
    page.open(small)
    chosen = values()
    assert page.evaluate(f"{json.dumps(chosen)}.map((value) => {script})") == [python(value) for value in chosen]


@pytest.mark.parametrize("unit", ["s", "bit/s", "byte/s", "bytes", "ratio", "packets", ""])
def test_scripts_scale_as_python_does(page: Page, small: str, unit: str) -> None:
    page.open(small)
    chosen = values()
    scaled = page.evaluate(
        f"{json.dumps(chosen)}.map((value) => netwarp.scale([null, value], {json.dumps(unit)}))"
        ".map((one) => [one.divisor, one.unit])"
    )
    assert scaled == [list(numbers.scale([None, value], unit)) for value in chosen]
