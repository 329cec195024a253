"""Watched kernels without runs: what `netwarp kernel watch` would have found."""

from __future__ import annotations

from collections import Counter

from netwarp.results.compared_numbers import ComparedNumber, MovedOutcome, Verdict
from netwarp.results.watched import (
    ChangedCell,
    ChangedRun,
    Splat,
    Watched,
    WatchedKernel,
    WatchedTest,
    changed_tests,
    ranked,
)


def number(metric: str, a: float | None, b: float | None, verdict: Verdict = "changed") -> ComparedNumber:
    return ComparedNumber((("case", "bulk"),), "f", metric, "s", verdict, a, b, (1, 1))


def kernel(name: str, *tests: WatchedTest) -> WatchedKernel:
    return WatchedKernel(name, "6.12.117", name * 8, "key", "linux-source-6.12", ("1-watch",), tests)


def watched(**more: object) -> Watched:
    """One cell with a moved number, one test that fails now, one splat, one outcome."""
    tests = [
        WatchedTest("net:tls", "pass"),
        WatchedTest("packetdrill:a.pkt", "fail", "line 3", (("ipv4", "fail", ""),)),
    ]
    before = kernel(
        "6.12", WatchedTest("net:tls", "pass"), WatchedTest("packetdrill:a.pkt", "pass", "", (("ipv4", "pass", ""),))
    )
    after = kernel("6.12+fix", *tests)
    cell = ChangedCell(
        "1-watch", "watch", (("case", "bulk <b>"),), ranked([number("completion_time_s", 1.0, 1.5)]),
        "at b on p1: packet 7, at 0.1 s: window: 5 in A, 4 in B", ("bulk_r0_0", "bulk_r0_1"),
    )  # fmt: skip
    run = ChangedRun(
        "1-watch", "watch", 29, Counter(changed=1, same=8),
        (MovedOutcome("case=cut", "COMPLETED", "FAILED", (("case", "cut"),), 0),), (),
    )  # fmt: skip
    splat = Splat("runs/1-watch/cells/x", "BUG: sleeping function")
    parts = {"cells": (cell,), "runs": (run,), "splats": (splat,), "tests": changed_tests(before.tests, after.tests)}
    return Watched(before, after, "small", **(parts | more))  # type: ignore[arg-type]
