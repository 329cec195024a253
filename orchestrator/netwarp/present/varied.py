"""A property of many cells in words: its value, or the factor that it follows and the levels."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence

from ..core.types import Cell
from ..core.units import counted, same_value
from ..plan.types import Outputs

MOST_LEVELS = 6
MOST_VALUES = 3
"""Values that are said beside the levels that give them."""
NONE = "-"
"""The level of a factor that does not apply to a cell."""
_QUANTITY = re.compile(r"\d[\d.e-]*( [A-Za-z%][A-Za-z/%]*)?")

Pairs = Sequence[tuple[Cell, str]]
"""Each cell with its value."""


def value_or_levels(plan: Outputs, pairs: Pairs, span: str = "") -> str:
    """The value that all cells share; else "by outage (5, 10, 20 s)"; of a factor whose levels are other words than the
    values "by link (lte: 50 Mbit/s; dsl: 16 Mbit/s)"; else the factors that decide it together. span: what is said of
    values that no factor decides, such as those drawn from the seed ("": how many there are).
    """
    distinct = list(dict.fromkeys(text for _, text in pairs))
    if len(distinct) < 2:
        return "".join(distinct)
    varied = [
        name
        for name in dict.fromkeys(name for cell, _ in pairs for name in cell.factors)
        if len({_level(cell, name) for cell, _ in pairs}) > 1
    ]
    deciding = [(name, of) for name in varied if (of := _decided(pairs, (name,), applied=True)) is not None]
    if deciding:
        name, of = min(deciding, key=lambda pair: sum(_level(cell, pair[0]) == NONE for cell, _ in pairs))
        words = _of_one(plan, name, of)
        rest = [(cell, text) for cell, text in pairs if _level(cell, name) == NONE and text not in of.values()]
        return f"{words}, else {value_or_levels(plan, rest, span)}" if rest else words
    for names in (*itertools.combinations(varied, 2), *itertools.combinations(varied, 3), tuple(varied)):
        if len(names) > 1 and _decided(pairs, names) is not None:
            titles = [plan.factor_title(name) for name in names]
            return f"by {', '.join(titles[:-1])} and {titles[-1]} ({counted(len(distinct), 'value')})"
    return span or f"{counted(len(distinct), 'value')}, drawn from the seed"


def property_words(plan: Outputs, what: str, pairs: Pairs, span: str = "") -> str:
    """A property's value by itself; else "rate by bandwidth (1, 2 Mbit/s)", or "rate: 1, 2 Mbit/s" of a factor that has
    its name.
    """
    text = value_or_levels(plan, pairs, span)
    if len({value for _, value in pairs}) < 2:
        return text
    own = f"by {what} ("
    alone = text.casefold().startswith(own.casefold()) and text.endswith(")") and ": " not in text
    if alone:
        return f"{what}: {text[len(own) : -1]}"
    begins = text.casefold().startswith(f"by {what} ".casefold())  # "length of the outage (5, 10 s)"
    return text.removeprefix("by ") if begins else f"{what} {text}"


def _level(cell: Cell, name: str) -> str:
    return cell.factors.get(name, NONE)


def _decided(pairs: Pairs, names: Sequence[str], *, applied: bool = False) -> dict[tuple[str, ...], str] | None:
    """Levels of these factors -> value; None where they do not decide it. applied: of cells to which they apply, among
    which there must be several values.
    """
    of: dict[tuple[str, ...], str] = {}
    for cell, text in pairs:
        levels = tuple(_level(cell, name) for name in names)
        if (not applied or NONE not in levels) and of.setdefault(levels, text) != text:
            return None
    return None if applied and len(set(of.values())) < 2 else of


def _of_one(plan: Outputs, name: str, of: Mapping[tuple[str, ...], str]) -> str:
    """Levels of a factor, and what they give where that is something else."""
    by_value: dict[str, list[str]] = {}
    for (level,), text in of.items():
        by_value.setdefault(text, []).append(level)
    alike = all(len(levels) == 1 and _says(levels[0], text) for text, levels in by_value.items() if text)
    if alike or len(by_value) > MOST_VALUES:
        inside = few([plan.level_title(name, level) for levels in by_value.values() for level in levels])
    else:
        inside = "; ".join(
            few([plan.level_title(name, level) for level in levels])
            + ("" if len(levels) == 1 and _says(levels[0], text) else f": {text or 'none'}")
            for text, levels in by_value.items()
        )
    return f"by {plan.factor_title(name)} ({inside})"


def _says(level: str, text: str) -> bool:
    """Whether a level is the value in other words: "0.5 Mbit/s" and "rate 500 kbit/s"."""
    found = _QUANTITY.search(text)
    return (
        level.casefold() in text.casefold()
        or text.casefold() in level.casefold()
        or (found is not None and same_value(level, found[0]))
    )


def few(levels: Sequence[str], most: int = MOST_LEVELS) -> str:
    """Levels in a row, their unit once; of more than `most` the first and the last, or how many they are."""
    units = {level.rpartition(" ")[2] for level in levels}
    numbers = [level.rpartition(" ")[0] for level in levels]
    unit, numeric = "", all(re.fullmatch(r"[-+]?\d[\d.e-]*", number) for number in numbers)
    if len(units) == 1 and numeric:
        unit, levels = f" {units.pop()}", numbers
    if len(levels) > most:
        return f"{levels[0]} to {levels[-1]}{unit}, {len(levels)} levels" if unit else f"{len(levels)} levels"
    between = " / " if any(", " in level for level in levels) else ", "
    return f"{between.join(levels)}{unit}"
