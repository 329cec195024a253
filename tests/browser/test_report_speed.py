"""The time that a report of 500 cells takes to open: printed (pytest -s), and held to the order of magnitude only."""

from __future__ import annotations

import os

from support.chromium import Page

SLACK_S = 20.0
"""Ten times what is wanted (2 s), because other programs may be running beside the browser."""


def test_five_hundred_cells_open_at_once(page: Page, large: str) -> None:
    for _ in range(3):  # the time of a busy machine is not the page's
        page.open(large)
        timing = page.evaluate(
            "(() => { const n = performance.getEntriesByType('navigation')[0];"
            " const paint = performance.getEntriesByType('paint').find((one) => one.name === 'first-contentful-paint');"
            " return { paint: paint ? paint.startTime / 1000 : null, interactive: n.domInteractive / 1000,"
            " load: n.loadEventEnd / 1000 }; })()"
        )
        if timing["load"] < SLACK_S:
            break
    cells = page.evaluate("netwarp.cells.count")
    page.evaluate("document.querySelector('figure .chart').scrollIntoView({behavior: 'instant'})")
    page.wait("document.querySelector('figure .chart').dataset.drawn")
    chart = page.evaluate("performance.now() / 1000")
    print(
        f"\nreport of {cells} cells: text painted after {timing['paint']} s, loaded after {timing['load']} s,"
        f" first chart drawn after {chart:.2f} s (load average {os.getloadavg()[0]:.1f})"
    )
    assert cells >= 500
    assert timing["load"] < SLACK_S
    nodes = page.evaluate("document.querySelectorAll('*').length")
    assert nodes < 60 * cells, "the page does not grow by what a cell holds until it is opened"
