"""Changes from one kernel to another: tests, cells, numbers with the first packet that differs, splats.

`netwarp kernel watch` prints it, writes it as JSON, and makes a page of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from ..core.frozen import Frozen
from ..core.metrics.catalogue import HEADLINE, METRICS
from .compared_numbers import ComparedNumber, Levels, Moved, MovedOutcome, Verdict
from .senses import sense, senses


class WatchedTest(Frozen, frozen=True):
    """How a test of the kernel's own, or a script of packetdrill's, ended. note: why it failed or was skipped; cases:
    (name, verdict, reason) of those inside it.
    """

    name: str
    verdict: str
    note: str = ""
    cases: tuple[tuple[str, str, str], ...] = ()


class Splat(Frozen, frozen=True):
    """A report of the kernel about itself, in a console. where: of which cell or test; text: its lines; fingerprint:
    the functions of its stack, as NIPA has it.
    """

    where: str
    text: str
    fingerprint: str = ""


class WatchedKernel(Frozen, frozen=True):
    """A kernel and what ran on it. asked: as it was asked for. runs: the folders of its runs, in the order of the set.
    wall_s, cpu_s: what they took, when they ran. without: what could not run on it, and why. complete: no cell FAILED
    or is INVALID, which may be this machine's fault.
    """

    asked: str
    release: str
    sha256: str
    key: str
    source: str
    runs: tuple[str, ...] = ()
    tests: tuple[WatchedTest, ...] = ()
    splats: tuple[Splat, ...] = ()
    wall_s: float = 0.0
    cpu_s: float = 0.0
    without: tuple[str, ...] = ()
    complete: bool = True


@dataclass(frozen=True, slots=True)
class ChangedCell:
    """A combination of levels with numbers that changed, the largest first. spec: as `spec_names` has it; first: the
    first packet that differs, in words ("": no capture differs); cells: the ids of the cells that show it (None: the
    run has none that completed).
    """

    run: str
    spec: str
    levels: Levels
    numbers: tuple[ComparedNumber, ...]
    first: str
    cells: tuple[str | None, str | None]

    @property
    def name(self) -> str:
        """Spec, factors and levels: two factors may have a level of the same text."""
        levels = " ".join(f"{factor}={level}" for factor, level in self.levels)
        return f"{self.spec}: {levels or 'its cells'}"


@dataclass(frozen=True, slots=True)
class ChangedRun:
    """A part of a spec on both kernels: what changed besides numbers, and how many numbers there are of each verdict.
    failed: on each kernel the cells that did not complete, with the reason of the first ("": all completed).
    """

    run: str
    spec: str
    cells: int
    counts: Counter[Verdict]
    outcomes: tuple[MovedOutcome, ...]
    verdicts: tuple[Moved, ...]
    failed: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class EndedCell:
    """A cell that ended otherwise on the new kernel."""

    run: str
    spec: str
    ended: MovedOutcome

    @property
    def name(self) -> str:
        """Spec, levels and outcome."""
        return f"{self.spec}: {self.ended.name} {self.ended.b}"


@dataclass(frozen=True, slots=True)
class ChangedTest:
    """A test that ended otherwise; None: that kernel's source has no such test."""

    name: str
    a: WatchedTest | None
    b: WatchedTest | None

    @property
    def worse(self) -> bool:
        """True if it fails on the new kernel only."""
        return self.b is not None and self.b.verdict == "fail" and (self.a is None or self.a.verdict != "fail")

    @property
    def inside(self) -> tuple[tuple[str, str, str], ...]:
        """(case, verdict on A, verdict on B) of those that differ."""
        before = {} if self.a is None else {name: verdict for name, verdict, _ in self.a.cases}
        after = {} if self.b is None else {name: verdict for name, verdict, _ in self.b.cases}
        names = dict.fromkeys([*before, *after])
        return tuple(
            (name, before.get(name, "-"), after.get(name, "-")) for name in names if before.get(name) != after.get(name)
        )


@dataclass(frozen=True, slots=True)
class Bisected:
    """The commit that brought a finding. finding: its name; commits: one, or those that no build could tell apart;
    subject: of the first of them; steps: how many commits were built and asked.
    """

    finding: str
    commits: tuple[str, ...]
    subject: str
    steps: int


@dataclass(frozen=True, slots=True)
class Watched:
    """The answer. set_name: what ran. cells: those with changed numbers, the largest change first."""

    base: WatchedKernel
    new: WatchedKernel
    set_name: str
    runs: tuple[ChangedRun, ...]
    cells: tuple[ChangedCell, ...]
    tests: tuple[ChangedTest, ...]
    splats: tuple[Splat, ...]
    bisected: tuple[Bisected, ...] = ()

    @property
    def differs(self) -> bool:
        """True if anything was found."""
        moved = any(run.outcomes or run.verdicts for run in self.runs)
        return bool(self.cells or self.splats or moved or any(test.a and test.b for test in self.tests))

    def counts(self, kernel: WatchedKernel) -> Counter[str]:
        """How many tests of a kernel passed, failed and were skipped."""
        return Counter(test.verdict for test in kernel.tests)

    @property
    def numbers(self) -> Counter[Verdict]:
        """How many numbers have each verdict."""
        return sum((run.counts for run in self.runs), Counter[Verdict]())

    @property
    def empty(self) -> bool:
        """True if nothing was compared: no test ran on both, and no number is there."""
        both = {test.name for test in self.base.tests} & {test.name for test in self.new.tests}
        return not both and not self.numbers

    @property
    def findings(self) -> tuple[str, ...]:
        """Names of what a bisection can look for: changed cells, then cells and tests that ended otherwise."""
        tests = (f"test {one.name}" for one in self.tests if one.a and one.b)
        return (*(cell.name for cell in self.cells), *(each.name for each in self.ended), *tests)

    @property
    def finding_numbers(self) -> dict[str, int]:
        """The number, from 1, of each of the findings."""
        return {name: number for number, name in enumerate(self.findings, 1)}

    @property
    def ended(self) -> tuple[EndedCell, ...]:
        """The cells that ended otherwise."""
        return tuple(EndedCell(run.run, run.spec, each) for run in self.runs for each in run.outcomes)


