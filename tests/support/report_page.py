"""The report's page in a browser, as a reader uses it."""

from __future__ import annotations

from support.chromium import Page

CELL_CHART = "document.querySelector('#cell .chart')"
WHOLE_CELL = f"{CELL_CHART} && {CELL_CHART}.dataset.drawn"


def draw_everything(page: Page) -> None:
    """Scroll to each chart of the report, so that it is drawn."""
    for number in range(page.evaluate("document.querySelectorAll('#report .chart').length")):
        chart = f"document.querySelectorAll('#report .chart')[{number}]"
        page.evaluate(f"{chart}.scrollIntoView({{behavior: 'instant'}})")
        page.wait(f"{chart}.dataset.drawn")


def open_cell(page: Page, row: int) -> None:
    """Open the cell of the row-th line of the list, as a reader does: lines far down appear as the list is scrolled."""
    last = "document.querySelector('#cell-table').parentElement.lastElementChild"
    while (there := page.evaluate("document.querySelectorAll('#cell-table tbody tr').length")) < row:
        page.evaluate(f"{last}.scrollIntoView({{behavior: 'instant'}})")
        page.wait(f"document.querySelectorAll('#cell-table tbody tr').length > {there}")
    page.click(f"#cell-table tbody tr:nth-child({row}) td:nth-child(2)")
    page.wait(WHOLE_CELL)


def axis_range(page: Page, chart: str = CELL_CHART) -> list[float]:
    """What the chart's x axis shows."""
    found: list[float] = page.evaluate(f"{chart}._fullLayout.xaxis.range.map(Number)")
    return found
