"""A reader's choices: filters, factors, panels, two cells side by side; and a link that restores them."""

from __future__ import annotations

import csv
import io
import itertools
import json
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from support.chromium import Page
from support.report_page import CELL_CHART, WHOLE_CELL, axis_range, draw_everything, open_cell

ROWS = (
    "[...document.querySelectorAll('#cell-table tbody tr')].filter((one) => !one.hidden)"
    ".map((one) => one.cells[0].textContent.trim())"
)
CLAIMS = (
    "[...document.querySelectorAll('table.claims > tbody')].filter((one) => one.checkVisibility())"
    ".map((one) => one.querySelector('.claim-id').textContent)"
)
PANELS = "[...document.querySelectorAll('#explore-panels .chart')]"


def choose(page: Page, form: str, **values: str) -> None:
    """Choose options by their text, as a reader does."""
    for name, text in values.items():
        page.evaluate(
            f"(() => {{ const s = document.querySelector('#{form}').elements[{json.dumps(name.replace('__', ' '))}];"
            f" s.value = [...s.options].find((one) => one.textContent.includes({json.dumps(text)})).value;"
            " s.dispatchEvent(new Event('input', {bubbles: true}));"
            " s.dispatchEvent(new Event('change', {bubbles: true})); })()"
        )


def folder_of(address: str) -> Path:
    """The run directory of a report's address."""
    return Path(unquote(urlsplit(address).path)).parent.parent


def test_claims_by_verdict(page: Page, small: str) -> None:
    page.open(small)
    assert page.evaluate(CLAIMS) == ["C2"], "at first those that were tested"
    choose(page, "claim-filters", verdict="all")
    assert page.evaluate(CLAIMS) == ["C2", "C1", "C3"]
    choose(page, "claim-filters", verdict="not tested")
    assert page.evaluate(CLAIMS) == ["C1", "C3"]
    assert page.evaluate("document.getElementById('claim-count').textContent") == "2 of 3 claims"
    address = page.evaluate("location.href")
    page.open("about:blank")
    page.open(address)
    assert page.evaluate(CLAIMS) == ["C1", "C3"], "a link keeps the choice"
    page.open("about:blank")
    page.open(small + "#claim-C3")
    assert "C3" in page.evaluate(CLAIMS), "a link to one claim shows it"


def test_a_tile_of_the_summary_leads_to_its_cells(page: Page, small: str) -> None:
    page.open(small)
    page.click('a.tile[href="#cells?outcome=FAILED"]')
    page.wait(f"({ROWS}).length === 1")
    assert page.evaluate(ROWS) == ["4"]
    page.click('a.tile[href^="#claims?verdict=does"]')
    page.wait(f"({CLAIMS}).length === 1")


def test_a_claim_leads_to_what_is_behind_it(page: Page, small: str) -> None:
    page.open(small)
    behind = "[...document.querySelectorAll('#claim-C2 .why a')].map((one) => [one.textContent, one.hash])"
    assert page.evaluate(behind) == [["Figure 1", "#figure-outage"], ["2 cells", "#cells?claim=C2"]]
    page.click("#claim-C2 .why a:last-child")
    page.wait(f"({ROWS}).length === 2")
    assert page.evaluate(ROWS) == ["1", "10"], "TCP without an outage and with the longest"
    page.click("#cells-behind button")
    page.wait(f"({ROWS}).length === 12")
    page.open(small + "#cells?claim=__proto__&outcome=nonsense")
    page.wait(f"({ROWS}).length === 12")


def test_the_list_of_cells_as_a_link(page: Page, small: str) -> None:
    page.open(small)
    choose(page, "cell-filters", f0="10 s")
    page.evaluate("document.querySelectorAll('#cell-table thead button')[4].click()")
    before = page.evaluate(ROWS)
    assert len(before) == 3
    address = page.evaluate("location.href")
    page.open("about:blank")
    page.open(address)
    assert page.evaluate(ROWS) == before
    assert page.evaluate("document.querySelector('#cell-table th[aria-sort]').getAttribute('aria-sort')") == "ascending"


