"""KTAP: the lines of tests are read, and ours are what the kernel's form asks for."""

from __future__ import annotations

import pytest
from netwarp.selftests.tap import Case, cases, counted, head, not_passed, report, verdict_of

OUTPUT = """\
17 wrap-around ids                                   [ OK ]
TAP version 13
1..5
ok 1 - pm_netlink: defaults addr list # time=0ms
not ok 2 - diag: many msk socket present # timeout time=20007ms
ok 3 - diag: ....chk last_data_sent # SKIP time=500ms
# ok 4 nested.case
not ok 5 known # XFAIL not yet
ok, that is no result
"""


def test_results_of_a_test_are_read_with_their_directives() -> None:
    assert cases(OUTPUT) == (
        Case("pm_netlink: defaults addr list", "pass"),
        Case("diag: many msk socket present", "fail"),
        Case("diag: ....chk last_data_sent", "skip", "time=500ms"),
        Case("nested.case", "pass"),
        Case("known", "pass", "not yet"),
    )
    assert counted(cases(OUTPUT)) == {"pass": 3, "fail": 1, "skip": 1}


@pytest.mark.parametrize(("status", "verdict"), [(0, "pass"), (4, "skip"), (1, "fail"), (124, "fail"), (139, "fail")])
def test_exit_statuses(status: int, verdict: str) -> None:
    assert verdict_of(status) == verdict


def test_a_report_is_ktap() -> None:
    lines = [*head(2), *report(1, "net:a", "pass", "", ["one", "ok 1 - x"]), *report(2, "net:b", "skip", "no nft")]
    assert lines == [
        "KTAP version 1",
        "1..2",
        "# selftests: net:a",
        "# one",
        "# ok 1 - x",
        "ok 1 selftests: net:a",
        "# selftests: net:b",
        "ok 2 selftests: net:b # SKIP no nft",
    ]
    assert list(report(3, "net:c", "fail", "wall 1.0 s"))[-1] == "not ok 3 selftests: net:c # wall 1.0 s"


def test_what_did_not_pass_is_named_again_at_the_end() -> None:
    results = [("net:a", "pass", ""), ("net:b", "fail", "line 3: flag PSH\n  expected"), ("net:c", "skip", "no nft")]
    assert list(not_passed(results)) == ["# failed: net:b: line 3: flag PSH", "# skipped: net:c: no nft"]  # type: ignore[arg-type]
    assert cases("\n".join(not_passed(results))) == (), "no result is read from them"  # type: ignore[arg-type]
