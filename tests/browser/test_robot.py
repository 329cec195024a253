"""A robot reads whole pages as a reader does (tests/support/page_robot.py): where values stand, what is cut or covered,
where links lead, contrast, and the numbers of the tables' files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import netwarp
import pytest
from netwarp import analyze_captures
from netwarp.cli import main
from netwarp.engine.bundles import opened
from netwarp.engine.compare import compare_runs
from netwarp.experiment.example import EXAMPLE_SPEC
from netwarp.present.captures.page_sections import write_page
from netwarp.present.pages.build import make_report
from netwarp.present.pages.comparison import comparison_page
from netwarp.present.pages.watch import watch_page
from netwarp.store.conclusion import write_conclusion
from support.captures import recorded
from support.checkout import ROOT
from support.chromium import Browser
from support.page_robot import SOME, read_page, table
from support.report_kit import concluded, mixed_run, one_cell_run, small_run
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


@contextmanager
def concluding(folder: Path) -> Iterator[Path]:
    """A command's conclusion: numbered, named, in bullets, a table."""
    run = small_run(folder / "run")
    write_conclusion(run, concluded(run))
    yield make_report(run)


@contextmanager
def checked(folder: Path) -> Iterator[Path]:
    """`netwarp sctp check`, as it is typed."""
    main(["sctp", "check", "srsran-gnb", "open5gs", "--out", str(folder / "run")])
    yield folder / "run" / "report" / "index.html"


def part(name: str, only: str, **where: str) -> Callable[[Path], AbstractContextManager[Path]]:
    """Some cells of an experiment."""

    @contextmanager
    def run(folder: Path) -> Iterator[Path]:
        made = netwarp.run(name, only=[only], where=where, repetitions=1, out=folder / "run")
        yield made.path / "report" / "index.html"

    return run


PAGES = {
    "example": example,
    "every outcome": outcomes,
    "one cell": one_cell,
    "comparison": two_runs,
    "analysis of captures": capture,
    "kernel watch": watch,
}
MORE = {
    "choi2009, some outages": part("choi2009", "outages", reading="one_way_delay", stack="today", outage="10 s"),
    "many-flows, two flows": part("many-flows", "shares", flows="2"),
    "lte-link, each alone": part("lte-link", "alone", queue="50 packets"),
    "sctp check": checked,
    "conclusion": concluding,
}
"""Pages made of the same parts as others: read on a screen and on a phone."""


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_read_without_a_fault(browser: Browser, tmp_path: Path, name: str) -> None:
    """At 1440, 1024 and 390 px, light and dark, and as it is printed."""
    with PAGES[name](tmp_path) as page:
        reading = read_page(browser, name, page.as_uri())
    print(table([reading]))
    assert reading.checks > 20
    assert reading.faults == []


@pytest.mark.parametrize("name", MORE)
def test_a_page_of_an_experiment_is_read_without_a_fault(browser: Browser, tmp_path: Path, name: str) -> None:
    with MORE[name](tmp_path) as page:
        reading = read_page(browser, name, page.as_uri(), SOME)
        text = page.read_text(encoding="utf-8")
    print(table([reading]))
    assert reading.checks > 20
    assert reading.faults == []
    if name == "sctp check":
        assert "netwarp sctp check srsran-gnb open5gs --out" in text, "as it was typed"
