"""The report in headless Chromium, as a reader uses it. Each test waits for a state of the page, never for a time."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from support.chromium import Browser, Page
from support.report_page import CELL_CHART, WHOLE_CELL, axis_range, draw_everything, open_cell

CONTRAST = """(() => {
  const rgba = (text) => { const n = text.match(/[\\d.]+/g).map(Number); return n.length > 3 ? n : [...n, 1]; };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const linear = (c) => (c <= 10 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => { const f = linear;
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
  const ground = (element) => { const layers = [];
    for (let e = element; e; e = e.parentElement) layers.push(rgba(getComputedStyle(e).backgroundColor));
    return layers.reduceRight((below, top) => over(top, below), [255, 255, 255, 1]); };
  const poor = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, text = walker.currentNode.textContent.trim();
    if (!text || !element.checkVisibility()) continue;
    if (element.closest("script, style, .unseen, svg, [aria-pressed=false]")) continue;
    const below = ground(element), above = over(rgba(getComputedStyle(element).color), below);
    const [a, b] = [light(above), light(below)].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) poor.push(`${text.slice(0, 30)} ${((a + 0.05) / (b + 0.05)).toFixed(2)}`);
  }
  return poor;
})()"""


def shows(cell: str) -> str:
    """Whether this cell is the one opened, as JavaScript."""
    return f"document.querySelector('.cell-id').textContent === {json.dumps(cell)}"


def press_button(page: Page, text: str) -> None:
    """Click the button of the opened cell that starts with this text."""
    page.evaluate(
        "(() => { document.querySelector('[data-press]')?.removeAttribute('data-press');"
        " [...document.querySelectorAll('#cell .controls-button')].find((one) => one.textContent.startsWith("
        f"{json.dumps(text)})).dataset.press = 'yes'; }})()"
    )
    page.click("[data-press]")


def test_the_page_opens_with_its_tables_and_charts(page: Page, small: str) -> None:
    page.open(small)
    assert page.evaluate("document.querySelector('h1').textContent") == "Two paths through an outage"
    draw_everything(page)
    # three variants measured, and one source's numbers for one of them
    assert page.evaluate("document.querySelectorAll('figure .chart .scatterlayer .trace').length") == 4
    assert page.evaluate("document.querySelectorAll('table.grid tbody tr').length") == 3
    assert page.evaluate("getComputedStyle(document.querySelector('img.static')).display") == "none"
    # the script that is big comes after the page, and only once
    assert sum(one.endswith("plotly.min.js") for one in page.requests) == 1
    assert not any("/cells/" in one for one in page.requests), "no cell is loaded before it is opened"


def test_no_button_sends_a_chart_anywhere(page: Page, small: str) -> None:
    page.open(small)
    draw_everything(page)
    titles = page.evaluate("[...document.querySelectorAll('figure .modebar-btn')].map((one) => one.dataset.title)")
    assert titles == ["Zoom", "Pan", "Zoom in", "Zoom out", "Reset axes"]


def test_the_page_itself_forbids_the_net(page: Page, small: str) -> None:
    page.open(small)
    refused = page.evaluate("fetch('http://127.0.0.1:9/').then(() => 'loaded', (error) => error.name)")
    assert refused == "TypeError"
    assert any("Content Security Policy" in problem for problem in page.problems)
    page.problems.clear()
    page.requests.clear()


def test_a_legend_entry_hides_its_line(page: Page, small: str) -> None:
    page.open(small)
    draw_everything(page)
    page.evaluate("Plotly.relayout(document.querySelector('figure .chart'), {'xaxis.range': [5, 10]}).then(() => 0)")
    page.click("figure .legend-entry")
    page.wait("document.querySelectorAll('figure .chart .scatterlayer .trace').length === 2")
    assert axis_range(page, "document.querySelector('figure .chart')") == [5, 10], "the zoom stays"
    assert page.evaluate("document.querySelector('figure .legend-entry').getAttribute('aria-pressed')") == "false"
    page.click("figure .legend-entry")
    page.wait("document.querySelectorAll('figure .chart .scatterlayer .trace').length === 4")


def test_differences_follow_the_chosen_source(page: Page, small: str) -> None:
    page.open(small)
    shown = (
        "[...document.querySelectorAll('.grid .grid-difference')].filter((one) => one.checkVisibility())"
        ".map((one) => one.textContent)"
    )
    paper = page.evaluate(shown)
    assert len(paper) == 3
    page.click(".grid-against label:nth-of-type(2) input")
    simulator = page.evaluate(shown)
    assert len(simulator) == 2
    assert simulator != paper


def test_an_opened_cell_loads_its_series(page: Page, small: str) -> None:
    page.open(small)
    open_cell(page, 8)
    assert sum("/cells/" in one for one in page.requests) == 1
    assert page.evaluate("document.getElementById('report').checkVisibility()") is False
    assert page.evaluate("document.activeElement.id") == "cell-title"
    titles = page.evaluate(f"{CELL_CHART}._fullLayout.annotations.map((one) => one.text)")
    panels = ["goodput", "throughput by path", "cwnd by path", "smoothed RTT by path", "path state"]
    assert [title.partition("</b>")[0] for title in titles if title.startswith("<b>")] == [f"<b>{p}" for p in panels]
    shaded = page.evaluate(f"{CELL_CHART}._fullLayout.shapes.filter((s) => s.type === 'rect').map((s) => [s.x0, s.x1])")
    assert shaded == [[50, 60]]
    # goodput, and of each of two paths throughput, cwnd and RTT, and the lane of events
    series = f"{CELL_CHART}.data.filter((one) => one.hoverinfo !== 'skip' && one.marker?.opacity !== 0)"
    assert page.evaluate(f"{series}.length") == 8
    bars = page.evaluate(f"{CELL_CHART}.data.filter((one) => one.hoverinfo === 'skip').map((one) => one.name)")
    assert bars == ["p1 is active", "p1 is potentially failed", "p2 is active"]
    assert page.evaluate(f"{CELL_CHART}.data.every((one) => one.xaxis === undefined || one.xaxis === 'x')"), (
        "one time axis"
    )
    text = page.evaluate("document.getElementById('cell').textContent")
    for wanted in (
        "482.7 kbit/s", "first retransmission", "net/ipv4/ip_forward", "rate_byte_s 62500", "52 passed, 0 failed",
    ):  # fmt: skip
        assert wanted in text
    files = page.evaluate(
        "[...document.querySelectorAll('#cell .cell-files a')].map((one) => one.getAttribute('href'))"
    )
    assert any(one.startswith("../cells/") and one.endswith("/capture/a-p1.pcap.zst") for one in files)


def test_zooming_a_cell(page: Page, small: str) -> None:
    page.open(small)
    open_cell(page, 8)
    assert axis_range(page) == [0, 100]
    press_button(page, "Zoom to cut of p1")
    page.wait(f"Number({CELL_CHART}._fullLayout.xaxis.range[0]) === 48")
    assert axis_range(page) == [48, 70]
    # a mouse drag over one panel zooms all of them: they share their axis
    box = page.evaluate(
        f"(() => {{ {CELL_CHART}.scrollIntoView({{behavior: 'instant'}});"
        f" const b = {CELL_CHART}.querySelector('.nsewdrag').getBoundingClientRect();"
        " return [b.x, b.y, b.width, b.height]; })()"
    )
    page.drag(box[0] + box[2] * 0.25, box[1] + box[3] / 2, box[0] + box[2] * 0.5, box[1] + box[3] / 2)
    page.wait(f"Math.abs(Number({CELL_CHART}._fullLayout.xaxis.range[0]) - 53.5) < 0.2")
    assert axis_range(page) == pytest.approx([53.5, 59], abs=0.2)
    press_button(page, "Whole run")
    page.wait(f"Number({CELL_CHART}._fullLayout.xaxis.range[1]) === 100")
    page.click("#cell table button.link")  # the first event's time
    page.wait(f"Number({CELL_CHART}._fullLayout.xaxis.range[1]) < 3")


def test_series_as_a_table_and_as_a_file(page: Page, small: str) -> None:
    page.open(small)
    open_cell(page, 8)
    page.click("#cell details.numbers summary")
    page.wait("document.querySelectorAll('#cell details.numbers tbody tr').length === 200")
    page.evaluate("netwarp.download = (name, text) => { window.saved = [name, text]; }")
    page.click("#cell .links button")
    name, text = page.evaluate("window.saved")
    assert name.endswith(".csv")
    lines = text.splitlines()
    assert lines[0] == "cell,series,flow,path,t_s,value"
    assert len(lines) == 1 + 7 * 200
    assert ",goodput_bit_s,ftp,,0," in lines[1]


def test_going_from_cell_to_cell_and_back(page: Page, small: str) -> None:
    page.open(small)
    open_cell(page, 1)
    first = page.evaluate("document.querySelector('.cell-id').textContent")
    press_button(page, "Next")
    page.wait(
        f"document.querySelector('.cell-id') && document.querySelector('.cell-id').textContent !== {json.dumps(first)}"
    )
    page.wait(WHOLE_CELL)
    page.evaluate("history.back()")
    page.wait(
        f"document.querySelector('.cell-id') && document.querySelector('.cell-id').textContent === {json.dumps(first)}"
    )
    page.evaluate("history.back()")
    page.wait("document.getElementById('report').checkVisibility() && document.getElementById('cell').hidden")
    assert page.evaluate("document.title").startswith("Two paths")


def test_a_failed_cell_says_why(page: Page, small: str) -> None:
    page.open(small)
    page.click("#cell-table tbody tr:nth-child(4) a")
    page.wait("document.getElementById('cell').textContent.includes('the guest hung at T0 + 40 s')")
    text = page.evaluate("document.getElementById('cell').textContent")
    assert "FAILED" in text
    assert "Kernel panic" in text
    assert "39 passed, 1 failed" in text


def test_the_list_filters_and_sorts(page: Page, small: str) -> None:
    page.open(small)
    shown = (
        "[...document.querySelectorAll('#cell-table tbody tr')].filter((one) => !one.hidden)"
        ".map((one) => [...one.cells].map((cell) => cell.textContent.trim()))"
    )
    assert len(page.evaluate(shown)) == 12
    page.evaluate("(() => { const s = document.querySelector('#cell-filters [name=outcome]'); s.value = 'FAILED';"
                  " s.dispatchEvent(new Event('input', {bubbles: true})); })()")  # fmt: skip
    assert [row[0] for row in page.evaluate(shown)] == ["4"]
    assert page.evaluate("document.getElementById('cell-count').textContent") == "1 of 12 cells"
    page.click("#cell-filters [type=reset]")
    page.wait("document.getElementById('cell-count').textContent === '12 cells'")
    page.click("#cell-filters [type=search]")
    page.command("Input.insertText", text="rfc4960 20")
    assert [row[0] for row in page.evaluate(shown)] == ["12"]
    page.click("#cell-filters [type=reset]")
    page.wait("document.getElementById('cell-count').textContent === '12 cells'")
    heads = page.evaluate("[...document.querySelectorAll('#cell-table thead th')].map((one) => one.textContent)")
    column = next(place for place, head in enumerate(heads) if head.startswith("goodput"))

    def column_values() -> list[float]:
        return [float(row[column]) for row in page.evaluate(shown) if row[column] != "–"]

    page.click(f"#cell-table thead th:nth-child({column + 1}) button")
    assert column_values() == sorted(column_values())
    page.click(f"#cell-table thead th:nth-child({column + 1}) button")
    assert column_values() == sorted(column_values(), reverse=True)
    assert [row[column] for row in page.evaluate(shown)][-2:] == ["–", "–"], "nothing measured comes last"


def test_rows_made_by_the_page_are_those_of_the_template(page: Page, small: str) -> None:
    page.open(small)
    rows = "[...document.querySelectorAll('#cell-table tbody tr')].map((one) => one.outerHTML.replace(/\\s+/g, ''))"
    written = page.evaluate(rows)
    page.click("#cell-filters [type=reset]")
    body = "document.querySelector('#cell-table tbody')"
    page.wait(f"{body}.rows.length && !{body}.textContent.includes('\\n')")
    assert page.evaluate(rows) == written and len(written) == 12


def test_a_long_list_is_made_as_it_is_scrolled(page: Page, large: str) -> None:
    page.open(large + "#cells?sort=-cell")
    first = "document.querySelector('#cell-table tbody tr').cells[0].textContent"
    page.wait(f"{first} === '540'")
    open_cell(page, 540)
    page.wait("document.querySelector('.moves').textContent.includes('540 of 540')")
    options = page.evaluate("document.querySelectorAll('#compare option').length")
    assert 500 < options <= 540, "every other cell that differs in one factor, and at most 500 more"
    page.evaluate("(() => { const field = document.getElementById('compare-number'); field.value = 7;"
                  " field.dispatchEvent(new Event('change')); })()")  # fmt: skip
    page.wait("location.hash.includes('with=' + encodeURIComponent(netwarp.cells.idOf(6)))")


def test_choosing_what_to_plot(page: Page, small: str) -> None:
    page.open(small)
    draw_everything(page)
    chart = "document.querySelector('#explore-panels .chart')"
    assert page.evaluate(f"{chart}._fullLayout.yaxis.title.text") == "goodput (kbit/s)"

    def choose(**values: str) -> None:
        for name, text in values.items():
            page.evaluate(
                f"(() => {{ const s = document.querySelector('#explore-form [name={name}]');"
                f" s.value = [...s.options].find((one) => one.textContent === {json.dumps(text)}).value;"
                " s.dispatchEvent(new Event('change', {bubbles: true})); })()"
            )

    choose(metric="outage")
    page.wait(f"{chart}._fullLayout.yaxis.title.text === 'outage (s)'")
    choose(x="variant", a="length of the outage")
    page.wait(f"{chart}._fullLayout.xaxis.title.text === 'variant'")
    choose(kind="heat map")
    page.wait(f"{chart}.data[0].type === 'heatmap'")
    choose(kind="box plot")
    page.wait(f"{chart}.data[0].type === 'box'")
    choose(kind="distribution (CDF)")
    page.wait(f"{chart}._fullLayout.yaxis.title.text.startsWith('share of values')")
    page.wait("document.querySelectorAll('#explore-table tbody tr').length === 3")
    page.evaluate("netwarp.download = (name, text) => { window.saved = text; }")
    page.click("#explore-csv")
    assert page.evaluate("window.saved").splitlines()[0] == "length of the outage,outage (s),smallest,largest,n"


def test_everything_can_be_reached_by_keyboard(page: Page, small: str) -> None:
    page.open(small)
    page.press("Tab", 9)
    assert page.evaluate("document.activeElement.textContent") == "Skip to the report"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.press("Enter", 13, "\r")
    page.wait("document.activeElement.id === 'main'")
    page.evaluate("document.querySelector('#cell-table tbody a').focus()")
    page.press("Enter", 13, "\r")
    page.wait(WHOLE_CELL)
    page.press("Tab", 9)
    inside = page.evaluate("document.getElementById('cell').contains(document.activeElement)")
    assert inside, "from the heading the next stop is in the cell"
    page.evaluate("document.querySelector('#cell a[href=\"#cells\"]').focus()")
    page.press("Enter", 13, "\r")
    page.wait("document.getElementById('cell').hidden")
    assert page.evaluate("document.activeElement.hash").startswith("#cell="), "back where the reader was"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable_in_both_themes(page: Page, small: str, scheme: str) -> None:
    page.emulate(width=1280, height=900, scheme=scheme)
    page.open(small)
    draw_everything(page)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(246, 247, 249)", "dark": "rgb(14, 17, 22)"}[scheme]
    assert page.evaluate(CONTRAST) == []
    open_cell(page, 8)
    assert page.evaluate(CONTRAST) == []


def test_charts_follow_the_theme(page: Page, small: str) -> None:
    page.open(small)
    draw_everything(page)
    colour = "document.querySelector('figure .chart').data.at(-1).line.color"
    before = page.evaluate(colour)
    page.emulate(width=1280, height=900, scheme="dark")
    page.wait(f"{colour} !== '{before}'")
    open_cell(page, 8)
    press_button(page, "Zoom to cut of p1")
    page.wait(f"Number({CELL_CHART}._fullLayout.xaxis.range[0]) === 48")
    line = f"{CELL_CHART}.data[1].line.color"
    dark = page.evaluate(line)
    page.emulate(width=1280, height=900, scheme="light")
    page.wait(f"{line} !== '{dark}'")
    assert axis_range(page) == [48, 70], "a change of theme keeps the zoom"


def test_a_phone_never_scrolls_sideways(page: Page, small: str) -> None:
    page.emulate(width=390, height=844, mobile=True)
    page.open(small)
    draw_everything(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    open_cell(page, 8)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate(f"{CELL_CHART}.getBoundingClientRect().width") <= 390
    beside = page.evaluate("document.querySelector('#compare optgroup option').value")
    page.evaluate(f"location.hash += '&with=' + encodeURIComponent({json.dumps(beside)})")
    page.wait(f"document.querySelector('.cell-compared') && ({WHOLE_CELL})")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390, "nor do two cells"


def test_a_phones_bar_shows_the_part_that_is_read(page: Page, small: str) -> None:
    page.emulate(width=390, height=844, mobile=True)
    page.open(small)
    for part in ("run", "cells", "summary"):
        page.evaluate(f"document.getElementById('{part}').scrollIntoView({{ behavior: 'instant' }})")
        marked = "document.querySelector('.sections a[aria-current]')"
        page.wait(f"{marked}.hash === '#{part}'")
        left, right = page.evaluate(f"[{marked}.getBoundingClientRect().left, {marked}.getBoundingClientRect().right]")
        assert 0 <= left < right <= 390


@pytest.mark.parametrize("width", [1280, 390])
def test_marks_of_events_do_not_cover_each_other_and_are_explained(page: Page, small: str, width: int) -> None:
    """Those of a row lie at least a mark's width apart, but in the last of five rows."""
    page.emulate(width=width, height=844, mobile=width < 600)
    page.open(small)
    open_cell(page, 8)
    places: list[tuple[float, float]] = page.evaluate(
        f"(() => {{ const {{ data, _fullLayout: full }} = {CELL_CHART};"
        " const { x, y } = data.find((trace) => trace.name.startsWith('event'));"
        " return x.map((t, i) => [full.xaxis.l2p(t), y[i]]); })()"
    )
    assert len(places) > 3
    rows = {row: [x for x, other in places if other == row] for _, row in places}
    assert sorted(rows) == list(range(len(rows)))
    assert len(rows) <= 5
    gaps = [right - left for row in range(min(len(rows), 4)) for left, right in pairwise(rows[row])]
    assert all(gap >= 8.5 for gap in gaps), rows
    texts = page.evaluate("[...document.querySelectorAll('#cell-legend .legend-event')].map((one) => one.textContent)")
    kinds = page.evaluate(
        f"new Set({CELL_CHART}.data.find((trace) => trace.name.startsWith('event')).marker.symbol).size"
    )
    assert len(texts) >= kinds > 1
    assert any("cut" in text for text in texts)


