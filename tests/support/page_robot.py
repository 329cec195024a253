"""Reads whole pages as a reader does, at several widths, light and dark, and prints what it read:

PYTHONPATH=tests .venv/bin/python -m support.page_robot PAGE.html ...
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from urllib.parse import unquote, urlsplit

from netwarp.present.run_data import read_run
from netwarp.store.run_dir import RunDir

from support.chromium import Browser, Page, chromium, find_chromium
from support.page_reader import READER, misplaced, start_reading, table_faults

SIZES = ((1440, 900), (1024, 768), (390, 844))
SCHEMES = ("light", "dark")
ALL = tuple((width, scheme) for width, _ in SIZES for scheme in SCHEMES)
SOME = ((1440, "light"), (390, "dark"))
"""Of a page that is like another which is read at every size."""
PAPER = 718
"""The width of A4 without its margins, in px."""
NEAR_PX = 8
"""How far from its heading a link may land."""
AXE = """axe.run(document, {runOnly: ["color-contrast"], resultTypes: ["violations"]}).then((found) =>
  found.violations.flatMap((one) => one.nodes.map((node) => `contrast: ${node.target} ${node.failureSummary}`)))"""


@dataclass
class Reading:
    """What was looked at on one page, and what was wrong there."""

    name: str
    views: list[str] = field(default_factory=list)
    checks: int = 0
    faults: list[str] = field(default_factory=list)

    def add(self, checks: int, faults: Iterable[str], where: str) -> None:
        """Count `checks`; each fault says where it was seen."""
        self.checks += checks
        self.faults += [f"{where}: {fault}" for fault in faults]


@cache
def axe() -> str:
    """axe-core, the engine that judges contrast, from its package."""
    return files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")


def read_page(
    browser: Browser, name: str, address: str, views: Sequence[tuple[int, str]] = ALL, *, printed: bool = True
) -> Reading:
    """Look at a page in these views (width, colours), and as it is printed; follow its links once at each width."""
    reading, seen, heights = Reading(name), set[int](), dict(SIZES)
    for width, scheme in views:
        where = f"{name} at {width} px, {scheme}"
        reading.views.append(f"{width} {scheme}")
        page = browser.page()
        page.emulate(width=width, height=heights[width], mobile=width < 600, scheme=scheme)
        first = width not in seen
        seen.add(width)
        if first and len(views) == len(ALL):
            follow_links(page, address, reading, where)
        scrolls = first and (width == views[-1][0] or (len(views) == len(ALL) and width == views[0][0]))
        look(page, address, reading, where, places=first, scrolls=scrolls)
        reading.add(1, page.problems, where)
        page.close()
    if printed:
        page = browser.page()
        page.emulate(width=PAPER, height=1000, media="print")
        look_at_print(page, address, reading, f"{name}, printed")
        look_at_sheets(page, Path(unquote(urlsplit(address).path)).parent / "figures", reading)
        page.close()
    return reading


def look_at_sheets(page: Page, folder: Path, reading: Reading) -> None:
    """The labels of each figure that is made for print."""
    for sheet in sorted(folder.glob("*.svg")):
        page.open(sheet.as_uri())
        page.evaluate(READER)
        reading.add(1, page.evaluate("reader.printedLabels()"), f"{reading.name}, for print")


def look_at_print(page: Page, address: str, reading: Reading, where: str) -> None:
    """The tables of a page as they stand on paper, and their numbers."""
    page.open(address)
    start_reading(page)
    reading.views.append("print")
    reading.add(page.evaluate("document.querySelectorAll('table td').length"), misplaced(page), where)
    root = Path(unquote(urlsplit(address).path)).parent.parent
    if (root / "plan.json").exists():
        read_tables(page, root, reading, where)


def read_tables(page: Page, root: Path, reading: Reading, where: str) -> None:
    """Each number of the spec's tables, held against its file."""
    data = read_run(RunDir(root))
    for table in data.plan.tables:
        if rows := data.tables.get(data.plan.rows_of(table)):
            reading.add(len(rows), table_faults(page, data.run, data.plan, table, data.system), where)


