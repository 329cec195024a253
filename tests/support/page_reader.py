"""A reader of pages: what stands where, by bounding boxes, and the numbers as they are read off the screen."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
from netwarp.core.outputs import Table
from netwarp.plan.types import Plan
from netwarp.store.run_dir import RunDir

from support.chromium import Page

READER = Path(__file__).with_name("page_reader.js").read_text(encoding="utf-8")
NOTHING = "\u2013"
PREFIXES = {"k": 1e3, "M": 1e6, "G": 1e9}
PARTS = {"ms": 1e-3, "\u00b5s": 1e-6}
Place = tuple[tuple[str, ...], tuple[str, ...]]
"""Headings beside a number, from the left, and above it, from the top."""
SPACES = str.maketrans("", "", "\u202f\u2009\u00a0 ")


class SeenValue(msgspec.Struct, frozen=True):
    """A value on the screen, and the headings above it (from the top) and beside it (from the left)."""

    text: str
    above: tuple[str, ...]
    beside: tuple[str, ...]


def start_reading(page: Page) -> None:
    """Load the reader into the page and open everything that is folded."""
    page.evaluate(f"{READER}\nreader.openAll()")


def misplaced(page: Page, within: str = "body") -> list[str]:
    """Values that do not stand below their column's heading or beside their row's."""
    faults: list[str] = page.evaluate(f"reader.tableFaults({json.dumps(within)})")
    return faults


def values_of(page: Page, selector: str) -> list[SeenValue]:
    """Every value of a table as it is seen."""
    return msgspec.convert(page.evaluate(f"reader.values({json.dumps(selector)})"), list[SeenValue])


def number_of(text: str) -> tuple[float, float]:
    """A number as printed, and the half of its last digit's step: "1 234.5" is (1234.5, 0.05)."""
    plain = text.translate(SPACES).replace("\u2212", "-")
    if power := re.fullmatch(r"(-?[\d.]+)\u00d710([\u207b\u2070\u00b9\u00b2\u00b3\u2074-\u2079]+)", plain):
        digits = power[2].translate(
            str.maketrans("\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079", "-0123456789")
        )
        plain = f"{power[1]}e{digits}"
    mantissa, _, exponent = plain.partition("e")
    return float(plain), 0.5 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


def factor_of(unit: str, base: str) -> float | None:
    """How many base units one shown unit is: ("Mbit/s", "bit/s") is 1e6. None where it is no unit of this quantity."""
    if unit == base:
        return 1.0
    if base == "s":
        return PARTS.get(unit)
    symbol = {"bytes": "B", "byte": "B"}.get(base, base)
    if unit == symbol:
        return 1.0
    return PREFIXES.get(unit[:1]) if symbol in ("bit/s", "byte/s", "B") and unit[1:] == symbol else None


def table_faults(page: Page, run: RunDir, plan: Plan, table: Table, system: str) -> list[str]:
    """Where the page's table is not tables/<name>.csv: a reader takes each number, the unit from the line above the
    table, and the headings that stand above and beside it.
    """
    rows = read_csv(run.tables / f"{plan.rows_of(table)}.csv")
    block = f"#table-{table.name}"
    heads = page.evaluate(f"reader.heads({json.dumps(block)})")
    wanted: dict[Place, list[tuple[float, str]]] = {}
    narrow = page.evaluate(f"reader.isNarrow({json.dumps(block)})")
    for (beside, above), value, base in _expected(plan, table, rows, system):
        place = ((" ".join(text for text in beside if text != NOTHING),) if narrow else beside, above)
        if place[1][-1:] != (system,) and not set(place[1][-1:]) & set(heads):
            continue  # a phone shows one source beside the kernel
        wanted.setdefault(place, []).append((value, base))
    said = page.evaluate(f"reader.seen(document.querySelector({json.dumps(block + ' .conditions')}))").partition(";")[0]
    faults = []
    for one in values_of(page, f"{block} table"):
        if one.text == NOTHING:
            continue
        there = wanted.get((one.beside, one.above), [])
        number, half = number_of(one.text)
        fits = [
            pair
            for pair in there
            if abs(number * _divisor(said, pair[1]) - pair[0]) <= 1.001 * half * _divisor(said, pair[1])
        ]
        if fits:
            there.remove(fits[0])
        else:
            faults.append(
                f"{table.name}: {one.text} ({said}) stands below {one.above} beside {one.beside}: the table has {there}"
            )
    left = {place: values for place, values in wanted.items() if values}
    return faults + [
        f"{table.name}: {values} is not shown below {above} beside {beside}" for (beside, above), values in left.items()
    ]


def _divisor(said: str, base: str) -> float:
    """Of a line "goodput, Mbit/s": what its numbers are multiples of. A title may name its unit itself ("packets")."""
    shown = factor_of(said.rpartition(", ")[2].strip(), base)
    if shown is None and base in ("s", "bit/s", "byte/s", "bytes"):
        raise AssertionError(f"{said!r} says no unit of {base}")
    return shown or 1.0


def _expected(plan: Plan, table: Table, rows: list[dict[str, str]], system: str) -> Iterator[tuple[Place, float, str]]:
    """Each number of the table's file: the headings beside and above it, its value, its base unit."""
    others = [
        name
        for name in (*(source.name for source in plan.sources), *table.beside)
        if any(row.get(name) for row in rows)
    ]
    titles = source_heads(plan)
    columns = {tuple(row[factor] for factor in table.columns) for row in rows}
    # a factor in which all rows are alike is said above the table, not in a column
    beside_of = [factor for factor in table.rows if len({row[factor] for row in rows}) > 1] or table.rows[:1]
    for row in rows:
        beside = tuple(_title(plan, factor, row[factor]) for factor in beside_of)
        if len(table.columns) == 1 and len(columns) > 1:
            above = [plan.factor_title(table.columns[0]), _title(plan, table.columns[0], row[table.columns[0]])]
        else:
            above = (
                [", ".join(f"{plan.factor_title(f)} {_title(plan, f, row[f])}" for f in table.columns)]
                if table.columns
                else []
            )
        for name, head in [("value", system), *((name, titles.get(name, "")) for name in others)]:
            if row[name]:
                heads = [*above, head] if others or not table.columns else above
                yield (beside, tuple(heads)), float(row[name]), row["unit"]


def source_heads(plan: Plan) -> dict[str, str]:
    """Source -> what heads its column: "paper" of the only paper, else as much of its title as tells it apart."""
    papers = [source.name for source in plan.sources if source.kind == "paper"]
    whole = {source.name: source.title or source.name for source in plan.sources}
    begins = {name: re.split(r" ?[,(]", title)[0] for name, title in whole.items()}
    heads = {name: begins[name] if [*begins.values()].count(begins[name]) == 1 else whole[name] for name in whole}
    return heads | (dict.fromkeys(papers, "paper") if len(papers) == 1 else {})


def _title(plan: Plan, factor: str, level: str) -> str:
    return NOTHING if level == "-" else " ".join(plan.level_title(factor, level).split())


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows of a table of the run."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
