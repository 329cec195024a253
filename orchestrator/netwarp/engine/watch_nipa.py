"""The answer of `netwarp kernel watch` in the form that NIPA, the CI of Linux' network developers, collects."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from ..results.watched import Watched, WatchedTest
from ..selftests.nipa import Entry, Origin, entries_file, group_of, namify


def watch_results(watched: Watched, origin: Origin, started: datetime, ended: datetime) -> dict[str, object]:
    """The content of a result file: every test of the new kernel, and one for the numbers of each run. A test of
    numbers fails if a number, a verdict or an outcome of its run is another than on the base; its cases are the cells.
    """
    return entries_file([*_tests(watched), *_numbers(watched), *_splats(watched)], origin, started, ended)


def _tests(watched: Watched) -> Iterator[Entry]:
    for test in watched.new.tests:
        yield Entry(*_place(test), test.verdict, "", tuple((name, verdict) for name, verdict, _ in test.cases))


def _place(test: WatchedTest) -> tuple[str, str]:
    collection, _, program = test.name.partition(":")
    return program, group_of(collection)


def _numbers(watched: Watched) -> Iterator[Entry]:
    for run in watched.runs:
        cells = tuple((cell.name, "fail") for cell in watched.cells if cell.run == run.run)
        moved = (*run.outcomes, *run.verdicts)
        cases = cells + tuple((each.name, "fail") for each in moved)
        yield Entry(run.run, "netwarp-numbers", "fail" if cases else "pass", "index.html", cases)


def _splats(watched: Watched) -> Iterator[Entry]:
    cases = tuple((splat.where, "fail") for splat in watched.splats)
    crashes = tuple(splat.fingerprint or namify(splat.text.partition("\n")[0]) for splat in watched.splats)
    yield Entry("splats", "netwarp-numbers", "fail" if cases else "pass", "index.html", cases, crashes=crashes)
