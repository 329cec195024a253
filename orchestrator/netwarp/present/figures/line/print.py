"""A figure of kind line for print."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...axes import tick_texts
from ...style import Look
from ..print_canvas import Canvas, add_legend, dot_style, label_y, line_style, new_canvas, plain, spread_ticks
from .data import FigureData

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def line_canvas(figure: FigureData, looks: Mapping[str, Look]) -> Canvas:
    """A figure of kind line."""
    entries = len({line.key for line in figure.lines}) + (len(figure.sources) if len(figure.sources) > 1 else 0)
    canvas = new_canvas(entries)
    axes = canvas.add_subplot()
    _draw(axes, figure, looks)
    spread_ticks(canvas, axes)
    add_legend(canvas, *_legend(figure, looks))
    return canvas


def _draw(axes: Axes, figure: FigureData, looks: Mapping[str, Look]) -> None:
    sources = [source for source, _ in figure.sources]
    for line in reversed(figure.lines):  # what was measured lies on top
        style = line_style(looks[line.key], sources.index(line.source))
        if any(bound is not None for bound in line.low):
            below = [y - low if low is not None else 0.0 for y, low in zip(line.y, line.low, strict=True)]
            above = [high - y if high is not None else 0.0 for y, high in zip(line.y, line.high, strict=True)]
            axes.errorbar(line.x, line.y, yerr=[below, above], capsize=2, **style)
        else:
            axes.plot(line.x, line.y, **style)
        if sources.index(line.source) == 2:
            axes.plot(line.x, line.y, **dot_style(looks[line.key]))
    axes.set_xlabel(plain(figure.x.label))
    label_y(axes, figure.y.label)
    if figure.x.kind == "log":
        axes.set_xscale("log")
    axes.set_xticks(figure.x.at, [plain(text) for text in tick_texts(figure.x)])
    axes.minorticks_off()
    if figure.x.kind == "category":
        axes.margins(x=0.1)
    if figure.y.kind == "log":
        axes.set_yscale("log")
    elif all(y >= 0 for line in figure.lines for y in line.y):
        axes.set_ylim(bottom=0)


def _legend(figure: FigureData, looks: Mapping[str, Look]) -> tuple[list[Any], list[str]]:
    """Variants by their looks, then (if there are others) the sources by their kind of marker."""
    from matplotlib.lines import Line2D

    handles: list[Any] = []
    labels: list[str] = []
    for line in {line.key: line for line in figure.lines}.values():
        handles.append(Line2D([], [], **line_style(looks[line.key], 0)))
        labels.append(plain(line.label))
    if len(figure.sources) > 1:
        grey = Look(-1, "#666666", "#666666", "circle", "solid")
        for number, (_, title) in enumerate(figure.sources):
            handle = Line2D([], [], **line_style(grey, number))
            handles.append((handle, Line2D([], [], **dot_style(grey))) if number == 2 else handle)
            labels.append(plain(title))
    return handles, labels
