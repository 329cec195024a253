"""A heat map for print: panels side by side under one colour bar, every number written into its field."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ....core.numbers import given
from ...style import Look
from ..print_canvas import WIDTH_IN, Canvas, new_canvas, plain
from .data import HeatmapData, Panel, spot_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = "cividis"
"""Readable with and without colour vision (Nunez, Anderton, Renslow 2018); darker means a smaller number."""
MISSING = "#e4e4e4"
FIELD_HEIGHT_IN, FIELD_WIDTH_IN, PANEL_HEIGHT_IN = 0.26, 0.36, 0.55
LETTER_IN, LINE_IN = 0.057, 0.12
"""Of a label at 7 points."""
BAR_IN = 0.75
ROW_LABEL_LETTERS = 24


def heatmap_canvas(heatmap: HeatmapData, looks: Mapping[str, Look]) -> Canvas:
    """The drawing. Two columns of a paper wide where panels or fields need it."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm, Normalize

    values = [
        spot.value for panel in heatmap.panels for row in panel.spots for spot in row if spot and spot.value is not None
    ]
    norm = (LogNorm if heatmap.value.kind == "log" else Normalize)(min(values), max(values))
    wide = len(heatmap.panels) > 1 or len(heatmap.x.text) * FIELD_WIDTH_IN + 1 > WIDTH_IN
    width = 2 * WIDTH_IN + 0.25 if wide else WIDTH_IN
    across = min(len(heatmap.panels), max(1, int((width - 0.8) / max(1.2, len(heatmap.x.text) * FIELD_WIDTH_IN))))
    down = -(-len(heatmap.panels) // across)
    rows = [textwrap.fill(plain(text), ROW_LABEL_LETTERS) for text in heatmap.y.text]
    beside = max(len(line) for text in rows for line in text.split("\n")) * LETTER_IN + 0.3
    field = (width - beside - BAR_IN) / across / len(heatmap.x.text)
    columns = [_filled(plain(text), field) for text in heatmap.x.text]
    below = max(text.count("\n") for text in columns) * LINE_IN
    inner = max(FIELD_HEIGHT_IN, LINE_IN * max(text.count("\n") + 1 for text in rows)) * len(rows)
    value = _filled(plain(heatmap.value.label), width)
    above = LINE_IN * (value.count("\n") + 1)
    height = max(1.4, down * (PANEL_HEIGHT_IN + inner) + below + above)
    canvas = new_canvas(width=width, height=height)
    grid = canvas.subplots(down, across, squeeze=False, sharex=True, sharey=True)
    places = [axes for row in grid for axes in row]
    for axes, panel in zip(places, heatmap.panels, strict=False):
        _draw(axes, heatmap, panel, norm)
        axes.set_xticks(heatmap.x.at, columns)
        axes.set_yticks(heatmap.y.at, rows)
    for axes in places[len(heatmap.panels) :]:
        axes.remove()
    bar = canvas.colorbar(ScalarMappable(norm, COLOURS), ax=grid.ravel().tolist(), pad=0.02, aspect=30)
    bar.outline.set_visible(False)
    if heatmap.value.kind == "log":
        marks = _decades(min(values), max(values))
        bar.set_ticks(marks, labels=[given(mark) for mark in marks])
        bar.ax.minorticks_off()
    # above the fields: beside its bar it would be longer than a low map is high
    canvas.suptitle(value, fontsize=7.5)
    canvas.supxlabel(_filled(plain(heatmap.x.label), width), fontsize=7.5)
    canvas.supylabel(_filled(plain(heatmap.y.label), height * 0.8), fontsize=7.5)
    return canvas


def _filled(text: str, length_in: float) -> str:
    """A label in lines of a length, as far as its words allow."""
    return textwrap.fill(text, max(4, int(length_in / LETTER_IN)), break_long_words=False)


def _decades(low: float, high: float) -> list[float]:
    """1, 2, 5 and their tens between two values (charts.js: the same)."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    marks = [float(f"{step}e{power}") for power in powers for step in ((1,) if high > 1000 * low else (1, 2, 5))]
    return [mark for mark in marks if low * 0.999 <= mark <= high * 1.001]


def _draw(axes: Axes, heatmap: HeatmapData, panel: Panel, norm: Any) -> None:
    import numpy as np
    from matplotlib import colormaps

    colours = colormaps[COLOURS].with_extremes(bad=MISSING)
    rows = [[np.nan if spot is None or spot.value is None else spot.value for spot in row] for row in panel.spots]
    axes.imshow(np.ma.masked_invalid(rows), cmap=colours, norm=norm, aspect="auto", interpolation="nearest")
    for y, row in enumerate(panel.spots):
        for x, spot in enumerate(row):
            if spot is None:
                continue
            dark = spot.value is not None and _luminance(colours(norm(spot.value))) < 0.18
            axes.text(
                x, y, plain(spot_text(spot)), ha="center", va="center", fontsize=6, color="white" if dark else "black"
            )
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    if panel.label:
        axes.set_title(plain(panel.label), fontsize=7.5)


def _luminance(colour: tuple[float, ...]) -> float:
    """Relative luminance of an sRGB colour (WCAG 2.1); below 0.18 white letters have more contrast than black ones."""
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3])
    return float(0.2126 * red + 0.7152 * green + 0.0722 * blue)