def test_two_cells_on_one_axis(page: Page, small: str) -> None:
    page.open(small)
    open_cell(page, 8)
    groups = page.evaluate("[...document.querySelectorAll('#compare optgroup')].map((one) => one.label)")
    assert groups == ["differs in length of the outage", "differs in failover", "other cells"]
    before = page.evaluate(f"{CELL_CHART}.data.length")
    page.evaluate(
        "(() => { const s = document.getElementById('compare'); s.value = s.querySelector("
        "'optgroup[label=\"differs in failover\"] option').value; s.dispatchEvent(new Event('change')); })()"
    )
    page.wait(f"({WHOLE_CELL}) && {CELL_CHART}.data.length === {2 * before}")
    assert sum("/cells/" in one for one in page.requests) == 2
    assert page.evaluate(f"{CELL_CHART}.data.every((one) => one.xaxis === undefined || one.xaxis === 'x')")
    dashes = page.evaluate(
        f"[...new Set({CELL_CHART}.data.filter((one) =>"
        " one.mode.startsWith('lines') && one.hoverinfo !== 'skip').map((one) => one.line.dash))]"
    )
    assert dashes == ["solid", "dash"]
    heads = page.evaluate(
        "[...document.querySelectorAll('#cell table')].find((one) =>"
        " one.caption.textContent.startsWith('Measurements')).tHead.textContent"
    )
    assert heads == "metricABB to A"
    page.evaluate("netwarp.download = (name, text) => { window.saved = text; }")
    page.click("#cell .links button")
    cells = {row["cell"] for row in csv.DictReader(io.StringIO(page.evaluate("window.saved")))}
    assert len(cells) == 2
    # the address holds both cells and the zoom
    page.evaluate(f"Plotly.relayout({CELL_CHART}, {{'xaxis.range': [45, 70]}}).then(() => 0)")
    address = page.evaluate("location.href")
    page.open("about:blank")
    page.open(address)
    page.wait(WHOLE_CELL)
    assert axis_range(page) == [45, 70]
    assert page.evaluate(f"{CELL_CHART}.data.length") == 2 * before
    page.open(small + "#cell=" + "nonsense")
    page.wait("document.getElementById('report').checkVisibility()")


def test_panels_share_their_axes(page: Page, large: str) -> None:
    page.open(large)
    draw_everything(page)
    choose(page, "explore-form", a="variant", panel="rtt")
    page.wait(f"{PANELS}.length === 5 && {PANELS}.every((one) => one.dataset.drawn)")
    tops = page.evaluate(f"{PANELS}.map((one) => one._fullLayout.yaxis.range[1])")
    assert len(set(tops)) == 1
    page.evaluate(f"Plotly.relayout({PANELS}[0], {{'xaxis.range': [5, 10]}}).then(() => 0)")
    page.wait(f"{PANELS}.every((one) => Number(one._fullLayout.xaxis.range[0]) === 5)")
    address = page.evaluate("location.href")
    page.open("about:blank")
    page.open(address)
    page.wait(f"{PANELS}.length === 5 && {PANELS}.every((one) => one.dataset.drawn)")
    choose(page, "explore-form", kind="heat map")
    page.wait(f"{PANELS}.length === 1 && {PANELS}[0].data && {PANELS}[0].data.length === 5")


