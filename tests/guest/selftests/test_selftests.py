"""A test in a guest: how it ends is told, time is the guest's, and its files are in memory.

On the kernel that runs use; that of `netwarp selftest` takes minutes to build (docs/selftests.md has its results).
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from netwarp.selftests.guest import Bench, Result, run_test
from netwarp.selftests.tree import Selftest
from support.chain_kit import Checkout

SCRIPTS = {
    "good.sh": "echo 'ok 1 - one'; sleep 100; ip netns add x && echo 'ok 2 - two # SKIP no'; touch here /etc/there\n",
    "skips.sh": "echo '# SKIP: there is no such thing'; exit 4\n",
    "bad.sh": "echo 'not ok 1 - one'; exit 1\n",
    "waits.sh": "sleep infinity\n",
    "reads.sh": 'while read -r line; do echo "read $line"; done < <(echo differences)\n',
    "udpgso.sh": "set -e; cat /proc/uptime; ip link set dev lo up; cat /proc/uptime; ip link set dev no up; echo on\n",
    "spins.sh": ". ./lib.sh\nbusywait 3000 false; echo after $?\n",
}
LIB = """\
loopy_wait()
{
	local sleep_cmd=$1 timeout_ms=$2 start=$(date -u +%s%3N); shift 2
	while true; do
		"$@" && return 0
		(($(date -u +%s%3N) - start > timeout_ms)) && return 1
		$sleep_cmd
	done
}
busywait()
{
	local timeout_ms=$1; shift
	loopy_wait : "$timeout_ms" "$@"
}
"""


@pytest.fixture
def bench(checkout: Checkout, tmp_path: Path) -> Bench:
    tests = tmp_path / "tests"
    (tests / "net").mkdir(parents=True)
    for name, text in SCRIPTS.items():
        (tests / "net" / name).write_text("#!/bin/bash\n" + text)
        (tests / "net" / name).chmod(0o755)
    (tests / "net" / "lib.sh").write_text(LIB)
    (tmp_path / "packages").mkdir()
    return Bench(checkout.kernel, tmp_path / "packages", tests, 1, 600)


def run(bench: Bench, name: str, place: Path, limit_s: int = 1000) -> Result:
    return run_test(bench, Selftest("net", name), place, limit_s=limit_s)


def test_a_test_that_passes(bench: Bench, tmp_path: Path) -> None:
    result = run(bench, "good.sh", tmp_path / "guest")
    assert (result.verdict, result.status, result.note) == ("pass", 0, ""), result.output
    assert result.virtual_s is not None
    assert 100 <= result.virtual_s < 101
    assert [case.verdict for case in result.cases] == ["pass", "skip"]
    assert not (bench.tests / "net" / "here").exists()
    assert not Path("/etc/there").exists()


@pytest.mark.parametrize(
    ("name", "verdict", "note"),
    [
        ("skips.sh", "skip", "SKIP: there is no such thing"),
        ("bad.sh", "fail", ""),
        ("waits.sh", "fail", "reached the limit of virtual time"),
    ],
)
def test_how_a_test_ends_is_told(bench: Bench, tmp_path: Path, name: str, verdict: str, note: str) -> None:
    result = run(bench, name, tmp_path / "guest")
    assert (result.verdict, result.note) == (verdict, note)


def test_the_output_of_a_command_can_be_read_as_a_file(bench: Bench, tmp_path: Path) -> None:
    """mptcp_join.sh compares files so: without /dev/fd it would find no difference."""
    assert run(bench, "reads.sh", tmp_path / "guest").output.splitlines() == ["read differences"]


SPINS_ON_TIMES = """\
#include <stdio.h>
#include <sys/times.h>
int main(void)
{
	clock_t first = times(NULL), last = first;
	while (last - first < 10)
		last = times(NULL);
	puts("ten ticks");
	return 0;
}
"""


def test_a_packetdrill_of_the_users_gets_a_clock_that_moves(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its one loop that would never end here, in a program of that name; the kernel's runner runs it. Without one in
    PATH that runner skips.
    """
    folder = bench.tests / "net" / "packetdrill"
    folder.mkdir()
    (bench.tests / "kselftest").mkdir()
    (bench.tests / "kselftest" / "ktap_helpers.sh").write_text("#!/bin/bash\n")
    runner = folder / "ksft_runner.sh"
    runner.write_text(
        "#!/bin/bash\n. ../../kselftest/ktap_helpers.sh\n[ $(which packetdrill) ] || exit 4\npacketdrill\n"
    )
    runner.chmod(0o755)
    (tmp_path / "own").mkdir()
    test = Selftest("net/packetdrill", "ksft_runner.sh")
    assert run_test(bench, test, tmp_path / "without", limit_s=1000).verdict == "skip"
    (tmp_path / "packetdrill.c").write_text(SPINS_ON_TIMES)
    subprocess.run(["gcc", "-o", tmp_path / "own" / "packetdrill", tmp_path / "packetdrill.c"], check=True)
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{tmp_path}/own")
    result = run_test(bench, test, tmp_path / "with", limit_s=1000)
    assert (result.verdict, result.output) == ("pass", "ten ticks\n")
    assert result.virtual_s is not None
    assert 0.09 <= result.virtual_s < 0.2


def test_a_loop_that_only_looks_at_the_clock_is_made_to_sleep(bench: Bench, tmp_path: Path) -> None:
    """Reading the clock takes 256 virtual ns: without the override this would last until the limit of wall time."""
    result = run(bench, "spins.sh", tmp_path / "guest")
    assert "after 1" in result.output
    assert result.virtual_s is not None
    assert 3 <= result.virtual_s < 4


def test_what_stands_below_the_first_line_of_a_script_comes_before_its_own_words(bench: Bench, tmp_path: Path) -> None:
    """In udpgso.sh time passes after each `ip`, and one that fails still ends the script."""
    result = run(bench, "udpgso.sh", tmp_path / "guest")
    began, ended = (float(line.split()[0]) for line in result.output.splitlines()[:2])
    assert ended - began == pytest.approx(0.01, abs=0.01001)
    assert ended > began
    assert result.verdict == "fail"
    assert "no" in result.output and "on" not in result.output.split()
    assert (bench.tests / "net/udpgso.sh").read_text() == "#!/bin/bash\n" + SCRIPTS["udpgso.sh"]
