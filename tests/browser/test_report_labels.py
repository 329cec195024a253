"""Labels and legends of the report's charts: nothing clipped, no overlaps, no two entries that look alike."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.chromium import Page

LEVELS = ["without any loss at all", "0.5 %, in runs of 2", "2 %, in runs of 4"]
SPOT = {"value": 2.5, "text": "2.50", "why": "", "n": 1, "cells": ["c"]}


def place_axis(label: str, texts: list[str]) -> dict[str, Any]:
    return {
        "title": label, "unit": "", "label": label, "kind": "category", "at": list(range(len(texts))), "text": texts,
        "ticks": texts, "span": [-0.3, len(texts) - 0.7],
    }  # fmt: skip


HEATMAP = {
    "kind": "heatmap",
    "x": place_axis("loss on the terrestrial path, the one that both hosts share", LEVELS),
    "y": place_axis("failover settings of the association", ["default", "RFC 4960 (no potentially failed)", "fast"]),
    "value": {"title": "outage", "label": "longest time without new payload, at the receiver (s)", "unit": "s",
              "kind": "linear", "at": [], "text": [], "span": [2.5, 4.0]},
    "panels": [{"label": "", "spots": [[SPOT, SPOT | {"value": 4.0, "text": "4"}, SPOT] for _ in range(3)]}],
}  # fmt: skip
RTTS = [10, 50, 100, 200, 500, 700, 1000]
LINES = {
    "kind": "chart",
    "x": {"title": "RTT", "unit": "ms", "label": "RTT (ms)", "kind": "log", "at": RTTS, "text": list(map(str, RTTS)),
          "ticks": list(map(str, RTTS)), "span": None, "from_zero": False},
    "y": {"title": "goodput", "unit": "Mbit/s", "label": "goodput (Mbit/s)", "kind": "linear", "at": [], "text": [],
          "ticks": [], "span": None, "from_zero": True},
    "sources": ["Linux 6.12"], "boxes": [], "bands": [],
    "series": [
        {"key": "v", "label": "v", "source": 0, "form": "lines", "every": 1, "note": "", "x": RTTS, "y": RTTS,
         "low": [], "high": [], "n": [], "cells": [["c"]]}
    ],
}  # fmt: skip
CATEGORIES = LINES | {
    "x": place_axis("loss", LEVELS),
    "series": [LINES["series"][0] | {"x": [0, 1, 2], "y": [1, 2, 3]}],  # type: ignore[index]
}
FLOWS = {
    flow: {"goodput_bit_s": [1, 2], "packets_s": [3, 4],
           "paths": {path: {"throughput_bit_s": [1, 2]} for path in ("p1", "p2", "p3")}, "samples": {}}
    for flow in ("sctp", "tcp", "mptcp")
}  # fmt: skip
CELL = {"series": {"bin_s": 0.5, "duration_s": 1.0, "flows": FLOWS, "faults": [], "events": []}}
BOXES = """[...document.querySelectorAll('#probe %s')].filter((one) => one.textContent).map((one) => {
  const box = one.getBoundingClientRect();
  return [one.textContent, box.left, box.top, box.right, box.bottom];
})"""


def draw(page: Page, address: str, figure: dict[str, Any]) -> None:
    """Draw a figure of ours in the page, where its own figures stand."""
    page.open(address)
    page.evaluate(
        "(() => { const probe = document.createElement('div'); probe.id = 'probe'; probe.className = 'chart';"
        " document.getElementById('figures').prepend(probe); })()"
    )
    page.evaluate(
        f"(() => {{ const probe = document.getElementById('probe'), figure = {json.dumps(figure)};"
        " return netwarp.charts.draw(probe, (colours) =>"
        " netwarp.kinds[figure.kind](figure, netwarp.lookOf, new Set(), colours, probe)).then(() => 0); })()"
    )


def overlapping(boxes: list[list[Any]]) -> list[tuple[str, str]]:
    """Pairs of labels that share ground."""
    return [
        (one[0], other[0])
        for number, one in enumerate(boxes)
        for other in boxes[:number]
        if one[1] < other[3] and other[1] < one[3] and one[2] < other[4] and other[2] < one[4]
    ]


@pytest.mark.parametrize("width", [1400, 390])
def test_labels_of_a_heat_map_are_whole_and_apart(page: Page, small: str, width: int) -> None:
    page.emulate(width=width, height=900)
    draw(page, small, HEATMAP)
    _, left, top, right, bottom = page.evaluate(
        "(() => { const b = document.getElementById('probe').getBoundingClientRect();"
        " return ['', b.left, b.top, b.right, b.bottom]; })()"
    )
    boxes = page.evaluate(BOXES % "text")
    texts = " ".join(box[0] for box in boxes)
    for level in LEVELS:
        assert level.replace(" ", "") in texts.replace(" ", "")
    for text, *box in boxes:
        assert box[0] >= left - 1 and box[2] <= right + 1, text
        assert box[1] >= top - 1 and box[3] <= bottom + 1, text
    assert overlapping(boxes) == []


@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("figure", [LINES, CATEGORIES], ids=["numbers", "places"])
def test_tick_labels_do_not_touch(page: Page, small: str, figure: dict[str, Any], width: int) -> None:
    page.emulate(width=width, height=900)
    draw(page, small, figure)
    boxes = page.evaluate(BOXES % ".xtick text")
    assert len(boxes) == len(figure["x"]["at"])
    # a line of an SVG text may be empty: only what is written counts
    lines = page.evaluate(BOXES % ".xtick text tspan") or boxes
    assert overlapping([[text, left - 1, top, right + 1, bottom] for text, left, top, right, bottom in lines]) == []


def test_no_two_entries_of_a_cells_legend_look_alike(page: Page, small: str) -> None:
    page.open(small)
    drawn = page.evaluate(
        f"netwarp.timeline.legend([{json.dumps(CELL)}]).map((one) => [one, one.querySelector('svg')])"
        ".map(([one, svg]) => [one.textContent, svg.outerHTML, svg.style.getPropertyValue('--c')])"
    )
    assert len(drawn) == 12
    assert len({swatch for _, swatch, _ in drawn}) == 12
    assert len({colour for _, _, colour in drawn[:8]}) == 8


def test_no_two_groups_of_the_explore_view_look_alike(page: Page, small: str) -> None:
    page.open(small)
    palette = page.evaluate("netwarp.data.palette.map((one) => one.light + one.marker)")
    assert len(set(palette)) == len(palette) == 64


def test_series_have_titles_and_units_once(page: Page, small: str) -> None:
    page.open(small)
    found = page.evaluate(f"netwarp.timeline.columns({json.dumps(CELL)}).map((one) => [one.name, one.title, one.unit])")
    assert ["packets_s", "packets per second", ""] in found
    assert ["goodput_bit_s", "goodput", "bit/s"] in found


def test_metrics_to_explore_are_grouped_and_have_values(page: Page, small: str) -> None:
    page.open(small)
    page.evaluate("document.getElementById('explore').scrollIntoView({behavior: 'instant'})")
    page.wait("document.querySelector('#explore-form [name=metric]')")
    groups = page.evaluate(
        "[...document.querySelectorAll('#explore-form [name=metric] optgroup')].map((one) =>"
        " [one.label, [...one.children].map((option) => option.value)])"
    )
    assert groups == [
        ["The experiment's own", ["share"]],
        ["Volume and speed", ["goodput_bit_s"]],
        ["Loss, retransmission and round trips", ["retransmitted_packets"]],
        ["Outage and recovery", ["outage_s", "first_new_data_other_path_s"]],
    ]


def test_a_cell_names_no_metric_that_measures_nothing(page: Page, small: str) -> None:
    page.open(small)
    page.evaluate("location.hash = 'cell=' + netwarp.cells.idOf(0)")
    page.wait("[...document.querySelectorAll('#cell h3')].some((one) => one.textContent === 'Measurements')")
    shown = page.evaluate(
        "[...document.querySelectorAll('#cell section')].find((one) =>"
        " one.querySelector('h3').textContent === 'Measurements').textContent"
    )
    assert "2 other metrics have nothing to measure in this cell" in shown
    assert "first new data sent" not in shown


def test_paper_has_no_list_of_cells(page: Page, small: str) -> None:
    page.open(small)
    page.emulate(width=800, height=1000, media="print")
    shown = page.evaluate("document.getElementById('cells').innerText")
    assert "12 cells. tables/cells.csv of the run's directory lists them" in shown
    assert not page.evaluate("document.getElementById('cell-table').checkVisibility()")
