"""Scripts of our own, played in guests: what passes, and that a line that is wrong in one way fails at that line.

The kernel's scripts come with its source; docs/selftests.md has their results.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from netwarp.sandbox.children import Children
from netwarp.selftests.packetdrill.addresses import VERSIONS, Version
from netwarp.selftests.packetdrill.cases import CaseResult, play_script
from netwarp.selftests.packetdrill.guest import Bench
from netwarp.selftests.packetdrill.judge import Tolerance
from support.chain_kit import Checkout

OPEN = """\
`sysctl -q net.ipv4.tcp_rmem="4096 131072 6291456" net.ipv4.tcp_congestion_control=cubic`

    0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
   +0 setsockopt(3, SOL_SOCKET, SO_REUSEADDR, [1], 4) = 0
   +0 bind(3, ..., ...) = 0
   +0 listen(3, 1) = 0

  +.1 < S 7:7(0) win 32792 <mss 1000,sackOK,TS val 5 ecr 0,nop,wscale 7>
   +0 > S. 0:0(0) ack 8 <mss 1460,sackOK,TS val 100 ecr 5,nop,wscale 7>
 +.01 < . 1:1(0) ack 1 win 257 <nop,nop,TS val 6 ecr 100>
   +0 accept(3, ..., ...) = 4
   +0 write(4, ..., 2000) = 2000
"""
DATA = "   +0 > P. 1:2001(2000) ack 1 <nop,nop,TS val 110 ecr 6>\n"
REST = """\
 +.01 < . 1:1(0) ack 2001 win 257 <nop,nop,TS val 7 ecr 110>
   +0 %{ assert tcpi_snd_cwnd == 10 and tcpi_unacked == 0, tcpi_snd_cwnd }%
+0...0.05 read(4, ..., 1000) = 500
 +.05 < P. 1:501(500) ack 2001 win 257 <nop,nop,TS val 8 ecr 110>
+0 > . 2001:2001(0) ack 501 <...>
   +0 close(4) = 0
   +0 > F. 2001:2001(0) ack 501 <...>
   +0 `grep -q " 0A " /proc/net/tcp /proc/net/tcp6`
"""
WHOLE = OPEN + DATA + REST
CALLS = """\
    0 socket(..., SOCK_STREAM|SOCK_NONBLOCK, IPPROTO_TCP) = 7
   +0 fcntl(7, F_GETFL) = 0x802
   +0 write(7, NULL, 10) = -1 EPIPE (Broken pipe)
   +0 accept(7, ..., ...) = -1 EINVAL
   +0 getsockopt(7, SOL_SOCKET, SO_REUSEADDR, [0], [4]) = 0
   +0 pipe([8, 9]) = 0
   +0 write(9, ..., 3) = 3
   +0 ioctl(8, FIONREAD, [3]) = 0
   +0 poll([{fd=8, events=POLLIN, revents=POLLIN}], 1, 0) = 1
   +0 epoll_create(1) = 10
   +0 epoll_ctl(10, EPOLL_CTL_ADD, 8, {events=EPOLLIN, fd=8}) = 0
   +0 epoll_wait(10, {events=EPOLLIN, fd=8}, 4, 0) = 1
   +0 connect(7, ..., ...) = -1 EINPROGRESS (Operation now in progress)
   +0 > S 0:0(0) <...>
   +1~+1.1 > S 0:0(0) <...>
   +0 < R. 0:0(0) ack 1 win 0
   +0 getsockopt(7, SOL_SOCKET, SO_ERROR, [111], [4]) = 0
