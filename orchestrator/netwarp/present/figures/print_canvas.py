"""The sheet on which every kind of figure is printed: PDF and SVG, with equal bytes for equal data.

Matplotlib is imported when the first figure is printed: that takes half a second.
"""

from __future__ import annotations

import io
import textwrap
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from ..style import MATPLOTLIB_DASHES, MATPLOTLIB_MARKERS, Look

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


def printed(make: Callable[[], Canvas]) -> dict[str, bytes]:
    """suffix -> file, of a canvas made under our settings. No title inside: a caption says it."""
    import matplotlib as mpl

    with mpl.rc_context(SETTINGS), warnings.catch_warnings():
        # a title in a script DejaVu lacks is shown as boxes, which is no reason to lose the figure
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        canvas = make()
        files: dict[str, bytes] = {}
        for suffix, metadata in (("pdf", {"CreationDate": None}), ("svg", {"Date": None})):
            out = io.BytesIO()
            canvas.savefig(out, format=suffix, metadata=metadata)
            files[suffix] = out.getvalue()
        return files


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
    axes.set_ylabel(textwrap.fill(plain(text), LABEL_LETTERS))


def spread_ticks(canvas: Canvas, axes: Axes) -> None:
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


def line_style(look: Look, source: int) -> dict[str, Any]:
    """Measured: line and filled marker. Others: open markers alone; the third one's are small (charts.js: the same)."""
    style: dict[str, Any] = {
        "color": look.light,
        "marker": MATPLOTLIB_MARKERS[look.marker],
        "linestyle": MATPLOTLIB_DASHES[look.dash],
    }
    if source:
        style |= {
            "linestyle": "none",
            "fillstyle": "none",
            "markersize": 3 if source == 3 else 6.5,
            "markeredgewidth": 0.8,
        }
    return style


def dot_style(look: Look) -> dict[str, Any]:
    """The dot inside the open markers of the second source."""
    return {"color": look.light, "marker": ".", "markersize": 2, "linestyle": "none"}


def plain(text: str) -> str:
    """Text that matplotlib takes as it is: no mathematics, and not hidden from the legend by an underscore."""
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text
