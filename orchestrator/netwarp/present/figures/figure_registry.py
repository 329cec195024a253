"""The list of the kinds of figures, and every figure of a run ready for the page.

A kind is a directory: data.py (the numbers, as JSON, CSV, table and words), page.js (its drawing on the page) and
print.py (its drawing for PDF and SVG).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from ...core.outputs import Figure, TimeSeries
from ..axes import NumberTable
from ..run_data import RunData
from ..style import Look
from .distribution.data import (
    DistributionData,
    distribution_csv,
    distribution_json,
    distribution_table,
    distribution_words,
    make_distribution,
)
from .distribution.print import distribution_canvas
from .heatmap.data import HeatmapData, heatmap_csv, heatmap_json, heatmap_table, heatmap_words, make_heatmap
from .heatmap.print import heatmap_canvas
from .line.data import FigureData, figure_csv, figure_json, figure_table, figure_words, make_figure
from .line.print import line_canvas
from .over_time.data import TimeFigure, make_time_figure, time_csv, time_json, time_table, time_words
from .over_time.print import time_canvas
from .print_canvas import Canvas, printed

Spec = TypeVar("Spec", Figure, TimeSeries)
Data = TypeVar("Data", FigureData, HeatmapData, DistributionData, TimeFigure)
Looks = Mapping[str, Look]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure ready for the page. payload: what its script draws from; words: for those who cannot see it.

    files: suffix (pdf, svg, csv) -> content.
    """

    name: str
    title: str
    conditions: str
    words: str
    payload: Mapping[str, Any]
    table: NumberTable
    files: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class _Kind(Generic[Spec, Data]):
    """The functions of one kind of figure."""

    make: Callable[[RunData, Spec], Data | None]
    words: Callable[[Data], str]
    payload: Callable[[Data], Mapping[str, Any]]
    table: Callable[[Data], NumberTable]
    csv: Callable[[Data], bytes]
    canvas: Callable[[Data, Looks], Canvas]

    def draw(self, data: RunData, figure: Spec, looks: Looks) -> Drawing | None:
        """The drawing; None where the run has no numbers for it."""
        made = self.make(data, figure)
        if made is None:
            return None
        return Drawing(
            name=made.name,
            title=made.title,
            conditions=made.conditions,
            words=self.words(made),
            payload=self.payload(made),
            table=self.table(made),
            files={**printed(lambda: self.canvas(made, looks)), "csv": self.csv(made)},
        )


_LINE = _Kind(make_figure, figure_words, figure_json, figure_table, figure_csv, line_canvas)
_HEATMAP = _Kind(make_heatmap, heatmap_words, heatmap_json, heatmap_table, heatmap_csv, heatmap_canvas)
_DISTRIBUTION = _Kind(
    make_distribution, distribution_words, distribution_json, distribution_table, distribution_csv, distribution_canvas
)
_OVER_TIME = _Kind(make_time_figure, time_words, time_json, time_table, time_csv, time_canvas)
_DRAW: Mapping[str, Callable[[RunData, Figure, Looks], Drawing | None]] = {
    "line": _LINE.draw,
    "heatmap": _HEATMAP.draw,
    "cdf": _DISTRIBUTION.draw,
    "box": _DISTRIBUTION.draw,
}
"""`kind` of a [figure.NAME] -> what draws it."""
SCRIPTS: Mapping[str, Path] = {
    f"{kind}.js": Path(__file__).parent / kind / "page.js" for kind in ("line", "heatmap", "distribution", "over_time")
}
"""File below assets/ -> the script of a kind."""


def draw_figures(data: RunData, looks: Looks) -> tuple[Drawing, ...]:
    """Every figure of the plan that the run has numbers for, in the spec's order; those over time last."""
    drawn = [_DRAW[figure.kind](data, figure, looks) for figure in data.plan.figures]
    drawn += [_OVER_TIME.draw(data, figure, looks) for figure in data.plan.time_series]
    return tuple(drawing for drawing in drawn if drawing is not None)