def look(page: Page, address: str, reading: Reading, where: str, *, places: bool, scrolls: bool) -> None:
    """Everything that can be seen of a page as it stands. places: not its colours alone, but where things stand;
    scrolls: and what is covered, window by window.
    """
    page.open(address)
    page.evaluate(READER)
    if places:
        reading.add(1, page.evaluate("reader.opening()"), where)
    start_reading(page)
    page.evaluate(f"{axe()}\n0")
    reading.add(1, page.evaluate(AXE), where)
    if not places:
        return
    if scrolls:
        reading.add(1, page.evaluate("reader.throughout(() => [...reader.covered(), ...reader.labels()])"), where)
        page.evaluate("scrollTo({ top: 0, behavior: 'instant' })")
    reading.add(page.evaluate("document.querySelectorAll('table td').length"), misplaced(page), where)
    reading.add(1, page.evaluate("reader.sideways()"), where)
    reading.add(1, page.evaluate("reader.cut()"), where)
    for rule in ("headings", "cellsList", "rawNames", "firstNumbers", "claimCounts"):
        reading.add(1, page.evaluate(f"reader.{rule}()"), where)
    root = Path(unquote(urlsplit(address).path)).parent.parent
    if not (root / "plan.json").exists():
        return
    reading.add(1, page.evaluate("reader.units()"), where)
    read_tables(page, root, reading, where)


def follow_links(page: Page, address: str, reading: Reading, where: str) -> None:
    """Follow each tab of a fresh page; its part has to stand at the top once everything is drawn, and to be marked."""
    page.open(address)
    start = "document.querySelectorAll('.sections a')"
    tabs = page.evaluate(f"[...{start}].filter((one) => one.checkVisibility()).map((one) => one.hash)")
    for tab in tabs:
        page.open("about:blank")
        page.open(address)
        page.evaluate((Path(__file__).with_name("page_reader.js")).read_text(encoding="utf-8"))
        page.evaluate(f"document.querySelector('.sections a[href={json.dumps(tab)}]').click()")
        page.evaluate("reader.settled()")
        target = f"document.querySelector({json.dumps(tab)})"
        away = page.evaluate(f"reader.away({target})")
        marked = page.evaluate("document.querySelector('.sections a[aria-current]')?.hash ?? ''")
        faults = [f"the tab {tab} lands {away:.0f} px off"] if away > NEAR_PX else []
        if marked and marked != tab:
            faults.append(f"the tab {marked} is marked, not {tab}")
        reading.add(1, faults, where)
    if page.evaluate("document.querySelectorAll('#cell-table tbody a').length"):
        page.open("about:blank")
        page.open(address)
        page.evaluate((Path(__file__).with_name("page_reader.js")).read_text(encoding="utf-8"))
        page.evaluate("document.querySelector('#cells').scrollIntoView({ behavior: 'instant' })")
        page.evaluate("reader.settled()")
        page.evaluate("addEventListener('click', () => { window.left = scrollY; }, true)")
        page.click("#cell-table tbody a")
        page.wait("document.getElementById('report').hidden && document.querySelector('#cell .cell-head') !== null")
        read_cell(page, reading, f"{where}, a cell")
        page.evaluate("history.back()")
        page.wait("!document.getElementById('report').hidden")
        page.evaluate("reader.settled()")
        off = page.evaluate("Math.abs(scrollY - window.left)")
        reading.add(1, [f"Back lands {off:.0f} px off"] if off > NEAR_PX else [], where)


def read_cell(page: Page, reading: Reading, where: str) -> None:
    """The view of a cell: where its numbers stand, what is cut, what does not fit."""
    page.evaluate("reader.settled()")
    page.evaluate("reader.openAll()")
    reading.add(page.evaluate("document.querySelectorAll('#cell td').length"), misplaced(page, "#cell"), where)
    for rule in ("sideways", "cut", "headings"):
        reading.add(1, page.evaluate(f"reader.{rule}()"), where)


def table(readings: Iterable[Reading]) -> str:
    """Pages, views, checks and faults, as a table of Markdown."""
    lines = ["| page | widths (px), light and dark | checks | faults |", "|---|---|---:|---:|"]
    for one in readings:
        widths = ", ".join(dict.fromkeys(view.split()[0] for view in one.views))
        lines.append(f"| {one.name} | {widths} | {one.checks} | {len(one.faults)} |")
    return "\n".join(lines)


def main() -> int:
    """Read the pages named and print the table, and each fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="+", type=Path)
    chosen = parser.parse_args()
    executable = find_chromium()
    if executable is None:
        print("no Chromium: apt-get install chromium, or set NETWARP_CHROMIUM", file=sys.stderr)
        return 2
    with chromium(executable) as browser:
        readings = [read_page(browser, str(path), path.resolve().as_uri()) for path in chosen.pages]
    print(table(readings))
    for reading in readings:
        print(*reading.faults, sep="\n")
    return 1 if any(reading.faults for reading in readings) else 0


if __name__ == "__main__":
    sys.exit(main())
