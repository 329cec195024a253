"""A distribution for print: steps of a CDF, or boxes with every point in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ....core.numbers import given
from ...style import MATPLOTLIB_DASHES, Look
from ..print_canvas import Canvas, add_legend, label_y, line_style, new_canvas, plain, spread_ticks
from .data import DistributionData, Group

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKS = 12
"""About this many markers per step curve, so that a line can be recognised without its colour."""


def distribution_canvas(figure: DistributionData, looks: Mapping[str, Look]) -> Canvas:
    """The drawing of a CDF or of boxes."""
    from matplotlib.lines import Line2D

    lines = {group.key: group for group in figure.groups}
    canvas = new_canvas(len(lines))
    axes = canvas.add_subplot()
    (_boxes if figure.kind == "box" else _steps)(axes, figure, looks)
    if figure.kind == "box":
        spread_ticks(canvas, axes)
    handles = [Line2D([], [], **line_style(looks[key], 0)) for key in lines]
    add_legend(canvas, handles, [plain(group.label) for group in lines.values()])
    return canvas


def _steps(axes: Axes, figure: DistributionData, looks: Mapping[str, Look]) -> None:
    for group in figure.groups:
        if not group.values:
            continue
        share = [0.0, *((rank + 1) / len(group.values) for rank in range(len(group.values)))]
        style = line_style(looks[group.key], 0) | {"markevery": max(1, len(group.values) // MARKS)}
        axes.plot([group.values[0], *group.values], share, drawstyle="steps-post", **style)
    axes.set_xlabel(plain(figure.value.label))
    axes.set_ylabel("share of values at or below")
    axes.set_ylim(0, 1.02)
    if figure.value.kind == "log":
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda x, _: given(x, 6))


def _boxes(axes: Axes, figure: DistributionData, looks: Mapping[str, Look]) -> None:
    lines = list(dict.fromkeys(group.key for group in figure.groups))
    width = 0.8 / len(lines)
    for group in figure.groups:
        if group.values:
            _box(axes, group, group.place + (lines.index(group.key) - (len(lines) - 1) / 2) * width, width, looks)
    axes.set_xticks(figure.x.at, [plain(text) for text in figure.x.text])
    axes.set_xlim(-0.6, len(figure.x.at) - 0.4)
    axes.set_xlabel(plain(figure.x.label))
    label_y(axes, figure.value.label)
    if figure.value.kind == "log":
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda x, _: given(x, 6))
    elif all(value >= 0 for group in figure.groups for value in group.values):
        axes.set_ylim(bottom=0)


def _box(axes: Axes, group: Group, at: float, width: float, looks: Mapping[str, Look]) -> None:
    look = looks[group.key]
    low, first, middle, third, high = group.quartiles
    statistics = {"whislo": low, "q1": first, "med": middle, "q3": third, "whishi": high, "fliers": ()}
    pen = {"color": look.light, "linewidth": 1.0}
    axes.bxp(
        [statistics], positions=[at], widths=width * 0.8, showfliers=False, manage_ticks=False, boxprops=pen,
        whiskerprops=pen, capprops=pen, medianprops=pen | {"linewidth": 1.8},
    )  # fmt: skip
    style = line_style(look, 0) | {"linestyle": MATPLOTLIB_DASHES["solid"], "linewidth": 0, "markersize": 2.2}
    axes.plot([at] * len(group.values), group.values, alpha=0.6, **style)
