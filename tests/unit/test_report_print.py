"""Figures for print: what belongs to them is on the sheet."""

from __future__ import annotations

import matplotlib as mpl
import pytest
from matplotlib.lines import Line2D

from orchestrator.report.publish import SETTINGS, add_legend, label_y, new_canvas


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
