"""A robot reads whole pages as a reader does (tests/support/page_robot.py): where values stand, what is cut or covered,
where links lead, contrast, and the numbers of the tables' files.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import netwarp
import pytest
from netwarp import analyze_captures
from netwarp.engine.bundles import opened
from netwarp.engine.compare import compare_runs
from netwarp.experiment.example import EXAMPLE_SPEC
from netwarp.present.captures.page_sections import write_page
from netwarp.present.pages.build import make_report
from netwarp.present.pages.comparison import comparison_page
from netwarp.present.pages.watch import watch_page
from support.captures import recorded
from support.checkout import ROOT
from support.chromium import Browser
from support.page_robot import read_page, table
from support.report_kit import mixed_run, one_cell_run
from support.watch_kit import watched


@contextmanager
def outcomes(folder: Path) -> Iterator[Path]:
    """FAILED, INVALID, UNSUPPORTED, TIMED_OUT and not run."""
    yield make_report(mixed_run(folder / "run"))


@contextmanager
def example(folder: Path) -> Iterator[Path]:
    """The example, run in virtual time."""
    (folder / "mine.toml").write_text(EXAMPLE_SPEC)
    yield netwarp.run(folder / "mine.toml", out=folder / "run").path / "report" / "index.html"


@contextmanager
def one_cell(folder: Path) -> Iterator[Path]:
    """One cell."""
    yield make_report(one_cell_run(folder / "run"))


@contextmanager
def two_runs(folder: Path) -> Iterator[Path]:
    """The comparison of two runs whose captures are kept as hashes."""
    with opened(ROOT / "results" / "reference" / "ha2005" / "run.tar.xz") as one:
        page = folder / "page.html"
        page.write_bytes(comparison_page(compare_runs(one, one)))
        yield page


@contextmanager
def capture(folder: Path) -> Iterator[Path]:
    """Captures of both ends of two paths."""
    analyzed = analyze_captures(recorded("sctp", "b", ["p1", "p2"]), merge=True)
    write_page(folder / "page.html", analyzed.files, analyzed.join)
    yield folder / "page.html"


@contextmanager
def watch(folder: Path) -> Iterator[Path]:
    """Two kernels of which one differs."""
    page = folder / "page.html"
    page.write_bytes(watch_page(watched()))
    yield page


PAGES = {
    "example": example,
    "every outcome": outcomes,
    "one cell": one_cell,
    "comparison": two_runs,
    "analysis of captures": capture,
    "kernel watch": watch,
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_read_without_a_fault(browser: Browser, tmp_path: Path, name: str) -> None:
    """At 1440, 1024 and 390 px, light and dark."""
    with PAGES[name](tmp_path) as page:
        reading = read_page(browser, name, page.as_uri())
    print(table([reading]))
    assert reading.checks > 20
    assert reading.faults == []
