"""The waterfall of a page in the view of a cell: bars where the times say, on a desktop and on a phone."""

from __future__ import annotations

import json
from typing import Any

from support.chromium import Page

SHOW = """(cells) => {
  const place = document.createElement("div");
  place.id = "here";
  const section = (title, ...children) => netwarp.h("section", {}, netwarp.h("h3", {}, title), children);
  const table = (caption, heads, rows) => netwarp.h("p", {}, rows.length);
  place.append(netwarp.waterfall(cells, section, (cell) => cell.id, table));
  document.querySelector("main").prepend(place);
}"""
BARS = """[...document.querySelectorAll("#here .waterfall-row")].map((row) =>
  [...row.querySelectorAll(".waterfall-bar")].map((bar) => {
  const track = row.querySelector(".waterfall-track").getBoundingClientRect(), box = bar.getBoundingClientRect();
  const percent = (length) => Math.round((100 * length) / track.width);
  return [bar.className.replaceAll("waterfall-", ""), percent(box.left - track.left), percent(box.width)];
}))"""


def times(number: int, requested: float, complete: float, delivered: float, *, page: int = 0) -> dict[str, Any]:
    return {
        "page": page, "object": number, "port": 40000, "stream": number, "bytes": 1000, "opened_s": 1.0 + 10 * page,
        "requested_s": requested + 10 * page, "first_s": requested + 0.1 + 10 * page,
        "complete_s": complete + 10 * page, "delivered_s": delivered + 10 * page, "told_s": 0,
    }  # fmt: skip


def kept(number: int, requested: float, complete: float, *, page: int) -> dict[str, Any]:
    """Of a page over the connection of the first one, which was opened at 1 s."""
    return {**times(number, requested, complete, complete, page=page), "opened_s": 1.0}


def cell(name: str, objects: list[dict[str, Any]]) -> dict[str, Any]:
    return {"id": name, "flows": [{"name": "web", "protocol": "sctp"}], "pages": {"web": objects}}


def test_two_cells_share_an_axis(page: Page, small: str) -> None:
    """Of 2 s: set-up 0.2 s, waiting 0.1 s, arriving 0.3 s; the second object waits for others for 0.4 s."""
    one = [times(0, 1.2, 1.6, 1.6), times(1, 1.6, 2.6, 3.0)]
    two = [times(0, 1.2, 1.6, 1.6), times(0, 1.2, 1.6, 1.6, page=1)]
    page.open(small)
    page.evaluate(f"({SHOW})({json.dumps([cell('A', one), cell('B', two)])})")
    wait = [["bar setup", 0, 10], ["bar wait", 10, 5], ["bar receive", 15, 15]]
    second = [["bar wait", 30, 5], ["bar receive", 35, 45], ["bar blocked", 80, 20]]
    assert page.evaluate(BARS) == [wait, second, wait]
    assert (
        page.evaluate("[...document.querySelectorAll('#here .waterfall-end')].map((end) => end.textContent)")[1]
        == "2 s"
    )
    page.emulate(width=390, height=844, mobile=True)
    assert page.evaluate(BARS)[1] == second
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_later_page_of_a_kept_connection_begins_at_its_first_request(page: Page, small: str) -> None:
    """Ten seconds after the first page: no set-up, and not the time since the connection was opened."""
    objects = [times(0, 1.2, 1.6, 1.6), kept(0, 1.2, 1.6, page=1), kept(1, 1.6, 2.2, page=1)]
    page.open(small)
    page.evaluate(f"({SHOW})({json.dumps([cell('A', objects)])})")
    page.evaluate(
        "(() => { const one = document.querySelector('#waterfall-page'); one.value = '1';"
        " one.dispatchEvent(new Event('change')); })()"
    )
    html, second = [["bar wait", 0, 10], ["bar receive", 10, 30]], [["bar wait", 40, 10], ["bar receive", 50, 50]]
    assert page.evaluate(BARS) == [html, second]
    assert page.evaluate("document.querySelector('#here figcaption').textContent") == "A (web): 1 s"


CHOICES = "[...document.querySelectorAll('#here select')].map((one) => [...one.options].map((o) => o.textContent))"


def test_choices_say_what_is_there(page: Page, small: str) -> None:
    """Pages count from 1, and one page is no choice; nothing stands beside a cell that is compared with none."""
    one = [times(0, 1.2, 1.6, 1.6)]
    two = [*one, times(0, 1.2, 1.6, 1.6, page=1)]
    show = SHOW.replace("cell.id, table)", "cell.id, table, [{ title: 'way', ids: ['B'] }])")
    page.open(small)
    page.evaluate(f"({show})({json.dumps([cell('A', one)])})")
    assert page.evaluate(CHOICES) == [["nothing", "the other levels of way"]]
    page.open(small)
    page.evaluate("document.querySelector('#here')?.remove()")
    page.evaluate(f"({show})({json.dumps([cell('A', two), cell('B', two)])})")
    assert page.evaluate(CHOICES) == [["1", "2"], ["the cell compared with", "the other levels of way"]]


ASIDE = """(cells) => {
  netwarp.loadCell = (id) =>
    id === "none" ? Promise.reject(new Error("no file")) : Promise.resolve(cells.find((one) => one.id === id));
  const beside = [{ title: "way", ids: [cells[1].id, "none", cells[2].id] }];
  const section = (title, ...children) => netwarp.h("section", {}, children);
  const table = (caption, heads, rows) =>
    netwarp.h("p", { class: "last" }, rows.map((row) => row[row.length - 1]).join("|"));
  const place = netwarp.h("div", { id: "here" });
  place.append(netwarp.waterfall([cells[0]], section, (cell) => cell.id, table, beside));
  document.querySelector("main").prepend(place);
  const choice = document.querySelector("#waterfall-beside");
  choice.value = "0";
  choice.dispatchEvent(new Event("change"));
}"""


def test_all_levels_of_a_factor_stand_beside_each_other(page: Page, small: str) -> None:
    """A cell without a file is left out; who waits names whose packet it waits for; a long name breaks on a phone."""
    late = {**times(1, 1.6, 2.6, 3.0), "waited_for": 0}
    cells = [cell("A", [times(0, 1.2, 1.6, 1.6), late]), cell("B" * 70, [late]), cell("C", [times(0, 1.2, 1.6, 1.6)])]
    page.emulate(width=390, height=844, mobile=True)
    page.open(small)
    page.evaluate(f"({ASIDE})({json.dumps(cells)})")
    page.wait("document.querySelectorAll('#here .waterfall').length === 3")
    titles = page.evaluate("[...document.querySelectorAll('#here figcaption b')].map((one) => one.textContent)")
    assert titles == ["A", "B" * 70, "C"]
    blocked = page.evaluate(
        "[...document.querySelectorAll('#here .waterfall-bar.waterfall-blocked')].map((bar) => bar.title)"
    )
    assert blocked == ["complete, waits for packets of others (HTML): 400.0 ms"] * 2
    told = page.evaluate("[...document.querySelectorAll('#here .last')].map((one) => one.textContent)")
    assert told == ["|HTML", "HTML", ""]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_cell_without_pages_has_no_waterfall(page: Page, small: str) -> None:
    page.open(small)
    assert page.evaluate("netwarp.waterfall([{ id: 'A', flows: [], pages: {} }])") == ""