def spec_names(runs: Sequence[str]) -> dict[str, str]:
    """What findings in each run of a set are named by: its spec, or the run where the set has several parts of a spec,
    whose cells may have equal levels. It depends on the set alone. runs: <number>-<spec> each.
    """
    specs = Counter(run.partition("-")[2] for run in runs)
    return {run: spec if specs[spec := run.partition("-")[2]] == 1 else run for run in runs}


def size_of(number: ComparedNumber) -> float:
    """How large a change is: |b - a| / max(|a|, |b|), from 0 to 2; 1 if one of the two has no value, or is 0."""
    if number.a is None or number.b is None:
        return 1.0
    most = max(abs(number.a), abs(number.b))
    return abs(number.b - number.a) / most if most else 0.0


def _place(number: ComparedNumber) -> tuple[int, float]:
    """Where a number stands: first what broke, then by the size of its change (what vanished and is worse for it, too);
    after those what was nothing or is; last what is no measurement: models' numbers, and what a spec makes of others.
    """
    metric = METRICS.get(number.metric)
    if sense(number) == "broke":
        return -1, -abs((number.b or 0.0) - (number.a or 0.0))
    if metric is None or metric.captured_at == "model":
        return 2, -size_of(number)
    vanished = number.b is None and sense(number) == "worse"
    return 0 if vanished or (number.a and number.b) else 1, -size_of(number)


def ranked(numbers: Sequence[ComparedNumber]) -> tuple[ComparedNumber, ...]:
    """The numbers, what broke first, then the largest change."""
    return tuple(sorted(numbers, key=_place))


def rank(cell: ChangedCell) -> tuple[int, float]:
    """Where a cell stands in the list: by its first number."""
    return _place(cell.numbers[0])


def headline(cell: ChangedCell) -> ComparedNumber | None:
    """What broke; else the largest change of a metric that summaries show first."""
    shown = (number for number in cell.numbers if number.metric in HEADLINE or sense(number) == "broke")
    return next(shown, None)


def changed_tests(a: Sequence[WatchedTest], b: Sequence[WatchedTest]) -> tuple[ChangedTest, ...]:
    """Tests that ended otherwise, those that fail now first, then those that one kernel's source does not have."""
    before, after = ({test.name: test for test in tests} for tests in (a, b))

    def differing() -> Iterator[ChangedTest]:
        for name in dict.fromkeys([*before, *after]):
            pair = ChangedTest(name, before.get(name), after.get(name))
            if pair.a is None or pair.b is None or pair.a.verdict != pair.b.verdict or pair.inside:
                yield pair

    return tuple(sorted(differing(), key=lambda each: (each.a is None or each.b is None, not each.worse)))


def as_json(watched: Watched) -> dict[str, object]:
    """The object of watch.json and --json."""
    names = watched.finding_numbers

    def kernel(each: WatchedKernel) -> dict[str, object]:
        said = msgspec.to_builtins(each)
        return {**said, "tests": dict(watched.counts(each))}

    return {
        "differs": watched.differs,
        "set": watched.set_name,
        "base": kernel(watched.base),
        "new": kernel(watched.new),
        "numbers": dict(watched.numbers),
        "cells": [
            {
                "finding": names[cell.name], "run": cell.run, "spec": cell.spec, "levels": dict(cell.levels),
                "first_packet": cell.first, "base_cell": cell.cells[0], "new_cell": cell.cells[1],
                "numbers": [
                    {
                        "flow": one.flow, "metric": one.metric, "unit": one.unit, "base": one.a, "new": one.b,
                        "relative": one.relative, "p": one.p, "sense": meaning,
                    }
                    for one, meaning in zip(cell.numbers, senses(cell.numbers), strict=True)
                ],
            }
            for cell in watched.cells
        ],
        "outcomes": [
            {
                "finding": names[each.name], "run": each.run, "cell": each.ended.name,
                "base": each.ended.a, "new": each.ended.b,
            }
            for each in watched.ended
        ],
        "failed": [
            {"run": run.run, "base": run.failed[0], "new": run.failed[1]} for run in watched.runs if any(run.failed)
        ],
        "verdicts": [
            {"run": run.run, "claim": moved.name, "base": moved.a, "new": moved.b}
            for run in watched.runs for moved in run.verdicts
        ],
        "tests": [
            {
                "finding": names.get(f"test {one.name}"), "test": one.name,
                "base": one.a and one.a.verdict, "new": one.b and one.b.verdict,
                "note": one.b.note if one.b else "", "cases": one.inside,
            }
            for one in watched.tests
        ],
        "splats": [msgspec.to_builtins(splat) for splat in watched.splats],
        "bisected": [msgspec.to_builtins(one) for one in watched.bisected],
    }  # fmt: skip
