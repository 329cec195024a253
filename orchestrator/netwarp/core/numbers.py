"""The formatter of numbers for the terminal, the pages and every text. present/static/report.js formats in the same
way: change both together.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

THIN = "\u202f"
MINUS = "\u2212"
DASH = "\u2013"
WORDLESS = ("", "ratio")
"""Units that say nothing to a reader."""

_SUPERSCRIPT = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")
_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
SCALED = {"bit/s": "bit/s", "byte/s": "byte/s", "bytes": "B", "byte": "B"}
"""Units that take a decimal prefix, and what follows the prefix."""
_PARTS_OF_A_SECOND = ((1.0, "s"), (1e-3, "ms"), (1e-6, "\u00b5s"))


def scale(values: Iterable[float | None], unit: str) -> tuple[float, str]:
    """(divisor, prefixed unit) with which the largest value has one to three digits before the decimal point, e.g. s ->
    ms.
    """
    largest = max((abs(value) for value in values if value is not None), default=0.0)
    if unit == "s" and largest > 0:
        return next(((part, name) for part, name in _PARTS_OF_A_SECOND if largest >= part), _PARTS_OF_A_SECOND[-1])
    if unit not in SCALED:
        return 1.0, "" if unit in WORDLESS else unit
    for factor, prefix in _PREFIXES:
        if largest >= factor:
            return factor, prefix + SCALED[unit]
    return 1.0, unit


def in_shown_unit(title: str, unit: str, shown: str) -> str:
    """A title that names its quantity's unit in brackets, with the unit that is shown: "Goodput (bit/s)" of values in
    Mbit/s is "Goodput (Mbit/s)".
    """
    symbol = SCALED.get(unit)
    names = {name for _, name in _PARTS_OF_A_SECOND} if unit == "s" else {unit}
    names |= {symbol, *(prefix + symbol for _, prefix in _PREFIXES)} if symbol else set()
    return re.sub(r"\((\S+)\)", lambda found: f"({shown})" if shown and found[1] in names else found[0], title)


def decimals(values: Iterable[float | None], digits: int = 4) -> int:
    """Number of digits after the point (0 to 9) with which the largest value has `digits` significant digits."""
    largest = max((abs(value) for value in values if value is not None), default=0.0)
    if largest == 0 or not math.isfinite(largest):
        return 0
    return min(9, max(0, digits - 1 - math.floor(math.log10(largest))))


def fixed(value: float | None, places: int) -> str:
    """The number with `places` decimals, U+2212 as minus sign and thin spaces between thousands; a dash for None."""
    if value is None or not math.isfinite(value):
        return DASH
    text = f"{abs(value):_.{places}f}".replace("_", THIN)
    negative = value < 0 and any(digit not in "0._\u202f" for digit in text)
    return f"{MINUS}{text}" if negative else text


def readable(value: float | None, digits: int = 4) -> str:
    """A measured number with `digits` significant digits, trailing zeros kept; whole numbers stay whole, and from 10^9
    on as a power of ten.
    """
    if value is None or not math.isfinite(value):
        return DASH
    if value == round(value) and abs(value) < 1e15:
        return fixed(value, 0)
    if 1e-4 <= abs(value) < 1e9:
        return fixed(value, decimals([value], digits))
    return given(value, digits)


def given(value: float, digits: int = 9) -> str:
    """A chosen number (a level, a bound, a share) with only the digits it was given: 0.18, 1400, 1.7x10^-5
    (superscript).
    """
    mantissa, _, exponent = plain(value, digits).replace("-", MINUS).partition("e")
    power = int(exponent.replace(MINUS, "-") or 0)
    return f"{mantissa}\u00d710{str(power).translate(_SUPERSCRIPT)}" if exponent else mantissa


def plain(value: float, digits: int = 9) -> str:
    """As `given`, in ASCII (-0.18, 1.7e-05), for texts that are stored in tables and searched."""
    if value == 0:
        return "0"
    if 1e-4 <= abs(value) < 1e9:
        number, e, power = f"{value:.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}", "", ""
    else:
        number, e, power = f"{value:.{digits - 1}e}".partition("e")
    return (number.rstrip("0").rstrip(".") if "." in number else number) + e + power


def with_unit(value: float | None, unit: str) -> str:
    """A measured number and its unit, scaled: 488281.2, "bit/s" -> "488.3 kbit/s"."""
    if value is None:
        return DASH
    divisor, shown = scale([value], unit)
    text = readable(value / divisor)
    return f"{text} {_singular(shown) if value == 1 else shown}" if shown else text


def in_short(value: float | None, unit: str, digits: int = 3) -> str:
    """The same with few digits, for a sentence: 1.06 s, 258 ms, 1.3 s."""
    if value is None:
        return DASH
    divisor, shown = scale([value], unit)
    return f"{given(value / divisor, digits)} {shown}".rstrip()


def percent(ratio: float | None, digits: int = 3, *, signed: bool = False) -> str:
    """A share or a change: "2.35 %", "+12 %"."""
    if ratio is None:
        return DASH
    return f"{'+' if signed and ratio > 0 else ''}{given(100 * ratio, digits)} %"


def duration(seconds: float) -> str:
    """Seconds in words: "2 h 5 min", "3 min 20 s", "48 s"."""
    if seconds < 120:
        return f"{readable(seconds, 3)} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{fixed(hours, 0)} h {minutes} min" if hours else f"{minutes} min {rest} s"


def speed(virtual_s: float, wall_s: float | None) -> str:
    """The time of a run's cells: "1 h 10 min of virtual time in 13.3 s"; without how long it took where that is not
    known (of a run that was resumed).
    """
    took = "" if wall_s is None else f" in {duration(wall_s)}"
    return f"{duration(virtual_s)} of virtual time{took}"


def _singular(unit: str) -> str:
    """The singular of a unit: "chunk" for "chunks". Symbols (s, ms, bit/s) stay as they are."""
    return unit[:-1] if unit.isalpha() and len(unit) > 2 and unit.endswith("s") and not unit.endswith("ss") else unit
