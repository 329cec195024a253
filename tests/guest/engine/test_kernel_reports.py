"""A report of a guest's kernel about a fault of its own ends the cell, on the plain kernel and on one with checks.

A kernel with checks takes long to build, and CI builds none: those tests are skipped where 6.12+debug is not there
(`netwarp kernel build --debug`).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import netwarp
import pytest
from netwarp.core.types import Outcome
from netwarp.engine.compare_packets import compare_packets
from netwarp.engine.selftests import run_selftests
from netwarp.guestkernel.cache import find_named
from netwarp.store.run_dir import RunDir
from support.specs import two_hosts

HEAD = 'name = "reports"\nduration = "6 s"'
LINK = 'rate = "2 Mbit/s"\nqueue = "50 packets"\none_way_delay = "10 ms"'
SAYS = """
protocol = "udp"
start = "1500 ms"
[flow.f.program]
sender = ["sh", "-c", "echo '{line}' > /dev/kmsg"]
"""
CUT = """
protocol = "tcp"
[flow.f]
[event.fault]
action = "cut"
link = "p1"
at = "2 s"
for = "1 s"
"""
DEBUG = find_named("6.12+debug")


def ran(tmp_path: Path, more: str, name: str = "run", **settings: str) -> tuple[RunDir, str, Outcome]:
    """The run of a cell, its reason and its outcome."""
    (tmp_path / "spec.toml").write_text(two_hosts(HEAD, LINK, more))
    done = netwarp.run(tmp_path / "spec.toml", out=tmp_path / name, sets=settings)
    outcome = RunDir(done.path).cell(done.plan.cells[0].id).read_outcome()
    return RunDir(done.path), outcome.reason, outcome.outcome


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user's guest may not write /dev/kmsg")
@pytest.mark.usefixtures("checkout")
def test_a_warning_ends_the_cell_with_its_instant(tmp_path: Path) -> None:
    line = "<4>WARNING: CPU: 0 PID: 1 at net/ipv4/tcp.c:1 made_up+0x1/0x2"
    _, reason, outcome = ran(tmp_path, SAYS.replace("{line}", line))
    assert outcome is Outcome.FAILED
    said = re.fullmatch(r"the guest's kernel reported at T0 \+ (\S+) s: WARNING: CPU: 0 .* made_up\+0x1/0x2", reason)
    assert said is not None and 1.495 <= float(said[1]) <= 1.55, reason


@pytest.mark.usefixtures("checkout")
def test_what_is_no_report_ends_nothing(tmp_path: Path) -> None:
    _, reason, outcome = ran(tmp_path, SAYS.replace("{line}", "<4>TCP: a WARNING: of no importance"))
    assert outcome is Outcome.COMPLETED, reason


@pytest.mark.skipif(DEBUG is None, reason="no 6.12+debug is built here: netwarp kernel build --debug")
@pytest.mark.usefixtures("checkout")
def test_packets_of_the_debug_kernel_are_those_of_the_plain_one(tmp_path: Path) -> None:
    plain, reason, outcome = ran(tmp_path, CUT, kernel="6.12")
    assert outcome is Outcome.COMPLETED, reason
    debug, reason, outcome = ran(tmp_path, CUT, "debug", kernel="6.12+debug")
    assert outcome is Outcome.COMPLETED, reason
    compared = compare_packets(plain.root, debug.root)
    assert [pair.words for pair in compared.cells] == [""]
    assert compared.count("equal") == 1


@pytest.mark.skipif(DEBUG is None, reason="no 6.12+debug is built here: netwarp kernel build --debug")
@pytest.mark.usefixtures("checkout")
def test_a_selftest_on_the_debug_kernel_leaks_nothing(tmp_path: Path) -> None:
    """The processes of its own last lines were objects that only RCU knew, and so leaks."""
    done = run_selftests(["net:tcp_inq"], kernel="6.12+debug", out=tmp_path / "out")
    assert [(result.verdict, result.note) for result in done.results] == [("pass", "")]
