"""The spec's own metrics: arithmetic, and nothing but arithmetic."""

from __future__ import annotations

import pytest
from netwarp.core.errors import CaptureError
from netwarp.core.metrics.expressions import evaluate, fill_in

NAMES: dict[str, float | None] = {"x": 3.0, "y": 4.0, "none": None, "zero": 0.0}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("x + y * 2", 11),
        ("(x + y) * 2", 14),
        ("-x ** 2", -9),
        ("x / y", 0.75),
        ("min(x, y, 1) + max(x, y)", 5),
        ("2 ** -1", 0.5),
        ("1e3 - .5", 999.5),
        (" x ", 3),
        ("none + 1", None),
        ("x * none", None),
    ],
)
def test_arithmetic(text: str, value: float | None) -> None:
    assert evaluate("mine", text, NAMES) == value


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "cannot be computed"),
        ("x +", "cannot be computed"),
        ("unheard", "unknown name `unheard`; known are none, x, y, zero"),
        ("x / zero", "division by zero"),
        ("__import__('os')", "is not arithmetic"),
        ("x.real", "is not arithmetic"),
        ("x if y else 1", "is not arithmetic"),
        ("[x]", "is not arithmetic"),
        ("'a' * 3", "is not arithmetic"),
        ("True", "is not arithmetic"),
        ("x // y", "is not arithmetic"),
        ("x < y", "is not arithmetic"),
        ("min(x)", "is not arithmetic"),
        ("abs(x)", "is not arithmetic"),
        ("at(x)", "is not arithmetic"),
        ("count()", "is not arithmetic"),
        ("min(*x)", "is not arithmetic"),
        ("2 ** 9999", "exponent"),
        ("2 ** (9 ** 9)", "exponent"),
        ("(-1) ** 0.5", "no real number"),
        ("(lambda: 1)()", "is not arithmetic"),
        ("1; 2", "cannot be computed"),
        ("x := 1", "cannot be computed"),
        ("(" * 300 + "1" + ")" * 300, "cannot be computed"),
    ],
)
def test_anything_else_is_refused_by_name(text: str, says: str) -> None:
    with pytest.raises(CaptureError) as error:
        evaluate("mine", text, NAMES)
    assert "metric mine" in str(error.value)
    assert says in str(error.value)


def test_parameters_and_the_duration_are_filled_in() -> None:
    """A parameter that is no quantity, and a name without braces, stay as they are."""
    parameters = {"setup": "1.12 s", "rate": "0.5 Mbit/s", "word": "p1"}
    assert fill_in("{setup} + {word} + flow.duration_s + rate_bit_s", parameters, 10**11) == (
        "1.12 + {word} + 100 + rate_bit_s"
    )
