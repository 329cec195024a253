"""The report as a PDF: its pages, and every value of every table on them."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from support.chromium import Page
from support.page_robot import PAPER
from support.pdf_reader import read_pdf

TEXTS = """[...document.querySelectorAll('table')].filter((one) => one.checkVisibility()).flatMap((table) => {
  const found = [], walker = document.createTreeWalker(table, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const of = walker.currentNode.parentElement;
    if (!of.checkVisibility() || of.closest('.unseen') || of.closest('table') !== table) continue;
    found.push(walker.currentNode.data);
  }
  return found; })"""
PAGE_PX = 1047
"""The height of A4 without its margins, in px."""


def faults(page: Page, address: str, file: Path) -> list[str]:
    """Letters outside their page or clip, pages without a word, values of tables that are on no page."""
    page.emulate(width=PAPER, height=1000, media="print")
    page.open(address)
    page.evaluate("document.fonts.ready.then(() => 0)")
    values = [re.sub(r"\s", "", text) for text in page.evaluate(TEXTS)]
    height = page.evaluate("document.documentElement.scrollHeight")
    page.pdf(file)
    sheets = read_pdf(file)
    found = [f"page {number} is empty" for number, sheet in enumerate(sheets, 1) if not sheet.text]
    full = height / PAGE_PX
    if not 0.9 * full <= len(sheets) <= 2 * full + 1:  # Chromium shrinks a page that is a little too wide
        found.append(f"{len(sheets)} pages for {height} px")
    for number, sheet in enumerate(sheets, 1):
        cut = "".join(letter.text for letter in sheet.letters if letter.clipped)
        found += [f"page {number}: {cut!r} is cut"] if cut.strip() else []
    text = "".join(sheet.text for sheet in sheets)
    for value, count in Counter(filter(None, values)).items():
        if text.count(value) < count:
            found.append(f"{value!r} is {count} times in tables, {text.count(value)} times on paper")
    assert len(values) > 10
    return found


@pytest.mark.parametrize("run", ["small", "large", "counted"])
def test_a_report_is_whole_on_paper(request: pytest.FixtureRequest, page: Page, tmp_path: Path, run: str) -> None:
    assert faults(page, request.getfixturevalue(run), tmp_path / "report.pdf") == []


def test_a_table_that_is_cut_is_found(page: Page, tmp_path: Path) -> None:
    cells = "".join(f"<td>value{number}</td>" for number in range(30))
    text = f"<!doctype html><title>t</title><div style='overflow: hidden'><table><tr>{cells}</tr></table></div>"
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    found = faults(page, (tmp_path / "page.html").as_uri(), tmp_path / "page.pdf")
    assert "'value29' is 1 times in tables, 0 times on paper" in found
    assert not any("'value0'" in fault for fault in found)
