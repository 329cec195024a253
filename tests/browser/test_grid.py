"""Small charts side by side over the same axes, in a browser."""

from __future__ import annotations

from pathlib import Path

import netwarp
import pytest
from netwarp.present.pages.build import make_report
from support.chromium import Page
from support.report_kit import plan_of, spec_text, write_run
from support.report_page import draw_everything

MORE = """\
[figure.grid]
title = "Goodput over time"
series = ["goodput_bit_s"]
where = { failover = ["default", "-"] }
panels = ["outage"]
log = true
"""
GRID = "document.querySelector('#figure-grid .chart')"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    place: Path = tmp_path_factory.mktemp("grid")
    text = spec_text() + MORE
    run = write_run(place / "run", plan_of(text, place))
    (place / "spec.toml").write_text(text.replace("EXPECTED", ""))
    netwarp.analyze(run.root, spec=place / "spec.toml")
    return make_report(run).as_uri()


def shown(page: Page, what: str) -> list[object]:
    """A property of each drawn panel's axis."""
    axes = f"Object.keys({GRID}._fullLayout).filter((name) => /^yaxis\\d*$/.test(name))"
    found: list[object] = page.evaluate(f"{axes}.map((name) => {GRID}._fullLayout[name].{what})")
    return found


def test_each_level_has_a_panel_and_all_have_one_scale(page: Page, report: str) -> None:
    page.open(report)
    draw_everything(page)
    assert shown(page, "type") == ["log"] * 4
    assert len({str(ends) for ends in shown(page, "range")}) == 1
    labels = page.evaluate(f"[...{GRID}.querySelectorAll('.annotation-text')].map((one) => one.textContent)")
    assert labels[1:] == ["0 s", "5 s", "10 s", "20 s"]
    assert page.evaluate("document.querySelectorAll('#figure-grid .legend-entry').length") == 2
    across = len({str(ends) for ends in shown(page, "domain")})
    assert across == 2, "three side by side, and a second row"


def test_a_line_is_hidden_in_all_panels(page: Page, report: str) -> None:
    page.open(report)
    draw_everything(page)
    lines = f"{GRID}.data.length"
    before = page.evaluate(lines)
    page.click("#figure-grid .legend-entry")
    page.wait(f"{lines} === {before // 2}")


def test_on_a_phone_panels_stand_one_below_the_other(page: Page, report: str) -> None:
    page.emulate(width=400, height=800, mobile=True)
    page.open(report)
    draw_everything(page)
    assert len({str(ends) for ends in shown(page, "domain")}) == 4
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
