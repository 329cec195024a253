"""Parses quantities as people write them ("500 kbit/s", "200 ms", "1 %", "45 packets") into base units, exactly.

Base units: time int ns, data int bytes, rate int bit/s, ratio float 0..1, packets int, frequency float per second.
"bdp" stays relative: it is resolved per path, from its rate and RTT. k = 1000, Ki = 1024. The arithmetic is decimal:
no integer result passes through a float.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from .numbers import fixed

Kind = Literal["time", "data", "rate", "ratio", "packets", "bdp", "frequency"]

EXAMPLES: dict[Kind, str] = {
    "time": '"200 ms"',
    "data": '"64 KiB"',
    "rate": '"500 kbit/s"',
    "ratio": '"1 %" or "1e-5"',
    "packets": '"50 packets"',
    "bdp": '"1 bdp"',
    "frequency": '"5 /s"',
}
WORDS: dict[Kind, str] = {
    "time": "a time",
    "data": "an amount of data",
    "rate": "a rate",
    "ratio": "a ratio",
    "packets": "a number of packets",
    "bdp": "a bandwidth-delay product",
    "frequency": "a number a second",
}
MOST_NAMES = 6
"""Of `listed`."""
_TIME = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
_DATA = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_RATE = {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9}
_UNITS: dict[str, tuple[Kind, Fraction]] = {
    **{unit: ("time", Fraction(scale)) for unit, scale in _TIME.items()},
    **{unit: ("data", Fraction(scale)) for unit, scale in _DATA.items()},
    **{unit: ("rate", Fraction(scale)) for unit, scale in _RATE.items()},
    "%": ("ratio", Fraction(1, 100)),
    "": ("ratio", Fraction(1)),
    "packets": ("packets", Fraction(1)),
    "packet": ("packets", Fraction(1)),
    "bdp": ("bdp", Fraction(1)),
    "/s": ("frequency", Fraction(1)),
    "/min": ("frequency", Fraction(1, 60)),
}
_BASE: dict[Kind, str] = {"time": "ns", "data": "B", "rate": "bit/s", "packets": "packets"}
_HINTS: dict[str, tuple[Kind, str]] = {
    "bps": ("rate", 'write "bit/s" (tc reads bps as bytes)'),
    "kbps": ("rate", 'write "kbit/s"'),
    "mbps": ("rate", 'write "Mbit/s"'),
    "gbps": ("rate", 'write "Gbit/s"'),
    "b/s": ("rate", 'rates are in bit/s, e.g. "500 kbit/s"'),
    "kb/s": ("rate", 'rates are in bit/s, e.g. "500 kbit/s"'),
    "mb/s": ("rate", 'rates are in bit/s, e.g. "10 Mbit/s"'),
    "sec": ("time", 'write "s"'),
    "seconds": ("time", 'write "s"'),
    "µs": ("time", 'write "us"'),
    "μs": ("time", 'write "us"'),
    "kb": ("data", 'write "kB" (1000 B) or "KiB" (1024 B)'),
    "bytes": ("data", 'write "B"'),
    "byte": ("data", 'write "B"'),
}
_NUMBER = re.compile(r"([+-]?)((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*(.*)", re.ASCII | re.DOTALL)
LONGEST_TEXT = 64
LARGEST = 2**63 - 1


class QuantityError(ValueError):
    """The text is not a quantity, or not one of the kind that is needed. The message says what is wrong and shows a
    correct example.
    """


@dataclass(frozen=True, slots=True)
class Quantity:
    """A parsed quantity. `value`: in the base unit of its kind; int, but float for `ratio`, `bdp` and `frequency`."""

    kind: Kind
    value: int | float


def parse_quantity(text: str, kind: Kind | None = None) -> Quantity:
    """Parse a quantity, with or without a space before the unit; `kind`: the kind that is needed.

    Raises QuantityError: no number, unknown or missing unit, wrong kind, negative, not a whole number of base units, a
    ratio above 1, or a number above 64 bits.
    """
    quantity = _read(text, kind)
    if isinstance(quantity, str):
        raise QuantityError(quantity)
    return quantity


@lru_cache(4096)
def _read(text: str, kind: Kind | None) -> Quantity | str:
    """The quantity, or what is wrong: the cells of a spec write the same texts thousands of times."""
    shown = repr(text[:LONGEST_TEXT]) + ("..." if len(text) > LONGEST_TEXT else "")
    example = f"; write for example {EXAMPLES[kind] if kind else EXAMPLES['time'] + ' or ' + EXAMPLES['rate']}"
    match = _NUMBER.fullmatch(text.strip()) if len(text) <= LONGEST_TEXT else None
    if match is None:
        return f"{shown} is not a number with its unit{example}"
    sign, digits, unit = match.groups()
    if unit not in _UNITS:
        return f"{shown}: {_unknown_unit(unit, kind)}{example}"
    unit_kind, scale = _UNITS[unit]
    # "1" of a ratio may be the whole or 1 %, "0.5" a half or half of a percent; "1e-5" and "0" are one thing only
    plain = "e" not in digits.lower() and Fraction(digits) != 0
    if unit == "" and (kind not in (None, "ratio") or plain or Fraction(digits) > 1):
        return f"{shown} is a bare number: its unit is missing{example}"
    if kind is not None and unit_kind != kind:
        return f"{shown} is {WORDS[unit_kind]}, but {WORDS[kind]} is wanted{example}"
    value = Fraction(digits) * scale
    if sign == "-" and value:
        return f"{shown} is negative{example}"
    if value > LARGEST:
        return f"{shown} is too large to be meant{example}"
    if unit_kind in ("ratio", "bdp", "frequency"):
        if unit_kind == "ratio" and value > 1:
            return f"{shown} is more than the whole{example}"
        return Quantity(unit_kind, float(value))
    if value.denominator != 1:
        return f"{shown} is not a whole number of {_BASE[unit_kind]}{example}"
    return Quantity(unit_kind, value.numerator)


@dataclass(frozen=True, slots=True)
class BaseValues:
    """Numbers in one base unit, and the unit as names end with it (s, bytes, bit_s, ratio, packets, bdp)."""

    unit: str
    values: dict[str, float]


def base_values(texts: Collection[str]) -> BaseValues | None:
    """The texts as numbers of one kind, times in seconds; None if the list is empty or a text is not a quantity of that
    kind.
    """
    try:
        quantities = {text: parse_quantity(text) for text in texts}
    except QuantityError:
        return None
    kinds = {quantity.kind for quantity in quantities.values()}
    if len(kinds) != 1:
        return None
    (kind,) = kinds
    unit, scale = {"time": ("s", 10**9), "data": ("bytes", 1), "rate": ("bit_s", 1)}.get(kind, (kind, 1))
    return BaseValues(unit, {text: quantity.value / scale for text, quantity in quantities.items()})


def format_quantity(quantity: Quantity) -> str:
    """The quantity as text that `parse_quantity` reads back to an equal one."""
    value = quantity.value
    if quantity.kind == "ratio":
        return f"{_plain(Fraction(repr(value)) * 100)} %"
    if quantity.kind == "bdp":
        return f"{_plain(Fraction(repr(value)))} bdp"
    if quantity.kind == "frequency":
        return f"{_plain(Fraction(repr(value)))} /s"
    if quantity.kind == "packets":
        return f"{value} packet" if value == 1 else f"{value} packets"
    if quantity.kind == "data":
        unit = next((unit for unit in ("GiB", "MiB", "KiB") if value and not value % _DATA[unit]), "B")
        return f"{int(value) // _DATA[unit]} {unit}"
    units = ("s", "ms", "us", "ns") if quantity.kind == "time" else ("Gbit/s", "Mbit/s", "kbit/s", "bit/s")
    unit = next((unit for unit in units if value >= _UNITS[unit][1]), "s" if quantity.kind == "time" else "bit/s")
    return f"{_plain(Fraction(value) / _UNITS[unit][1])} {unit}"


def counted(count: float, singular: str, plural: str = "") -> str:
    """A number and its noun: "1 cell", "2 cells", "12 345 packets". plural: given if it is not the singular
    with "s".
    """
    return f"{fixed(count, 0)} {singular if count == 1 else plural or singular + 's'}"


def counted_of(part: float, of: float, singular: str) -> str:
    """Some of a number of things: "1 of 2 cells", "1 of 1 cell"."""
    return f"{fixed(part, 0)} of {counted(of, singular)}"


def listed(names: Sequence[str]) -> str:
    """Names with commas; of more than 6 the first ones, the last, and how many: "f0, f1, f2 ... f59 (60)"."""
    if len(names) <= MOST_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[: MOST_NAMES // 2])} ... {names[-1]} ({len(names)})"


def same_value(first: str, second: str) -> bool:
    """True if two levels mean the same: equal quantities ("10s" equals "10 s"), otherwise equal text."""
    try:
        return parse_quantity(first) == parse_quantity(second)
    except QuantityError:
        return first.strip() == second.strip()


def _plain(value: Fraction) -> str:
    """Exact decimal text of a fraction whose denominator divides a power of ten; "1E-9" instead of many zeros."""
    with localcontext() as context:
        context.prec = 400
        number = (Decimal(value.numerator) / Decimal(value.denominator)).normalize()
    return f"{number:f}" if number.adjusted() >= -6 else str(number)


def _unknown_unit(unit: str, kind: Kind | None) -> str:
    """What to write instead: of the kind that is needed, since the unit of another one would be the next mistake."""
    hint_kind, hint = _HINTS.get(unit.casefold(), (None, ""))
    if hint and kind in (None, hint_kind):
        return f"unknown unit {unit[:16]!r}, {hint}"
    known = {name.casefold(): name for name, (of, _) in _UNITS.items() if name and kind in (None, of)}
    near = difflib.get_close_matches(unit.casefold(), known, n=1)
    guess = f', did you mean "{known[near[0]]}"?' if near else f" (known: {', '.join(sorted(known.values()))})"
    return f"unknown unit {unit[:16]!r}{f' of {WORDS[kind]}' if kind else ''}{guess}"
