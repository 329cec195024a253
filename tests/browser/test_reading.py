"""The report as a reader sees it: every value stands where its headings say, and is the one of the tables' files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from netwarp.engine.analysis import report
from netwarp.engine.bundles import opened
from netwarp.present.run_data import read_run
from netwarp.store.run_dir import RunDir
from support.checkout import ROOT
from support.chromium import Page
from support.page_reader import misplaced, start_reading, table_faults

REFERENCE = ROOT / "results" / "reference"


@pytest.fixture(scope="session")
def choi2009() -> Iterator[str]:
    """Address of the report of the run that README calls every table and figure."""
    with opened(REFERENCE / "choi2009" / "run.tar.xz") as folder:
        yield report(folder).as_uri()


@pytest.mark.parametrize("report_of", ["choi2009", "small", "large", "hostile"])
@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_values_stand_where_their_headings_say(
    page: Page, request: pytest.FixtureRequest, report_of: str, width: int
) -> None:
    """By bounding boxes: each value below the headings of its columns and beside those of its row. What is read that
    way is what tables/*.csv holds, with the unit that the page names.
    """
    address: str = request.getfixturevalue(report_of)
    page.emulate(width=width, height=900, mobile=width < 600)
    page.open(address)
    start_reading(page)
    assert misplaced(page) == []
    data = read_run(RunDir(Path(unquote(urlsplit(address).path)).parent.parent))
    shown = [table for table in data.plan.tables if data.tables.get(data.plan.rows_of(table))]
    assert shown
    assert [fault for table in shown for fault in table_faults(page, data.run, data.plan, table, data.system)] == []
