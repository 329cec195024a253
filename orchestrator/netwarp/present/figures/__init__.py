"""Every figure of a run: described once (description.py) from its numbers, by a module for each kind; print.py and
static/figures.js draw the description.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...core import outputs
from ..run_data import RunData
from .description import Drawing
from .distribution import distribution_figure
from .heatmap import heatmap_figure
from .line import line_figure
from .over_time import time_figure

KINDS: Mapping[str, Callable[[RunData, outputs.Figure], Drawing | None]] = {
    "line": line_figure,
    "heatmap": heatmap_figure,
    "cdf": distribution_figure,
    "box": distribution_figure,
}
"""`kind` of a [figure.NAME] -> what describes it."""


def describe_figures(data: RunData) -> tuple[Drawing, ...]:
    """Every figure of the plan that the run has numbers for, in the spec's order; those over time last."""
    figures = [KINDS[figure.kind](data, figure) for figure in data.plan.figures]
    figures += [time_figure(data, figure) for figure in data.plan.time_series]
    return tuple(figure for figure in figures if figure is not None)
