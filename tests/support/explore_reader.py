"""Reads the points of the report's Explore view from the page, and holds them against the run's tables."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from random import Random
from typing import Any

from support.chromium import Page
from support.page_reader import factor_of

SHOWN = """[...document.querySelectorAll('#explore-panels .chart')].map((chart) => ({
  y: chart._fullLayout.yaxis.title.text, x: chart._fullLayout.xaxis.title.text,
  xtype: chart._fullLayout.xaxis.tickvals ? 1 : 0,
  traces: chart.data.filter((one) => one.customdata).map((one) => ({
    mode: one.mode || one.type, x: one.x, y: one.y, customdata: one.customdata })) }))"""
CHOICES = "Object.fromEntries(new FormData(document.getElementById('explore-form')))"
READY = "document.getElementById('explore-panels').getAttribute('aria-busy') === 'false'"
NOT_VARIED = ("cell_id", "experiment", "repetition", "seed", "outcome", "reason", "virtual_s")
NUMBER = re.compile(r"\d[\d.]*(e-?\d+)?( [A-Za-z/%]+)?")
"""A level that is a number, with a unit or without."""
TICKS = """[...document.querySelectorAll('#explore-panels .chart')].flatMap((chart, i) =>
  [...chart.querySelectorAll('.xtick text')].filter((one) => one.textContent).map((one) => {
    const box = one.getBoundingClientRect();
    return [i, one.textContent, box.left, box.top, box.right, box.bottom]; }))"""


class ExploreReader:
    """The Explore view of one report, beside its run's tables."""

    def __init__(self, page: Page, run: Path) -> None:
        self.page = page
        with (run / "tables" / "cells.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.factors = [name for name in rows[0] if name not in NOT_VARIED]
        self.cells = {row["cell_id"]: row for row in rows if row["outcome"] == "COMPLETED"}
        self.values: dict[tuple[str, str], dict[str, tuple[float, str]]] = {}
        with (run / "tables" / "measurements.csv").open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if row["value"]:
                    place = self.values.setdefault((row["metric"], row["flow"]), {})
                    place[row["cell_id"]] = (float(row["value"]), row["unit"])

    def start(self) -> None:
        """Scroll to the view and wait for its first picture."""
        self.page.evaluate("document.getElementById('explore').scrollIntoView({behavior: 'instant'})")
        self.page.wait(READY)

    def change(self, random: Random) -> str:
        """Choose another option of a drawn control; returns both."""
        controls = self.page.evaluate(
            "[...document.getElementById('explore-form').elements].filter((one) => one.tagName === 'SELECT')"
            ".map((one) => [one.name, [...one.options].map((option) => option.value)])"
        )
        name, options = random.choice(controls)
        value = "" if "" in options and random.random() < 0.5 else random.choice(options)
        self.choose(name, value)
        return f"{name}={value}"

    def choose(self, name: str, value: str) -> None:
        """Choose an option, where there is that control, and wait for the picture."""
        self.page.evaluate(
            f"(() => {{ const one = document.getElementById('explore-form').elements[{json.dumps(name)}];"
            " if (!one) return;"
            f" one.value = {json.dumps(value)}; one.dispatchEvent(new Event('change', {{bubbles: true}})); }})()"
        )
        self.page.wait(READY)

    def level(self, cell: str, factor: str) -> str:
        """A cell's level, "-" where it lacks the factor."""
        return self.cells[cell].get(factor) or "-"

    def faults(self) -> list[str]:
        """What is drawn and is not in the tables, or is joined and unlike, or is missing without a word."""
        chosen = self.page.evaluate(CHOICES)
        kind = chosen["kind"]
        known = [flow for metric, flow in self.values if metric == chosen["metric"]]
        flow = chosen.get("flow", known[0] if known else "")
        values = self.values.get((chosen["metric"], flow), {})
        fixed = {name[3:]: level for name, level in chosen.items() if name.startswith("is ") and level}
        fits = [cell for cell in self.cells if all(self.level(cell, f) == level for f, level in fixed.items())]
        lacking = [] if kind == "cdf" else [cell for cell in fits if self.level(cell, chosen["x"]) == "-"]
        wanted = {cell for cell in fits if cell in values} - set(lacking)
        found: set[str] = set()
        faults = []
        drawn = [
            chosen["x"] if kind != "cdf" else "",
            chosen.get("a", ""),
            chosen.get("b", ""),
            chosen.get("panel", ""),
        ]
        named = [name for name in drawn if name]
        if len(set(named)) < len(named):
            faults.append(f"a factor is drawn twice: {named}")
        levels = {self.level(cell, chosen["x"]) for cell in wanted} if kind == "line" else set[str]()
        several = sum(NUMBER.fullmatch(level) is not None for level in levels) > 1
        for chart in self.page.evaluate(SHOWN) if wanted else []:
            for trace in chart["traces"]:
                points = list(_points(kind, trace))
                found.update(cell for cells, _, _ in points for cell in cells)
                faults += self._trace(kind, chosen["x"], trace["mode"], points, several=several)
                for cells, value, _ in points:
                    if value is not None and not set(cells) <= set(values):
                        faults.append(f"a point of {cells} without a value")
                    elif value is not None and kind in ("line", "heatmap"):
                        scale = _scale(chart["y"] if kind == "line" else "", values[cells[0]][1])
                        mean = sum(values[cell][0] for cell in cells) / len(cells)
                        if scale and abs(value * scale - mean) > 1e-6 * max(abs(mean), 1e-12):
                            faults.append(f"{value} x {scale} is drawn for {cells}: the table has {mean}")
        if found != wanted:
            faults.append(
                f"{len(found - wanted)} cells are drawn that do not fit, {len(wanted - found)} that fit are not"
            )
        said = self.page.evaluate("document.getElementById('explore-left').textContent")
        count = re.search(r"(\d+) cells? (?:is|are) left out: without (?!a value)", said)
        if int(count[1] if count else 0) != len(lacking):
            faults.append(f"{len(lacking)} cells without {chosen['x']}, and the page says {said!r}")
        if len(levels) == 1 and f"one level of {self._title(chosen['x'])}" not in said:
            faults.append(f"{chosen['x']} has one level, and the page says {said!r}")
        return [f"{chosen}: {fault}" for fault in (*faults, *self._overprinted())]

    def _title(self, factor: str) -> str:
        option = json.dumps(f"#explore-form [name=x] option[value={json.dumps(factor)}]")
        return str(self.page.evaluate(f"document.querySelector({option}).textContent"))

    def _trace(self, kind: str, x: str, mode: str, points: list[Any], *, several: bool) -> list[str]:
        """A line joins cells that differ in x alone, and all of those where x is a number; a mean is of repetitions.
        several: whether several levels that are shown are numbers.
        """
        rest = [name for name in (*self.factors, "experiment") if name != x]
        like = lambda cell: tuple(self.level(cell, name) for name in rest)  # noqa: E731
        faults = []
        if kind == "line" and "lines" in mode:
            if len({like(cell) for cells, _, _ in points for cell in cells}) > 1:
                faults.append("a line joins cells that differ in more than x")
            levels = [self.level(cells[0], x) for cells, _, _ in points]
            if any(not NUMBER.fullmatch(level) for level in levels):
                faults.append(f"a line runs over levels that are no numbers: {levels}")
            if [place for _, _, place in points] != sorted(place for _, _, place in points):
                faults.append(f"a line runs to and fro over {x}")
        apart = {self.level(cells[0], x) for cells, _, _ in points if NUMBER.fullmatch(self.level(cells[0], x))}
        alike = len({like(cell) for cells, _, _ in points for cell in cells}) == 1
        if kind == "line" and mode == "markers" and apart and several and alike:
            faults.append(f"levels of {x} are numbers, and no line joins them: {sorted(apart)}")
        if kind in ("line", "heatmap"):
            for cells, value, _ in points:
                if value is not None and len({(like(cell), self.level(cell, x)) for cell in cells}) > 1:
                    faults.append(f"a mean of unlike cells: {cells}")
        return faults

    def _overprinted(self) -> list[str]:
        boxes = self.page.evaluate(TICKS)
        return [
            f"the label {one[1]!r} lies over {other[1]!r}"
            for number, one in enumerate(boxes)
            for other in boxes[:number]
            if one[0] == other[0]
            and one[2] < other[4] - 1 and other[2] < one[4] - 1 and one[3] < other[5] - 1 and other[3] < one[5] - 1
        ]  # fmt: skip


def _points(kind: str, trace: dict[str, Any]) -> Any:
    """Cells, value and place of each point of a trace."""
    if kind == "heatmap":
        for row in trace["customdata"]:
            for spot in row:
                if spot and spot[0]:
                    number = re.search(r"<b>([^ <]+) ", spot[1])
                    yield spot[0], 0.0 if number else None, None
        return
    x, y = _numbers(trace["x"]), _numbers(trace["y"])
    for place, data in enumerate(trace["customdata"]):
        yield data[0], (x if kind == "cdf" else y)[place], (y if kind == "cdf" else x)[place]


def _numbers(values: Any) -> list[float]:
    return list(values.values()) if isinstance(values, dict) else values


def _scale(title: str, base: str) -> float | None:
    """Base units in one unit of an axis; None where the axis is of something else."""
    if not title:
        return None
    unit = re.findall(r"\(([^()]+)\)", title.replace("<br>", " "))
    return (factor_of(unit[-1], base) or 1.0) if unit else 1.0
