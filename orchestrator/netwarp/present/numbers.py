"""Numbers as people read them: digits, units, differences. Pure functions, no HTML."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from .metric_names import WORDLESS

THIN = "\u202f"
MINUS = "\u2212"
DASH = "\u2013"

_SUPERSCRIPT = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")
_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
SCALED = {"bit/s": "bit/s", "byte/s": "byte/s", "bytes": "B", "byte": "B"}
"""Units that take a decimal prefix, and what follows the prefix."""
_PARTS_OF_A_SECOND = ((1.0, "s"), (1e-3, "ms"), (1e-6, "\u00b5s"))


def scale(values: Iterable[float | None], unit: str) -> tuple[float, str]:
    """(divisor, unit shown) that gives the largest value one to three digits before the point: s -> ms."""
    largest = max((abs(value) for value in values if value is not None), default=0.0)
    if unit == "s" and largest > 0:
        return next(((part, name) for part, name in _PARTS_OF_A_SECOND if largest >= part), _PARTS_OF_A_SECOND[-1])
    if unit not in SCALED:
        return 1.0, unit
    for factor, prefix in _PREFIXES:
        if largest >= factor:
            return factor, prefix + SCALED[unit]
    return 1.0, SCALED[unit] if unit in ("bit/s", "byte/s") else unit


def decimals(values: Iterable[float | None], digits: int = 4) -> int:
    """Digits after the point that show the largest value to `digits` significant ones (0 to 9)."""
    largest = max((abs(value) for value in values if value is not None), default=0.0)
    if largest == 0 or not math.isfinite(largest):
        return 0
    return min(9, max(0, digits - 1 - math.floor(math.log10(largest))))


def fixed(value: float | None, places: int) -> str:
    """Fixed decimals with a true minus and thin spaces between thousands; a dash for nothing."""
    if value is None or not math.isfinite(value):
        return DASH
    text = f"{abs(value):_.{places}f}".replace("_", THIN)
    negative = value < 0 and any(digit not in "0._\u202f" for digit in text)
    return f"{MINUS}{text}" if negative else text


def readable(value: float | None, digits: int = 4) -> str:
    """One number alone: `digits` significant digits; whole numbers up to a million whole; powers of ten beyond."""
    if value is None or not math.isfinite(value):
        return DASH
    if value == round(value) and abs(value) < 1e15:
        return fixed(value, 0)
    if 1e-4 <= abs(value) < 1e9:
        return fixed(value, decimals([value], digits))
    return given(float(f"{value:.{digits - 1}e}"))


def given(value: float) -> str:
    """A number somebody wrote, without digits nobody wrote: 0.18, 1400, 1.7x10^-5 (in superscript)."""
    if 1e-4 <= abs(value) < 1e9 or value == 0:
        return f"{value:.9g}".replace("-", MINUS)
    mantissa, _, exponent = f"{value:.6g}".partition("e")
    return f"{mantissa.replace('-', MINUS)}\u00d710{str(int(exponent or 0)).translate(_SUPERSCRIPT)}"


def with_unit(value: float | None, unit: str) -> str:
    """A number and its unit, scaled: 488281.2, "bit/s" -> "488.3 kbit/s"."""
    if value is None:
        return DASH
    divisor, shown = scale([value], unit)
    text = readable(value / divisor)
    return text if shown in WORDLESS else f"{text} {_singular(shown) if value == 1 else shown}"


def _singular(unit: str) -> str:
    """The unit of one: "chunk" of "chunks". Symbols (s, ms, bit/s) have no plural."""
    return unit[:-1] if unit.isalpha() and len(unit) > 2 and unit.endswith("s") and not unit.endswith("ss") else unit


@dataclass(frozen=True, slots=True)
class Difference:
    """A measured value against somebody's. `grade`: 0 (below 1 %) to 3 (above 15 %); `sign`: -1, 0, 1."""

    text: str
    sign: int
    grade: int
    ratio: float | None


GRADES = (0.01, 0.05, 0.15)
"""Where the colour of a difference gets stronger: 1 %, 5 %, 15 %."""


def difference(value: float | None, reference: float | None) -> Difference | None:
    """Relative difference, absolute where the reference is 0, None where either is missing."""
    if value is None or reference is None:
        return None
    if reference == 0:
        sign = (value > 0) - (value < 0)
        return Difference(_signed(readable(abs(value)), sign), sign, 0 if sign == 0 else 3, None)
    ratio = (value - reference) / abs(reference)
    grade = sum(abs(ratio) >= limit for limit in GRADES)
    percent = fixed(abs(ratio) * 100, 1 if abs(ratio) < 0.0995 else 0)
    sign = 0 if percent == "0.0" else (1 if ratio > 0 else -1)
    return Difference(f"{_signed(percent, sign)}{THIN}%", sign, grade, ratio)


def _signed(text: str, sign: int) -> str:
    return {-1: MINUS, 0: "\u00b1", 1: "+"}[sign] + text


def duration(seconds: float) -> str:
    """Seconds as people say them: "2 h 5 min", "3 min 20 s", "48 s"."""
    if seconds < 120:
        return f"{readable(seconds, 3)} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{fixed(hours, 0)} h {minutes} min" if hours else f"{minutes} min {rest} s"
