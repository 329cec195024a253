"""NIPA's result files: what its collector reads."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from netwarp.core.errors import SpecError
from netwarp.selftests.guest import Result, in_words
from netwarp.selftests.nipa import Origin, build_failure, namify, result_file, write_result_file
from netwarp.selftests.tap import Case
from netwarp.selftests.tree import Selftest, parse_test
from netwarp.store.console import splats

ORIGIN = Origin("netwarp-uml", "net-next-2026-08-20--15-00", "https://example.org/results/1/")
STARTED, ENDED = datetime(2026, 8, 20, 15, 1, 10, tzinfo=UTC), datetime(2026, 8, 20, 15, 43, 2, 100, tzinfo=UTC)
RESULTS = [
    Result(Selftest("packetdrill", "tcp_sack_shift.pkt"), "pass", 0, 1.0, 1.93, "", "", (
        Case("ipv4", "pass"), Case("ipv4-mapped-ipv6", "skip", "why"))),
    Result(parse_test("net/mptcp:mptcp_join.sh -f -s"), "fail", 1, 1.0, 12.49, "", "", ()),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "name"), [("tcp_sack.pkt", "tcp-sack-pkt"), ("net/mptcp", "net-mptcp"), ("a  (b)", "a-b"), ("ab1", "ab1")]
)
def test_names(text: str, name: str) -> None:
    assert namify(text) == name


def test_a_result_file() -> None:
    content = result_file(RESULTS, ORIGIN, STARTED, ENDED)
    assert (content["executor"], content["branch"]) == (ORIGIN.executor, ORIGIN.branch)
    assert (content["start"], content["end"]) == ("2026-08-20 15:01:10+00:00", "2026-08-20 15:43:02.000100+00:00")
    assert "device" not in content
    assert content["results"] == [
        {
            "test": "tcp-sack-shift-pkt", "group": "selftests-net-packetdrill", "result": "pass", "time": 1.9,
            "link": "https://example.org/results/1/01-packetdrill-tcp_sack_shift.pkt",
            "results": [{"test": "ipv4", "result": "pass"}, {"test": "ipv4-mapped-ipv6", "result": "skip"}],
        },
        {
            "test": "mptcp-join-sh-f-s", "group": "selftests-net-mptcp", "result": "fail", "time": 12.5,
            "link": "https://example.org/results/1/02-net-mptcp-mptcp_join.sh",
        },
    ]  # fmt: skip


def test_reports_of_the_kernel_are_crashes() -> None:
    """A recorded console of two reports, of which the second is the panic that the first one ends in."""
    found = splats(Path(__file__).parents[2] / "data" / "consoles" / "bug.txt")
    result = Result(parse_test("net:x.sh"), "fail", None, None, 1.0, in_words(found), "", (), found)
    assert result.note.startswith("the guest's kernel reported 16.288 s after its start: BUG: failure at net/ipv4/")
    assert result.note.endswith("(and 1 more)")
    (entry,) = result_file([result], ORIGIN, STARTED, ENDED)["results"]  # type: ignore[misc, attr-defined]
    assert len(entry["crashes"]) == 2
    assert entry["crashes"][1].endswith(":tcp_retransmit_timer:tcp_write_timer_handler:tcp_write_timer:call_timer_fn")


def test_a_kernel_that_does_not_build_is_one_failed_test() -> None:
    (entry,) = build_failure("net/ipv4/tcp.c: error", ORIGIN, STARTED, ENDED)["results"]  # type: ignore[misc]
    assert (entry["test"], entry["result"], entry["link"]) == ("build", "fail", ORIGIN.link)


def test_it_is_put_into_its_place_whole(tmp_path: Path) -> None:
    file = tmp_path / "results-1.json"
    file.write_text("old")
    content = result_file(RESULTS, ORIGIN, STARTED, ENDED)
    write_result_file(file, content)
    assert json.loads(file.read_text()) == content
    assert [path.name for path in tmp_path.iterdir()] == ["results-1.json"]
    with pytest.raises(SpecError, match=r"--nipa .*/x: cannot be written: .*; .* name another place"):
        write_result_file(file / "x", content)
