"""Figures for print: everything that belongs to them is on the sheet."""

from __future__ import annotations

import itertools

import matplotlib as mpl
import pytest
from matplotlib.lines import Line2D
from netwarp.present.figures.description import Axis, Chart, HeatMap, Panel, Series, Spot, place_axis
from netwarp.present.figures.print import SETTINGS, add_legend, chart_canvas, heatmap_canvas, label_y, new_canvas
from netwarp.present.style import looks


@pytest.mark.parametrize("letters", [5, 26, 30, 45])
@pytest.mark.parametrize("count", [1, 2, 9])
def test_legend_and_label_fit(letters: int, count: int) -> None:
    """However long the names of the variants are; what is too wide for two columns goes below one another."""
    with mpl.rc_context(SETTINGS):
        canvas = new_canvas(count)
        axes = canvas.add_subplot()
        label_y(axes, "a quantity with a name of many words that says how it is counted (kbyte/s)")
        add_legend(canvas, [Line2D([], []) for _ in range(count)], ["n" * letters] * count)
        canvas.draw_without_rendering()
        sheet, legend = canvas.bbox, canvas.legends[-1].get_window_extent()
        label = axes.yaxis.label.get_window_extent()
    assert len(canvas.legends) == 1
    for box in (legend, label):
        assert sheet.x0 <= box.x0 and box.x1 <= sheet.x1
        assert sheet.y0 <= box.y0 and box.y1 <= sheet.y1
    assert legend.y1 <= axes.get_window_extent().y0


def test_labels_of_a_printed_heat_map_do_not_overlap() -> None:
    levels = ("without any loss", "0.5 %, in runs of 2", "2 %, in runs of 4")
    spot = Spot(2.5, "2.50", "", 1, ("c",))
    heatmap = HeatMap(
        place_axis("loss on the path that both hosts share", levels),
        place_axis("failover settings of the association", ("default", "RFC 4960 (no PF)")),
        Axis("longest time without new payload at the receiver", "s", span=(2.5, 4.0)),
        (Panel("", ((spot, spot, spot), (spot, Spot(4.0, "4", "", 1, ("c",)), spot))),),
    )  # fmt: skip
    with mpl.rc_context(SETTINGS):
        canvas = heatmap_canvas(heatmap)
        canvas.draw_without_rendering()
        axes = canvas.axes[0]
        boxes = [label.get_window_extent() for label in axes.get_xticklabels()]
        sheet = canvas.bbox
        beside = [*boxes, *(one.get_window_extent() for one in (canvas._supylabel, canvas._suptitle))]
    assert all(one.x1 < other.x0 for one, other in itertools.pairwise(boxes))
    for box in beside:
        assert sheet.x0 - 1 <= box.x0 and box.x1 <= sheet.x1 + 1
        assert sheet.y0 - 1 <= box.y0 and box.y1 <= sheet.y1 + 1


def test_printed_tick_labels_do_not_touch() -> None:
    """choi2009's Figure 9: 500, 700 and 1000 ms on a logarithmic axis a column wide."""
    texts = ("10", "50", "100", "200", "500", "700", "1000")
    at = tuple(map(float, texts))
    series = Series("v", "v", at, at, (("c",),))
    chart = Chart(Axis("RTT", "ms", "log", at, texts), Axis("goodput", "bit/s"), (series,), sources=("Linux",))
    with mpl.rc_context(SETTINGS):
        canvas = chart_canvas(chart, looks(["v"]))
        canvas.draw_without_rendering()
        labels = canvas.axes[0].get_xticklabels()
        assert [label.get_text().strip() for label in labels] == list(texts)
        rows: dict[int, list[float]] = {}
        for label in labels:
            box = label.get_window_extent()
            row = label.get_text().count("\n")
            assert box.x0 > rows.get(row, [float("-inf")])[-1] + 2, label.get_text()
            rows.setdefault(row, []).append(box.x1)
        assert len(rows) > 1