def test_paper_gets_the_printed_figures(page: Page, small: str) -> None:
    page.open(small)
    draw_everything(page)
    page.emulate(width=800, height=1100, media="print")
    assert page.evaluate("document.querySelector('figure .chart').checkVisibility()") is False
    image = "document.querySelector('img.static')"
    page.wait(f"{image}.checkVisibility() && {image}.naturalWidth > 0")
    assert page.evaluate("document.querySelector('nav').checkVisibility()") is False


def test_five_hundred_cells(page: Page, large: str) -> None:
    page.open(large)
    assert page.evaluate("document.getElementById('cell-count').textContent") == "540 cells"
    assert page.evaluate("document.querySelectorAll('#cell-table tbody tr').length") == 200
    assert not any("/cells/" in one for one in page.requests)
    draw_everything(page)
    bars = page.evaluate("document.querySelectorAll('figure .chart .errorbar').length")
    assert bars == 12, "every point has its interval"
    kinds = page.evaluate("[...document.querySelectorAll('figure .chart')].map((one) => one.data[0].type)")
    assert kinds == ["scatter", "heatmap", "scatter", "box"]
    open_cell(page, 500)
    assert sum("/cells/" in one for one in page.requests) == 1


def test_hostile_names_do_nothing(browser: Browser, page: Page, hostile: str) -> None:
    page.open(hostile)
    draw_everything(page)
    cells: list[Any] = page.evaluate("[...Array(netwarp.cells.count).keys()].map(netwarp.cells.idOf)")
    assert len(cells) > 10
    for cell in cells:
        page.evaluate(f"location.hash = 'cell=' + encodeURIComponent({json.dumps(cell)})")
        page.wait(shows(cell))
    page.wait(f"!{CELL_CHART} || {CELL_CHART}.dataset.drawn")
    page.evaluate("location.hash = 'cell=%'")
    page.evaluate("location.hash = 'cell=__proto__'")
    page.wait("document.getElementById('report').checkVisibility()")
    assert page.evaluate("netwarp.hacked") is None
    ours = ".tile b, #cells-behind b, .cell-compared b"
    assert page.evaluate(f"document.querySelectorAll('img:not(.static), b:not({ours}), iframe').length") == 0