@pytest.mark.parametrize("kind", ["lines", "box plot", "distribution", "heat map"])
def test_numbers_of_a_plot_are_those_of_the_tables(page: Page, large: str, kind: str) -> None:
    """Whatever is plotted: its file says the mean of exactly the measurements that fit; cells without a factor do not
    have the level that is chosen.
    """
    page.open(large)
    draw_everything(page)
    choose(page, "explore-form", kind=kind)
    choose(page, "explore-form", metric="goodput", a="variant")
    if kind != "heat map":
        choose(page, "explore-form", b="–")
    if kind == "distribution":  # what is not drawn is held at a level, unless all are asked for
        choose(page, "explore-form", is__outage="all")
    choose(page, "explore-form", is__rtt="200 ms", is__failover="default")
    page.evaluate("netwarp.download = (name, text) => { window.saved = text; }")
    page.evaluate("document.getElementById('explore-csv').click()")
    rows = list(csv.DictReader(io.StringIO(page.evaluate("window.saved"))))
    run = folder_of(large)
    with open(run / "tables" / "cells.csv", newline="") as file:
        cells = {row["cell_id"]: row for row in csv.DictReader(file)}
    wanted: dict[tuple[str, ...], list[float]] = {}
    titles = {"tcp": "TCP", "multi": "SCTP, two paths"}
    with open(run / "tables" / "measurements.csv", newline="") as file:
        for row in csv.DictReader(file):
            cell = cells[row["cell_id"]]
            if row["metric"] == "goodput_bit_s" and cell["rtt"] == "200 ms" and cell["failover"] == "default":
                place = (titles[cell["variant"]], *([] if kind == "distribution" else [cell["outage"]]))
                wanted.setdefault(place, []).append(float(row["value"]) / 1000)
    columns = ["variant", *([] if kind == "distribution" else ["length of the outage"])]
    found = {tuple(row[column] for column in columns): row for row in rows}
    assert set(found) == set(wanted)
    for place, values in wanted.items():
        row = found[place]
        assert float(row["goodput (kbit/s)"]) == pytest.approx(sum(values) / len(values))
        assert (float(row["smallest"]), float(row["largest"])) == pytest.approx((min(values), max(values)))
        assert int(row["n"]) == len(values)
    shown = page.evaluate("[...document.querySelectorAll('#explore-table tbody tr')].length")
    assert shown == len(rows)


def test_the_controls_take_the_keyboard(page: Page, small: str) -> None:
    """Everything that does something is reached by Tab and can be seen to have the focus."""
    page.open(small)
    draw_everything(page)
    page.evaluate("document.activeElement.blur(), scrollTo(0, 0)")
    wanted = set(page.evaluate(
        "[...document.querySelectorAll('#report a[href], #report button, #report select,"
            " #report input:not([type=radio]):not([type=hidden]), #report summary')]"
        ".filter((one) => one.checkVisibility() && !one.closest('.js-plotly-plot'))"
        ".map((one, i) => (one.dataset.stop = String(i)))"
    ))  # fmt: skip
    reached = set()
    for _ in range(3 * len(wanted)):
        page.press("Tab", 9)
        stop, outline = page.evaluate(
            "[document.activeElement.dataset.stop ?? '', getComputedStyle(document.activeElement).outlineStyle]"
        )
        if stop:
            assert outline != "none", page.evaluate("document.activeElement.outerHTML")
            reached.add(stop)
    missing = [
        page.evaluate(f"document.querySelector('[data-stop=\"{stop}\"]').outerHTML") for stop in wanted - reached
    ]
    assert missing == []


def test_every_chart_has_words_and_a_table(page: Page, large: str) -> None:
    page.open(large)
    draw_everything(page)
    for figure in range(page.evaluate("document.querySelectorAll('figure.figure').length")):
        of = f"document.querySelectorAll('figure.figure')[{figure}]"
        assert len(page.evaluate(f"{of}.querySelector('.chart').getAttribute('aria-label')")) > 60
        assert page.evaluate(f"{of}.querySelectorAll('table caption, table th[scope]').length") > 3
        assert page.evaluate(f"{of}.querySelector('img.static').alt.length") > 60
    assert page.evaluate("document.querySelectorAll('main, nav[aria-label], header, footer, h1').length") == 5
    levels = page.evaluate(
        "[...document.querySelectorAll('h1, h2, h3, h4')].filter((one) => one.checkVisibility())"
        ".map((one) => Number(one.tagName[1]))"
    )
    assert levels[0] == 1
    assert all(later - earlier <= 1 for earlier, later in itertools.pairwise(levels)), levels
