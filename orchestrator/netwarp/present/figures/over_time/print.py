"""A figure over time for print: curves, and grey where the link was down."""

from __future__ import annotations

from collections.abc import Mapping

from ...style import Look
from ..print_canvas import Canvas, add_legend, label_y, line_style, new_canvas, plain
from .data import TimeFigure

MARKS = 8
"""About this many markers per curve, so that it can be recognised without its colour."""


def time_canvas(figure: TimeFigure, looks: Mapping[str, Look]) -> Canvas:
    """The drawing."""
    from matplotlib.lines import Line2D

    lines = {line.key: line for line in figure.lines}
    canvas = new_canvas(len(lines), 1)
    axes = canvas.add_subplot()
    for begin, end in figure.faults:
        axes.axvspan(begin, end, color="#e5e5e5", linewidth=0)
    for line in figure.lines:
        style = line_style(looks[line.key], 0) | {"markevery": max(1, len(line.x) // MARKS)}
        axes.plot(line.x, line.y, drawstyle="steps-post" if line.step else "default", **style)
    axes.set_xlabel(plain(figure.x.label))
    label_y(axes, figure.y.label)
    axes.set_ylim(bottom=0)
    handles = [Line2D([], [], **line_style(looks[key], 0)) for key in lines]
    add_legend(canvas, handles, [plain(line.label) for line in lines.values()], columns=1)
    return canvas