"""


@pytest.fixture
def bench(checkout: Checkout) -> Bench:
    return Bench(checkout.kernel, 1, 600)


def run(
    bench: Bench, text: str, place: Path, *, version: Version = "ipv4", tolerance: Tolerance | None = None
) -> CaseResult:
    place.mkdir()
    script = place / "own.pkt"
    script.write_text(text)
    result = play_script(bench, script, (version,), place / "run", Children(), tolerance=tolerance)
    (case,) = result.cases
    assert result.verdict == case.verdict
    return case


def first_line(case: CaseResult) -> str:
    """Why a case failed, without the time."""
    return re.sub(r" at [0-9.]+ s", "", case.reason.split("\n")[0])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_script_that_passes(bench: Bench, tmp_path: Path, version: Version) -> None:
    case = run(bench, WHOLE, tmp_path / "one", version=version)
    assert case.verdict == "pass", case.reason
    assert case.virtual_s is not None
    assert 0.16 < case.virtual_s < 0.18
    assert run(bench, WHOLE, tmp_path / "two", version=version).verdict == "pass"
    names = ("drill.ndjson", "tun0.pcap", "timeline.txt")
    first, second = (
        [(tmp_path / one / "run" / version / name).read_bytes() for name in names] for one in ("one", "two")
    )
    assert first == second


def test_calls_their_results_and_what_they_write(bench: Bench, tmp_path: Path) -> None:
    case = run(bench, CALLS, tmp_path / "run")
    assert case.verdict == "pass", case.reason


@pytest.mark.parametrize(
    ("good", "bad", "reason"),
    [
        (
            "write(4, ..., 2000) = 2000",
            "write(4, ..., 2000) = 1999",
            "line 12: write returned 2000, expected",
        ),
        ("> P. 1:2001(2000) ack 1 <", "> . 1:2001(2000) ack 1 <", "line 13: flag PSH"),
        ("> P. 1:2001(2000)", "> P. 1:1901(1900)", "line 13: payload: expected 1900, seen 1976"),
        ("ack 8 <mss", "ack 9 <mss", "line 9: acknowledgement: expected 9, seen 8"),
        ("<mss 1460,sackOK", "<mss 1400,sackOK", "line 9: value of the TCP option mss"),
        ("== 10 and", "== 5 and", "line 15: assert tcpi_snd_cwnd == 5 and tcpi_unacked == 0: tcpi_snd_cwnd is 10"),
        ("> S. 0:0(0) ack 8 <", "> [ce] S. 0:0(0) ack 8 <", "line 9: ECN field"),
        (
            "ecr 110>\n   +0 %",
            "ecr 111>\n   +0 %",
            "line 14: no packet before this one has the time stamp that ecr 111",
        ),
        ('grep -q " 0A "', 'grep -q "zz"', "line 21: the command ended with status 1"),
        ("= 500\n", "= 501\n", "line 16: read returned 500, expected 501"),
    ],
)
def test_a_line_that_is_wrong_fails_there(bench: Bench, tmp_path: Path, good: str, bad: str, reason: str) -> None:
    assert WHOLE.count(good) == 1
    case = run(bench, WHOLE.replace(good, bad), tmp_path / "run")
    assert (case.verdict, first_line(case)[: len(reason)]) == ("fail", reason)


def test_a_failure_shows_the_packet_that_was_expected_beside_the_one_seen(bench: Bench, tmp_path: Path) -> None:
    case = run(bench, WHOLE.replace("P. 1:2001", ". 1:2001"), tmp_path / "run")
    assert case.reason.split("\n")[1:] == [
        "  expected  > . 1:2001(2000) ack 1 <nop,nop,TS val 110 ecr 6>",
        "  seen      > P. 1:2001(2000) ack 1 win 510 <nop,nop,TS val 110 ecr 6>",
    ]
    assert "line 13" in case.timeline


def test_a_packet_that_never_comes(bench: Bench, tmp_path: Path) -> None:
    case = run(bench, OPEN + DATA + "+.01 < . 1:1(0) ack 2001 win 257\n+.1 > . 1:1(0) ack 1\n", tmp_path / "run")
    assert case.verdict == "fail"
    assert case.reason == "line 15: no packet came\n  expected  > . 1:1(0) ack 1\n  seen      no packet"


def test_a_call_that_hangs_ends_with_its_line(bench: Bench, tmp_path: Path) -> None:
    case = run(bench, OPEN + "+0 read(4, ..., 10) = 10\n+0 close(4) = 0\n", tmp_path / "run")
    assert (case.verdict, case.reason) == ("fail", "line 13: read did not return")


def test_tolerances_are_judged_from_one_recording(bench: Bench, tmp_path: Path) -> None:
    late = WHOLE.replace("+0 > . 2001", "+.0025 > . 2001")
    case = run(bench, late, tmp_path / "own")
    assert case.verdict == "pass", case.reason
    assert (case.own, case.within_1ms, case.exact) == (True, False, False)
    assert case.needs_us is not None
    assert 2490 <= case.needs_us <= 2510
    strict = run(bench, late, tmp_path / "strict", tolerance=Tolerance(case.needs_us - 1))
    assert strict.verdict == "fail"
    assert "us early (tolerance" in first_line(strict)
    assert run(bench, late, tmp_path / "enough", tolerance=Tolerance(case.needs_us)).verdict == "pass"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (WHOLE.replace("write(4", "sendmmsg(4"), "line 12: the system call sendmmsg"),
        (WHOLE.replace("assert tcpi", "import os; assert tcpi"), "line 15: Python's import"),
        ("0 < udp (10)\n", "line 1: packets of udp"),
        ("0 `no-such-program-here`\n", "this machine has no no-such-program-here"),
        ("`sysctl -q net.ipv4.no_such=1`\n0 `true`\n", "this kernel has no /proc/sys/net/ipv4/no_such"),
        (
            "0 `tc qdisc add dev tun0 root hfsc`\n",
            "this kernel lacks a qdisc (Specified qdisc kind is unknown)",
        ),
    ],
)
def test_what_the_player_has_no_means_for_is_skipped(bench: Bench, tmp_path: Path, text: str, reason: str) -> None:
    case = run(bench, text, tmp_path / "run")
    assert (case.verdict, case.reason) == ("skip", reason)


def test_a_guest_that_ends_before_its_script_is_a_failure_with_its_last_words(bench: Bench, tmp_path: Path) -> None:
    off = "perl -e 'syscall(169, 0xfee1dead, 0x28121969, 0x4321fedc, 0)'"
    case = run(bench, f"0 `true`\n+0 `{off}`\n+0 `true`\n", tmp_path / "run")
    assert case.verdict == "fail"
    assert case.reason == "line 2: the command did not end; the guest's last words: [   10.000000] reboot: Power down"


@pytest.mark.parametrize("version", ["ipv4", "ipv6"])
def test_tshark_reads_the_capture(bench: Bench, tmp_path: Path, version: Version) -> None:
    """Checksums are right in both directions, and payload lengths are those of the script."""
    assert run(bench, WHOLE, tmp_path / "run", version=version).verdict == "pass"
    file = tmp_path / "run" / "run" / version / "tun0.pcap"
    command = ["tshark", "-n", "-r", str(file), "-o", "tcp.check_checksum:TRUE", "-Y", "tcp", "-T", "fields"]
    done = subprocess.run(
        [*command, "-e", "tcp.len", "-e", "tcp.checksum.status"], check=True, capture_output=True, text=True
    )
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [row[0] for row in rows] == ["0", "0", "0", "1976", "24", "0", "500", "0", "0"]
    assert {row[1] for row in rows} == {"1"}
