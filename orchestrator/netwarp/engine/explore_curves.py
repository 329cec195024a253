"""Draws what explorations reached over the CPU time they took, as the report draws figures: coverage.svg and .pdf."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import SpecError
from ..core.units import counted
from ..exploration.coverage_files import CURVE, FUNCTIONS
from ..present.figures.description import Axis, Chart, Series
from ..present.figures.print import printed
from ..present.style import looks, solid
from ..store.run_dir import read_json, write_atomic

NAME = "coverage"
MARKERS = 4
"""About so many of a curve: a plain exploration is over soon, and its markers would hide it."""


def draw_curves(place: Path, beside: Sequence[Path] = ()) -> Path:
    """Draw the curve of an exploration, and those of others, or of `netwarp selftest --out`, beside it. Tests have no
    curve: a level line says what they reached together. Returns the SVG. Raises SpecError where there is nothing.
    """
    curves = {each: _points(each) for each in (place, *beside)}
    end_s = max(x[-1] for x, _ in curves.values() if x)
    series = tuple(_series(each, *points, end_s) for each, points in curves.items())
    top = max(max(each.y) for each in series)
    chart = Chart(Axis("CPU time", "s", from_zero=True), Axis("lines reached", "", span=(0, 1.05 * top)), series)
    styles = {key: solid(look) for key, look in looks(each.key for each in series).items()}
    for suffix, data in printed(chart, styles).items():
        write_atomic(place / f"{NAME}.{suffix}", data)
    return place / f"{NAME}.svg"


def _series(place: Path, x: tuple[float, ...], y: tuple[float, ...], end_s: float) -> Series:
    key = str(place)
    if not x:
        return Series(key, _label(place), (0.0, end_s), (y[0], y[0]), ())
    return Series(key, _label(place), x, y, (), form="steps", every=max(1, len(x) // MARKERS))


def _points(place: Path) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """CPU seconds and lines; of tests no times, and the lines that they reached."""
    if (place / CURVE).exists():
        rows = _rows(place / CURVE)
        return tuple(float(row["cpu_s"]) for row in rows), tuple(float(row["lines"]) for row in rows)
    return (), (float(sum(int(row["lines_reached"]) for row in _rows(place / FUNCTIONS))),)


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(newline="") as file:
            return list(csv.DictReader(file))
    except OSError as error:
        raise SpecError(f"{path.parent}: is neither an exploration nor tests of a kernel that counts lines") from error


def _label(place: Path) -> str:
    if not (place / "explore.json").exists():
        return "netwarp selftest"
    told = read_json(place / "explore.json", dict[str, object])
    how = f"drawn, seed {told['seed']}" if told["drawn"] else "plain"
    return f"{told['spec']}: {how}, {counted(int(str(told['cells'])), 'cell')}"
