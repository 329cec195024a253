"""Figures on paper: PDF and SVG of their descriptions, with equal bytes for equal data.

Matplotlib is imported when the first figure is printed: that takes half a second.
"""

from __future__ import annotations

import io
import textwrap
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from ..style import MATPLOTLIB_DASHES, MATPLOTLIB_MARKERS, Look
from .description import Axis, Box, Chart, Grid, HeatMap, Marks, Panel, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Canvas: TypeAlias = "Figure"
WIDTH_IN, HEIGHT_IN, LEGEND_ROW_IN = 3.5, 2.4, 0.16
"""One column of a two-column paper (IEEE: 3.5 in, ACM: 3.33 in), so that letters are not scaled."""
LEGEND_POINTS = (7.0, 6.5, 6.0)
LABEL_LETTERS = 32
TICK_GAP_PX = 4
"""At matplotlib's 100 dots an inch."""
COLOURS = "cividis"
"""Readable with and without colour vision (Nunez, Anderton, Renslow 2018); darker means a smaller number."""
MISSING = "#e4e4e4"
FIELD_HEIGHT_IN, FIELD_WIDTH_IN, PANEL_HEIGHT_IN = 0.26, 0.36, 0.55
LETTER_IN, LINE_IN = 0.057, 0.12
"""Of a label at 7 points."""
BAR_IN = 0.75
GRID_ACROSS, GRID_LEGEND_COLUMNS, GRID_PANEL_IN = 3, 4, 1.6
ROW_LABEL_LETTERS = 24
SETTINGS: Any = {
    "pdf.fonttype": 42,  # TrueType, embedded; Type 3 is refused by publishers
    "svg.fonttype": "path",  # letters as paths: looks the same where DejaVu is not installed
    "svg.hashsalt": "netwarp",
    "font.family": "DejaVu Sans",  # ships with matplotlib
    "font.size": 7.5,
    "axes.labelsize": 7.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.2,
    "lines.markersize": 4.5,
}


def printed(marks: Marks, looks: Mapping[str, Look]) -> dict[str, bytes]:
    """suffix -> file. No title inside: a caption says it."""
    import matplotlib as mpl

    with mpl.rc_context(SETTINGS), warnings.catch_warnings():
        # a title in a script DejaVu lacks is shown as boxes, which is no reason to lose the figure
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        match marks:
            case Chart():
                canvas = chart_canvas(marks, looks)
            case Grid():
                canvas = grid_canvas(marks, looks)
            case HeatMap():
                canvas = heatmap_canvas(marks)
        files: dict[str, bytes] = {}
        for suffix, metadata in (("pdf", {"CreationDate": None}), ("svg", {"Date": None})):
            out = io.BytesIO()
            canvas.savefig(out, format=suffix, metadata=metadata)
            files[suffix] = out.getvalue()
        return files


def chart_canvas(chart: Chart, looks: Mapping[str, Look]) -> Canvas:
    """Series and boxes over one pair of axes, with their legend below."""
    from matplotlib.lines import Line2D

    variants = {series.key: series.label for series in chart.series}
    sources = chart.sources if len(chart.sources) > 1 else ()
    canvas = new_canvas(len(variants) + len(sources))
    axes = canvas.add_subplot()
    for begin, end in chart.bands:
        axes.axvspan(begin, end, color="#e5e5e5", linewidth=0)
    for box in chart.boxes:
        _draw_box(axes, box, looks[box.key])
    for series in reversed(chart.series):  # what was measured lies on top
        _draw_series(axes, series, looks[series.key])
    axes.set_xlabel(_plain(chart.x.label))
    label_y(axes, chart.y.label)
    _set_axis(axes, "x", chart.x)
    _set_axis(axes, "y", chart.y)
    if chart.x.at:
        _spread_ticks(canvas, axes)
    handles: list[Any] = [Line2D([], [], **_line_style(looks[key], 0)) for key in variants]
    grey = Look(-1, "#666666", "#666666", "circle", "solid")
    for rank in range(len(sources)):
        handle = Line2D([], [], **_line_style(grey, rank))
        handles.append((handle, Line2D([], [], **_dot_style(grey))) if rank == 2 else handle)
    add_legend(canvas, handles, [_plain(text) for text in (*variants.values(), *sources)])
    return canvas


