"""The robot sees labels that lie over each other or end outside their drawing, on a page and on a sheet for print."""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from netwarp.present.figures.print import SETTINGS
from support.chromium import Page
from support.page_reader import READER

PICTURE = """<!doctype html><title>t</title>
<svg width="300" height="100" aria-label="picture" style="overflow: visible">
<text x="10" y="80">throughput</text><text x="SECOND" y="80">goodput</text>
<text x="10" y="15">two<tspan x="10" dy="1.2em">lines</tspan></text>
</svg>"""


def on_page(page: Page, folder: Path, second: int) -> list[str]:
    (folder / "page.html").write_text(PICTURE.replace("SECOND", str(second)), encoding="utf-8")
    page.open((folder / "page.html").as_uri())
    page.evaluate(READER)
    found: list[str] = page.evaluate("reader.labels()")
    return found


def printed(page: Page, folder: Path, at: list[float]) -> list[str]:
    """A sheet with a long label at each place."""
    out = io.BytesIO()
    with mpl.rc_context(SETTINGS):
        sheet = Figure(figsize=(3.5, 2.4))
        for place in at:
            sheet.text(place, 0.5, f"label at {place}")
        sheet.savefig(out, format="svg")
    (folder / "sheet.svg").write_bytes(out.getvalue())
    page.open((folder / "sheet.svg").as_uri())
    page.evaluate(READER)
    found: list[str] = page.evaluate("reader.printedLabels()")
    return found


def test_labels_of_a_picture(page: Page, tmp_path: Path) -> None:
    assert on_page(page, tmp_path, 150) == []
    assert on_page(page, tmp_path, 60) == ['picture: the label "goodput" lies over "throughput"']
    assert on_page(page, tmp_path, 280) == ['picture: the label "goodput" ends outside the drawing']


def test_labels_of_a_sheet(page: Page, tmp_path: Path) -> None:
    assert printed(page, tmp_path, [0.1, 0.5]) == []
    assert printed(page, tmp_path, [0.1, 0.2]) == ['sheet.svg: the label "label at 0.2" lies over "label at 0.1"']
    assert printed(page, tmp_path, [0.1, 0.9]) == ['sheet.svg: the label "label at 0.9" ends outside the drawing']
    assert printed(page, tmp_path, []) == ["no label is found"]
