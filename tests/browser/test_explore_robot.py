"""The Explore view is what its controls say: every drawn point against the run's tables, for the first picture and for
drawn choices.
"""

from __future__ import annotations

import time
from pathlib import Path
from random import Random
from urllib.parse import unquote, urlsplit

import pytest
from netwarp.present.pages.build import make_report
from support.chromium import Page
from support.explore_reader import ExploreReader
from support.page_robot import SIZES
from support.report_kit import faults_run

CHOICES = {"small": 2, "counted": 6, "large": 10}
"""Of each run, at each of three widths."""
MOST_ROWS = 1000
"""Of the table below the view."""
SLACK_S = 20.0
"""Ten times what is wanted, because other programs may be running beside the browser."""
DRAWN = "document.querySelector('#explore-panels .chart').data.reduce((sum, one) => sum + (one.x || []).length, 0)"


@pytest.mark.parametrize("size", SIZES, ids=lambda size: str(size[0]))
@pytest.mark.parametrize("run", CHOICES)
def test_points_are_those_of_the_controls(
    request: pytest.FixtureRequest, page: Page, run: str, size: tuple[int, int]
) -> None:
    address = request.getfixturevalue(run)
    width, height = size
    page.emulate(width=width, height=height, mobile=width < 600)
    page.open(address)
    reader = ExploreReader(page, Path(unquote(urlsplit(address).path)).parent.parent)
    reader.start()
    faults = reader.faults()
    random = Random(f"{run} {width}")
    changed: list[str] = []
    for _ in range(CHOICES[run]):
        changed.append(reader.change(random))
        faults += [f"after {changed}: {fault}" for fault in reader.faults()]
    assert faults == []


def test_a_count_with_its_word_is_a_scale(page: Page, counted: str) -> None:
    """2, 10 and 50 flows stand at their numbers, joined; a level that is no number stands behind them."""
    page.open(counted)
    reader = ExploreReader(page, Path(unquote(urlsplit(counted).path)).parent.parent)
    reader.start()
    assert reader.faults() == []
    traces = page.evaluate("document.querySelector('#explore-panels .chart').data.map((one) => [one.mode, [...one.x]])")
    assert {tuple(x) for mode, x in traces if "lines" in mode} == {(2, 10, 50)}
    words = {x for mode, places in traces if mode == "markers" for x in places}
    assert len(words) == 1 and min(words) > 50
    ticks = page.evaluate(
        "[...document.querySelectorAll('#explore-panels .xtick text')].filter((one) => one.textContent)"
        ".map((one) => [one.getBoundingClientRect().left, one.textContent])"
    )
    assert [text for _, text in sorted(ticks)] == ["2", "10", "50", "2 and short ones"]


def test_the_first_picture_has_as_many_levels_as_it_can(page: Page, tmp_path: Path) -> None:
    """What is held is held where x has most levels: not at the one cell that lacks a factor."""
    run = faults_run(tmp_path / "run")
    page.open(make_report(run).as_uri())
    reader = ExploreReader(page, tmp_path / "run")
    reader.start()
    assert reader.faults() == []
    places = page.evaluate("document.querySelector('#explore-panels .chart').data.flatMap((one) => [...one.x])")
    assert set(places) == {5, 10, 20}


def test_ten_thousand_cells_are_explored(page: Page, large: str) -> None:
    """Every kind of plot of all cells: its time is printed (pytest -s), and what the page holds is bounded."""
    page.open(large)
    page.evaluate(
        "(() => { const loaded = netwarp.exploreLoaded; netwarp.exploreLoaded = (data) => loaded({ ...data,"
        " cells: Array.from({ length: 10000 }, (_, i) =>"
        " ({ ...data.cells[i % data.cells.length], id: `cell-${i}` })) }); })()"
    )
    reader = ExploreReader(page, Path(unquote(urlsplit(large).path)).parent.parent)
    reader.start()
    every = {"a": "", "is rtt": "", "is outage": "", "is variant": "", "is failover": ""}
    slowest = 0.0
    for kind in ("line", "box", "cdf", "heatmap"):
        for name, value in {"kind": kind, **every}.items():
            begun = time.monotonic()
            reader.choose(name, value)
            took = time.monotonic() - begun
            slowest = max(slowest, took)
        print(f"{kind}, all cells: {took:.2f} s, the slowest choice until then {slowest:.2f} s")
        drawn = page.evaluate(DRAWN)
        rows = page.evaluate("document.querySelectorAll('#explore-table tbody tr').length")
        assert rows <= MOST_ROWS
        if kind == "line":
            assert (drawn, rows) == (10_000, MOST_ROWS)
            assert "9\u202f000 more" in page.evaluate("document.getElementById('explore-more').textContent")
    assert slowest < SLACK_S