def grid_canvas(grid: Grid, looks: Mapping[str, Look]) -> Canvas:
    """Panels with the same axes, at most three side by side, two columns of a paper wide where there are several."""
    from matplotlib.lines import Line2D

    variants = {series.key: series.label for panel in grid.panels for series in panel.series} if grid.legend else {}
    across = min(len(grid.panels), GRID_ACROSS)
    down = -(-len(grid.panels) // across)
    width = WIDTH_IN if across == 1 else 2 * WIDTH_IN + 0.25
    canvas = new_canvas(len(variants), GRID_LEGEND_COLUMNS, width=width, height=down * GRID_PANEL_IN + 0.3)
    places = canvas.subplots(down, across, squeeze=False, sharex=True, sharey=True)
    every = [axes for row in places for axes in row]
    for axes, panel in zip(every, grid.panels, strict=False):
        for begin, end in panel.bands:
            axes.axvspan(begin, end, color="#e5e5e5", linewidth=0)
        for series in reversed(panel.series):
            _draw_series(axes, series, looks[series.key])
        axes.set_title(_plain(panel.label), fontsize=7.5, loc="left")
        _set_axis(axes, "x", grid.x)
        _set_axis(axes, "y", grid.y)
    for number, axes in enumerate(every):
        if number >= len(grid.panels):
            axes.remove()
        elif number + across >= len(grid.panels):  # the last of its column has the marks that all share
            axes.tick_params(labelbottom=True)
    every[len(grid.panels) - 1 - (len(grid.panels) - 1) % across // 2].set_xlabel(_plain(grid.x.label))
    canvas.supylabel(textwrap.fill(_plain(grid.y.label), LABEL_LETTERS * down), fontsize=7.5)
    if variants:
        handles = [Line2D([], [], **_line_style(looks[key], 0)) for key in variants]
        add_legend(canvas, handles, [_plain(text) for text in variants.values()], GRID_LEGEND_COLUMNS)
    return canvas


def _set_axis(axes: Axes, which: str, axis: Axis) -> None:
    if axis.kind == "log":
        axes.set(**{f"{which}scale": "log"})
    if axis.at:
        axes.set(**{f"{which}ticks": axis.at, f"{which}ticklabels": [_plain(text) for text in axis.ticks]})
        axes.minorticks_off()
    if axis.span:
        axes.set(**{f"{which}lim": axis.span})
    elif axis.from_zero:
        axes.set(**{f"{which}lim": (0, None)})


def _draw_series(axes: Axes, series: Series, look: Look) -> None:
    style = _line_style(look, series.source)
    if series.form == "points":
        axes.plot(series.x, series.y, alpha=0.6, **style | {"linestyle": "none", "markersize": 2.2})
        return
    if series.thin:
        axes.plot(series.x, series.y, color=look.light, linewidth=0.6, alpha=0.55)
        return
    if any(end is not None for end in series.low):
        ends = zip(series.y, series.low, series.high, strict=True)
        around = [(y - low, high - y) if low is not None and high is not None else (0, 0) for y, low, high in ends]
        axes.errorbar(series.x, series.y, yerr=list(zip(*around, strict=True)), capsize=2, **style)
    else:
        steps = "steps-post" if series.form == "steps" else "default"
        axes.plot(series.x, series.y, drawstyle=steps, markevery=series.every, **style)
    if series.source == 2:
        axes.plot(series.x, series.y, **_dot_style(look))


def _draw_box(axes: Axes, box: Box, look: Look) -> None:
    low, first, middle, third, high = box.quartiles
    statistics = {"whislo": low, "q1": first, "med": middle, "q3": third, "whishi": high, "fliers": ()}
    pen = {"color": look.light, "linewidth": 1.0}
    axes.bxp(
        [statistics], positions=[box.at], widths=box.width, showfliers=False, manage_ticks=False, boxprops=pen,
        whiskerprops=pen, capprops=pen, medianprops=pen | {"linewidth": 1.8},
    )  # fmt: skip


def _line_style(look: Look, source: int) -> dict[str, Any]:
    """Measured: line and filled marker. Others: open markers alone; those of the third are small."""
    style: dict[str, Any] = {
        "color": look.light,
        "marker": MATPLOTLIB_MARKERS[look.marker],
        "linestyle": MATPLOTLIB_DASHES[look.dash],
    }
    if source:
        size = 3 if source == 3 else 6.5
        style |= {"linestyle": "none", "fillstyle": "none", "markersize": size, "markeredgewidth": 0.8}
    return style


def _dot_style(look: Look) -> dict[str, Any]:
    """The dot inside the open markers of the second source."""
    return {"color": look.light, "marker": ".", "markersize": 2, "linestyle": "none"}


def new_canvas(
    legend_entries: int = 0, columns: int = 2, *, width: float = WIDTH_IN, height: float = HEIGHT_IN
) -> Canvas:
    """An empty sheet with room for a legend below."""
    from matplotlib.figure import Figure

    rows = -(-legend_entries // columns)
    return Figure(figsize=(width, height + LEGEND_ROW_IN * rows), layout="constrained")


def add_legend(canvas: Canvas, handles: list[Any], labels: list[str], columns: int = 2) -> None:
    """Below everything, without a frame; in smaller letters, and at last one below the other, where it is too wide."""
    columns = min(columns, len(labels))
    for size, ncols in (*((size, columns) for size in LEGEND_POINTS), (LEGEND_POINTS[0], 1)):
        legend = canvas.legend(
            handles, labels, loc="outside lower center", ncols=ncols, frameon=False, handlelength=2.6,
            columnspacing=1.2, borderaxespad=0.2, labelspacing=0.35, fontsize=size,
        )  # fmt: skip
        if legend.get_window_extent().width <= canvas.bbox.width:
            break
        if ncols > 1:
            legend.remove()
    canvas.set_figheight(
        canvas.get_figheight() + LEGEND_ROW_IN * (-(-len(labels) // ncols) - -(-len(labels) // columns))
    )


def label_y(axes: Axes, text: str) -> None:
    """A long label in several lines: the sheet is as high as a column's figure is."""
    axes.set_ylabel(textwrap.fill(_plain(text), LABEL_LETTERS))


def _spread_ticks(canvas: Canvas, axes: Axes) -> None:
    """Labels of the x axis that would touch their neighbours go a line down."""
    canvas.draw_without_rendering()
    ends: list[float] = []  # of the last label of each line
    texts = []
    for label in axes.get_xticklabels():
        box = label.get_window_extent()
        line = next((number for number, end in enumerate(ends) if box.x0 > end + TICK_GAP_PX), len(ends))
        if label.get_text():
            ends[line : line + 1] = [box.x1]
        texts.append("\n" * line + label.get_text())
    axes.set_xticks(axes.get_xticks(), texts)


def _plain(text: str) -> str:
    """Text that matplotlib takes as it is: no mathematics, and not hidden from the legend by an underscore."""
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def heatmap_canvas(heatmap: HeatMap) -> Canvas:
    """Panels side by side under one colour bar, every number written into its field. Two columns of a paper wide where
    panels or fields need it.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm, Normalize

    norm = (LogNorm if heatmap.value.kind == "log" else Normalize)(*heatmap.value.span or ())
    wide = len(heatmap.panels) > 1 or len(heatmap.x.text) * FIELD_WIDTH_IN + 1 > WIDTH_IN
    width = 2 * WIDTH_IN + 0.25 if wide else WIDTH_IN
    across = min(len(heatmap.panels), max(1, int((width - 0.8) / max(1.2, len(heatmap.x.text) * FIELD_WIDTH_IN))))
    down = -(-len(heatmap.panels) // across)
    rows = [textwrap.fill(_plain(text), ROW_LABEL_LETTERS) for text in heatmap.y.text]
    beside = max(len(line) for text in rows for line in text.split("\n")) * LETTER_IN + 0.3
    field = (width - beside - BAR_IN) / across / len(heatmap.x.text)
    columns = [_filled(text, field) for text in heatmap.x.text]
    below = max(text.count("\n") for text in columns) * LINE_IN
    inner = max(FIELD_HEIGHT_IN, LINE_IN * max(text.count("\n") + 1 for text in rows)) * len(rows)
    value = _filled(heatmap.value.label, width)
    above = LINE_IN * (value.count("\n") + 1)
    height = max(1.4, down * (PANEL_HEIGHT_IN + inner) + below + above)
    canvas = new_canvas(width=width, height=height)
    grid = canvas.subplots(down, across, squeeze=False, sharex=True, sharey=True)
    places = [axes for row in grid for axes in row]
    for axes, panel in zip(places, heatmap.panels, strict=False):
        _draw_panel(axes, panel, norm)
        axes.set_xticks(heatmap.x.at, columns)
        axes.set_yticks(heatmap.y.at, rows)
    for axes in places[len(heatmap.panels) :]:
        axes.remove()
    bar = canvas.colorbar(ScalarMappable(norm, COLOURS), ax=grid.ravel().tolist(), pad=0.02, aspect=30)
    bar.outline.set_visible(False)
    if heatmap.value.at:
        bar.set_ticks(heatmap.value.at, labels=heatmap.value.text)
        bar.ax.minorticks_off()
    # above the fields: beside its bar it would be longer than a low map is high
    canvas.suptitle(value, fontsize=7.5)
    canvas.supxlabel(_filled(heatmap.x.label, width), fontsize=7.5)
    canvas.supylabel(_filled(heatmap.y.label, height * 0.8), fontsize=7.5)
    return canvas


def _filled(text: str, length_in: float) -> str:
    """A label in lines of a length, as far as its words allow."""
    return textwrap.fill(_plain(text), max(4, int(length_in / LETTER_IN)), break_long_words=False)


def _draw_panel(axes: Axes, panel: Panel, norm: Any) -> None:
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
            colour = "white" if dark else "black"
            axes.text(x, y, _plain(spot.text), ha="center", va="center", fontsize=6, color=colour)
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    if panel.label:
        axes.set_title(_plain(panel.label), fontsize=7.5)


def _luminance(colour: tuple[float, ...]) -> float:
    """Relative luminance of an sRGB colour (WCAG 2.1); below 0.18 white letters have more contrast than black ones."""
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3])
    return float(0.2126 * red + 0.7152 * green + 0.0722 * blue)
