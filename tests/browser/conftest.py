"""Fixtures of the tests that look at a report in a real browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from netwarp.present.pages.build import make_report
from support.chromium import Browser, Page, chromium, find_chromium
from support.report_kit import counted_run, hostile_run, large_run, small_run


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests. None is an error: a skip would hide it."""
    executable = find_chromium()
    if executable is None:
        pytest.fail("no Chromium: apt-get install chromium, or set NETWARP_CHROMIUM", pytrace=False)
    with chromium(executable) as running:
        yield running


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A fresh tab at desktop size, in light colours, in which nothing may go wrong and nothing leaves the machine."""
    tab = browser.page()
    tab.emulate(width=1280, height=900)
    yield tab
    assert tab.problems == []
    assert [one for one in tab.requests if not one.startswith(("file:///", "data:", "blob:null/", "about:"))] == []
    tab.close()


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of the report of 12 cells."""
    return make_report(small_run(tmp_path_factory.mktemp("small") / "run")).as_uri()


@pytest.fixture(scope="session")
def counted(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of a report over a number of flows."""
    return make_report(counted_run(tmp_path_factory.mktemp("counted") / "run")).as_uri()


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of a report of at least 500 cells."""
    return make_report(large_run(tmp_path_factory.mktemp("large") / "run", 500)).as_uri()


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of a report full of names that would like to be code."""
    return make_report(hostile_run(tmp_path_factory.mktemp("hostile") / "run")).as_uri()
